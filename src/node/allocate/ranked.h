// Chooses by rank first and by links then. Pure; knows nothing of slots.
#pragma once

#include <cstddef>
#include <vector>

#include "node/allocate/choose.h"

namespace penstock::node::allocate {

struct Ranked {
  std::size_t position = 0;  ///< into the links
  int rank = 0;              ///< lower is better
};

/// `size` of the candidates: those of a lower rank before all others; of one rank those that are best linked with each other, with those
/// chosen already and with `fixed`, which are no candidates. In order of position. All of them where there are no more.
std::vector<std::size_t> ChooseRanked(const Links& links, std::vector<Ranked> candidates, const std::vector<std::size_t>& fixed,
                                      std::size_t size);

}  // namespace penstock::node::allocate
