// A device that obeys the rules of partitions, written independently of the planner: it performs
// steps one by one and refuses what a driver would refuse. Also lists all divisions that are legal.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "node/partition/division.h"
#include "node/partition/plan.h"
#include "node/partition/testing/profile_tables.h"

namespace penstock::node::partition::testing {

class ReferenceDevice {
 public:
  explicit ReferenceDevice(Division division) : division_(std::move(division)) {}

  const Division& division() const { return division_; }

  /// Takes all steps. Returns why one is refused; empty: all were taken.
  std::string Take(const PartitionPlan& plan, bool may_destroy_held = false) {
    std::vector<std::string> created;
    for (const PlanStep& step : plan.steps) {
      created.emplace_back();
      std::string why;
      switch (step.kind) {
        case PlanStep::Kind::kDestroy: why = Destroy(step.part, may_destroy_held); break;
        case PlanStep::Kind::kCreate: why = Create(step, created, created.back()); break;
        case PlanStep::Kind::kSetMode: why = SetMode(step.mode, step.value); break;
        case PlanStep::Kind::kReset: Settle(device::ModeEffect::kAfterReset); break;
        case PlanStep::Kind::kReloadDriver: Settle(device::ModeEffect::kAfterDriverReload); break;
      }
      if (!why.empty()) return step.text + " " + why;
    }
    return "";
  }

  /// The parts that can be held, by profile.
  std::map<std::string, int> Parts() const {
    std::map<std::string, int> parts;
    for (const ExistingPart& part : division_.parts)
      if (!part.outer) ++parts[part.profile];
    return parts;
  }

 private:
  std::string Destroy(const std::string& id, bool may_destroy_held) {
    const auto part = std::ranges::find(division_.parts, id, &ExistingPart::id);
    if (part == division_.parts.end()) return "refused: there is no such part";
    for (const ExistingPart& other : division_.parts)
      if (other.parent == id) return "refused: it has parts";
    if (!part->holder.empty() && !may_destroy_held) return "refused: it is held";
    division_.parts.erase(part);
    return "";
  }

  std::string Create(const PlanStep& step, const std::vector<std::string>& created,
                     std::string& id) {
    const device::PartProfile* profile = Find(division_.profiles, step.profile);
    if (profile == nullptr) return "refused: there is no such profile";
    std::string parent = step.within;
    if (step.within_created >= 0)
      parent = created.at(static_cast<std::size_t>(step.within_created));
    int slices = 0, most_slices = 0, count = 1;
    std::map<std::string, int> engines = profile->engines, most_engines;
    if (profile->within.empty() != parent.empty()) return "refused: it is on the wrong level";
    if (!parent.empty()) {
      const auto outer = std::ranges::find(division_.parts, parent, &ExistingPart::id);
      if (outer == division_.parts.end() || !outer->outer || outer->profile != profile->within)
        return "refused: it cannot be created in " + parent;
      most_slices = Find(division_.profiles, outer->profile)->slices;
      most_engines = Find(division_.profiles, outer->profile)->engines;
    }
    for (const device::PartProfile& one : division_.profiles) {
      if (one.within != profile->within) continue;
      most_slices = std::max(most_slices, one.slices);
      for (const auto& [engine, each] : one.engines)
        most_engines[engine] = std::max(most_engines[engine], each);
    }
    slices = profile->slices;
    for (const ExistingPart& part : division_.parts) {
      if (part.parent != parent) continue;
      const device::PartProfile* other = Find(division_.profiles, part.profile);
      slices += other->slices;
      count += other == profile ? 1 : 0;
      for (const auto& [engine, each] : other->engines) engines[engine] += each;
      if (!step.placement || !part.placement) continue;
      for (int slice = step.placement->start; slice < step.placement->start + step.placement->size;
           ++slice)
        if (slice >= part.placement->start && slice < part.placement->start + part.placement->size)
          return "refused: slice " + std::to_string(slice) + " is taken by " + part.id;
    }
    if (profile->most > 0 && count > profile->most) return "refused: too many of it";
    if (slices > most_slices) return "refused: no slices of compute are left";
    for (const auto& [engine, number] : engines)
      if (number > most_engines[engine]) return "refused: no engine " + engine + " is left";
    const bool listed = step.placement && std::ranges::find(profile->placements, *step.placement) !=
                                              profile->placements.end();
    if (profile->placements.empty() == step.placement.has_value() ||
        (step.placement.has_value() && !listed))
      return "refused: it cannot lie there";
    id = "new-" + std::to_string(++numbers_);
    division_.parts.push_back({.id = id,
                               .profile = step.profile,
                               .parent = parent,
                               .placement = step.placement,
                               .outer = step.outer});
    return "";
  }

