// What allocators are offered, for unit tests: a kubelet that follows its offers counts these
// devices.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "node/share/offers.h"

namespace penstock::node::change::testing {

/// The devices with a slot that can be taken, of all allocators or of one.
inline std::set<std::string> UsableDevices(share::Offers& offers, std::string_view allocator = {}) {
  std::set<std::string> ids;
  for (const share::Offer& offer : *offers.Get())
    for (const share::OfferedSlot& slot : offer.slots)
      if (slot.usable && (allocator.empty() || offer.allocator == allocator))
        ids.insert(slot.slot.device);
  return ids;
}

}  // namespace penstock::node::change::testing
