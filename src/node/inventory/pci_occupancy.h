// Records which device is at which PCI address, to detect replaced devices. Pure; keeps nothing on
// disk.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "device/model.h"

namespace penstock::node::inventory {

struct PciOccupant {
  std::string id;
  std::string serial;  ///< empty where the device does not report one
  bool operator==(const PciOccupant&) const = default;
};
using PciOccupancy = std::map<std::string, PciOccupant>;  ///< by PCI address as sysfs spells it

/// The device that another one has replaced.
struct Replacement {
  std::string id;
  std::string
      words;  ///< what happened, in a sentence: "GPU at 0000:07:00.0 was replaced: serial 1, now 2"
};

/// Records the device at its PCI address and returns the device that it replaced, where there was
/// another one. Partitions and devices without a PCI address are ignored.
std::optional<Replacement> DetectReplacement(PciOccupancy& occupancy, const device::Facts& facts);

}  // namespace penstock::node::inventory
