// Chooses among equal parts of devices, so that other devices stay free for requests that need
// larger parts, or another division. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "node/ledger/ledger.h"

namespace penstock::node::allocate {

/// How much of each device is held as parts of it.
class PartsInUse {
 public:
  PartsInUse() = default;
  explicit PartsInUse(const ledger::Snapshot& ledger);

  /// Counts the part behind this slot as held, once for all of its shares. No effect for a slot of
  /// a whole device.
  void Add(const ledger::Slot& slot);

  /// The fraction of a device that is held, 0 to about 1.
  double Of(std::string_view device) const;

 private:
  std::set<std::string, std::less<>> parts_;
  std::map<std::string, double, std::less<>> fractions_;
};

/// The device that the slot's is a part of, not itself a part; the slot's own device if it is none.
const std::string& WholeOf(const ledger::Slot& slot);

/// Chooses `size` of these slots, all where there are no more; returns positions in them, and adds
/// the chosen to `in_use`. First come parts of devices of which parts are held, the fullest
/// device first. Then of the others the device with the fewest of these slots that still are
/// enough, or else with the most, so that as few devices as possible are begun. Of equal devices,
/// and on one device, the first.
std::vector<std::size_t> ChoosePacked(const std::vector<const ledger::Slot*>& slots,
                                      std::size_t size, PartsInUse& in_use);

}  // namespace penstock::node::allocate
