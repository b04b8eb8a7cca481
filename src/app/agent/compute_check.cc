#include "app/agent/compute_check.h"

#include <algorithm>
#include <utility>

#include "base/core/printable.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

/// A driver initializes a GPU in a second or two, and eight of them one after the other.
constexpr base::Duration kComputeDeadline = std::chrono::seconds(60);
constexpr base::Duration kRetryFirst = std::chrono::seconds(30),
                         kRetryMost = std::chrono::minutes(10);
constexpr std::size_t kAtOnce = 4, kMostReason = 300;
constexpr char kComputeOff[] = "validation.compute is off";

/// Exit statuses: see device::Dialect::compute_program.
enum Status { kComputed = 0, kBusy = 3, kCannotTry = 4 };

/// The last line that says something, without the program's name before it.
std::string ReasonIn(const std::string& output, const std::string& program) {
  std::string last;
  for (std::string_view line : base::Split(output, '\n')) {
    const std::string_view text = base::Trim(line);
    if (text.starts_with(program + ": ")) last = text.substr(program.size() + 2);
  }
  if (last.empty()) last = "it ended without a reason";
  return base::Printable(last.substr(0, kMostReason));
}

std::string ReasonOf(const os::Command::Outcome& outcome, const std::string& program) {
  if (outcome.status > 128)
    return program + " was ended by signal " + std::to_string(outcome.status - 128);
  return ReasonIn(outcome.output, program);
}

/// A sharing server holds its device even while it serves no pod.
bool HasServer(const api::Report& report, const std::string& device) {
  return std::ranges::any_of(report.servers, [&](const api::ServerReport& server) {
    return std::ranges::find(server.devices, device) != server.devices.end();
  });
}

}  // namespace

std::string DriverInstance(const node::inventory::VendorEntry& entry) {
  if (entry.driver == nullptr) return "";
  return base::FormatTime(entry.since) + " " + entry.driver->version + " " +
         (entry.place == nullptr ? "" : entry.place->instance);
}

ComputeCheck::ComputeCheck(os::Loop& control, const device::DialectOf& dialect_of,
                           std::string folder, std::function<void()> changed)
    : control_(control),
      dialect_of_(dialect_of),
      folder_(std::move(folder)),
      changed_(std::move(changed)) {}

ComputeCheck::~ComputeCheck() = default;

void ComputeCheck::Configure(const api::NodeConfig& config) {
  driver_root_ = config.paths.driver_root;
  if (std::exchange(enabled_, config.validation.compute) == enabled_) return;
  vendors_.clear();
  facts_ = {};
  if (!enabled_) facts_.off = kComputeOff;
}

void ComputeCheck::Follow(const api::Report& report, const node::inventory::Snapshot& inventory) {
  if (!enabled_) return;
  for (const node::inventory::VendorEntry& entry : inventory.vendors) {
    const device::Dialect* dialect = dialect_of_(entry.vendor);
    if (dialect != nullptr && !dialect->compute_program().empty())
      FollowVendor(*dialect, entry, report);
  }
}

void ComputeCheck::FollowVendor(const device::Dialect& dialect,
                                const node::inventory::VendorEntry& entry,
                                const api::Report& report) {
  OfVendor& vendor = vendors_[entry.vendor];
  const std::string instance = DriverInstance(entry);
  if (std::exchange(vendor.instance, instance) != instance) {
    Forget(vendor);
    vendor.program = dialect.compute_program();
    vendor.root = entry.place == nullptr ? driver_root_ : entry.place->driver_root;
    const std::string file = folder_ + "/" + vendor.program;
    if (!instance.empty() && !os::Exists(file)) facts_.off = "there is no " + file;
  }
  if (instance.empty() || !facts_.off.empty()) return;
  for (const api::DeviceReport& device : report.devices) {
    if (device.vendor != entry.vendor || device.parts > 0 || device.health_state == "gone" ||
        !MayTry(vendor, device.id))
      continue;
    if (!device.holders.empty() || HasServer(report, device.id)) {
      if (!facts_.outcomes.contains(device.id)) facts_.in_use.insert(device.id);
    } else if (running() < kAtOnce) {
      Try(entry.vendor, device.id);
    }
  }
}

void ComputeCheck::Forget(OfVendor& vendor) {
  for (const auto& [device, trial] : vendor.trials) {
    facts_.outcomes.erase(device);
    facts_.in_use.erase(device);
  }
  vendor.trials.clear();
  facts_.in_use.clear();
  facts_.off.clear();
}

bool ComputeCheck::MayTry(const OfVendor& vendor, const std::string& device) const {
  const auto trial = vendor.trials.find(device);
  if (trial == vendor.trials.end()) return true;
  if (trial->second.command != nullptr) return false;
  const auto outcome = facts_.outcomes.find(device);
  const bool computed = outcome != facts_.outcomes.end() && outcome->second.computed;
  return !computed && control_.clock().Now() >= trial->second.again;
}

std::size_t ComputeCheck::running() const {
  std::size_t count = 0;
  for (const auto& [name, vendor] : vendors_)
    for (const auto& [device, trial] : vendor.trials) count += trial.command != nullptr ? 1 : 0;
  return count;
}

void ComputeCheck::Try(const std::string& name, const std::string& device) {
  OfVendor& vendor = vendors_.at(name);
  os::Command::Options options;
  options.spawn.arguments = {folder_ + "/" + vendor.program, "--driver-root", vendor.root,
                             "--device", device};
  options.deadline = kComputeDeadline;
  vendor.trials[device].command = std::make_unique<os::Command>(
      control_, std::move(options),
      lifetime_.Guard([this, name, device](const base::Result<os::Command::Outcome>& outcome) {
        Ended(name, device, outcome);
      }));
}

void ComputeCheck::Ended(const std::string& name, const std::string& device,
                         const base::Result<os::Command::Outcome>& outcome) {
  OfVendor& vendor = vendors_.at(name);
  Trial& trial = vendor.trials.at(device);
  // It calls this, and is not used afterwards.
  control_.Post([ended = std::shared_ptr<os::Command>(std::move(trial.command))] {});
  const node::validate::ComputeFacts before = facts_;
  facts_.in_use.erase(device);
  if (outcome.ok() && outcome->status == kComputed) {
    facts_.outcomes[device] = {.computed = true, .why = ""};
  } else if (outcome.ok() && outcome->status == kCannotTry) {
    facts_.off = ReasonIn(outcome->output, vendor.program);
  } else {
    const std::string why =
        outcome.ok() ? ReasonOf(*outcome, vendor.program) : outcome.error().message();
    if (outcome.ok() && outcome->status == kBusy) {
      facts_.outcomes.erase(device);
      facts_.in_use.insert(device);
    } else {
      facts_.outcomes[device] = {.computed = false, .why = why};
      base::Log(base::kWarn, "device cannot compute", {{"device", device}, {"why", why}});
    }
    const base::Duration pause =
        std::min(kRetryMost, kRetryFirst * (1 << std::min(trial.failures++, 5)));
    trial.again = control_.clock().Now() + pause;
    control_.PostAfter(pause, lifetime_.Guard([this] { changed_(); }));
  }
  // The next device may be tried now, although nothing has changed.
  changed_();
}

}  // namespace penstock::app
