// Requests for parts that arrive at and leave a machine at random, to compare ways of placing them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "node/partition/pack.h"
#include "node/partition/testing/profile_tables.h"

namespace penstock::node::partition::testing {

using Placer = std::function<std::optional<PackedPart>(std::span<const Division* const>,
                                                       const device::PartProfile&)>;

/// The first device and the lowest slice that are free.
inline std::optional<PackedPart> FirstFit(std::span<const Division* const> devices,
                                          const device::PartProfile& profile) {
  for (std::size_t i = 0; i < devices.size(); ++i)
    for (const device::Placement& at : profile.placements) {
      int slices = profile.slices, count = 1;
      const bool free = std::ranges::none_of(devices[i]->parts, [&](const ExistingPart& part) {
        const auto* other = Find(devices[i]->profiles, part.profile);
        slices += other->slices;
        count += other->name == profile.name ? 1 : 0;
        return at.start < part.placement->start + part.placement->size &&
               part.placement->start < at.start + at.size;
      });
      if (free && count <= profile.most && slices <= 7) return PackedPart{i, at};
    }
  return std::nullopt;
}

inline std::optional<PackedPart> PackedFit(std::span<const Division* const> devices,
                                           const device::PartProfile& profile) {
  return Pack(devices, profile.name);
}

struct ArrivalsInput {
  int devices = 8;
  double load = 0.5;                      ///< slices of memory that are requested at a time, of all
  std::map<std::string, double> weights;  ///< of the profiles in requests
  int requests = 200;
};

/// Sends one random sequence of requests to a machine of A100-40GBs. Intervals and durations are
/// exponentially distributed. Returns how many were rejected.
inline int Rejected(const ArrivalsInput& input, const Placer& place, std::uint32_t seed) {
  static const Profiles kProfiles = SevenSlices(5, 10, 20, 40);
  std::vector<Division> machine(static_cast<std::size_t>(input.devices), {.profiles = kProfiles});
  std::vector<const Division*> devices;
  for (const Division& device : machine) devices.push_back(&device);
  std::vector<const device::PartProfile*> profiles;
  std::vector<double> weights;
  double mean = 0, sum = 0;
  for (const auto& [name, weight] : input.weights) {
    profiles.push_back(Find(kProfiles, name));
    weights.push_back(weight);
    mean += weight * profiles.back()->placements.front().size;
    sum += weight;
  }
  std::mt19937 random(seed);
  std::discrete_distribution<std::size_t> which(weights.begin(), weights.end());
  std::exponential_distribution<double> duration(1.0);
  std::exponential_distribution<double> interval(input.load * 8 * input.devices * sum / mean);
  double now = 0;
  std::multimap<double, std::pair<std::size_t, std::string>> ends;  // device, part
  int rejected = 0;
  for (int i = 0; i < input.requests; ++i) {
    now += interval(random);
    const device::PartProfile& profile = *profiles[which(random)];
    const double until = now + duration(random);
    for (; !ends.empty() && ends.begin()->first <= now; ends.erase(ends.begin()))
      std::erase_if(machine[ends.begin()->second.first].parts, [&](const ExistingPart& part) {
        return part.id == ends.begin()->second.second;
      });
    const auto placed = place(devices, profile);
    if (!placed) {
      ++rejected;
      continue;
    }
    const std::string id = std::to_string(i);
    machine[placed->device].parts.push_back(
        {.id = id, .profile = profile.name, .placement = placed->placement});
    ends.emplace(until, std::pair(placed->device, id));
  }
  return rejected;
}

/// Requests in which each profile takes the same part of the time of the machine's slices, and the
/// same number of requests for each.
inline std::map<std::string, double> EqualSlices() {
  return {
      {"1g.5gb", 1}, {"2g.10gb", 0.5}, {"3g.20gb", 0.25}, {"4g.20gb", 0.25}, {"7g.40gb", 0.125}};
}
inline std::map<std::string, double> EqualNumbers() {
  return {{"1g.5gb", 1}, {"2g.10gb", 1}, {"3g.20gb", 1}, {"4g.20gb", 1}, {"7g.40gb", 1}};
}

}  // namespace penstock::node::partition::testing
