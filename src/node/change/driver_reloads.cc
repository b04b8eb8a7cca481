#include "node/change/driver_reloads.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "node/share/describe.h"

namespace penstock::node::change {

using inventory::Entry;

namespace {

constexpr base::Duration kKubeletTakesNoteOfReload = std::chrono::minutes(2);
constexpr base::Duration kReadAfterReload = std::chrono::minutes(2);
constexpr base::Duration kNextReload = std::chrono::minutes(10);
constexpr int kMostReloadDoublings = 7;

}  // namespace

DriverReloads::DriverReloads(base::Executor& control, inventory::Inventory& inventory,
                             ledger::Ledger& ledger, DeviceChanges& changes,
                             Resets::VendorOf vendor_of, NeedOf need_of)
    : control_(control),
      inventory_(inventory),
      changes_(changes),
      use_{inventory, ledger, changes},
      vendor_of_(std::move(vendor_of)),
      need_of_(std::move(need_of)),
      steps_({DeviceChanges::Withdraw(),
              {.name = "await release",
               .take = [this](const DeviceChange& change) { return AwaitUnused(change); },
               .most = kKubeletTakesNoteOfReload},
              {.name = "reload driver",
               .take = [this](const DeviceChange& change) { return Reload(change); },
               .recorded = true},
              {.name = "open driver",
               .take = [this](const DeviceChange& change) { return Reopen(change); },
               .finally = true},
              {.name = "read",
               .take = [this](const DeviceChange& change) { return Read(change); },
               .most = kReadAfterReload,
               .finally = true}}),
      attempts_(kNextReload, kMostReloadDoublings) {
  changes_.Add(*this);
}

void DriverReloads::SetPolicy(api::ResetPolicy policy) {
  if (std::exchange(policy_, policy) != policy) changes_.Wake();
}

/// The whole devices that are there.
std::vector<const Entry*> DriverReloads::DevicesOf(const inventory::Snapshot& snapshot,
                                                   std::string_view vendor) const {
  std::vector<const Entry*> devices;
  for (const Entry& entry : snapshot.devices)
    if (entry.facts->vendor == vendor && entry.facts->parent.empty() &&
        entry.health.state != device::HealthState::kGone)
      devices.push_back(&entry);
  return devices;
}

/// Who uses a device of the vendor; empty: no one.
std::string DriverReloads::UserOf(std::string_view vendor) const {
  const auto snapshot = inventory_.published().Get();
  for (const Entry* entry : DevicesOf(*snapshot, vendor))
    if (const std::string user = use_.User(entry->facts->id); !user.empty())
      return share::Describe(*entry->facts) + " is " + user;
  return "";
}

ReloadOutlook DriverReloads::OutlookOf(std::string_view vendor, const ReloadNeed& need) const {
  if (const DeviceChange* own = changes_.OfKind(kReloadKind))
    if (VendorOfDevices(*own) == vendor) return {.now = true, .why_not = {}};
  if (policy_ == api::ResetPolicy::kNever) return {};
  if (!need.ready) return {.why_not = "another device was not asked for its mode yet"};
  if (std::string why = attempts_.Why(std::string(vendor), control_.clock().Now()); !why.empty())
    return {.why_not = std::move(why)};
  if (std::string user = UserOf(vendor); !user.empty()) return {.why_not = std::move(user)};
  return {.now = true, .why_not = {}};
}

std::vector<DeviceChange> DriverReloads::Due() {
  awaits_ = false;
  const auto snapshot = inventory_.published().Get();
  std::vector<DeviceChange> due;
  for (const inventory::VendorEntry& vendor : snapshot->vendors) {
    const ReloadNeed need = need_of_(vendor.vendor);
    if (need.known && !need.wanted) attempts_.Forget(vendor.vendor);
    if (!need.known || !need.wanted) continue;
    awaits_ = true;
    if (!due.empty() || changes_.OfKind(kReloadKind) != nullptr || changes_.AnyUsesDriver() ||
        !OutlookOf(vendor.vendor, need).now)
      continue;
    DeviceChange change;
    bool changes = false;
    for (const Entry* entry : DevicesOf(*snapshot, vendor.vendor)) {
      changes |= changes_.Of(entry->facts->id) != nullptr;
      change.devices.push_back(
          {.id = entry->facts->id, .allocator = changes_.AllocatorOf(entry->facts->id)});
    }
    if (changes || change.devices.empty()) continue;
    base::Log(base::kWarn, "driver reload started",
              {{"vendor", vendor.vendor}, {"devices", change.devices.size()}});
    due.push_back(std::move(change));
  }
  return due;
}

std::string DriverReloads::Explain(const DeviceChange& change, const std::string&) const {
  return "the driver is being loaded again, so that modes take effect" +
         (change.waits_for.empty() ? "" : ": " + change.waits_for);
}

// --- the steps

std::string DriverReloads::VendorOfDevices(const DeviceChange& change) const {
  const auto snapshot = inventory_.published().Get();
  const Entry* entry = snapshot->Find(change.devices.front().id);
  return entry == nullptr ? "" : entry->facts->vendor;
}

/// Whoever has come between the decision and the withdrawal keeps the device.
StepResult DriverReloads::AwaitUnused(const DeviceChange& change) {
  const std::string vendor = VendorOfDevices(change);
  const auto snapshot = inventory_.published().Get();
  bool read = true;
  for (const ChangedDevice& device : change.devices) {
    const Entry* entry = snapshot->Find(device.id);
    if (entry->health.state == device::HealthState::kGone || !use_.IsReleased(device.id))
      return base::Error(base::Code::kCancelled, device.id + " is in use again or gone");
    read &= entry->read_at > change.since;
  }
  if (!read && std::exchange(reading_, true) == false)
    if (const Resets::Vendor parts = vendor_of_(vendor); parts.read_soon)
      for (const ChangedDevice& device : change.devices)
        for (const std::string& id : use_.WithParts(device.id)) parts.read_soon(id);
  if (!read) return std::string("a new reading is awaited");
  if (!need_of_(vendor).wanted)
    return base::Error(base::Code::kCancelled, "no mode waits for it any longer");
  StepResult waits = changes_.AwaitFree(change);
  if (!waits.ok() || !waits->empty()) return waits;
  if (std::string user = UserOf(vendor); !user.empty())
    return base::Error(base::Code::kCancelled, std::move(user));
  if (changes_.AnyUsesDriver()) return std::string("another change uses the driver");
  return std::string();
}

StepResult DriverReloads::Reload(const DeviceChange& change) {
  if (change.taken_over)
    return base::Error(base::Code::kAborted,
                       "the agent ended while the driver was being loaded again");
  if (phase_ == Phase::kBefore) {
    const Resets::Vendor vendor = vendor_of_(VendorOfDevices(change));
    if (vendor.actions == nullptr)
      return base::Error(base::Code::kUnimplemented, "this driver cannot be loaded again");
    phase_ = Phase::kUnderWay;
    vendor.release(lifetime_.Guard([this, vendor] {
      vendor.actions->ReloadDriver(lifetime_.Guard([this](const base::Status& result) {
        outcome_ = result;
        phase_ = Phase::kAfter;
        changes_.Wake();
      }));
    }));
  }
  if (phase_ != Phase::kAfter) return std::string("it is being unloaded and loaded");
  if (!outcome_.ok()) return outcome_.error();
  return std::string();
}

/// Does nothing where this agent did not release the driver.
StepResult DriverReloads::Reopen(const DeviceChange& change) {
  if (std::exchange(phase_, Phase::kBefore) == Phase::kBefore) return std::string();
  opened_ = true;
  if (const Resets::Vendor vendor = vendor_of_(VendorOfDevices(change)); vendor.reopen)
    vendor.reopen();
  return std::string();
}

/// Devices should not be offered as they were before.
StepResult DriverReloads::Read(const DeviceChange& change) const {
  if (!opened_) return std::string();
  const auto snapshot = inventory_.published().Get();
  for (const ChangedDevice& device : change.devices) {
    const Entry* entry = snapshot->Find(device.id);
    if (entry == nullptr) continue;
    const auto* vendor = snapshot->FindVendor(entry->facts->vendor);
    if (vendor == nullptr || vendor->driver == nullptr) return std::string("its driver is awaited");
    if (entry->read_at <= change.since && entry->health.state != device::HealthState::kGone)
      return "a reading of " + device.id + " is awaited";
  }
  return std::string();
}

void DriverReloads::Ended(const DeviceChange& change, const base::Status& result) {
  reading_ = opened_ = false;
  const std::string vendor = VendorOfDevices(change);
  if (result.ok())
    base::Log(base::kInfo, "driver reload complete", {{"vendor", vendor}});
  else
    base::Log(base::kError, "driver reload failed",
              {{"vendor", vendor}, {"why", result.error().message()}});
  if (!result.ok() && result.error().code() == base::Code::kCancelled) return;
  const base::Duration pause = attempts_.Add(
      vendor,
      result.ok() ? "the driver was loaded again, and the mode did not change: see the kernel's log"
                  : result.error().message(),
      control_.clock().Now());
  control_.PostAfter(pause, lifetime_.Guard([this] { changes_.Wake(); }));
}

}  // namespace penstock::node::change
