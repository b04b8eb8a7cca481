// Chooses among parts of devices that are linked with each other. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "node/allocate/choose.h"
#include "node/allocate/packing.h"

namespace penstock::node::allocate {

/// A part that can be chosen.
struct LinkedPart {
  std::size_t position = 0;            ///< into the links
  const ledger::Slot* slot = nullptr;  ///< that would be held
};

/// Returns the positions of `size` of these parts, which are at least as many, and adds them to
/// `in_use`: the set with the greatest sum of scores of its pairs and of those with `fixed`. Among
/// equals the set that begins the fewest devices, so that as many as possible stay whole; then that
/// of the fullest devices; then that which leaves the fewest parts on the devices that it takes
/// from.
///
/// Compares all sets that take all parts of some devices, and of one more device the first of its
/// parts. The best set is among them wherever parts of one device are better linked with each other
/// than with those of others, and those of one device alike: then a part is exchanged with gain
/// until at most one device is left that gives some of its parts. Nothing for more devices than can
/// be compared in a few milliseconds: twelve.
std::optional<std::vector<std::size_t>> ChooseLinkedParts(const DeviceLinks& links,
                                                          const std::vector<LinkedPart>& parts,
                                                          const std::vector<std::size_t>& fixed,
                                                          std::size_t size, PartsInUse& in_use);

}  // namespace penstock::node::allocate
