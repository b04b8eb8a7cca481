// What the operator knows of nodes and pods to decide about drivers, and how it reads that from
// objects, which anyone may have written. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/cluster/penstock.h"
#include "operator/driver/driver_daemon_set.h"
#include "operator/driver/gpu_pods.h"
#include "operator/driver/image_check.h"
#include "operator/driver/node_upgrade.h"
#include "operator/driver/ownership.h"

namespace penstock::cluster {

/// The keys of labels that decide about drivers: of selectors, of the nodes' systems, and of our
/// own marks. Without drivers only the last.
std::set<std::string> DriverLabelKeys(const api::PenstockSpec& spec);

/// What is kept of a Node for drivers. Nothing of it changes at rest, so that a kubelet's
/// heartbeat is no change.
nlohmann::json ReducedDriverNode(const nlohmann::json& node, const std::set<std::string>& labels);

/// A Node, as far as drivers are concerned.
struct RolloutNode {
  DriverNode node;
  NodeTexts annotations;
  bool has_devices = false, opted_out = false;
  bool cordoned = false;
  /// When this operator first saw that it is not ready, by the operator's clock: what the object
  /// says is by that of another machine, which may be an hour off.
  std::optional<base::WallTime> not_ready_since;
};
/// `now`: of a node that was ready before.
RolloutNode RolloutNodeOf(const nlohmann::json& reduced, const api::NodeMarks& marks,
                          base::WallTime now);

/// What is kept of a driver's Pod.
nlohmann::json ReducedDriverPod(const nlohmann::json& pod);

/// A driver's Pod and where it runs.
struct RolloutPod {
  DriverPod pod;
  std::string node;
  std::optional<base::WallTime> started;      ///< its driver container, by the node's clock
  std::optional<base::WallTime> ready_since;  ///< set: it is ready; since when this operator has
                                              ///< seen that, by the operator's clock
};
/// `now`: of a pod that was not ready before.
RolloutPod RolloutPodOf(const nlohmann::json& reduced, base::WallTime now);

/// What a node's agent reports of its driver.
struct DriverReport {
  std::string version;  ///< empty: there is none
  bool of_host = false;
  std::optional<base::WallTime> since;  ///< when the agent opened it, by the node's clock
  bool ready = false;                   ///< no step of the node's validation fails or waits
  std::string message;                  ///< what does not
  std::string next_kernel;              ///< that the node will boot; empty: no other, or not known
  bool operator==(const DriverReport&) const = default;
};

/// From a NodeState as ReducedNodeState keeps it; empty: the agent has not looked yet.
std::optional<DriverReport> DriverReportOf(const nlohmann::json& reduced_state);

struct ValidationResult {
  DriverValidation state = DriverValidation::kPending;
  std::string text;  ///< what is missing
  std::optional<base::WallTime> look_again;
};
/// Whether the driver works that `pod` has loaded. What the agent reports of a driver that it
/// opened before is about an earlier one, or the pod found the driver loaded as it should be: which
/// of the two is known half a minute after the pod became ready.
ValidationResult ValidationOf(const RolloutPod& pod, const DriverReport* report,
                              base::WallTime now);

/// Everything that one turn decides by.
struct RolloutFacts {
  std::vector<api::DriverSpec> drivers;
  std::set<std::string> unreadable;  ///< drivers whose objects cannot be read: nothing changes
  DriverInstallation installation;
  bool reports_expected = true;  ///< agents write reports
  std::map<std::string, RolloutNode> nodes;
  /// What the nodes' marks say; of a node that is missing here they are read.
  std::map<std::string, StoredRecord> records;
  std::map<std::string, DriverReport> reports;  ///< by node
  std::map<std::string, RolloutPod> pods;       ///< by node
  /// Those of drivers as they are, by name.
  std::map<std::string, nlohmann::json> daemon_sets;
  /// Pods of nodes whose upgrade asks for them; a node that is missing was not read yet.
  std::map<std::string, std::vector<nlohmann::json>> pods_of_nodes;
  std::optional<DeviceClaims> claims;          ///< empty: not read yet
  std::map<std::string, std::string> refused;  ///< why evictions were refused, by uid
  std::map<std::string, ImageAnswer> images;   ///< by the name of the check
  /// Nodes whose last step is being written: what they will say.
  std::map<std::string, NodeStep> being_written;
};

}  // namespace penstock::cluster
