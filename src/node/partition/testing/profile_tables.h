// The profiles of real models, as `nvidia-smi mig -lgip` and -lgipp print them, and those of a
// made-up vendor. Test data: the program reads profiles from the driver.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/model.h"

namespace penstock::node::partition::testing {

using Profiles = std::vector<device::PartProfile>;

inline std::vector<device::Placement> At(std::vector<int> starts, int size) {
  std::vector<device::Placement> placements;
  for (const int start : starts) placements.push_back({start, size});
  return placements;
}

inline device::PartProfile Profile(std::string name, int slices, int most,
                                   std::vector<device::Placement> placements,
                                   std::map<std::string, int> engines = {}) {
  return {.name = std::move(name),
          .slices = slices,
          .most = most,
          .placements = std::move(placements),
          .engines = std::move(engines)};
}

/// Parts within a part, e.g. "1c.3g.20gb"; without placements the driver places them.
inline void AddWithin(Profiles& profiles, const std::string& outer, int slices, int most,
                      std::vector<device::Placement> placements) {
  device::PartProfile profile =
      Profile(std::to_string(slices) + "c." + outer, slices, most, std::move(placements));
  profile.within = outer;
  profiles.push_back(profile);
}

/// A model of seven slices of compute and eight of memory, with the sizes of 1g, 1g with double
/// memory, 3g and 7g in GB. `three`: the slices of compute that a compute instance of three takes.
inline Profiles SevenSlices(int one, int two, int half, int all, int three = 3) {
  const auto name = [](const char* slices, int gigabytes) {
    return slices + std::to_string(gigabytes) + "gb";
  };
  Profiles profiles = {Profile(name("1g.", one), 1, 7, At({0, 1, 2, 3, 4, 5, 6}, 1), {{"copy", 1}}),
                       Profile(name("1g.", one) + "+me", 1, 1, At({0, 1, 2, 3, 4, 5, 6}, 1),
                               {{"copy", 1}, {"ofa", 1}}),
                       Profile(name("1g.", two), 1, 4, At({0, 2, 4, 6}, 2), {{"copy", 1}}),
                       Profile(name("2g.", two), 2, 3, At({0, 2, 4}, 2), {{"copy", 2}}),
                       Profile(name("3g.", half), 3, 2, At({0, 4}, 4), {{"copy", 3}}),
                       Profile(name("4g.", half), 4, 1, At({0}, 4), {{"copy", 4}}),
                       Profile(name("7g.", all), 7, 1, At({0}, 8), {{"copy", 7}, {"ofa", 1}})};
  AddWithin(profiles, name("2g.", two), 1, 2, At({0, 1}, 1));
  AddWithin(profiles, name("3g.", half), 1, 3, At({0, 1, 2}, 1));
  AddWithin(profiles, name("3g.", half), 2, 1, At({0}, 2));
  AddWithin(profiles, name("4g.", half), 1, 4, At({0, 1, 2, 3}, 1));
  AddWithin(profiles, name("4g.", half), 2, 2, At({0, 2}, 2));
  AddWithin(profiles, name("7g.", all), 1, 7, At({0, 1, 2, 3, 4, 5, 6}, 1));
  AddWithin(profiles, name("7g.", all), 2, 3, At({0, 2, 4}, 2));
  AddWithin(profiles, name("7g.", all), 3, 2, At({0, 4}, three));
  AddWithin(profiles, name("7g.", all), 4, 1, At({0}, 4));
  return profiles;
}

/// As with a driver that places parts within others itself.
inline Profiles WithoutPlacesWithin(Profiles profiles) {
  for (device::PartProfile& profile : profiles)
    if (!profile.within.empty()) profile.placements.clear();
  return profiles;
}

/// As with a driver that permits parts within others wherever slices are free.
inline Profiles AnywhereWithin(Profiles profiles) {
  for (device::PartProfile& profile : profiles) {
    if (profile.within.empty()) continue;
    profile.placements.clear();
    for (const device::PartProfile& outer : Profiles(profiles))
      for (int start = 0; outer.name == profile.within && start <= outer.slices - profile.slices;
           ++start)
        profile.placements.push_back({start, profile.slices});
  }
  return profiles;
}

inline Profiles A30() {
  Profiles profiles = {Profile("1g.6gb", 1, 4, At({0, 1, 2, 3}, 1)),
                       Profile("1g.6gb+me", 1, 1, At({0, 1, 2, 3}, 1), {{"ofa", 1}}),
                       Profile("2g.12gb", 2, 2, At({0, 2}, 2)),
                       Profile("2g.12gb+me", 2, 1, At({0, 2}, 2), {{"ofa", 1}}),
                       Profile("4g.24gb", 4, 1, At({0}, 4), {{"ofa", 1}})};
  AddWithin(profiles, "2g.12gb", 1, 2, At({0, 1}, 1));
  AddWithin(profiles, "4g.24gb", 1, 4, At({0, 1, 2, 3}, 1));
  AddWithin(profiles, "4g.24gb", 2, 2, At({0, 2}, 2));
  return profiles;
}

inline Profiles RtxPro6000() {
  return {Profile("1g.24gb", 1, 4, At({0, 1, 2, 3}, 1), {{"media", 1}}),
          Profile("1g.24gb+me", 1, 1, At({0, 1, 2, 3}, 1), {{"media", 1}, {"ofa", 1}}),
          Profile("1g.24gb+gfx", 1, 4, At({0, 1, 2, 3}, 1), {{"media", 1}}),
          Profile("1g.24gb+me.all", 1, 1, At({0, 1, 2, 3}, 1), {{"media", 4}, {"ofa", 1}}),
          Profile("1g.24gb-me", 1, 4, At({0, 1, 2, 3}, 1)),
          Profile("2g.48gb", 2, 2, At({0, 2}, 2), {{"media", 2}}),
          Profile("2g.48gb+gfx", 2, 2, At({0, 2}, 2), {{"media", 2}}),
          Profile("2g.48gb+me.all", 2, 1, At({0, 2}, 2), {{"media", 4}, {"ofa", 1}}),
          Profile("2g.48gb-me", 2, 2, At({0, 2}, 2)),
          Profile("4g.96gb", 4, 1, At({0}, 4), {{"media", 4}, {"ofa", 1}}),
          Profile("4g.96gb+gfx", 4, 1, At({0}, 4), {{"media", 4}, {"ofa", 1}})};
}

/// Placements that share no common grid, sizes that depend on the placement, a profile without
/// placements, and one of which the driver does not say how many there can be.
inline Profiles Acme() {
  Profiles profiles = {
      Profile("dot", 0, 0, At({0, 3, 5, 8}, 1)),
      Profile("bar", 2, 3, {{0, 2}, {1, 3}, {5, 2}, {7, 3}}),
      Profile("slab", 3, 2, {{0, 5}, {2, 4}, {6, 4}}, {{"spin", 2}}),
      Profile("loose", 1, 2, {}, {{"spin", 1}}),
      Profile("all", 8, 1, {{0, 10}}, {{"spin", 4}}),
  };
  device::PartProfile chip = Profile("chip", 1, 2, {{0, 1}, {2, 1}});
  chip.within = "bar";
  profiles.push_back(chip);
  return profiles;
}

/// One table for all models with the same profiles; docs/reference/mig-models.md has the models.
inline std::map<std::string, Profiles> AllTables() {
  return {{"A100-40GB", SevenSlices(5, 10, 20, 40)},
          {"A100-80GB", SevenSlices(10, 20, 40, 80)},
          {"H100-94GB", SevenSlices(12, 24, 47, 94, 4)},
          {"H100-96GB", SevenSlices(12, 24, 48, 96, 4)},
          {"H200-141GB", SevenSlices(18, 35, 71, 141, 4)},
          {"GH200-144GB", SevenSlices(18, 36, 72, 144, 4)},
          {"B200-180GB", SevenSlices(23, 45, 90, 180, 4)},
          {"GB200-186GB", SevenSlices(23, 47, 93, 186, 4)},
          {"GB200-189GB", SevenSlices(24, 47, 95, 189, 4)},
          {"B300-269GB", SevenSlices(34, 67, 135, 269, 4)},
          {"GB300-278GB", SevenSlices(35, 70, 139, 278, 4)},
          {"A30-24GB", A30()},
          {"A30-24GB, driver 470", WithoutPlacesWithin(A30())},
          {"RTX-PRO-6000", RtxPro6000()},
          {"Acme", Acme()}};
}

inline const device::PartProfile* Find(const Profiles& profiles, std::string_view name) {
  for (const auto& profile : profiles)
    if (profile.name == name) return &profile;
  return nullptr;
}

}  // namespace penstock::node::partition::testing
