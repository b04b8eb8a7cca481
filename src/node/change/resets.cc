#include "node/change/resets.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace penstock::node::change {
namespace {

constexpr std::string_view kRead = "read";
// More than any vendor's program may take: the driver is released first, and another reset is
// waited for.
constexpr base::Duration kMostReset = device::kLongestReset + std::chrono::minutes(35);
constexpr base::Duration kReadAgain = std::chrono::minutes(1);
constexpr base::Duration kNextTry = std::chrono::minutes(10);

}  // namespace

Resets::Resets(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger,
               health::Monitor& monitor, DeviceChanges& changes, VendorOf vendor_of)
    : control_(control),
      inventory_(inventory),
      monitor_(monitor),
      changes_(changes),
      use_{inventory, ledger, changes},
      vendor_of_(std::move(vendor_of)),
      steps_({DeviceChanges::Withdraw(),
              {.name = "await release",
               .take = [this](const DeviceChange& change) { return AwaitUnused(change); },
               .most = kReleasedWithin},
              {.name = "reset",
               .take = [this](const DeviceChange& change) { return Reset(change); },
               .most = kMostReset,
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

/// Whether the device or a part of it, which is reset with it, needs a reset.
bool Resets::NeedsReset(const std::string& id) const {
  const auto snapshot = inventory_.published().Get();
  return monitor_.NeedsReset(id) ||
         std::ranges::any_of(snapshot->devices, [&](const inventory::Entry& entry) {
           return entry.IsPartOf(id) && monitor_.NeedsReset(entry.facts->id);
         });
}

/// The devices of a change and their parts.
std::vector<std::string> Resets::IdsOf(const DeviceChange& change) const {
  std::vector<std::string> ids;
  for (const ChangedDevice& device : change.devices)
    for (std::string& id : use_.WithParts(device.id)) ids.push_back(std::move(id));
  return ids;
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
    candidate.needs_reset = NeedsReset(facts.id);
    candidate.free = use_.User(facts.id).empty() && changes_.Of(facts.id) == nullptr;
    candidate.present = entry.health.state != device::HealthState::kGone;
    candidate.before = monitor_.ResetsOf(facts.id);
    if (const auto later = not_before_.find(facts.id); later != not_before_.end())
      candidate.not_before = later->second;
    candidate.together = vendor.actions->ResetTogether(facts, by_vendor[facts.vendor]);
  }
  return candidates;
}

bool Resets::AwaitsDevices() const {
  const auto snapshot = inventory_.published().Get();
  return !notes_.empty() || !failures_.empty() ||
         std::ranges::any_of(snapshot->devices, [this](const inventory::Entry& entry) {
           return monitor_.NeedsReset(entry.facts->id);
         });
}

std::vector<DeviceChange> Resets::Due() {
  // A reset closes the driver.
  if (changes_.OfKind(name()) != nullptr || changes_.AnyUsesDriver()) return {};
  const auto snapshot = inventory_.published().Get();
  if (!AwaitsDevices()) return {};
  const auto candidates = Candidates();
  std::erase_if(failures_, [&](const auto& failure) {
    return std::ranges::all_of(use_.WithParts(failure.first), [&](const std::string& id) {
      const inventory::Entry* entry = snapshot->Find(id);
      return entry == nullptr || entry->health.state == device::HealthState::kHealthy;
    });
  });
  const base::WallTime now = control_.clock().Wall();
  std::erase_if(not_before_, [now](const auto& one) { return one.second <= now; });
  const ResetPlan plan = PlanResets(candidates, policy_, now);
  Note(candidates, plan);
  if (plan.devices.empty()) return {};
  DeviceChange change;
  std::string faulty;
  for (const std::string& id : plan.devices) {
    change.devices.push_back({.id = id, .allocator = changes_.AllocatorOf(id)});
    if (NeedsReset(id)) faulty += (faulty.empty() ? "" : ", ") + id;
  }
  base::Log(base::kWarn, "device reset started",
            {{"device", faulty}, {"together", plan.devices.size()}});
  return {std::move(change)};
}

/// The notes are those of the faulty ones among a device and its parts.
void Resets::Note(const std::map<std::string, ResetCandidate>& candidates, const ResetPlan& plan) {
  std::map<std::string, std::string> notes;
  for (const auto& [id, candidate] : candidates) {
    if (!candidate.needs_reset && !failures_.contains(id)) continue;
    std::string note;
    if (std::ranges::find(plan.devices, id) != plan.devices.end()) {
      note = "reset in progress";
    } else {
      if (const auto failure = failures_.find(id); failure != failures_.end())
        note = failure->second;
      if (const auto why_not = plan.why_not.find(id); why_not != plan.why_not.end())
        note += (note.empty() ? "" : "; ") + why_not->second;
    }
    for (const std::string& one : use_.WithParts(id))
      if (one == id || monitor_.NeedsReset(one)) notes[one] = note;
  }
  for (const auto& [id, note] : notes_)
    if (!notes.contains(id)) monitor_.SetResetNote(id, "");
  for (const auto& [id, note] : notes) monitor_.SetResetNote(id, note);
  notes_ = std::move(notes);
}

/// The text is that of the devices that have no fault themselves, and of their parts.
std::string Resets::ReasonOf(const DeviceChange& change, const std::string& device) const {
  std::string faulty;
  for (const ChangedDevice& one : change.devices)
    if (one.id != device && NeedsReset(one.id)) faulty += (faulty.empty() ? "" : ", ") + one.id;
  return "reset in progress" + (faulty.empty() ? "" : " together with " + faulty);
}

std::string Resets::Explain(const DeviceChange& change, const std::string& device) const {
  return ReasonOf(change, device) + (change.waits_for.empty() ? "" : ": " + change.waits_for);
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
  for (const ChangedDevice& device : change.devices)
    if (snapshot->Find(device.id)->health.state == device::HealthState::kGone ||
        !use_.IsReleased(device.id))
      return base::Error(base::Code::kCancelled, device.id + " is in use again or gone");
  bool needed = false, read = true;
  for (const std::string& id : IdsOf(change)) {
    needed |= monitor_.NeedsReset(id);
    read &= monitor_.HasReading(id) && snapshot->Find(id)->read_at > change.since;
  }
  if (!read && std::exchange(reading_, true) == false) ReadSoon(change);
  if (!read) return std::string("a new reading is awaited");
  if (!needed) return base::Error(base::Code::kCancelled, "no device needs the reset any longer");
  StepResult waits = changes_.AwaitFree(change);
  if (!waits.ok() || !waits->empty()) return waits;
  for (const ChangedDevice& device : change.devices)
    if (!use_.User(device.id).empty())
      return base::Error(base::Code::kCancelled, device.id + " is in use again");
  if (changes_.AnyUsesDriver()) return std::string("another change uses the driver");
  return std::string();
}

void Resets::ReadSoon(const DeviceChange& change) const {
  const Vendor vendor = VendorOfDevices(change);
  if (!vendor.read_soon) return;
  for (const std::string& id : IdsOf(change)) vendor.read_soon(id);
}

StepResult Resets::Reset(const DeviceChange& change) {
  if (change.taken_over) {
    outcome_ = base::Error(base::Code::kAborted, "the agent ended during the reset");
    phase_ = Phase::kAfter;
  }
  if (phase_ == Phase::kBefore) {
    const Vendor vendor = VendorOfDevices(change);
    if (vendor.actions == nullptr)
      return base::Error(base::Code::kUnimplemented, "this vendor's devices cannot be reset");
    phase_ = Phase::kReleasing;
    vendor.release(attempt_.Guard([this] {
      if (const DeviceChange* own = changes_.OfKind(name())) BeginReset(*own);
    }));
  }
  if (phase_ != Phase::kAfter) return std::string("the driver is resetting it");
  Count(change, outcome_);
  if (!outcome_.ok()) return outcome_.error();
  return std::string();
}

void Resets::Count(const DeviceChange& change, const base::Status& outcome) {
  counted_ = true;
  monitor_.EndReset(IdsOf(change), outcome);
}

void Resets::BeginReset(const DeviceChange& change) {
  phase_ = Phase::kResetting;
  std::map<std::string, std::string> reasons;
  std::vector<device::Facts> devices;
  const auto snapshot = inventory_.published().Get();
  for (const std::string& id : IdsOf(change)) {
    const inventory::Entry* entry = snapshot->Find(id);
    if (entry == nullptr) continue;
    if (change.Has(id)) devices.push_back(*entry->facts);
    reasons[id] = monitor_.NeedsReset(id) ? entry->health.reason : ReasonOf(change, id);
  }
  monitor_.BeginReset(reasons);
  VendorOfDevices(change).actions->Reset(devices,
                                         attempt_.Guard([this](const base::Status& result) {
                                           outcome_ = result;
                                           phase_ = Phase::kAfter;
                                           changes_.Wake();
                                         }));
}

/// Does nothing where this agent did not release the driver.
StepResult Resets::Reopen(const DeviceChange& change) {
  const Phase phase = std::exchange(phase_, Phase::kBefore);
  attempt_ = {};  // an answer that comes later would pass for one to the next reset
  if (phase == Phase::kResetting)
    Count(change, base::Error(base::Code::kDeadlineExceeded, change.failure));
  if (phase != Phase::kBefore)
    if (const Vendor vendor = VendorOfDevices(change); vendor.reopen) vendor.reopen();
  return std::string();
}

/// A device that does not answer is found by the monitor as well; but it should not be offered in
/// between.
StepResult Resets::Read(const DeviceChange& change) const {
  for (const ChangedDevice& device : change.devices)
    if (!monitor_.HasReading(device.id)) return "a reading of " + device.id + " is awaited";
  return std::string();
}

void Resets::Ended(const DeviceChange& change, const base::Status& result) {
  const std::string& first = change.devices.front().id;
  const bool attempted = std::exchange(counted_, false) || change.step == kRead;
  reading_ = false;
  for (const ChangedDevice& device : change.devices) failures_.erase(device.id);
  if (result.ok()) {
    base::Log(base::kInfo, "device reset complete",
              {{"device", first}, {"together", change.devices.size()}});
    return;
  }
  const std::string& why = result.error().message();
  base::Log(base::kError, "device reset failed",
            {{"device", first}, {"together", change.devices.size()}, {"why", why}});
  if (result.error().code() == base::Code::kCancelled) return;
  const std::string what = !attempted             ? "the reset could not begin: "
                           : change.step == kRead ? "it was reset, but "
                                                  : "the reset failed: ";
  for (const ChangedDevice& device : change.devices) failures_[device.id] = what + why;
  if (attempted) return;
  for (const ChangedDevice& device : change.devices)
    not_before_[device.id] =
        control_.clock().Wall() + std::chrono::duration_cast<base::WallTime::duration>(kNextTry);
  control_.PostAfter(kNextTry, lifetime_.Guard([this] { changes_.Wake(); }));
}

/// A faulty device shows its note in place of Explain.
void Resets::Settled() {
  const DeviceChange* change = changes_.OfKind(name());
  if (change == nullptr) return;
  const std::string now =
      "reset in progress" + (change->waits_for.empty() ? "" : ": " + change->waits_for);
  for (const std::string& id : IdsOf(*change))
    if (const auto note = notes_.find(id); note != notes_.end() && monitor_.NeedsReset(id))
      if (std::exchange(note->second, now) != now) monitor_.SetResetNote(id, now);
}

}  // namespace penstock::node::change
