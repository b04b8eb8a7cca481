#include "node/partition/pack.h"

#include <algorithm>

#include "node/partition/space.h"

namespace penstock::node::partition {
namespace {

using device::PartProfile;
using device::Placement;

/// What is taken on a device; nothing: unknown.
struct TakenRoom {
  SliceMask slices = 0;
  ProfileCounts counts;
};

std::optional<TakenRoom> TakenOn(const Division& device, const Space& space) {
  TakenRoom taken;
  for (const ExistingPart& part : device.parts) {
    if (!part.parent.empty()) continue;
    const PartProfile* profile = space.Find(part.profile);
    if (profile == nullptr) return std::nullopt;
    ++taken.counts[profile];
    if (profile->placements.empty()) continue;
    if (!part.placement ||
        std::ranges::find(profile->placements, *part.placement) == profile->placements.end())
      return std::nullopt;
    taken.slices |= MaskOf(*part.placement);
  }
  return taken;
}

}  // namespace

std::optional<PackedPart> Pack(std::span<const Division* const> devices, std::string_view profile) {
  std::optional<PackedPart> best;
  std::int64_t least = 0;
  const auto consider = [&](const PackedPart& part, std::int64_t cost) {
    if (best && cost >= least) return;
    best = part;
    least = cost;
  };
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!CheckProfiles(devices[i]->profiles).ok()) continue;
    const Space space(devices[i]->profiles);
    const PartProfile* wanted = space.Find(profile);
    if (wanted == nullptr) continue;
    auto taken = TakenOn(*devices[i], space);
    if (!taken) continue;
    const std::int64_t before = RoomMeasure(space, taken->counts).Beside(taken->slices);
    ++taken->counts[wanted];
    if (!space.WhyTooMany(taken->counts).empty()) continue;
    const RoomMeasure after(space, taken->counts);
    if (wanted->placements.empty())
      consider({i, std::nullopt}, before - after.Beside(taken->slices));
    for (const Placement& at : wanted->placements)
      if ((MaskOf(at) & taken->slices) == 0)
        consider({i, at}, before - after.Beside(taken->slices | MaskOf(at)));
  }
  return best;
}

}  // namespace penstock::node::partition
