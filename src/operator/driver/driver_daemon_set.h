// Computes the DaemonSets of a driver: one for each pool of its nodes, and one for the nodes of a
// pool that were rolled back. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/cluster/driver.h"
#include "base/core/result.h"
#include "operator/driver/pools.h"

namespace penstock::cluster {

/// Where and with what a driver's pods run.
struct DriverInstallation {
  std::string namespace_name;
  std::string image;  ///< of the init container: the operator's own
  std::string pull_policy = "IfNotPresent";
  std::vector<std::string> pull_secrets;  ///< besides the driver's
  std::string service_account;
  std::string driver_root = "/run/nvidia/driver";  ///< where the container mounts its files
  std::vector<std::string> startup_taints;         ///< keys of taints that wait for the driver
  /// The keys of the ConfigMaps in the namespace that drivers name: each becomes a file.
  std::map<std::string, std::vector<std::string>> config_maps;
};

/// On nodes: the pool that a node is in, as the name of its DaemonSet. The operator keeps it where
/// the labels of the operating system disappear, so that no driver is unloaded for that.
inline constexpr std::string_view kPoolLabel = "penstock.io/driver-pool";
/// On pods of drivers: the hash of the template that they were made from.
inline constexpr std::string_view kTemplateAnnotation = "penstock.io/driver-template";
/// On DaemonSets: the earlier template that worked, as JSON.
inline constexpr std::string_view kPreviousAnnotation = "penstock.io/driver-previous";
inline constexpr std::string_view kDriverContainer = "nvidia-driver-ctr";

/// kInvalidArgument: a part of the driver that the API server's schema does not check makes no pod,
/// or names no image, or its type is not served; all of them at once. kFailedPrecondition: a
/// ConfigMap is missing.
Result<nlohmann::json> DriverDaemonSet(const api::DriverSpec& driver, const DriverPool& pool,
                                       const DriverInstallation& installation);

/// The hash of a DaemonSet's template, and the digest of what its pods install; empty: it is not
/// one of these DaemonSets.
std::string TemplateOf(const nlohmann::json& daemon_set);
std::string ConfigDigestOf(const nlohmann::json& daemon_set_or_pod);

/// Keeps the template of `found`, the DaemonSet as it is, in `wanted` if that replaces it and it
/// worked on a node; otherwise what `found` keeps. `worked`: false also as long as a node is held,
/// which would lose its driver.
void KeepPrevious(nlohmann::json& wanted, const nlohmann::json& found, bool worked);
/// The hash of the template that a DaemonSet keeps; empty: none.
std::string PreviousOf(const nlohmann::json& daemon_set);

/// The DaemonSet for nodes with the label kHeldLabel: its pods are those that `daemon_set` keeps.
/// Nothing if it keeps none.
std::optional<nlohmann::json> HeldDaemonSet(const nlohmann::json& daemon_set);

}  // namespace penstock::cluster
