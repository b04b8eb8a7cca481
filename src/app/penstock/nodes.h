// The nodes of a cluster as `kubectl penstock nodes` and `explain` see them: each Node joined with what its agent reported. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/report.h"
#include "app/penstock/table.h"
#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

/// A pod of Penstock's DaemonSet.
struct AgentPod {
  std::string name, namespace_name;
  bool ready = false;
  std::string state;  ///< "Running", "CrashLoopBackOff", "Pending"
};

/// What the cluster says of one node, as far as it could be read.
struct NodeView {
  std::string name;
  bool exists = false;    ///< there is a Node object of this name
  bool ready = false;     ///< as the Node's condition says
  bool cordoned = false;  ///< spec.unschedulable
  std::string kubelet;    ///< its version
  std::map<std::string, std::string> labels;
  std::map<std::string, std::int64_t> capacity, allocatable;  ///< extended resources: names with a domain of their own
  std::optional<api::Report> report;
  std::string reported_at;  ///< RFC 3339: when the report last changed
  std::string unreadable;   ///< why there is an object and no report
  std::vector<AgentPod> agents;
};

/// Joins by name and sorts by it. `pods`: those of the agent, as far as they may be read.
std::vector<NodeView> JoinNodes(const std::vector<nlohmann::json>& nodes, const std::vector<nlohmann::json>& node_states,
                                const std::vector<nlohmann::json>& pods);

/// How many of a node's devices are what.
struct DeviceCounts {
  int all = 0, healthy = 0, held = 0, outside = 0;
  int shares = 0, free_shares = 0;  ///< of those devices that are shared
};
DeviceCounts CountDevices(const api::Report& report);

/// What is wrong on a node, most important first; a phrase each.
std::vector<std::string> ProblemsOf(const NodeView& node);

/// A line for each node.
std::string ShowNodes(const std::vector<NodeView>& nodes, bool wide, const Style& style, base::WallTime now);

/// {"nodes": [...]}, for programs.
std::string NodesToJson(const std::vector<NodeView>& nodes);

}  // namespace penstock::app
