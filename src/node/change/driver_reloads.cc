#include "node/change/driver_reloads.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "node/share/describe.h"

namespace penstock::node::change {

using inventory::Entry;

namespace {

constexpr base::Duration kReadAfterReload = std::chrono::minutes(2);
constexpr base::Duration kNextReload = std::chrono::minutes(10);
constexpr int kMostReloadDoublings = 7;
constexpr base::Duration kNextWithdrawal = std::chrono::minutes(1);
constexpr int kMostWithdrawalDoublings = 5;
// The driver is released first.
constexpr base::Duration kMostReload = device::kLongestReload + std::chrono::minutes(5);

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
               .most = kReleasedWithin},
              {.name = "reload driver",
               .take = [this](const DeviceChange& change) { return Reload(change); },
               .most = kMostReload,
               .recorded = true},
              {.name = "open driver",
               .take = [this](const DeviceChange& change) { return Reopen(change); },
               .finally = true},
              {.name = "read",
               .take = [this](const DeviceChange& change) { return Read(change); },
               .most = kReadAfterReload,
               .finally = true}}),
      attempts_(kNextReload, kMostReloadDoublings),
      in_vain_(kNextWithdrawal, kMostWithdrawalDoublings) {
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

/// What is in the way at a device of the vendor, also at one that is gone; empty: nothing.
std::string DriverReloads::InTheWay(std::string_view vendor) const {
  const auto snapshot = inventory_.published().Get();
  for (const Entry& entry : snapshot->devices) {
    if (entry.facts->vendor != vendor || !entry.facts->parent.empty()) continue;
    if (const std::string user = use_.User(entry.facts->id); !user.empty())
      return share::Describe(*entry.facts) + " is " + user;
    const DeviceChange* change = changes_.Of(entry.facts->id);
    if (change != nullptr && change->kind != kReloadKind)
      return "another change of " + share::Describe(*entry.facts) +
             " is under way: " + change->kind;
  }
  return "";
}

ReloadOutlook DriverReloads::OutlookOf(std::string_view vendor, const ReloadNeed& need) const {
  if (const DeviceChange* own = changes_.OfKind(kReloadKind))
    if (own->details == vendor) return {.now = true, .why_not = {}};
  if (policy_ == api::ResetPolicy::kNever) return {};
  if (!need.ready) return {.why_not = "another device was not asked for its mode yet"};
  for (const Pauses* pauses : {&attempts_, &in_vain_})
    if (std::string why = pauses->Why(std::string(vendor), control_.clock().Now()); !why.empty())
      return {.why_not = std::move(why)};
  if (std::string why = InTheWay(vendor); !why.empty()) return {.why_not = std::move(why)};
  return {.now = true, .why_not = {}};
}

std::vector<DeviceChange> DriverReloads::Due() {
  awaits_ = false;
  const auto snapshot = inventory_.published().Get();
  std::vector<DeviceChange> due;
  for (const inventory::VendorEntry& vendor : snapshot->vendors) {
    const ReloadNeed need = need_of_(vendor.vendor);
    if (!need.known) continue;
    const bool another = std::exchange(requests_[vendor.vendor], need.request) != need.request;
    if (!need.wanted || another)
      for (Pauses* pauses : {&attempts_, &in_vain_}) pauses->Forget(vendor.vendor);
    if (!need.wanted) continue;
    awaits_ = true;
    if (!due.empty() || changes_.OfKind(kReloadKind) != nullptr || changes_.AnyUsesDriver() ||
        !OutlookOf(vendor.vendor, need).now)
      continue;
    DeviceChange change;
    change.details = vendor.vendor;
    for (const Entry* entry : DevicesOf(*snapshot, vendor.vendor))
      change.devices.push_back(
          {.id = entry->facts->id, .allocator = changes_.AllocatorOf(entry->facts->id)});
    if (change.devices.empty()) continue;
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

/// Whoever has come between the decision and the withdrawal keeps the device.
StepResult DriverReloads::AwaitUnused(const DeviceChange& change) {
  const std::string& vendor = change.details;
  const ReloadNeed need = need_of_(vendor);
  if (policy_ == api::ResetPolicy::kNever || (need.known && !(need.wanted && need.ready)))
    return base::Error(base::Code::kCancelled, "it is no longer to be loaded again");
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
  for (const Entry* entry : DevicesOf(*snapshot, vendor))
    if (!change.Has(entry->facts->id))
      return base::Error(base::Code::kCancelled, entry->facts->id + " has come");
  if (!need.known) return std::string("the layout of its devices is awaited");
  StepResult waits = changes_.AwaitFree(change);
  if (!waits.ok() || !waits->empty()) return waits;
  if (std::string why = InTheWay(vendor); !why.empty())
    return base::Error(base::Code::kCancelled, std::move(why));
  if (changes_.AnyUsesDriver()) return std::string("another change uses the driver");
  return std::string();
}

/// An agent that takes the step over does it again, since the driver may not have been loaded. But
/// where it is loaded, whoever has come meanwhile keeps the device.
StepResult DriverReloads::Reload(const DeviceChange& change) {
  if (phase_ == Phase::kBefore) {
    const bool loaded = !DevicesOf(*inventory_.published().Get(), change.details).empty();
    if (std::string why = InTheWay(change.details); loaded && !why.empty())
      return base::Error(base::Code::kCancelled, std::move(why));
    const Resets::Vendor vendor = vendor_of_(change.details);
    if (vendor.actions == nullptr)
      return base::Error(base::Code::kUnimplemented, "this driver cannot be loaded again");
    phase_ = Phase::kUnderWay;
    vendor.release(attempt_.Guard([this, vendor] {
      vendor.actions->ReloadDriver(attempt_.Guard([this](const base::Status& result) {
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
  attempt_ = {};  // an answer that comes later would pass for one to the next reload
  opened_ = true;
  if (const Resets::Vendor vendor = vendor_of_(change.details); vendor.reopen) vendor.reopen();
  return std::string();
}

/// Devices should not be offered as they were before.
StepResult DriverReloads::Read(const DeviceChange& change) const {
  if (!opened_) return std::string();
  const auto snapshot = inventory_.published().Get();
  const auto* vendor = snapshot->FindVendor(change.details);
  if (vendor == nullptr || vendor->driver == nullptr) return std::string("its driver is awaited");
  for (const ChangedDevice& device : change.devices) {
    const Entry* entry = snapshot->Find(device.id);
    if (entry == nullptr) continue;
    if (entry->read_at <= change.since && entry->health.state != device::HealthState::kGone)
      return "a reading of " + device.id + " is awaited";
  }
  return std::string();
}

void DriverReloads::Ended(const DeviceChange& change, const base::Status& result) {
  reading_ = opened_ = false;
  const std::string& vendor = change.details;
  if (result.ok())
    base::Log(base::kInfo, "driver reload complete", {{"vendor", vendor}});
  else
    base::Log(base::kError, "driver reload failed",
              {{"vendor", vendor}, {"why", result.error().message()}});
  const bool cancelled = !result.ok() && result.error().code() == base::Code::kCancelled;
  const base::Duration pause =
      (cancelled ? in_vain_ : attempts_)
          .Add(
              vendor,
              result.ok()
                  ? "the driver was loaded again, and the mode did not change: see the kernel's log"
                  : result.error().message(),
              control_.clock().Now());
  control_.PostAfter(pause, lifetime_.Guard([this] { changes_.Wake(); }));
}

}  // namespace penstock::node::change
