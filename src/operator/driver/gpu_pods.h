// Finds the pods of a node that hold devices, and those that an upgrade waits for. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/core/result.h"
#include "operator/driver/node_upgrade.h"

namespace penstock::cluster {

/// ResourceClaims with an allocated device of the driver, which is not for administrators:
/// "namespace/name".
using DeviceClaims = std::set<std::string>;
bool HoldsDevices(const nlohmann::json& claim);

/// What is kept of a Pod: little more than what the functions below read.
nlohmann::json ReducedPod(const nlohmann::json& pod);

/// What a running pod holds: a resource that one of its containers asks for, or "claim big"; empty:
/// no device.
std::string DevicesOf(const nlohmann::json& pod, const DeviceClaims& claims);

/// Pods that use a device file without having asked for a device are none of them: penstock driver
/// prepare names these. `refused`: why the last eviction of a pod was refused, by uid.
std::vector<HoldingPod> HoldingPods(const std::vector<nlohmann::json>& pods_of_node,
                                    const DeviceClaims& claims,
                                    const std::map<std::string, std::string>& refused);

/// The names of the pods that did not end and have these labels. kInvalidArgument: no selector.
Result<std::vector<std::string>> RunningPods(const std::vector<nlohmann::json>& pods_of_node,
                                             const std::string& selector);

}  // namespace penstock::cluster
