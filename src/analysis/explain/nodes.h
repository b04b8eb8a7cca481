// The nodes of a cluster for `kubectl penstock nodes` and `explain`: each Node joined with its
// agent's report. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/report.h"
#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::analysis {

/// A pod of Penstock's DaemonSet.
struct AgentPod {
  std::string name, namespace_name;
  bool ready = false;
  std::string state;  ///< "Running", "CrashLoopBackOff", "Pending"
};

/// What could be read of one node from the cluster.
struct NodeView {
  std::string name;
  bool exists = false;    ///< a Node object of this name exists
  bool ready = false;     ///< the Node's condition Ready
  bool cordoned = false;  ///< spec.unschedulable
  std::string kubelet;    ///< version
  std::map<std::string, std::string> labels;
  std::map<std::string, std::int64_t> capacity,
      allocatable;  ///< extended resources: names with a domain that is not Kubernetes' own
  std::optional<api::Report> report;
  std::string reported_at;  ///< RFC 3339: when the report last changed
  std::string unreadable;   ///< why the NodeState object has no readable report
  std::vector<AgentPod> agents;
};

/// Joins objects by node name and sorts by it. `pods`: the agents' pods, as far as they could be
/// read.
std::vector<NodeView> JoinNodes(const std::vector<nlohmann::json>& nodes,
                                const std::vector<nlohmann::json>& node_states,
                                const std::vector<nlohmann::json>& pods);

/// The devices of a node, counted by state.
struct DeviceCounts {
  int all = 0, healthy = 0, held = 0, outside = 0;
  int shares = 0, free_shares = 0;  ///< of shared devices
};
DeviceCounts CountDevices(const api::Report& report);

/// The problems of a node, most important first, one phrase each.
std::vector<std::string> ProblemsOf(const NodeView& node);

/// Those of its report alone, without its devices: drivers, sharing servers, allocators,
/// configuration.
std::vector<std::string> NodeProblemsOf(const api::Report& report);

}  // namespace penstock::analysis
