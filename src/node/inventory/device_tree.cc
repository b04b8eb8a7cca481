#include "node/inventory/device_tree.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace penstock::node::inventory {
namespace {

using device::Capacity;
using device::Facts;

constexpr std::size_t kMaxDepth = 8;

using ById = std::map<std::string_view, const Facts*>;

std::string WhyNoAncestors(const Facts& device, const ById& by_id,
                           std::vector<Ancestor>& ancestors) {
  for (const Facts* at = &device; !at->parent.empty();) {
    const auto parent = by_id.find(at->parent);
    if (parent == by_id.end())
      return "it is a part of " + at->parent + ", which the driver does not report";
    at = parent->second;
    if (at == &device || ancestors.size() == kMaxDepth)
      return "the driver reports that it is a part of itself, or of too many others";
    ancestors.push_back({at->id, CapacityOf(*at)});
  }
  return "";
}

/// The sums of the parts of each device.
std::map<std::string_view, Capacity> PartsOf(const std::vector<const Facts*>& devices) {
  std::map<std::string_view, Capacity> parts;
  for (const Facts* device : devices)
    if (!device->parent.empty()) parts[device->parent] += CapacityOf(*device);
  return parts;
}

/// Why it cannot be as the driver reports a device as a part; empty if it can.
std::string WhyImpossible(const Facts& device, const std::vector<Ancestor>& ancestors,
                          const std::map<std::string_view, Capacity>& parts) {
  if (ancestors.empty()) return "";
  const Ancestor& whole = ancestors.front();
  if (Exceeds(CapacityOf(device), whole.capacity))
    return "the driver reports that it is larger than " + whole.device + ", of which it is a part";
  if (Exceeds(parts.at(whole.device), whole.capacity))
    return "the driver reports parts of " + whole.device + " that are larger together than it is";
  return "";
}

}  // namespace

std::map<std::string, TreePlace> PlaceInTree(const std::vector<const Facts*>& devices) {
  ById by_id;
  for (const Facts* device : devices) by_id.emplace(device->id, device);
  const auto parts = PartsOf(devices);
  std::map<std::string, TreePlace> places;
  for (const Facts* device : devices) {
    TreePlace& place = places[device->id];
    place.withheld = WhyNoAncestors(*device, by_id, place.ancestors);
    if (place.withheld.empty())
      place.withheld = WhyImpossible(*device, place.ancestors, parts);
    else
      place.ancestors.clear();
  }
  const auto impossible = places;
  for (const Facts* device : devices) {
    TreePlace& place = places.at(device->id);
    for (const Ancestor& ancestor : place.ancestors)
      if (const std::string& why = impossible.at(ancestor.device).withheld;
          place.withheld.empty() && !why.empty())
        place.withheld = "it is a part of " + ancestor.device + ": " + why;
    if (!device->withheld.empty())
      place.withheld = device->withheld;
    else if (place.withheld.empty() && parts.contains(device->id))
      place.withheld = kDivided;
  }
  return places;
}

}  // namespace penstock::node::inventory