  std::string SetMode(const std::string& name, const std::string& value) {
    for (device::Mode& mode : division_.modes) {
      if (mode.name != name) continue;
      if (mode.current != value && !division_.parts.empty()) return "refused: there are parts";
      mode.pending = value;
      if (mode.effect == device::ModeEffect::kNow) mode.current = value;
      return "";
    }
    return "refused: there is no such mode";
  }

  void Settle(device::ModeEffect effect) {
    for (device::Mode& mode : division_.modes)
      if (mode.effect == effect) mode.current = mode.pending;
  }

  Division division_;
  int numbers_ = 0;
};

/// A legal division as a list of parts, with a key of its parts that can be held.
struct LegalDivision {
  std::vector<ExistingPart> parts;
  std::map<std::string, int> counts;
};

/// All legal divisions; only with `nested` those that have parts within parts.
class Enumeration {
 public:
  Enumeration(Profiles profiles, bool nested) : profiles_(std::move(profiles)), nested_(nested) {
    // Divisions are copied at each step, so what cannot occur is left out.
    if (!nested) std::erase_if(profiles_, [](const auto& one) { return !one.within.empty(); });
    Extend({.profiles = profiles_}, 0);
  }
  std::vector<LegalDivision> all;

 private:
  /// Adds parts to a division in every way, in one order only: by profile, then by placement.
  void Extend(const Division& division, std::size_t from) {
    Keep(division);
    std::size_t number = 0;
    for (const device::PartProfile& profile : profiles_) {
      std::vector<std::optional<device::Placement>> places(profile.placements.begin(),
                                                           profile.placements.end());
      if (places.empty()) places.push_back(std::nullopt);
      for (const auto& place : places) {
        // The next free one may have the same profile again where the driver places it.
        const std::size_t mine = number++;
        if (mine < from) continue;
        if (!profile.within.empty()) {
          Within(division, profile, place, mine);
          continue;
        }
        Add(division, {.profile = profile.name, .placement = place}, mine);
        const bool can_be_outer = nested_ && std::ranges::any_of(profiles_, [&](const auto& one) {
                                    return one.within == profile.name;
                                  });
        if (can_be_outer)
          Add(division, {.profile = profile.name, .placement = place, .outer = true}, mine);
      }
    }
  }

  void Within(const Division& division, const device::PartProfile& profile,
              const std::optional<device::Placement>& place, std::size_t mine) {
    for (const ExistingPart& outer : division.parts)
      if (outer.outer && outer.profile == profile.within)
        Add(division, {.profile = profile.name, .placement = place, .within = outer.id}, mine);
  }

  void Add(const Division& division, PlanStep step, std::size_t mine) {
    step.kind = PlanStep::Kind::kCreate;
    if (step.within.empty() && Overlaps(division, step.placement)) return;  // saves time only
    ReferenceDevice device(division);
    if (!device.Take({.steps = {step}}).empty()) return;
    Division next = device.division();
    next.parts.back().id = "part-" + std::to_string(next.parts.size());
    Extend(next, mine + (step.placement && step.within.empty() ? 1 : 0));
  }

  static bool Overlaps(const Division& division, const std::optional<device::Placement>& at) {
    return at && std::ranges::any_of(division.parts, [&](const ExistingPart& part) {
             return part.parent.empty() && part.placement &&
                    at->start < part.placement->start + part.placement->size &&
                    part.placement->start < at->start + at->size;
           });
  }

  void Keep(const Division& division) {
    LegalDivision legal{.parts = division.parts};
    std::vector<std::string> key;
    for (const ExistingPart& part : division.parts) {
      const bool empty = part.outer && std::ranges::none_of(division.parts, [&](const auto& one) {
                           return one.parent == part.id;
                         });
      if (empty) return;
      if (!part.outer) ++legal.counts[part.profile];
      key.push_back(part.profile + "|" + part.parent + "|" +
                    (part.placement ? std::to_string(part.placement->start) : ""));
    }
    std::ranges::sort(key);
    if (seen_.insert(key).second) all.push_back(std::move(legal));
  }

  Profiles profiles_;
  const bool nested_;
  std::set<std::vector<std::string>> seen_;
};

}  // namespace penstock::node::partition::testing
