#include "node/partition/resolve.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::node::partition {
namespace {

using device::PartProfile;
using device::Placement;

std::string PlacementsInWords(const PartProfile& profile) {
  std::vector<std::string> starts;
  for (const Placement& at : profile.placements) starts.push_back(std::to_string(at.start));
  return base::Join(starts, ", ");
}

std::string WhyNotThere(const PartProfile& profile, const Placement& at) {
  if (profile.placements.empty())
    return profile.name + " cannot be placed: its driver chooses where it lies";
  if (std::ranges::find(profile.placements, at) != profile.placements.end()) return "";
  return InWords(profile.name, at) + " is impossible: it can begin at slices " +
         PlacementsInWords(profile) + ", with a size of " +
         std::to_string(profile.placements.front().size);
}

/// Whether the driver itself lists the placements within parts of this profile, as it does while
/// there is such a part. Otherwise it may permit more, see PartProfile::placements.
bool AreListed(const Division& now, const PartProfile& outer) {
  return std::ranges::any_of(now.parts, [&](const ExistingPart& part) {
    return part.outer && part.profile == outer.name;
  });
}

/// Makes of a placement within another part, perhaps one that was recorded with another driver,
/// this driver's placement with the same start, as far as that is known. Returns why it is
/// impossible, empty if the driver permits it or may do so.
std::string ResolveWithin(const Division& now, const PartProfile& profile, const PartProfile& outer,
                          Placement& at) {
  if (!IsPossible(at) || (outer.slices > 0 && at.start >= outer.slices))
    return InWords(profile.name, at) + " is impossible: " + outer.name + " has " +
           std::to_string(outer.slices) + " slices of compute";
  const auto there = std::ranges::find_if(now.parts, [&](const ExistingPart& part) {
    return part.profile == profile.name && IsThere(part, at);
  });
  if (there != now.parts.end() && IsPossible(*there->placement)) {
    at = *there->placement;
    return "";
  }
  if (!AreListed(now, outer)) return "";
  const auto listed = std::ranges::find(profile.placements, at.start, &Placement::start);
  if (listed == profile.placements.end())
    return InWords(profile.name, at) + " is impossible: in " + outer.name +
           " it can begin at slices " + PlacementsInWords(profile);
  at = *listed;
  return "";
}

std::string UnknownProfile(const Division& now, const std::string& name) {
  std::vector<std::string> names;
  for (const PartProfile& profile : now.profiles) names.push_back(profile.name);
  std::string text = "the device has no profile \"" + name + "\"";
  if (const auto near = base::Nearest(name, names))
    return text + "; did you mean \"" + *near + "\"?";
  return text + "; it has " + base::Join(names, ", ");
}

/// `placed`: at exactly the desired placement.
void AddParts(std::vector<ResolvedParts>& all, const PartProfile& profile,
              const DesiredParts& desired, bool placed) {
  auto found = std::ranges::find(all, &profile, &ResolvedParts::profile);
  if (found == all.end()) found = all.insert(all.end(), {.profile = &profile});
  if (placed) {
    found->fixed.push_back(*desired.placement);
  } else {
    found->count += desired.count;
  }
}

ResolvedNest& NestOf(ResolvedDivision& division, const Division& now, const PartProfile& outer) {
  const auto found = std::ranges::find(division.nests, &outer, &ResolvedNest::outer);
  if (found != division.nests.end()) return *found;
  division.nests.push_back({.outer = &outer, .space = Space(now.profiles, outer)});
  return division.nests.back();
}

ResolvedNest::Fixed* FindFixed(ResolvedNest& nest, const Placement& at) {
  const auto found = std::ranges::find(nest.fixed, at, &ResolvedNest::Fixed::outer);
  return found == nest.fixed.end() ? nullptr : &*found;
}

/// Adds an outer part in which nothing is desired; returns why that is impossible.
std::string AddVacant(ResolvedNest& nest, const DesiredParts& desired) {
  if (!desired.placement) return desired.profile + " without parts in it needs a placement";
  if (FindFixed(nest, *desired.placement) != nullptr)
    return InWords(desired.profile, desired.placement) + " is desired twice";
  nest.fixed.push_back({.outer = *desired.placement, .vacant = true});
  return "";
}

/// Adds desired parts; returns why that is impossible, empty if it is possible.
std::string AddTo(ResolvedDivision& division, const Division& now, DesiredParts desired) {
  const auto profile = std::ranges::find(now.profiles, desired.profile, &PartProfile::name);
  if (profile == now.profiles.end()) return UnknownProfile(now, desired.profile);
  if (desired.placement && desired.count != 1)
    return Counted(desired.count, desired.profile) + " are desired at one placement";
  if (desired.placement && profile->within.empty())
    if (std::string why = WhyNotThere(*profile, *desired.placement); !why.empty()) return why;
  if (profile->within.empty()) {
    if (desired.outer) return desired.profile + " is created on the device, and in no other part";
    if (desired.vacant) return AddVacant(NestOf(division, now, *profile), desired);
    AddParts(division.parts, *profile, desired, desired.placement.has_value());
    return "";
  }
  if (desired.vacant) return desired.profile + " is created in another part, and has no parts";
  const auto outer = std::ranges::find(now.profiles, profile->within, &PartProfile::name);
  ResolvedNest& nest = NestOf(division, now, *outer);
  const bool placed = desired.placement && !profile->placements.empty();
  if (placed)
    if (std::string why = ResolveWithin(now, *profile, *outer, *desired.placement); !why.empty())
      return why;
  if (!desired.outer) {
    AddParts(nest.parts, *profile, desired, placed);
    return "";
  }
  if (std::string why = WhyNotThere(*outer, *desired.outer); !why.empty()) return why;
  ResolvedNest::Fixed* fixed = FindFixed(nest, *desired.outer);
  if (fixed == nullptr)
    fixed = &nest.fixed.emplace_back(ResolvedNest::Fixed{.outer = *desired.outer});
  if (fixed->vacant)
    return InWords(outer->name, desired.outer) + " is desired with and without parts";
  AddParts(fixed->parts, *profile, desired, placed);
  return "";
}

ProfileCounts CountsOf(const std::vector<ResolvedParts>& parts) {
  ProfileCounts counts;
  for (const ResolvedParts& one : parts) counts[one.profile] += one.total();
  return counts;
}

/// What no arrangement can change. Of parts within others only what does not depend on how many of
/// those there are.
std::vector<std::string> WhyTooManyParts(const ResolvedDivision& division, const Space& device) {
  std::vector<std::string> problems;
  const auto add = [&](std::string why) {
    if (!why.empty()) problems.push_back(std::move(why));
  };
  ProfileCounts counts = CountsOf(division.parts);
  for (const ResolvedNest& nest : division.nests) {
    for (const ResolvedParts& one : nest.parts) {
      if (!one.fixed.empty())
        add("of " + one.profile->name + " a placement is desired, but not in which " +
            nest.outer->name);
      add(nest.space.WhyTooMany({{one.profile, 1}}));
    }
    for (const auto& fixed : nest.fixed) add(nest.space.WhyTooMany(CountsOf(fixed.parts)));
    counts[nest.outer] += std::max<int>(1, static_cast<int>(nest.fixed.size()));
  }
  add(device.WhyTooMany(counts));
  return problems;
}

using PlacedProfiles = std::vector<std::pair<const PartProfile*, Placement>>;

void AddOverlapping(const PlacedProfiles& all, const std::string& where,
                    std::vector<std::string>& problems) {
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((MaskOf(all[i].second) & MaskOf(all[j].second)) != 0)
        problems.push_back(InWords(all[j].first->name, all[j].second) + " and " +
                           InWords(all[i].first->name, all[i].second) + where + " overlap");
}

/// Exact placements that exclude each other.
std::vector<std::string> WhyOverlapping(const ResolvedDivision& division) {
  PlacedProfiles all;
  for (const ResolvedParts& one : division.parts)
    for (const Placement& at : one.fixed) all.emplace_back(one.profile, at);
  for (const ResolvedNest& nest : division.nests)
    for (const auto& fixed : nest.fixed) all.emplace_back(nest.outer, fixed.outer);
  std::vector<std::string> problems;
  AddOverlapping(all, "", problems);
  for (const ResolvedNest& nest : division.nests)
    for (const auto& fixed : nest.fixed) {
      all.clear();
      for (const ResolvedParts& one : fixed.parts)
        for (const Placement& at : one.fixed) all.emplace_back(one.profile, at);
      AddOverlapping(all, " in " + InWords(nest.outer->name, fixed.outer), problems);
    }
  return problems;
}

}  // namespace

