#include "node/change/division_steps.h"

#include <utility>

#include "base/log.h"
#include "node/change/division_now.h"
#include "node/change/pauses.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;

DivisionSteps::DivisionSteps(base::Executor& control, const Divisions::Node& node,
                             const Divisions::VendorOf& vendor_of)
    : control_(control), node_(node), vendor_of_(vendor_of), resets_(control, node, vendor_of) {}

void DivisionSteps::Begin(Run& one, const Entry& entry, const DivisionRecord& record) {
  const std::string id = entry.facts->id;
  const Divisions::Vendor vendor = vendor_of_(entry.facts->vendor);
  one.outcome.reset();
  one.doing.clear();
  one.run = std::make_unique<DivisionRun>(
      DivisionRun::Tools{
          .backend = *vendor.backend,
          // What stays is offered meanwhile, and can get a holder at any time.
          .holder_of =
              [this, kept = record.kept](const std::string& part) {
                const std::string holder = HolderOf(part, *node_.inventory.published().Get(),
                                                    *node_.ledger.Get(), *node_.changes.Servers());
                return holder.empty() && kept.contains(part)
                           ? std::string("its allocator, because it stays")
                           : holder;
              },
          .reset = [this](const Facts& device,
                          DivisionResets::Done done) { resets_.Reset(device, std::move(done)); },
          .progress =
              [this, id](const std::string& step) {
                runs_[id].doing = step;
                base::Log(base::kInfo, "device is being divided", {{"device", id}, {"step", step}});
                node_.changes.Wake();
              }},
      DivisionRun::Goal{.device = id,
                        .address = entry.facts->address,
                        .desired = [division = one.back ? record.before : record.desired](
                                       const partition::Division&) { return division; },
                        .mode_only = !one.back && record.mode_only,
                        .skip_reset = record.skip_reset});
  one.run->Start([this, id](const base::Status& outcome) { Ended(id, outcome); });
}

void DivisionSteps::Ended(const std::string& id, const base::Status& outcome) {
  Run& ended = runs_[id];
  ended.outcome = outcome;
  if (!outcome.ok()) {
    const base::Duration pause =
        Pauses(kFirstDivisionPause, kMostDivisionDoublings).After(ended.failures++);
    ended.retry_at = control_.clock().Now() + pause;
    control_.PostAfter(pause, lifetime_.Guard([this] { node_.changes.Wake(); }));
  }
  if (const auto snapshot = node_.inventory.published().Get();
      const Entry* now = snapshot->Find(id))
    if (const Divisions::Vendor of = vendor_of_(now->facts->vendor); of.describe) of.describe({});
  node_.changes.Wake();
}

StepResult DivisionSteps::Divide(const DeviceChange& change) {
  const std::string& id = change.device();
  Run& one = runs_[id];
  if (!one.run) {
    const auto snapshot = node_.inventory.published().Get();
    const Entry* entry = snapshot->Find(id);
    if (std::string why = Divisions::WhyNotReady(entry, vendor_of_); !why.empty()) return why;
    auto record = DecodeDivision(change.details);
    if (!record.ok()) return record.error();
    Begin(one, *entry, *record);
  }
  if (!one.outcome) return one.doing.empty() ? std::string("its driver is asked") : one.doing;
  if (!one.outcome->ok()) return one.outcome->error();
  return std::string();
}

StepResult DivisionSteps::Restore(const DeviceChange& change, bool wanted) {
  if (change.failure.empty()) return std::string();
  const std::string& id = change.device();
  Run& one = runs_[id];
  const auto snapshot = node_.inventory.published().Get();
  const Entry* entry = snapshot->Find(id);
  if (entry == nullptr || entry->health.state == device::HealthState::kGone)
    return base::Error(base::Code::kNotFound, "the device is not there");
  if (!one.back) {
    resets_.Forget(id);
    one = {.back = true};
  }
  const base::TimePoint now = control_.clock().Now();
  if (!one.run || (one.outcome && !one.outcome->ok() && one.retry_at <= now)) {
    const std::string why = Divisions::WhyNotReady(entry, vendor_of_);
    auto record = DecodeDivision(change.details);
    if (!record.ok()) return record.error();
    if (!why.empty()) return change.failure + "; " + why;
    Begin(one, *entry, *record);
  }
  if (!one.outcome) return change.failure + "; it is being divided as before";
  if (one.outcome->ok()) return std::string();
  if (!wanted) return one.outcome->error();
  const std::string& why = one.outcome->error().message();
  return change.failure + "; and it cannot be divided as before" +
         (why == change.failure ? "" : ": " + why);
}

StepResult DivisionSteps::Read(const DeviceChange& change) const {
  const auto run = runs_.find(change.device());
  if (run == runs_.end() || !run->second.run || run->second.run->seen().empty())
    return std::string();
  const auto snapshot = node_.inventory.published().Get();
  const Entry* entry = snapshot->Find(change.device());
  if (entry == nullptr || entry->health.state == device::HealthState::kGone) return std::string();
  return IsRead(run->second.run->seen(), *snapshot) ? std::string()
                                                    : std::string("its parts are being read");
}

void DivisionSteps::Forget(const std::string& device) {
  resets_.Forget(device);
  runs_.erase(device);
}

void DivisionSteps::RetryNow() {
  for (auto& [id, run] : runs_) run.retry_at = control_.clock().Now();
}

bool DivisionSteps::FailedToRestore(const std::string& device) const {
  const auto run = runs_.find(device);
  return run != runs_.end() && run->second.failures > 0 && run->second.back;
}

}  // namespace penstock::node::change
