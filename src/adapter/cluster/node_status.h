// Computes the patch of nodes/status that brings the kubelet's numbers to the Node object. Invents
// no number. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "adapter/kubelet/allocatable_confirmation.h"

namespace penstock::adapter::cluster {

/// status.capacity and status.allocatable of a Node: resource → quantity as text.
struct NodeNumbers {
  std::map<std::string, std::string> capacity, allocatable;
};

/// Returns {"status": {"capacity": {...}, "allocatable": {...}}} with the numbers that differ, for
/// a strategic merge patch; nullopt if the Node shows all of them.
std::optional<nlohmann::json> StatusPatch(const NodeNumbers& shown,
                                          const adapter::kubelet::KubeletAmounts& amounts);

}  // namespace penstock::adapter::cluster
