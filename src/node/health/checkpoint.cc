#include "node/health/checkpoint.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "os/kept_file.h"

namespace penstock::node::inventory {

template <typename Visit, base::Of<PciOccupant> T>
static void VisitFields(Visit& visit, T& occupant) {
  visit("id", occupant.id, {.required = true});
  visit("serial", occupant.serial);
}

}  // namespace penstock::node::inventory

namespace penstock::node::health {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr int kVersion = 1;
constexpr std::int64_t kMaxMilliseconds = std::int64_t{1} << 40;

constexpr base::Names<device::Severity, 5> kSeverities{{{device::Severity::kIgnore, "ignore"},
                                                        {device::Severity::kWarn, "warn"},
                                                        {device::Severity::kDrain, "drain"},
                                                        {device::Severity::kReset, "reset"},
                                                        {device::Severity::kGone, "gone"}}};

/// A device as it is written: with times instead of ages.
struct DatedDevice {
  RememberedDevice device;
  std::optional<base::WallTime> recovered;
};

template <typename Visit, base::Of<DatedDevice> T>
void VisitFields(Visit& visit, T& dated) {
  auto& device = dated.device;
  visit("troubles", device.faults);
  visit("unwell", device.recovery.unhealthy);
  visit("reason", device.reason);
  visit("relapses", device.recovery.relapses);
  std::int64_t passed = std::chrono::duration_cast<milliseconds>(device.recovery.passed).count();
  visit("probationPassedMs", passed, {.most = kMaxMilliseconds});
  if constexpr (Visit::kReads) device.recovery.passed = milliseconds(passed);
  visit("resets", device.resets);
  visit("recovered", dated.recovered);
}

/// A boot ends all that a reset ends, and more. Relapses are kept: a boot does not repair a bad
/// board.
void ForgetFaults(HealthCheckpoint& checkpoint) {
  checkpoint.drivers.clear();
  for (auto& [id, device] : checkpoint.devices) {
    device.faults.clear();
    device.reason.clear();
    if (device.recovery.unhealthy) device.recovery.recovered_ago = base::Duration(0);
    device.recovery.unhealthy = false;
  }
}

}  // namespace

template <typename Visit, base::Of<RememberedFault> T>
static void VisitFields(Visit& visit, T& fault) {
  visit("kind", fault.kind, {.required = true});
  visit("code", fault.code, {.required = true, .least = INT64_MIN});
  visit.Named("severity", fault.verdict.severity, kSeverities);
  visit("reason", fault.verdict.reason);
  visit("silences", fault.verdict.silences);
  visit("at", fault.at);
  visit("over", fault.proven_over);
  if constexpr (Visit::kReads) visit.map().Require("severity");
}

std::string EncodeHealthCheckpoint(const HealthCheckpoint& checkpoint, std::string_view boot_id,
                                   base::WallTime now) {
  std::map<std::string, DatedDevice> devices;
  for (const auto& [id, device] : checkpoint.devices) {
    DatedDevice& dated = devices[id] = {device, std::nullopt};
    if (const auto ago = device.recovery.recovered_ago) dated.recovered = now - *ago;
  }
  std::map<std::string, std::string> drivers;
  for (const auto& [vendor, driver] : checkpoint.drivers) drivers[vendor] = driver.version;
  return os::EncodeKept<json>(kVersion, [&](auto& write) {
    write("bootId", std::string(boot_id));
    write("devices", devices);
    write("slots", checkpoint.occupancy);
    write("drivers", drivers);
  });
}

std::string EncodeMarks(const HealthCheckpoint& checkpoint, std::string_view boot_id) {
  std::map<std::string, ResetCounters> counters;
  std::map<std::string, std::string> instances;
  for (const auto& [id, device] : checkpoint.devices)
    if (!device.before.empty()) counters[id] = device.before;
  for (const auto& [vendor, driver] : checkpoint.drivers) instances[vendor] = driver.instance;
  return os::EncodeKept<json>(kVersion, [&](auto& write) {
    write("bootId", std::string(boot_id));
    write("counters", counters);
    write("driverInstances", instances);
    write("kernelLog", checkpoint.kernel_log);
  });
}

base::Result<HealthCheckpoint> DecodeHealthCheckpoint(std::string_view text,
                                                      std::string_view boot_id,
                                                      std::string_view file, base::WallTime now) {
  HealthCheckpoint checkpoint;
  std::string written_in;
  std::map<std::string, DatedDevice> devices;
  std::map<std::string, std::string> drivers;
  TRY(os::DecodeKept(kVersion, text, file, [&](base::StructReader& read) {
    read("bootId", written_in);
    read("devices", devices);
    read("slots", checkpoint.occupancy);
    read("drivers", drivers);
  }));
  for (auto& [id, dated] : devices) {
    // The clock may have been set back: an age is never negative.
    if (dated.recovered)
      dated.device.recovery.recovered_ago =
          std::max(base::Duration(now - *dated.recovered), base::Duration(0));
    checkpoint.devices[id] = std::move(dated.device);
  }
  for (auto& [vendor, version] : drivers) checkpoint.drivers[vendor] = {std::move(version), ""};
  checkpoint.this_boot = written_in == boot_id;
  if (!checkpoint.this_boot) ForgetFaults(checkpoint);
  return checkpoint;
}

base::Result<HealthMarks> DecodeMarks(std::string_view text, std::string_view boot_id,
                                      std::string_view file) {
  HealthMarks marks;
  std::string written_in;
  TRY(os::DecodeKept(kVersion, text, file, [&](base::StructReader& read) {
    read("bootId", written_in);
    read("counters", marks.counters);
    read("driverInstances", marks.instances);
    read("kernelLog", marks.kernel_log);
  }));
  return written_in == boot_id ? std::move(marks) : HealthMarks{};
}

void AddMarks(HealthMarks marks, HealthCheckpoint& checkpoint) {
  for (auto& [id, device] : checkpoint.devices)
    if (const auto found = marks.counters.find(id); found != marks.counters.end())
      device.before = std::move(found->second);
  for (auto& [vendor, driver] : checkpoint.drivers)
    if (const auto found = marks.instances.find(vendor); found != marks.instances.end())
      driver.instance = std::move(found->second);
  checkpoint.kernel_log = marks.kernel_log;
}

}  // namespace penstock::node::health
