// Inventories of Acme's devices that are divided into parts. For tests only.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "node/inventory/testing/acme_inventory.h"

namespace penstock::node::inventory {

/// What each Acme device can be divided into: it has 40 GiB and 8 units of compute.
inline std::vector<device::PartProfile> AcmeProfiles() {
  std::vector<device::PartProfile> profiles;
  for (const auto& [name, gibibytes, units] :
       {std::tuple("1g.5gb", 5u, 1), {"2g.10gb", 10u, 2}, {"3g.20gb", 20u, 4}})
    profiles.push_back(
        {.name = name, .most = 8, .capacity = {base::Mebibytes(gibibytes << 10), units}});
  return profiles;
}

/// Healthy devices G0, G1, ..., each divided into the parts of these profiles, G0.0 (number "0:0"),
/// G0.1, ...; or whole where there are none.
inline std::vector<device::Facts> AcmeWithParts(
    const std::vector<std::vector<std::string>>& divisions) {
  std::vector<device::Facts> all;
  for (std::size_t i = 0; i < divisions.size(); ++i) {
    device::Facts whole =
        device::testing::AcmeDevice(static_cast<int>(i), static_cast<int>(divisions.size()));
    whole.memory = base::Mebibytes(40u << 10);
    whole.compute_units = 8;
    whole.profiles = AcmeProfiles();
    all.push_back(whole);
    for (std::size_t place = 0; place < divisions[i].size(); ++place) {
      const std::string& profile = divisions[i][place];
      device::Facts part = whole;
      part.id = whole.id + "." + std::to_string(place);
      part.number = std::to_string(i) + ":" + std::to_string(place);
      part.index = -1;
      part.parent = whole.id;
      part.profile = profile;
      part.profiles.clear();
      part.links.clear();
      for (const device::PartProfile& one : whole.profiles)
        if (one.name == profile) {
          part.memory = one.capacity.memory;
          part.compute_units = one.capacity.compute_units;
        }
      all.push_back(std::move(part));
    }
  }
  return all;
}

}  // namespace penstock::node::inventory
