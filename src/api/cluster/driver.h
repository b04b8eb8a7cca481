// Drivers that run as containers on the nodes of a cluster, and how they are replaced by others.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/cluster/kube_part.h"
#include "base/core/clock.h"

namespace penstock::api {

/// How long an upgrade waits for work on the node to end.
struct UpgradeWait {
  std::string pod_selector;   ///< labels of the pods, as of `kubectl -l`; empty: it does not wait
  base::Duration timeout{0};  ///< then it goes on; 0: it waits for as long as it takes
  bool operator==(const UpgradeWait&) const = default;
};

/// How pods that hold devices are evicted.
struct UpgradeEviction {
  bool force = false;             ///< also pods that no controller would start again
  bool delete_empty_dir = false;  ///< also pods with volumes that are lost with them
  base::Duration timeout = std::chrono::seconds(300);  ///< 0: no limit
  bool operator==(const UpgradeEviction&) const = default;
};

/// A second attempt with rules of its own, after the timeout of the first.
struct UpgradeDrain {
  bool enable = false;
  UpgradeEviction eviction;
  std::string pod_selector;  ///< only pods with these labels; empty: all that hold devices
  bool operator==(const UpgradeDrain&) const = default;
};

/// Nodes that are upgraded before all others.
struct UpgradeCanaries {
  std::map<std::string, std::string> node_selector;
  std::string count;  ///< "1", "5%": of the nodes that the selector chooses, the first by name;
                      ///< empty: all of them if there is a selector, else none
  base::Duration soak{0};  ///< how long they must have worked before others follow
  bool operator==(const UpgradeCanaries&) const = default;
};

/// After a failure on a node.
struct UpgradeRetries {
  int count = 2;                                    ///< attempts after the first
  base::Duration first = std::chrono::seconds(30);  ///< wait before the next one; then doubled
  base::Duration most = std::chrono::minutes(10);
  bool operator==(const UpgradeRetries&) const = default;
};

/// How a changed driver reaches the nodes.
struct UpgradePolicy {
  bool automatic = false;               ///< without it, a node is upgraded only on request
  bool paused = false;                  ///< begins on no further node
  int max_parallel = 1;                 ///< nodes at the same time; 0: no limit
  std::string max_unavailable = "25%";  ///< nodes that are cordoned or not ready; empty: no
                                        ///< limit
  UpgradeWait wait;
  UpgradeEviction pod_deletion;
  UpgradeDrain drain;
  UpgradeCanaries canaries;
  UpgradeRetries retries;
  std::string max_failures = "10%";  ///< failed nodes beyond which no other one begins
  bool roll_back = true;             ///< a node whose attempts failed gets its last good driver
  base::Duration load_timeout = std::chrono::minutes(30);  ///< until the driver is loaded
  base::Duration validation_timeout = std::chrono::minutes(10);
  bool operator==(const UpgradePolicy&) const = default;
};

/// An image with its parts, as Kubernetes' operators name them.
struct ImageParts {
  std::string repository, image, version;
  std::string pull_policy;  ///< empty: IfNotPresent
  std::vector<std::string> pull_secrets;
  bool operator==(const ImageParts&) const = default;
};

/// ConfigMaps and Secrets in the operator's namespace that a driver's container mounts or reads;
/// an empty name: none.
struct DriverFiles {
  std::string repositories;    ///< ConfigMap: package repositories
  std::string certificates;    ///< ConfigMap
  std::string module_options;  ///< ConfigMap: options of kernel modules
  std::string license_secret;  ///< Secret
  std::string license_map;     ///< ConfigMap, where there is no Secret
  bool license_token = true;   ///< it has a token of a license server, too
  std::string topology;        ///< ConfigMap of the topology daemon
  std::string variables;       ///< Secret: variables of the container
  bool operator==(const DriverFiles&) const = default;
};

/// A driver for some of the cluster's nodes.
struct DriverSpec {
  std::string name;
  bool enabled = true;
  bool fallback = false;     ///< for the nodes that no other driver selects
  std::string type = "gpu";  ///< "gpu", "vgpu", "vgpu-host-manager"
  ImageParts image;
  std::string module_type = "auto";  ///< "auto", "open", "proprietary"
  bool precompiled = false;          ///< an image for each kernel
  std::map<std::string, std::string> node_selector;
  KubeJson node_affinity;                                   ///< a map
  KubeJson startup_probe, liveness_probe, readiness_probe;  ///< maps
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::pair<std::string, std::string>> prepare_environment;  ///< of the init container
  DriverFiles files;
  bool peer_memory = false;          ///< with the module for RDMA by a network card
  bool host_network_driver = false;  ///< the network card's driver is the host's own
  KubeJson tolerations;              ///< a list
  KubeJson resources;                ///< of the container
  KubeJson pod_security_context;     ///< a map
  std::string priority_class = "system-node-critical";
  std::map<std::string, std::string> labels, annotations;
  bool host_network = false;
  UpgradePolicy upgrade;
  bool operator==(const DriverSpec&) const = default;
};

}  // namespace penstock::api
