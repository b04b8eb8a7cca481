#include "node/change/division_run.h"

#include <algorithm>
#include <utility>

#include "base/core/strings.h"
#include "node/partition/desired.h"
#include "node/partition/space.h"

namespace penstock::node::change {

using device::Facts;
using partition::DesiredDivision;
using partition::Division;
using partition::PlanStep;

namespace {

/// A plan in two parts, for the mode and for the parts, and as many again, because others may
/// change the device at the same time.
constexpr int kRounds = 6;

std::vector<const Facts*> PointersTo(const std::vector<Facts>& devices) {
  std::vector<const Facts*> pointers;
  for (const Facts& device : devices) pointers.push_back(&device);
  return pointers;
}

/// A sentence as a part of another one: "create 1g.5gb at slice 3".
std::string Clause(std::string sentence) {
  if (sentence.ends_with('.')) sentence.pop_back();
  if (!sentence.empty()) sentence.front() = base::ToLower(sentence.substr(0, 1)).front();
  return sentence;
}

bool ModeDiffers(const Division& now, const DesiredDivision& desired) {
  const device::Mode* mode = now.FindMode(desired.mode);
  return mode != nullptr && mode->current != desired.value;
}

}  // namespace

DivisionRun::DivisionRun(Tools tools, Goal goal)
    : tools_(std::move(tools)), goal_(std::move(goal)) {}

void DivisionRun::Start(std::function<void(base::Status)> done) {
  done_ = std::move(done);
  Look();
}

void DivisionRun::End(const base::Status& result) {
  if (auto done = std::exchange(done_, nullptr)) done(result);
}

// --- looking

void DivisionRun::Look() {
  if (++rounds_ > kRounds)
    return End(base::Error(base::Code::kAborted,
                           "it is divided otherwise each time, as if by another program"));
  tools_.backend.Describe(goal_.address, lifetime_.Guard([this](base::Result<Facts> facts) {
    if (!facts.ok()) return End(facts.error());
    if (facts->id != goal_.device)
      return End(base::Error(base::Code::kAborted, "it was replaced by another device"));
    seen_.assign(1, *std::move(facts));
    LookAtPart(0);
  }));
}

void DivisionRun::LookAtPart(std::size_t part) {
  if (part == seen_.front().parts.size()) return Seen();
  tools_.backend.Describe(seen_.front().parts[part],
                          lifetime_.Guard([this, part](base::Result<Facts> facts) {
                            // It was destroyed after the device was described.
                            if (!facts.ok() && facts.error().code() == base::Code::kNotFound)
                              return Look();
                            if (!facts.ok()) return End(facts.error());
                            seen_.push_back(*std::move(facts));
                            LookAtPart(part + 1);
                          }));
}

/// Where only the mode counts and a reset is excluded, a mode that is pending is the end.
bool DivisionRun::EndsPending() const { return goal_.mode_only && goal_.skip_reset; }

base::Result<partition::PartitionPlan> DivisionRun::Plan(const Division& now) const {
  DesiredDivision desired = goal_.desired(now);
  if (EndsPending() && IsModePending(now, desired)) return partition::PartitionPlan{};
  if (AwaitsReload(now, desired)) return MakePlan(now, desired, {});
  if (!ModeDiffers(now, desired))
    return goal_.mode_only || desired.by_mode ? partition::PartitionPlan{}
                                              : MakePlan(now, desired, {});
  // Some drivers list their profiles only in the mode, and none creates parts before it.
  if (!goal_.mode_only && !now.profiles.empty()) TRY(MakePlan(now, desired, {}));
  desired.parts.clear();
  return MakePlan(now, desired, {});
}

/// Why the plan would destroy what this run has created: that would go on, round after round.
std::string DivisionRun::WhyUndone(const partition::PartitionPlan& plan) const {
  for (const PlanStep& step : plan.steps)
    if (step.kind == PlanStep::Kind::kDestroy && all_created_.contains(AddressOf(step.part)))
      return partition::InWords(step.profile, step.placement) + " (" + step.part +
             ") was just created, and is not as desired: its driver placed it otherwise, or "
             "another program divides the device at the same time";
  return "";
}

void DivisionRun::Seen() {
  if (rounds_ == 1)
    for (const Facts& device : seen_) first_seen_.insert(device.id);
  auto plan = Plan(partition::DivisionOf(seen_.front(), PointersTo(seen_), tools_.holder_of));
  if (!plan.ok()) return End(plan.error());
  if (plan->steps.empty()) return End({});
  if (std::string why = WhyUndone(*plan); !why.empty())
    return End(base::Error(base::Code::kAborted, std::move(why)));
  steps_ = std::move(plan->steps);
  created_.assign(steps_.size(), "");
  Take(0);
}

// --- the steps

void DivisionRun::Take(std::size_t number) {
  if (number == steps_.size()) return Look();
  const PlanStep& step = steps_[number];
  tools_.progress(Clause(step.text) + " (" + std::to_string(number + 1) + " of " +
                  std::to_string(steps_.size()) + ")");
  switch (step.kind) {
    case PlanStep::Kind::kDestroy: return Destroy(step, number);
    case PlanStep::Kind::kCreate: return Create(step, number);
    case PlanStep::Kind::kSetMode:
      return tools_.backend.SetMode(goal_.address, step.mode, step.value, Then(number));
    case PlanStep::Kind::kReset: return LookBeforeReset(number);
    case PlanStep::Kind::kReloadDriver:
      return End(base::Error(base::Code::kUnimplemented,
                             "the mode takes effect when the driver is loaded again: do that"));
  }
}

/// What follows a step.
std::function<void(base::Result<std::string>)> DivisionRun::Then(std::size_t number) {
  return lifetime_.Guard([this, number](base::Result<std::string> address) {
    const bool creates = steps_[number].kind == PlanStep::Kind::kCreate;
    if (!address.ok() && creates)
      unanswered_ = address.error().code() == base::Code::kUnavailable ||
                    address.error().code() == base::Code::kDeadlineExceeded;
    if (!address.ok())
      return End(base::Error(address.error().code(),
                             Clause(steps_[number].text) + ": " + address.error().message()));
    if (creates) all_created_.insert(*address);
    created_[number] = *std::move(address);
    Take(number + 1);
  });
}

std::string DivisionRun::AddressOf(const std::string& id) const {
  const auto part = std::ranges::find(seen_, id, &Facts::id);
  return part == seen_.end() ? "" : part->address;
}

void DivisionRun::Destroy(const PlanStep& step, std::size_t number) {
  // A lease can have come since the plan was made.
  const std::string holder = tools_.holder_of(step.part);
  if (!holder.empty())
    return End(base::Error(base::Code::kFailedPrecondition,
                           Clause(step.text) + ": " + step.part + " is held by " + holder));
  tools_.backend.DestroyPart(AddressOf(step.part), Then(number));
}

void DivisionRun::Create(const PlanStep& step, std::size_t number) {
  device::NewPart part{
      .profile = step.profile, .placement = step.placement, .within = {}, .outer = step.outer};
  if (!step.within.empty()) part.within = AddressOf(step.within);
  if (step.within_created >= 0)
    part.within = created_.at(static_cast<std::size_t>(step.within_created));
  tools_.backend.CreatePart(goal_.address, part, Then(number));
}

/// Some drivers reset the device themselves when the mode is set.
void DivisionRun::LookBeforeReset(std::size_t number) {
  tools_.backend.Describe(goal_.address, lifetime_.Guard([this, number](base::Result<Facts> facts) {
    if (!facts.ok()) return End(facts.error());
    if (!IsAnyModePending(*facts)) return Take(number + 1);
    if (EndsPending()) return Look();
    if (goal_.skip_reset)
      return End(base::Error(base::Code::kFailedPrecondition,
                             "a reset is needed, and the request excludes it"));
    Reset(number);
  }));
}

void DivisionRun::Reset(std::size_t number) {
  tools_.reset(seen_.front(), lifetime_.Guard([this, number](const base::Status& result) {
    LookAfterReset(number, result);
  }));
}

/// What the device reports counts: the reset may have been one of several devices, of which another
/// one failed.
void DivisionRun::LookAfterReset(std::size_t number, const base::Status& result) {
  tools_.backend.Describe(
      goal_.address, lifetime_.Guard([this, number, result](base::Result<Facts> facts) {
        if (!facts.ok()) return End(result.ok() ? base::Status(facts.error()) : result);
        if (IsAnyModePending(*facts))
          return End(result.ok() ? base::Status(base::Error(
                                       base::Code::kAborted,
                                       "the device was reset, and its mode has not taken effect"))
                                 : result);
        // What was seen before the reset is no longer there.
        if (number + 1 == steps_.size()) return Look();
        Take(number + 1);
      }));
}

bool IsAnyModePending(const Facts& device) {
  return std::ranges::any_of(device.modes,
                             [](const device::Mode& mode) { return mode.current != mode.pending; });
}

bool IsModePending(const Division& now, const DesiredDivision& desired) {
  const device::Mode* mode = now.FindMode(desired.mode);
  return mode != nullptr && mode->pending == desired.value;
}

}  // namespace penstock::node::change
