// Places one more part beside those that exist, so that as many placements as possible are left for
// others. Pure.
#pragma once

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

/// The placement of one more part of a profile that destroys nothing and takes the least from the
/// placements that all profiles have left on all devices. What a profile loses counts relative to
/// what it has: the placements of large profiles are the fewest, and are kept longest. Of equal
/// ones, the first device, then the lowest slice. Devices without the profile are passed over, and
/// those with a part whose placement is unknown. Nothing: it fits on none. Parts within others are
/// not packed.
std::optional<PackedPart> Pack(std::span<const Division* const> devices, std::string_view profile);

}  // namespace penstock::node::partition