int ResolvedDivision::CountOf(std::string_view profile) const {
  int count = 0;
  const auto add = [&](const std::vector<ResolvedParts>& all) {
    for (const ResolvedParts& one : all)
      if (one.profile->name == profile) count += one.total();
  };
  add(parts);
  for (const ResolvedNest& nest : nests) {
    add(nest.parts);
    for (const auto& fixed : nest.fixed) add(fixed.parts);
  }
  return count;
}

Result<ResolvedDivision> ResolveDivision(const Division& now, const Space& device,
                                         const std::vector<DesiredParts>& desired) {
  ResolvedDivision division;
  std::vector<std::string> problems;
  int parts = 0;
  for (const DesiredParts& one : desired) {
    if (one.count <= 0) continue;
    if (one.count > kMaxParts - parts)
      return Error(Code::kInvalidArgument, "more than " + std::to_string(kMaxParts) +
                                               " parts are desired, which no device has");
    parts += one.count;
    if (std::string why = AddTo(division, now, one); !why.empty())
      problems.push_back(std::move(why));
  }
  if (problems.empty()) problems = WhyTooManyParts(division, device);
  if (problems.empty()) problems = WhyOverlapping(division);
  if (!problems.empty()) return Error(Code::kInvalidArgument, base::Join(problems, "\n"));
  return division;
}

}  // namespace penstock::node::partition
