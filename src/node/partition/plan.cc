#include "node/partition/plan.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/core/strings.h"
#include "node/partition/resolve.h"
#include "node/partition/solve.h"
#include "node/partition/space.h"
#include "node/partition/why_not.h"

namespace penstock::node::partition {
namespace {

using device::Mode;
using device::ModeEffect;

std::string HeldBy(const std::string& holder) {
  return holder.empty() ? "" : ", held by " + holder;
}

class Planner {
 public:
  Planner(const Division& now, const DesiredDivision& desired, const PlanPolicy& policy)
      : now_(now), desired_(desired), policy_(policy) {}

  Result<PartitionPlan> Run() {
    TRY(CheckProfiles(now_.profiles));
    if (AwaitsReload(now_, desired_)) return Request();
    TRY(FindMode());
    TRY(CheckDevice());
    if (desired_.by_mode) return Steps({}, {}, !changes_mode());
    if (desired_.parts.empty() || IsAsDesired()) {
      const bool stays = !desired_.parts.empty();
      if (!stays) TRY(CheckAllDestroyed("no parts are desired"));
      return Steps({}, {}, stays);
    }
    TRY(CheckHasProfiles());
    const Space device(now_.profiles);
    ASSIGN(const ResolvedDivision resolved, ResolveDivision(now_, device, desired_.parts));
    SolveInput input{now_, device, resolved, {}, {}};
    for (const ExistingPart& part : now_.parts) {
      input.available.push_back(!changes_mode());
      input.stays.push_back(!changes_mode() && !part.holder.empty() && !policy_.destroy_held);
    }
    TRY(CheckHeldParts(input));
    bool proven = true;
    const auto solution = Solve(input, proven);
    if (!solution) return WhyNoSolution(input, proven);
    return Steps(*solution, resolved, false);
  }

 private:
  bool changes_mode() const { return mode_ != nullptr && mode_->current != desired_.value; }

  Status FindMode() {
    if (desired_.mode.empty()) return {};
    mode_ = now_.FindMode(desired_.mode);
    if (mode_ == nullptr)
      return Error(Code::kInvalidArgument, "the device has no mode \"" + desired_.mode + "\"");
    if (std::ranges::find(mode_->available, desired_.value) == mode_->available.end())
      return Error(Code::kInvalidArgument, "the mode " + mode_->name + " cannot be \"" +
                                               desired_.value + "\": it can be " +
                                               base::Join(mode_->available, ", "));
    return {};
  }

  /// A change of mode needs the whole device.
  Status CheckDevice() {
    if (!changes_mode()) return {};
    if (!now_.holder.empty() && !policy_.destroy_held)
      return Error(
          Code::kFailedPrecondition,
          "the mode " + mode_->name + " cannot change while the device is held by " + now_.holder);
    return CheckAllDestroyed("the mode " + mode_->name + " changes, which destroys all parts");
  }

  Status CheckAllDestroyed(const std::string& why) const {
    std::vector<std::string> held;
    for (const ExistingPart& part : now_.parts)
      if (!part.holder.empty() && !policy_.destroy_held)
        held.push_back(InWords(part.profile, part.placement) + " (" + part.id + ") is held by " +
                       part.holder);
    if (held.empty()) return {};
    return Error(Code::kFailedPrecondition, why + ", and " + base::Join(held, "; "));
  }

  Status CheckHasProfiles() const {
    if (!now_.profiles.empty()) return {};
    if (changes_mode())
      return Error(Code::kFailedPrecondition,
                   "the driver lists the device's profiles only once the mode " + mode_->name +
                       " is \"" + desired_.value + "\": change the mode first, without parts");
    return Error(Code::kFailedPrecondition,
                 "the device cannot be divided: its driver lists no profiles of parts");
  }

