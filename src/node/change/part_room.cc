#include "node/change/part_room.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/core/strings.h"
#include "node/partition/pack.h"
#include "node/partition/space.h"

namespace penstock::node::change {

using partition::Division;
using partition::ExistingPart;

namespace {

std::optional<PartPlace> PlaceOne(const std::vector<PartSite>& sites) {
  std::vector<const Division*> divisions;
  std::set<std::string> profiles;  // models can spell one differently
  for (const PartSite& site : sites) {
    divisions.push_back(&site.division);
    profiles.insert(site.profile);
  }
  for (const std::string& profile : profiles)
    if (const auto packed = partition::Pack(divisions, profile))
      return PartPlace{packed->device, {.profile = profile, .placement = packed->placement}};
  return std::nullopt;
}

/// "no room beside 7g.40gb at slices 0-7, held by r-1 of ann".
std::string InTheWay(const Division& division) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> parts;
  for (const ExistingPart& part : division.parts)
    if (part.parent.empty())
      parts.push_back(partition::InWords(part.profile, part.placement) +
                      (part.holder.empty() ? "" : ", held by " + part.holder));
  const std::size_t more = parts.size() - std::min(parts.size(), kMost);
  parts.resize(parts.size() - more);
  return "no room beside " + base::Join(parts, "; ") +
         (more > 0 ? "; and " + std::to_string(more) + " more" : "");
}

}  // namespace

std::vector<PartPlace> PlaceParts(const std::vector<PartSite>& sites, std::size_t count) {
  std::vector<PartSite> filled = sites;
  std::vector<PartPlace> placed;
  while (placed.size() < count) {
    const auto next = PlaceOne(filled);
    if (!next) break;
    filled[next->site].division.parts.push_back({.id = "new",
                                                 .profile = next->part.profile,
                                                 .parent = "",
                                                 .placement = next->part.placement});
    placed.push_back(*next);
  }
  return placed;
}

std::string WhyNoRoom(const std::vector<PartSite>& sites, std::size_t wanted,
                      const std::vector<PartPlace>& placed) {
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const auto here = std::ranges::count(placed, i, &PartPlace::site);
    reasons.push_back(sites[i].text + ": " +
                      (here > 0
                           ? "room for " + std::to_string(here) + " of " + std::to_string(wanted)
                           : InTheWay(sites[i].division)));
  }
  return base::Join(reasons, "; ");
}

}  // namespace penstock::node::change
