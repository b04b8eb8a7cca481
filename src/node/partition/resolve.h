// Finds the profiles of desired parts, and refuses what no state of the device permits. Private to
// node/partition.
#pragma once

#include <optional>
#include <vector>

#include "base/core/result.h"
#include "node/partition/division.h"
#include "node/partition/plan.h"
#include "node/partition/space.h"

namespace penstock::node::partition {

/// The most parts of a device that are planned for.
inline constexpr int kMaxParts = 256;

/// Desired parts of one profile.
struct ResolvedParts {
  const device::PartProfile* profile = nullptr;
  int count = 0;                         ///< anywhere
  std::vector<device::Placement> fixed;  ///< one more at each of these

  int total() const { return count + static_cast<int>(fixed.size()); }
};

/// Desired parts within parts of one profile.
struct ResolvedNest {
  const device::PartProfile* outer = nullptr;
  Space space;                       ///< within one of them
  std::vector<ResolvedParts> parts;  ///< in any of them
  struct Fixed {
    device::Placement outer;
    std::vector<ResolvedParts> parts;
    bool vacant = false;  ///< no parts are desired in it
  };
  std::vector<Fixed> fixed;  ///< in those at these placements
};

struct ResolvedDivision {
  std::vector<ResolvedParts> parts;  ///< on the device itself
  std::vector<ResolvedNest> nests;

  /// How many parts of this profile are desired, wherever they lie.
  int CountOf(std::string_view profile) const;
};

/// `now.profiles` must outlive the result. kInvalidArgument: all problems, each on a line.
Result<ResolvedDivision> ResolveDivision(const Division& now, const Space& device,
                                         const std::vector<DesiredParts>& desired);

}  // namespace penstock::node::partition
