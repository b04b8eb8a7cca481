// Explains why no node can have a pod: compares its node selector and its required node affinity
// with the labels of the nodes, and names the nearest value. Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "analysis/explain/explain.h"

namespace penstock::analysis {

struct PodPlacement {
  std::string pod;                       ///< "ml/train"
  std::string node;                      ///< on which it is; empty: it is not scheduled
  std::string why;                       ///< what the scheduler says
  std::vector<std::string> matching;     ///< nodes that it may have by their labels, sorted
  std::vector<ExplainFinding> findings;  ///< what no node has, and what is nearest to it
};

/// Of affinities, the operators In and Exists are explained by the labels that nodes have, the
/// others only by whether a node meets them. Sources: Kubernetes, NodeSelector and NodeAffinity of
/// core/v1: a pod needs all of its nodeSelector, and all expressions of one term.
PodPlacement Place(const nlohmann::json& pod, const std::vector<nlohmann::json>& nodes);

}  // namespace penstock::analysis
