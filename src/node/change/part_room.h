// Finds where parts can be created on several devices, so that as much as possible stays free for
// others. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "node/partition/division.h"
#include "node/partition/plan.h"

namespace penstock::node::change {

/// A device on which a part can be created.
struct PartSite {
  std::string device;            ///< id
  std::string text;              ///< "GPU 0 (GPU-…)"
  std::string profile;           ///< as this device's driver names it
  partition::Division division;  ///< the parts that it has, or will have
};

struct PartPlace {
  std::size_t site = 0;  ///< index in the list of sites
  partition::DesiredParts part;
};

/// Places as many parts as there is room for, `count` at most, each in the best place beside those
/// before it (partition::Pack).
std::vector<PartPlace> PlaceParts(const std::vector<PartSite>& sites, std::size_t count);

/// Why not all of `wanted` parts have room: for each site how many have, or what is in the way.
std::string WhyNoRoom(const std::vector<PartSite>& sites, std::size_t wanted,
                      const std::vector<PartPlace>& placed);

}  // namespace penstock::node::change
