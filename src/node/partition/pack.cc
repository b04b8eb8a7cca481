#include "node/partition/pack.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "node/partition/space.h"

namespace penstock::node::partition {
namespace {

using device::PartProfile;
using device::Placement;

/// A device whose taken slices are known.
struct OpenDevice {
  std::size_t index = 0;
  Space space;
  SliceMask taken = 0;
  ProfileCounts counts;
};

std::optional<OpenDevice> OpenOf(std::size_t index, const Division& device) {
  if (!CheckProfiles(device.profiles).ok()) return std::nullopt;
  OpenDevice open{.index = index, .space = Space(device.profiles)};
  for (const ExistingPart& part : device.parts) {
    if (!part.parent.empty()) continue;
    const PartProfile* profile = open.space.Find(part.profile);
    if (profile == nullptr) return std::nullopt;
    ++open.counts[profile];
    if (profile->placements.empty()) continue;
    if (!part.placement ||
        std::ranges::find(profile->placements, *part.placement) == profile->placements.end())
      return std::nullopt;
    open.taken |= MaskOf(*part.placement);
  }
  return open;
}

/// How many placements each profile has left, by its name: devices of one model share them.
using Left = std::map<std::string_view, int>;

void AddTo(Left& left, const RoomMeasure& room, SliceMask taken, int factor) {
  for (const auto& [profile, count] : room.PlacementsBeside(taken))
    left[profile->name] += factor * count;
}

/// The logarithm of the product of what is left; a profile with none left costs no more than that.
double Worth(const Left& left) {
  constexpr double kAlmostNone = 0.5;
  double worth = 0;
  for (const auto& [name, count] : left) worth += std::log(count + kAlmostNone);
  return worth;
}

}  // namespace

std::optional<PackedPart> Pack(std::span<const Division* const> devices, std::string_view profile) {
  std::vector<OpenDevice> open;
  Left left;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (auto device = OpenOf(i, *devices[i])) {
      AddTo(left, RoomMeasure(device->space, device->counts), device->taken, 1);
      open.push_back(*std::move(device));
    }
  std::optional<PackedPart> best;
  double most = 0;
  for (OpenDevice& device : open) {
    const PartProfile* wanted = device.space.Find(profile);
    if (wanted == nullptr) continue;
    Left others = left;
    AddTo(others, RoomMeasure(device.space, device.counts), device.taken, -1);
    ++device.counts[wanted];
    if (!device.space.WhyTooMany(device.counts).empty()) continue;
    const RoomMeasure room(device.space, device.counts);
    const auto consider = [&](const std::optional<Placement>& at, SliceMask taken) {
      Left after = others;
      AddTo(after, room, taken, 1);
      constexpr double kRounding = 1e-9;
      const double worth = Worth(after);
      if (best && worth <= most + kRounding) return;
      best = {device.index, at};
      most = worth;
    };
    if (wanted->placements.empty()) consider(std::nullopt, device.taken);
    for (const Placement& at : wanted->placements)
      if ((MaskOf(at) & device.taken) == 0) consider(at, device.taken | MaskOf(at));
  }
  return best;
}

}  // namespace penstock::node::partition
