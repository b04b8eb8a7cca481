// Decides which slots exclude each other: accounting of capacity along the tree of devices and
// their parts. Everything else asks here. Pure.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

bool IsWhole(const Slot& slot);

/// Whether slots of one device can be held at once that divide it in these ways. A server gives all
/// its clients the same limits, so that all have the same shape; whole, a device has one holder.
bool GoTogether(const device::Shape& a, const device::Shape& b);

/// Whether the holder of one slot keeps the other from being allocated: it is the same slot, their
/// shapes exclude each other, or the device of one is a part of the device of the other.
bool Excludes(const Slot& a, const Slot& b);

/// Adds up what is held of the devices that a slot's device is a part of: each part counts once,
/// whatever the number of its holders. The slot must outlive this.
class PartsHeld {
 public:
  explicit PartsHeld(const Slot& slot);

  /// Adds a held slot. Slots that have nothing to do with those devices, and those of the slot's
  /// own device, change nothing.
  void Add(const Slot& held);

  /// Whether the slot's device does not fit beside the parts that are held.
  bool Full() const;

 private:
  const Slot& slot_;
  std::vector<device::Capacity> held_;  // of each ancestor
  std::vector<std::string_view> seen_;  // devices that were added
};

}  // namespace penstock::node::ledger
