// Why a node has the capacity that it has: what the Node object says beside what the agent offers, what stands between the two, and what to
// do next. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/penstock/nodes.h"

namespace penstock::app {

/// One resource of a node, from all sides.
struct ResourceView {
  std::string name;
  bool ours = false;  ///< a door of the agent offers it
  std::int64_t capacity = 0, allocatable = 0;
  int offered = 0;             ///< devices behind it, and shares of those that are shared
  int usable = 0;              ///< of these, those that the kubelet may give out
  int held = 0;                ///< of these, those that the agent knows to be given out
  std::int64_t requested = 0;  ///< by pods that are on the node
};

/// Something that is not as one would wish, and the next step.
struct Finding {
  std::string what, step;
};

/// A pod that waits for a resource of this node's.
struct WaitingPod {
  std::string name, namespace_name, resource, why;
  std::int64_t amount = 0;
};

/// What is known of the pods: those on the node, and those that are nowhere yet.
struct PodsView {
  std::map<std::string, std::int64_t> requested;  ///< resource → by running pods of the node
  std::vector<WaitingPod> waiting;                ///< for one of the resources given
  std::string unknown;                            ///< why the pods could not be read; empty where they were
};

/// `pods`: of the node and those without one, in any order. Ended pods hold nothing.
PodsView ReadPods(const std::vector<nlohmann::json>& pods, const std::string& node, const std::vector<std::string>& resources);

/// The extended resources of the node and those that its agent offers.
std::vector<std::string> ResourceNames(const NodeView& node);

struct Explanation {
  NodeView node;
  PodsView pods;
  std::vector<ResourceView> resources;
  std::vector<Finding> findings;
  std::string wish;  ///< the node's label that chooses a configuration, "nvidia.com/device-plugin.config=a100"; empty: it has none
};

/// `kind_missing`: the server has no NodeState.
Explanation Explain(NodeView node, PodsView pods, bool kind_missing);

std::string ShowExplanation(const Explanation& explanation, const Style& style, base::WallTime now);
std::string ExplanationToJson(const Explanation& explanation);

}  // namespace penstock::app
