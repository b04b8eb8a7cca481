// Places one more part beside those that exist, so that as much room as possible is left for
// others. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "device/model.h"
#include "node/partition/division.h"

namespace penstock::node::partition {

/// A device on which a part can be created, and where.
struct PackedPart {
  std::size_t device = 0;                      ///< index in the list of devices
  std::optional<device::Placement> placement;  ///< nothing: the driver chooses
  bool operator==(const PackedPart&) const = default;
};

/// The placement of one more part of a profile that destroys nothing and costs the least room
/// (RoomMeasure): as many placements of other profiles as possible stay free, those of large ones
/// above all. Equal ones: the first device, then the lowest slice. `devices` are of one model or
/// not; those without the profile, and those with a part whose placement is unknown, are passed
/// over. Nothing: it fits on none. Profiles within others are not packed.
std::optional<PackedPart> Pack(std::span<const Division* const> devices, std::string_view profile);

}  // namespace penstock::node::partition
