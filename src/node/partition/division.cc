#include "node/partition/division.h"

#include <algorithm>

namespace penstock::node::partition {

using device::Facts;

const device::Mode* Division::FindMode(std::string_view name) const {
  const auto found = std::ranges::find(modes, name, &device::Mode::name);
  return found == modes.end() ? nullptr : &*found;
}

bool HasParts(const Division& division, const ExistingPart& part) {
  return std::ranges::any_of(division.parts,
                             [&](const ExistingPart& one) { return one.parent == part.id; });
}

bool IsThere(const ExistingPart& part, const device::Placement& placement) {
  if (!part.placement) return false;
  return part.parent.empty() ? *part.placement == placement
                             : part.placement->start == placement.start;
}

Division DivisionOf(const Facts& device, std::span<const Facts* const> devices,
                    const HolderOf& holder_of) {
  Division division{.device = device.id,
                    .profiles = device.profiles,
                    .modes = device.modes,
                    .holder = holder_of(device.id)};
  const auto add = [&](const Facts& part, const std::string& parent) {
    const bool divided =
        std::ranges::any_of(devices, [&](const Facts* one) { return one->parent == part.id; });
    division.parts.push_back({.id = part.id,
                              .profile = part.profile,
                              .parent = parent,
                              .placement = part.placement,
                              .outer = parent.empty() && (divided || !part.withheld.empty()),
                              .holder = holder_of(part.id)});
  };
  for (const Facts* part : devices) {
    if (part->parent != device.id || part->id == device.id) continue;
    add(*part, "");
    for (const Facts* within : devices)
      if (within->parent == part->id && within->id != part->id) add(*within, part->id);
  }
  return division;
}

}  // namespace penstock::node::partition
