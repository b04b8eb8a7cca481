#include "node/change/resets.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace penstock::node::change {
namespace {

constexpr std::string_view kRead = "read";
constexpr base::Duration kKubeletTakesNote = std::chrono::minutes(2);
constexpr base::Duration kDriverReleased = std::chrono::minutes(1);
constexpr base::Duration kReadAgain = std::chrono::minutes(1);

std::vector<std::string> IdsOf(const DeviceChange& change) {
  std::vector<std::string> ids;
  for (const ChangedDevice& device : change.devices) ids.push_back(device.id);
  return ids;
}

}  // namespace

Resets::Resets(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger,
               health::Monitor& monitor, DeviceChanges& changes, VendorOf vendor_of)
    : control_(control),
      inventory_(inventory),
      ledger_(ledger),
      monitor_(monitor),
      changes_(changes),
      vendor_of_(std::move(vendor_of)),
      steps_({changes.Withdraw(),
              {.name = "await release",
               .take = [this](const DeviceChange& change) { return AwaitUnused(change); },
               .most = kKubeletTakesNote},
              {.name = "close driver",
               .take = [this](const DeviceChange& change) { return Release(change); },
               .most = kDriverReleased},
              {.name = "reset",
               .take = [this](const DeviceChange& change) { return Reset(change); },
               .recorded = true},
              {.name = "open driver",
               .take = [this](const DeviceChange& change) { return Reopen(change); },
               .finally = true},
              {.name = kRead,
               .take = [this](const DeviceChange& change) { return Read(change); },
               .most = kReadAgain}}) {
  changes_.Add(*this);
}

void Resets::SetPolicy(api::ResetPolicy policy) {
  if (std::exchange(policy_, policy) != policy) changes_.Wake();
}

// --- which devices

bool Resets::IsFree(const inventory::Entry& entry) const {
  return ledger_.Get()->Free(entry.facts->id) &&
         (entry.reading == nullptr || entry.reading->processes.empty());
}

std::map<std::string, ResetCandidate> Resets::Candidates() const {
  std::map<std::string, ResetCandidate> candidates;
  const auto snapshot = inventory_.published().Get();
  std::map<std::string, std::vector<const device::Facts*>> by_vendor;
  for (const inventory::Entry& entry : snapshot->devices)
    by_vendor[entry.facts->vendor].push_back(entry.facts.get());
  for (const inventory::Entry& entry : snapshot->devices) {
    const device::Facts& facts = *entry.facts;
    const Vendor vendor = vendor_of_(facts.vendor);
    if (vendor.actions == nullptr || !facts.parent.empty()) continue;
    ResetCandidate& candidate = candidates[facts.id];
    candidate.needs_reset = monitor_.NeedsReset(facts.id);
    candidate.free = IsFree(entry) && changes_.Of(facts.id) == nullptr;
    candidate.present = entry.health.state != device::HealthState::kGone;
    candidate.before = monitor_.ResetsOf(facts.id);
    candidate.together = vendor.actions->ResetTogether(facts, by_vendor[facts.vendor]);
  }
  return candidates;
}

std::vector<DeviceChange> Resets::Due() {
  const auto changes = changes_.published().Get();
  if (std::ranges::find(*changes, name(), &DeviceChange::kind) != changes->end()) return {};
  const auto snapshot = inventory_.published().Get();
  const bool any = std::ranges::any_of(snapshot->devices, [this](const inventory::Entry& entry) {
    return monitor_.NeedsReset(entry.facts->id);
  });
  if (!any && notes_.empty() && failures_.empty()) return {};
  const auto candidates = Candidates();
  std::erase_if(failures_, [&](const auto& failure) {
    const inventory::Entry* entry = snapshot->Find(failure.first);
    return entry == nullptr || entry->health.state == device::HealthState::kHealthy;
  });
  const ResetPlan plan = PlanResets(candidates, policy_, control_.clock().Wall());
  Note(candidates, plan);
  if (plan.devices.empty()) return {};
  DeviceChange change;
  std::string faulty;
  for (const std::string& id : plan.devices) {
    change.devices.push_back({.id = id, .allocator = changes_.AllocatorOf(id)});
    if (monitor_.NeedsReset(id)) faulty += (faulty.empty() ? "" : ", ") + id;
  }
  base::Log(base::kWarn, "device reset started",
            {{"device", faulty}, {"together", plan.devices.size()}});
  return {std::move(change)};
}

void Resets::Note(const std::map<std::string, ResetCandidate>& candidates, const ResetPlan& plan) {
  std::map<std::string, std::string> notes;
  for (const auto& [id, candidate] : candidates) {
    if (!candidate.needs_reset && !failures_.contains(id)) continue;
    std::string& note = notes[id];
    if (std::ranges::find(plan.devices, id) != plan.devices.end()) {
      note = "reset in progress";
      continue;
    }
    if (const auto failure = failures_.find(id); failure != failures_.end())
      note = "the reset failed: " + failure->second;
    if (const auto why_not = plan.why_not.find(id); why_not != plan.why_not.end())
      note += (note.empty() ? "" : "; ") + why_not->second;
  }
  for (const auto& [id, note] : notes_)
    if (!notes.contains(id)) monitor_.SetResetNote(id, "");
  for (const auto& [id, note] : notes) monitor_.SetResetNote(id, note);
  notes_ = std::move(notes);
}

