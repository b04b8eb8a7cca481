// A device and how it is divided now. Pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/model.h"

namespace penstock::node::partition {

/// A part of a device as it is now.
struct ExistingPart {
  std::string id;
  std::string profile;
  std::string parent;  ///< id of the part that it lies in; empty: it lies on the device itself
  std::optional<device::Placement> placement;  ///< on the device or in `parent`; nothing: unknown
  bool outer = false;  ///< it only exists for the parts within it, and is no part for a holder
  std::string holder;  ///< "pod ml/train-0"; empty: none
  bool operator==(const ExistingPart&) const = default;
};

struct Division {
  std::string device;
  std::vector<device::PartProfile> profiles;
  std::vector<device::Mode> modes;
  std::vector<ExistingPart> parts;
  std::string holder;  ///< of the device itself; empty: none

  const device::Mode* FindMode(std::string_view name) const;
};

/// Whether other parts lie in this one.
bool HasParts(const Division& division, const ExistingPart& part);

/// Whether the part lies at this placement. Of a part within another one only the start counts,
/// because drivers differ in the size of the same part.
bool IsThere(const ExistingPart& part, const device::Placement& placement);

/// Returns who holds a device or part, empty if there is none.
using HolderOf = std::function<std::string(const std::string& id)>;

/// The device and those of `devices` that are parts of it. A part that has parts, or that its
/// driver withholds, as NVIDIA's GPU instances without a compute instance, is an outer part.
Division DivisionOf(const device::Facts& device, std::span<const device::Facts* const> devices,
                    const HolderOf& holder_of);

}  // namespace penstock::node::partition