  /// Whether exactly these parts exist, wherever they lie.
  bool IsAsDesired() const {
    if (changes_mode()) return false;
    std::map<std::string, int> missing;
    for (const DesiredParts& parts : desired_.parts) {
      if (parts.placement || parts.outer || parts.vacant) return false;
      if (parts.count > 0) missing[parts.profile] += parts.count;
    }
    for (const ExistingPart& part : now_.parts) {
      if (part.outer && !HasParts(now_, part)) return false;
      if (!part.outer) --missing[part.profile];
    }
    return std::ranges::all_of(missing, [](const auto& one) { return one.second == 0; });
  }

  /// Of the mode that takes effect later. What is held can stay.
  Result<PartitionPlan> Request() {
    const Mode* later = now_.FindMode(desired_.later);
    for (const ExistingPart& part : now_.parts) plan_.kept.push_back(part.id);
    if (later->pending == desired_.later_value) return std::move(plan_);
    if (!now_.holder.empty())
      return Error(Code::kFailedPrecondition, "the mode " + desired_.later +
                                                  " cannot be requested while the device is held "
                                                  "by " +
                                                  now_.holder);
    plan_.steps.push_back({.kind = PlanStep::Kind::kSetMode,
                           .mode = later->name,
                           .value = desired_.later_value,
                           .text = "Request the mode " + later->name + " \"" +
                                   desired_.later_value +
                                   "\", for when the driver is loaded again."});
    plan_.scope = later->scope;
    return std::move(plan_);
  }

  PartitionPlan Steps(const Solution& solution, const ResolvedDivision& resolved, bool all_stay) {
    plan_.proven = solution.proven;
    for (std::size_t i = 0; i < now_.parts.size(); ++i)
      if (all_stay || std::ranges::binary_search(solution.kept, i))
        plan_.kept.push_back(now_.parts[i].id);
    AddDestroyed(solution, resolved);
    AddMode();
    AddCreated(solution);
    return std::move(plan_);
  }

  bool IsKept(const ExistingPart& part) const {
    return std::ranges::find(plan_.kept, part.id) != plan_.kept.end();
  }

  void AddDestroyed(const Solution& solution, const ResolvedDivision& resolved) {
    if (desired_.by_mode) return;
    for (const bool within : {true, false})
      for (const ExistingPart& part : now_.parts) {
        if (part.parent.empty() == within || IsKept(part)) continue;
        plan_.steps.push_back({.kind = PlanStep::Kind::kDestroy,
                               .part = part.id,
                               .profile = part.profile,
                               .placement = part.placement,
                               .outer = part.outer,
                               .within = part.parent,
                               .text = "Destroy " + InWords(part.profile, part.placement) + " (" +
                                       part.id + ")" + HeldBy(part.holder) + ": " +
                                       WhyDestroyed(part, solution, resolved) + "."});
      }
  }

  /// What is created on the level on which the part lies, on the device or in its outer part.
  std::vector<PlacedPart> NewBeside(const ExistingPart& part, const Solution& solution) const {
    if (part.parent.empty()) return solution.created;
    for (const FilledOuter& outer : solution.outers)
      if (outer.existing && now_.parts[*outer.existing].id == part.parent) return outer.parts;
    return {};
  }

  std::string WhyDestroyed(const ExistingPart& part, const Solution& solution,
                           const ResolvedDivision& resolved) const {
    if (changes_mode()) return "the mode " + mode_->name + " changes";
    if (part.outer) return "no part is left in it";
    const int desired = resolved.CountOf(part.profile);
    if (desired == 0) return "none of " + part.profile + " is desired";
    const auto kept = std::ranges::count_if(now_.parts, [&](const ExistingPart& one) {
      return one.profile == part.profile && !one.outer && IsKept(one);
    });
    if (kept == desired)
      return desired == 1 ? "only one is desired"
                          : "only " + std::to_string(desired) + " are desired";
    const auto in_the_way = [&](const PlacedPart& one) {
      return part.placement && IsPossible(*part.placement) && one.placement &&
             (MaskOf(*part.placement) & MaskOf(*one.placement)) != 0;
    };
    for (const PlacedPart& one : NewBeside(part, solution))
      if (in_the_way(one)) return InWords(one.profile->name, one.placement) + " needs its place";
    for (const FilledOuter& outer : solution.outers)
      if (part.parent.empty() && !outer.existing && in_the_way(outer.created))
        return InWords(outer.created.profile->name, outer.created.placement) + " needs its place";
    return "the others need it elsewhere";
  }