/// The text is that of the devices that have no fault themselves, and of their parts.
std::string Resets::Explain(const DeviceChange& change, const std::string& device) const {
  std::string faulty;
  for (const ChangedDevice& one : change.devices)
    if (one.id != device && monitor_.NeedsReset(one.id))
      faulty += (faulty.empty() ? "" : ", ") + one.id;
  return "reset in progress" + (faulty.empty() ? "" : " together with " + faulty);
}

// --- the steps

Resets::Vendor Resets::VendorOfDevices(const DeviceChange& change) const {
  const auto snapshot = inventory_.published().Get();
  const inventory::Entry* entry = snapshot->Find(change.devices.front().id);
  return entry == nullptr ? Vendor{} : vendor_of_(entry->facts->vendor);
}

/// Whoever has come between the decision and the withdrawal keeps the device.
StepResult Resets::AwaitUnused(const DeviceChange& change) {
  const auto snapshot = inventory_.published().Get();
  for (const ChangedDevice& device : change.devices) {
    const inventory::Entry& entry = *snapshot->Find(device.id);
    if (entry.health.state == device::HealthState::kGone || !IsFree(entry))
      return base::Error(base::Code::kCancelled, device.id + " is in use again or gone");
  }
  if (std::ranges::none_of(change.devices,
                           [&](const auto& device) { return monitor_.NeedsReset(device.id); }))
    return base::Error(base::Code::kCancelled, "no device needs the reset any longer");
  return changes_.AwaitUnused(change);
}

StepResult Resets::Release(const DeviceChange& change) {
  if (connection_ == Connection::kClosed) return std::string();
  if (connection_ == Connection::kOpen) {
    connection_ = Connection::kClosing;
    VendorOfDevices(change).release(lifetime_.Guard([this] {
      connection_ = Connection::kClosed;
      changes_.Wake();
    }));
  }
  return connection_ == Connection::kClosed ? "" : std::string("the worker to close the driver");
}

StepResult Resets::Reset(const DeviceChange& change) {
  if (change.taken_over) {
    const base::Error unknown(base::Code::kAborted, "the agent ended during the reset");
    counted_ = true;
    monitor_.EndReset(IdsOf(change), unknown);
    return unknown;
  }
  if (outcome_) {
    const base::Status outcome = *std::exchange(outcome_, std::nullopt);
    resetting_ = false;
    counted_ = true;
    monitor_.EndReset(IdsOf(change), outcome);
    if (!outcome.ok()) return outcome.error();
    return std::string();
  }
  if (!std::exchange(resetting_, true)) {
    std::map<std::string, std::string> reasons;
    std::vector<device::Facts> devices;
    const auto snapshot = inventory_.published().Get();
    for (const ChangedDevice& device : change.devices) {
      const inventory::Entry* entry = snapshot->Find(device.id);
      if (entry == nullptr) continue;
      devices.push_back(*entry->facts);
      reasons[device.id] =
          monitor_.NeedsReset(device.id) ? entry->health.reason : Explain(change, device.id);
    }
    monitor_.BeginReset(reasons);
    VendorOfDevices(change).actions->Reset(devices,
                                           lifetime_.Guard([this](const base::Status& result) {
                                             outcome_ = result;
                                             changes_.Wake();
                                           }));
  }
  return std::string("the driver to reset it");
}

StepResult Resets::Reopen(const DeviceChange& change) {
  if (std::exchange(connection_, Connection::kOpen) != Connection::kOpen)
    VendorOfDevices(change).reopen();
  return std::string();
}

/// A device that does not answer is found by the monitor as well; but it should not be offered in
/// between.
StepResult Resets::Read(const DeviceChange& change) const {
  for (const ChangedDevice& device : change.devices)
    if (!monitor_.HasReading(device.id)) return device.id + " to answer again";
  return std::string();
}

void Resets::Ended(const DeviceChange& change, const base::Status& result) {
  const base::Code code = result.ok() ? base::Code::kUnknown : result.error().code();
  const bool attempted = code != base::Code::kCancelled && code != base::Code::kNotFound;
  // A reset that could not begin counts as well, so that it is not tried again at once.
  if (!std::exchange(counted_, false) && !result.ok() && attempted &&
      code != base::Code::kAborted && change.step != kRead)
    monitor_.EndReset(IdsOf(change), result);
  for (const ChangedDevice& device : change.devices) {
    failures_.erase(device.id);
    if (!result.ok() && attempted) failures_[device.id] = result.error().message();
  }
  const std::string& first = change.devices.front().id;
  if (result.ok())
    base::Log(base::kInfo, "device reset complete",
              {{"device", first}, {"together", change.devices.size()}});
  else
    base::Log(base::kError, "device reset failed",
              {{"device", first},
               {"together", change.devices.size()},
               {"why", result.error().message()}});
}

}  // namespace penstock::node::change
