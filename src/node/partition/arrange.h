// Finds placements for parts that shall lie side by side, and chooses which existing parts are
// kept. Pure; the search is bounded.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "device/model.h"
#include "node/partition/space.h"

namespace penstock::node::partition {

/// An existing part that can be kept as one of those that are desired.
struct Keepable {
  std::optional<device::Placement> placement;
  int worth = 1;  ///< of keeping it; the arrangement that keeps the most is the best
};

/// Parts of one profile that are desired.
struct DesiredKind {
  const device::PartProfile* profile = nullptr;
  int count = 0;
  std::vector<Keepable> existing;
};

struct Arrangement {
  std::vector<std::vector<std::size_t>> kept;  ///< of each kind, indices of `existing`
  /// Of each kind, what is created; without a placement: wherever the driver puts it.
  std::vector<std::vector<std::optional<device::Placement>>> created;
  std::int64_t worth = 0;  ///< of what is kept
};

/// How many placements may still be tried.
struct TryLimit {
  int left = 10'000;
};

/// The best arrangement beside `taken`: it keeps what is worth the most, then leaves the most
/// room (RoomMeasure), then takes the lowest slices. `counts` are all parts of the space, with
/// those in `taken`; they are not checked (Space::WhyTooMany). Once no tries are left, the best so
/// far, or none.
std::optional<Arrangement> Arrange(const Space& space, std::span<const DesiredKind> kinds,
                                   SliceMask taken, const ProfileCounts& counts, TryLimit& limit);

}  // namespace penstock::node::partition
