// Decides which slots exclude each other: accounting of capacity along the tree of devices and
// their parts. Everything else asks here. Pure.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

bool IsWhole(const Slot& slot);

/// Whether slots of one device can be held at once that divide it in these ways. A server gives all
/// its clients the same limits, so that all have the same shape; whole, a device has one holder.
bool GoTogether(const device::Shape& a, const device::Shape& b);

/// Whether the slot's device is a part of this device, directly or of one of its parts.
bool IsPartOf(const Slot& slot, std::string_view device);

/// Whether the holder of one slot keeps the other from being allocated, whatever else is held: it
/// is the same slot, their shapes exclude each other, or the device of one is a part of the device
/// of the other.
bool Excludes(const Slot& a, const Slot& b);

/// How much of a whole device a slot is: of a part, the greater of its fractions of memory and of
/// compute, 1 where neither is known; of a share, an equal share of that.
double FractionOf(const Slot& slot);

/// Whether a slot can be allocated beside slots that are held, which are passed one after the
/// other. Each part of a device counts once, whatever the number of its holders. The slot must
/// outlive this.
class RoomFor {
 public:
  explicit RoomFor(const Slot& slot);

  /// Whether the slot can still be allocated beside this one and those before it.
  bool Beside(const Slot& held);

 private:
  const Slot& slot_;
  std::vector<device::Capacity> held_;  // of each ancestor
  std::set<std::string_view> counted_;  // parts
};

}  // namespace penstock::node::ledger
