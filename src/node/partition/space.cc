#include "node/partition/space.h"

#include <algorithm>
#include <bit>

namespace penstock::node::partition {

using device::PartProfile;
using device::Placement;

bool IsPossible(const Placement& at) {
  return at.start >= 0 && at.size > 0 && at.start <= kMaxSlices && at.size <= kMaxSlices - at.start;
}

SliceMask MaskOf(const Placement& placement) {
  const SliceMask ones =
      placement.size >= kMaxSlices ? ~SliceMask{0} : (SliceMask{1} << placement.size) - 1;
  return ones << placement.start;
}

Space::Space(const std::vector<PartProfile>& all) {
  for (const PartProfile& profile : all)
    if (profile.within.empty()) Add(profile);
}

Space::Space(const std::vector<PartProfile>& all, const PartProfile& outer) {
  for (const PartProfile& profile : all)
    if (profile.within == outer.name) Add(profile);
  slices_ = outer.slices;
  engines_.insert(outer.engines.begin(), outer.engines.end());
}

void Space::Add(const PartProfile& profile) {
  if (Find(profile.name) != nullptr) return;
  profiles_.push_back(&profile);
  slices_ = std::max(slices_, profile.slices);
  for (const Placement& placement : profile.placements) extent_ |= MaskOf(placement);
  for (const auto& [engine, count] : profile.engines)
    engines_[engine] = std::max(engines_[engine], count);
}

const PartProfile* Space::Find(std::string_view name) const {
  const auto found = std::ranges::find(profiles_, name, &PartProfile::name);
  return found == profiles_.end() ? nullptr : *found;
}

std::string Space::WhyTooMany(const ProfileCounts& counts) const {
  std::int64_t slices = 0;
  std::map<std::string_view, std::int64_t> engines;
  for (const auto& [profile, count] : counts) {
    if (profile->most > 0 && count > profile->most)
      return "there can be at most " + Counted(profile->most, profile->name) + " at once, not " +
             std::to_string(count);
    slices += std::int64_t{count} * profile->slices;
    for (const auto& [engine, each] : profile->engines)
      engines[engine] += std::int64_t{count} * each;
  }
  if (slices_ > 0 && slices > slices_)
    return std::to_string(slices) + " slices of compute are needed, and there are " +
           std::to_string(slices_);
  for (const auto& [engine, needed] : engines) {
    const auto there = engines_.find(engine);
    const int most = there == engines_.end() ? 0 : there->second;
    if (needed > most)
      return "there are " + std::to_string(most) + " engines " + std::string(engine) + ", and " +
             std::to_string(needed) + " are needed";
  }
  return "";
}

RoomMeasure::RoomMeasure(const Space& space, ProfileCounts counts) {
  for (const PartProfile* profile : space.profiles()) {
    const int before = counts[profile]++;
    if (space.WhyTooMany(counts).empty())
      for (const Placement& placement : profile->placements)
        places_.push_back({profile, MaskOf(placement), std::max(profile->slices, 1)});
    counts[profile] = before;
  }
}

std::int64_t RoomMeasure::Beside(SliceMask taken) const {
  std::int64_t room = 0;
  for (const Place& place : places_)
    if ((place.mask & taken) == 0) room += place.slices;
  return room;
}

ProfileCounts RoomMeasure::PlacementsBeside(SliceMask taken) const {
  ProfileCounts counts;
  for (const Place& place : places_)
    if ((place.mask & taken) == 0) ++counts[place.profile];
  return counts;
}

Status CheckProfiles(const std::vector<PartProfile>& profiles) {
  const auto wrong = [](const PartProfile& profile, const std::string& what) {
    return Error(Code::kFailedPrecondition,
                 "the driver reports of the profile " + profile.name + " " + what);
  };
  for (const PartProfile& profile : profiles) {
    for (const Placement& at : profile.placements)
      if (!IsPossible(at))
        return wrong(profile, "a placement from slice " + std::to_string(at.start) + " of size " +
                                  std::to_string(at.size) + ", which is impossible");
    if (profile.within.empty()) continue;
    const auto outer = std::ranges::find(profiles, profile.within, &PartProfile::name);
    if (outer == profiles.end() || !outer->within.empty())
      return wrong(profile, "that it is created within " + profile.within +
                                ", which is no profile of the device itself");
  }
  return {};
}

std::string InWords(std::string_view profile, const std::optional<Placement>& placement) {
  std::string text(profile);
  if (!placement) return text;
  const std::int64_t last = std::int64_t{placement->start} + placement->size - 1;
  text += last == placement->start ? " at slice " : " at slices ";
  text += std::to_string(placement->start);
  if (last != placement->start) text += "-" + std::to_string(last);
  return text;
}

std::string Counted(int count, std::string_view profile) {
  return std::to_string(count) + " of " + std::string(profile);
}

}  // namespace penstock::node::partition
