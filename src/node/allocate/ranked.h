// Chooses candidates by rank first, and by links or packing second. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "node/allocate/choose.h"
#include "node/allocate/packing.h"

namespace penstock::node::allocate {

struct Ranked {
  std::size_t position = 0;            ///< into the links
  int rank = 0;                        ///< lower is better
  const ledger::Slot* slot = nullptr;  ///< that would be held
};

/// Returns `size` of the candidates, those of a lower rank first. Among candidates of one rank it
/// chooses those that are best linked with each other, with the candidates already chosen and with
/// `fixed`, which are not candidates; if any of them is a part, as ChoosePacked does, or if all are
/// parts and the links say anything about them, as ChooseLinkedParts does. In order of position.
/// Returns all where there are no more than `size`. Adds the chosen to `in_use`.
std::vector<std::size_t> ChooseRanked(const DeviceLinks& links, std::vector<Ranked> candidates,
                                      const std::vector<std::size_t>& fixed, std::size_t size,
                                      PartsInUse& in_use);

}  // namespace penstock::node::allocate
