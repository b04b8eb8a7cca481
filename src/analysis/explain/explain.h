// Explains the capacity of a node: compares the Node object with the agent's offers, and reports
// the causes of a difference and the next steps. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/explain/nodes.h"

namespace penstock::analysis {

/// One resource of a node, as the Node object, the agent and the pods show it.
struct ResourceView {
  std::string name;
  bool own = false;  ///< the agent offers it
  std::int64_t capacity = 0, allocatable = 0;
  int offered = 0;             ///< devices behind it; for shared devices, their shares
  int usable = 0;              ///< of these, those that the kubelet may allocate
  int held = 0;                ///< of these, those that the agent knows to be allocated
  std::int64_t requested = 0;  ///< by pods of the node
};

/// A problem and the next step.
struct ExplainFinding {
  std::string what, step;
};

/// A pod that waits for a resource of this node.
struct WaitingPod {
  std::string name, namespace_name, resource, why;
  std::int64_t amount = 0;
};

/// The pods of the node and the pods that are not scheduled yet.
struct PodsView {
  std::map<std::string, std::int64_t> requested;  ///< resource → amount that running pods of the
                                                  ///< node request
  std::vector<WaitingPod> waiting;                ///< for one of the given resources
  std::string unknown;  ///< why the pods could not be read; empty: they were
};

/// Sums up `pods`, in any order: those of `node` and those without a node. Pods that ended hold
/// nothing.
PodsView ReadPods(const std::vector<nlohmann::json>& pods, const std::string& node,
                  const std::vector<std::string>& resources);

/// The extended resources of the node and those that its agent offers.
std::vector<std::string> ResourceNames(const NodeView& node);

struct Explanation {
  NodeView node;
  PodsView pods;
  std::vector<ResourceView> resources;
  std::vector<ExplainFinding> findings;
  std::string choice;  ///< the node's label that selects a configuration,
                       ///< "nvidia.com/device-plugin.config=a100"; empty: it has none
};

/// `kind_missing`: the server does not have the kind NodeState.
Explanation Explain(NodeView node, PodsView pods, bool kind_missing);

}  // namespace penstock::analysis
