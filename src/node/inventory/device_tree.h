// Places devices in the tree of devices and their parts, and withholds those of which the driver
// says what cannot be. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/model.h"

namespace penstock::node::inventory {

/// A device that another one is a part of, and how much of it there is.
struct Ancestor {
  std::string device;
  device::Capacity capacity;
  bool operator==(const Ancestor&) const = default;
};

struct TreePlace {
  std::vector<Ancestor> ancestors;  ///< the nearest first; empty: it is no part
  std::string withheld;  ///< why it is not offered: the driver's reason, or because it is divided,
                         ///< or because what the driver reports of it is impossible
  bool operator==(const TreePlace&) const = default;
};

/// Why a device is withheld that has parts.
inline constexpr char kDivided[] = "it is divided into parts";

/// Parts may have parts, eight levels deep. `devices`: all present devices of one vendor. Withheld
/// are devices with parts, parts of devices that are not among them or of themselves, and parts
/// that are larger than their device, alone or together, with their own parts. Unknown capacities
/// (0) are not compared; parts that share the memory of their device must not report it each.
std::map<std::string, TreePlace> PlaceInTree(const std::vector<const device::Facts*>& devices);

}  // namespace penstock::node::inventory
