// Chooses candidates by rank first and by links second. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "node/allocate/choose.h"

namespace penstock::node::allocate {

struct Ranked {
  std::size_t position = 0;  ///< into the links
  int rank = 0;              ///< lower is better
};

/// Returns `size` of the candidates, those of a lower rank first. Among candidates of one rank it
/// chooses those that are best linked with each other, with the candidates already chosen and with
/// `fixed`, which are not candidates. In order of position. Returns all where there are no more
/// than `size`.
std::vector<std::size_t> ChooseRanked(const DeviceLinks& links, std::vector<Ranked> candidates,
                                      const std::vector<std::size_t>& fixed, std::size_t size);

}  // namespace penstock::node::allocate
