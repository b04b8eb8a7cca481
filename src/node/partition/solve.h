// Chooses which existing parts are kept and where the others are created, with parts that have
// parts within them. Private to node/partition.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "node/partition/division.h"
#include "node/partition/resolve.h"
#include "node/partition/space.h"

namespace penstock::node::partition {

/// A part that is to be created.
struct PlacedPart {
  const device::PartProfile* profile = nullptr;
  std::optional<device::Placement> placement;
};

/// An outer part, existing or to be created, with what is created in it.
struct FilledOuter {
  std::optional<std::size_t> existing;  ///< index in Division::parts
  PlacedPart created;                   ///< otherwise
  std::vector<PlacedPart> parts;        ///< that are to be created in it
};

struct Solution {
  std::vector<std::size_t> kept;    ///< indices in Division::parts, ascending
  std::vector<PlacedPart> created;  ///< on the device itself
  std::vector<FilledOuter> outers;
  std::int64_t worth = 0;
  bool proven = true;
};

struct SolveInput {
  const Division& now;
  const Space& device;
  const ResolvedDivision& desired;
  std::vector<bool> available;  ///< of each existing part: it can be kept
  std::vector<bool> stays;      ///< of each existing part: it must be kept; a subset of `available`
};

/// Nothing: there is no solution, or, where `proven` becomes false, none was found.
std::optional<Solution> Solve(const SolveInput& input, bool& proven);

}  // namespace penstock::node::partition
