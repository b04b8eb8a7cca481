// Divides the nodes of a driver into pools: one driver container serves all nodes with the same
// operating system, and, if it has compiled modules, with the same kernel. Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/cluster/driver.h"
#include "operator/driver/ownership.h"

namespace penstock::cluster {

struct DriverPool {
  std::string os_id, os_version;  ///< "ubuntu", "22.04"
  std::string os_tag;             ///< of the image: "ubuntu22.04", "rocky9"
  std::string kernel;             ///< empty: the driver compiles its modules
  /// In names of objects: "ubuntu22.04", "5.15.0-50-generic-ubuntu22.04".
  std::string Name() const;
  auto operator<=>(const DriverPool&) const = default;
};

/// Why a node is in no pool.
struct PoollessNode {
  std::string node, why;
  bool operator==(const PoollessNode&) const = default;
};

struct DriverPools {
  std::map<DriverPool, std::vector<std::string>> nodes;  ///< their names, sorted
  std::vector<PoollessNode> without;
};

/// Of the nodes that `driver` owns. The system is that of the labels of node-feature-discovery, or,
/// without them, of the Node's status.
DriverPools PoolsOf(const api::DriverSpec& driver, std::span<const DriverNode* const> nodes);
DriverPools PoolsOf(const api::DriverSpec& driver, const std::vector<DriverNode>& nodes);

/// The pool of the nodes of `pool` once they have booted another kernel, which their agents report.
/// Nothing: it is the same, or no part of a name.
std::optional<DriverPool> PoolAfterBoot(const DriverPool& pool, const std::string& kernel);

/// "nvidia-gpu-driver-blue-ubuntu22.04": the DaemonSet of a pool; at most 63 characters, the end of
/// a longer name is a hash of it. A driver without a name is a ClusterPolicy's.
std::string DaemonSetName(const api::DriverSpec& driver, const DriverPool& pool);

/// "nvcr.io/nvidia/driver:580.95.05-ubuntu22.04". A digest ("sha256:...") has no suffix; an image
/// without repository and version is complete. kInvalidArgument: it names no image.
Result<std::string> DriverImage(const api::DriverSpec& driver, const DriverPool& pool);

}  // namespace penstock::cluster