  void AddMode() {
    if (mode_ == nullptr) return;
    if (mode_->pending != desired_.value)
      plan_.steps.push_back({.kind = PlanStep::Kind::kSetMode,
                             .mode = mode_->name,
                             .value = desired_.value,
                             .text = changes_mode()
                                         ? "Change the mode " + mode_->name + " from \"" +
                                               mode_->current + "\" to \"" + desired_.value + "\"."
                                         : "Withdraw the pending change of the mode " +
                                               mode_->name + " to \"" + mode_->pending + "\"."});
    if (!changes_mode()) return;
    plan_.scope = mode_->scope;
    if (mode_->effect == ModeEffect::kAfterReset)
      plan_.steps.push_back(
          {.kind = PlanStep::Kind::kReset,
           .text = "Reset the device, so that the mode " + mode_->name + " takes effect."});
    if (mode_->effect == ModeEffect::kAfterDriverReload)
      plan_.steps.push_back(
          {.kind = PlanStep::Kind::kReloadDriver,
           .text = "Reload the driver, so that the mode " + mode_->name + " takes effect."});
  }

  void Create(const PlacedPart& part, bool outer, const std::string& within, int within_created) {
    std::string text = "Create " + InWords(part.profile->name, part.placement);
    if (outer) text += ", for parts within it";
    if (!within.empty()) text += " in " + within;
    if (within_created >= 0) text += " of the new " + part.profile->within;
    plan_.steps.push_back({.kind = PlanStep::Kind::kCreate,
                           .profile = part.profile->name,
                           .placement = part.placement,
                           .outer = outer,
                           .within = within,
                           .within_created = within_created,
                           .text = text + "."});
  }

  /// The largest first: should the driver place one elsewhere than asked, the small ones still fit.
  void AddCreated(const Solution& solution) {
    for (const FilledOuter& outer : solution.outers) {
      int created = -1;
      std::string existing;
      if (outer.existing) {
        existing = now_.parts[*outer.existing].id;
      } else {
        created = static_cast<int>(plan_.steps.size());
        Create(outer.created, true, "", -1);
      }
      std::vector<PlacedPart> within = outer.parts;
      std::ranges::stable_sort(within, std::greater(),
                               [](const PlacedPart& part) { return part.profile->slices; });
      for (const PlacedPart& part : within) Create(part, false, existing, created);
    }
    std::vector<PlacedPart> parts = solution.created;
    std::ranges::stable_sort(parts, [](const PlacedPart& a, const PlacedPart& b) {
      const int size_a = a.placement ? a.placement->size : 0;
      const int size_b = b.placement ? b.placement->size : 0;
      return std::pair(-size_a, a.placement) < std::pair(-size_b, b.placement);
    });
    for (const PlacedPart& part : parts) Create(part, false, "", -1);
  }

  const Division& now_;
  const DesiredDivision& desired_;
  const PlanPolicy& policy_;
  const Mode* mode_ = nullptr;  // of the desired one
  PartitionPlan plan_;
};

}  // namespace

bool AwaitsReload(const Division& now, const DesiredDivision& desired) {
  const Mode* later = now.FindMode(desired.later);
  return later != nullptr && later->current != desired.later_value;
}

std::string_view ToString(PlanStep::Kind kind) {
  switch (kind) {
    case PlanStep::Kind::kDestroy: return "destroy";
    case PlanStep::Kind::kSetMode: return "set-mode";
    case PlanStep::Kind::kReset: return "reset";
    case PlanStep::Kind::kReloadDriver: return "reload-driver";
    case PlanStep::Kind::kCreate: return "create";
  }
  return "";
}

Result<PartitionPlan> MakePlan(const Division& now, const DesiredDivision& desired,
                               const PlanPolicy& policy) {
  return Planner(now, desired, policy).Run();
}

}  // namespace penstock::node::partition
