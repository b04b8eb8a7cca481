// What of the kubelet's numbers the Node object does not show yet, as one patch of nodes/status. Invents no number. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "door/kubelet_list.h"

namespace penstock::door {

/// status.capacity and status.allocatable of a Node: resource → quantity as text.
struct NodeNumbers {
  std::map<std::string, std::string> capacity, allocatable;
};

/// {"status": {"capacity": {...}, "allocatable": {...}}} with what differs, for a strategic merge patch; nothing where the Node shows all.
std::optional<nlohmann::json> StatusPatch(const NodeNumbers& shown, const KubeletAmounts& amounts);

}  // namespace penstock::door
