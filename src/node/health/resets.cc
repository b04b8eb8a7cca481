// Runs a reset as a sequence of steps, each started by the end of the previous one. Every published
// snapshot triggers a new check.
#include "node/health/resets.h"

#include <algorithm>

#include "base/log.h"

namespace penstock::node::health {

Resets::Resets(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger,
               Monitor& monitor, VendorOf vendor_of, base::Duration withdrawal)
    : control_(control),
      inventory_(inventory),
      ledger_(ledger),
      monitor_(monitor),
      vendor_of_(std::move(vendor_of)),
      withdrawal_(withdrawal) {
  on_inventory_ = inventory_.published().Subscribe([this](const auto&) { ScheduleCheck(); });
  on_ledger_ = ledger_.published().Subscribe([this](const auto&) { ScheduleCheck(); });
}

Resets::~Resets() {
  alive_.reset();
  control_.Cancel(timer_);
}

void Resets::SetPolicy(api::ResetPolicy policy) {
  if (std::exchange(policy_, policy) != policy) ScheduleCheck();
}

/// Posts one Look for several snapshots; it runs after they are published.
void Resets::ScheduleCheck() {
  if (std::exchange(check_posted_, true)) return;
  control_.Post([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    check_posted_ = false;
    Check();
  });
}

std::map<std::string, ResetCandidate> Resets::Candidates() const {
  std::map<std::string, ResetCandidate> candidates;
  const auto snapshot = inventory_.published().Get();
  const auto ledger = ledger_.Get();
  std::map<std::string, std::vector<const device::Facts*>> by_vendor;
  for (const inventory::Entry& entry : snapshot->devices)
    by_vendor[entry.facts->vendor].push_back(entry.facts.get());
  for (const inventory::Entry& entry : snapshot->devices) {
    const device::Facts& facts = *entry.facts;
    const Vendor vendor = vendor_of_(facts.vendor);
    if (vendor.actions == nullptr || !facts.parent.empty()) continue;
    ResetCandidate& candidate = candidates[facts.id];
    candidate.needs_reset = monitor_.NeedsReset(facts.id);
    candidate.free =
        ledger->Free(facts.id) && (entry.reading == nullptr || entry.reading->processes.empty());
    candidate.present = entry.health.state != device::HealthState::kGone;
    candidate.before = monitor_.ResetsOf(facts.id);
    candidate.together = vendor.actions->ResetTogether(facts, by_vendor[facts.vendor]);
  }
  return candidates;
}

void Resets::Check() {
  if (!resetting_.empty()) return;
  const auto snapshot = inventory_.published().Get();
  const bool any = std::ranges::any_of(snapshot->devices, [this](const inventory::Entry& entry) {
    return monitor_.NeedsReset(entry.facts->id);
  });
  if (!any && notes_.empty() && failures_.empty()) return;
  const auto candidates = Candidates();
  std::erase_if(failures_, [&](const auto& failure) {
    const inventory::Entry* entry = snapshot->Find(failure.first);
    return entry == nullptr || entry->health.state == device::HealthState::kHealthy;
  });
  const ResetPlan plan = PlanResets(candidates, policy_, control_.clock().Wall());
  Note(candidates, plan);
  if (!plan.devices.empty()) Begin(plan.devices);
}

void Resets::Note(const std::map<std::string, ResetCandidate>& candidates, const ResetPlan& plan) {
  std::map<std::string, std::string> notes;
  for (const auto& [id, candidate] : candidates) {
    if (!candidate.needs_reset && !failures_.contains(id)) continue;
    std::string& note = notes[id];
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

void Resets::Begin(const std::vector<std::string>& devices) {
  resetting_ = devices;
  std::map<std::string, std::string> reasons;
  const auto snapshot = inventory_.published().Get();
  std::string faulty;
  for (const std::string& id : devices)
    if (monitor_.NeedsReset(id)) faulty += (faulty.empty() ? "" : ", ") + id;
  for (const std::string& id : devices) {
    const inventory::Entry* entry = snapshot->Find(id);
    vendor_ = entry->facts->vendor;
    reasons[id] = monitor_.NeedsReset(id) ? entry->health.reason + "; reset in progress"
                                          : "reset in progress together with " + faulty;
  }
  base::Log(base::kWarn, "device reset started",
            {{"device", faulty}, {"together", devices.size()}});
  monitor_.BeginReset(reasons);
  timer_ = control_.PostAfter(withdrawal_, [this] { Withdrawn(); });
}

void Resets::Withdrawn() {
  const auto candidates = Candidates();
  for (const std::string& id : resetting_) {
    const auto candidate = candidates.find(id);
    if (candidate != candidates.end() && candidate->second.present && candidate->second.free)
      continue;
    return Done(base::Error(base::Code::kCancelled, id + " is in use again or gone"));
  }
  released_ = true;
  vendor_of_(vendor_).release([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) Reset();
  });
}

void Resets::Reset() {
  std::vector<device::Facts> devices;
  const auto snapshot = inventory_.published().Get();
  for (const std::string& id : resetting_)
    if (const inventory::Entry* entry = snapshot->Find(id)) devices.push_back(*entry->facts);
  vendor_of_(vendor_).actions->Reset(
      devices, [this, alive = std::weak_ptr(alive_)](const base::Status& result) {
        if (!alive.expired()) Done(result);
      });
}

void Resets::Done(const base::Status& result) {
  const std::vector<std::string> devices = std::exchange(resetting_, {});
  for (const std::string& id : devices) {
    failures_.erase(id);
    if (!result.ok() && result.error().code() != base::Code::kCancelled)
      failures_[id] = result.error().message();
  }
  if (result.ok()) {
    base::Log(base::kInfo, "device reset complete",
              {{"device", devices.front()}, {"together", devices.size()}});
  } else {
    base::Log(base::kError, "device reset failed",
              {{"device", devices.front()},
               {"together", devices.size()},
               {"why", result.error().message()}});
  }
  monitor_.EndReset(devices, result);
  if (std::exchange(released_, false)) vendor_of_(vendor_).reopen();
  ScheduleCheck();
}

}  // namespace penstock::node::health
