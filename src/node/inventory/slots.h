// Which device sits at which PCI address, so that a replaced one is noticed. Pure; keeps nothing on disk.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "device/model.h"

namespace penstock::node::inventory {

struct Occupant {
  std::string id;
  std::string serial;  ///< empty where the device does not tell it
  bool operator==(const Occupant&) const = default;
};
using Slots = std::map<std::string, Occupant>;  ///< by PCI address as sysfs spells it

/// A device that was where another one is now.
struct Replaced {
  std::string id;
  std::string words;  ///< what happened, in a sentence: "GPU at 0000:07:00.0 was replaced: serial 1, now 2"
};

/// Notes who is there now; tells whom it replaced where that was another device. Partitions and devices without a PCI address sit nowhere.
std::optional<Replaced> Note(Slots& slots, const device::Facts& facts);

}  // namespace penstock::node::inventory
