// Which of several devices go well together. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "device/model.h"

namespace penstock::node::allocate {

/// Chooses `size` of the candidates, the first `fixed` of them always, so that they are near to each other: greedily, each next one being
/// the one nearest to those chosen, from the best starting point. Deterministic: equal choices fall to the lower position. Positions into
/// candidates, in order; empty where size is less than fixed or more than there are. O(n^2 size) at most.
std::vector<std::size_t> ChooseNear(const std::vector<const device::Facts*>& candidates, std::size_t fixed, std::size_t size);

}  // namespace penstock::node::allocate
