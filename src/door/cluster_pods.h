// The labels of this node's pods, as far as they are wanted. Knows no device and no lease.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "door/cluster_work.h"
#include "edge/kube/api.h"

namespace penstock::door {

/// What is known of a pod.
struct PodFacts {
  std::string uid;
  std::map<std::string, std::string> labels;  ///< those that are wanted
  bool operator==(const PodFacts&) const = default;
};

/// Namespace and name → pod.
using PodsOfNode = std::map<std::pair<std::string, std::string>, PodFacts>;

/// On the api's executor. Asks for metadata alone, of this node's pods alone, and keeps uids and wanted labels: its memory is bounded by
/// what a node can have.
class ClusterPods {
 public:
  struct Callbacks {
    /// The pods, first once all are known; pods that come and go together are told together. Null, once, where no labels are wanted.
    std::function<void(std::shared_ptr<const PodsOfNode>)> changed;
    std::function<void(ClusterWork::Problem)> problem;  ///< what keeps them from being known; no text once that is over
  };
  /// `wanted`: globs over labels' keys. Without any, nobody is asked.
  ClusterPods(edge::kube::Api& api, std::string node, std::vector<std::string> wanted, Callbacks callbacks);
  ~ClusterPods();

  void Start();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
