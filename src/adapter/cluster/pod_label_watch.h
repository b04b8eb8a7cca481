// Watches the requested labels of this node's pods.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/kube/api.h"
#include "protocol/kube/reconcile_loop.h"

namespace penstock::adapter::cluster {

/// What is kept of a pod.
struct PodMetadata {
  std::string uid;
  std::map<std::string, std::string> labels;  ///< only the requested ones
  bool operator==(const PodMetadata&) const = default;
};

/// (namespace, name) → pod.
using PodsOfNode = std::map<std::pair<std::string, std::string>, PodMetadata>;

/// Use on the executor of `api`. Requests only metadata, only of this node's pods, and keeps only
/// uids and requested labels, so memory is bounded by the pods of one node.
class PodLabelWatch {
 public:
  struct Callbacks {
    /// The pods, first once all are known. Changes close together cause one call. Called once with
    /// null if no labels are requested.
    std::function<void(std::shared_ptr<const PodsOfNode>)> changed;
    /// What prevents the read; an empty text once that is over.
    std::function<void(protocol::kube::ReconcileLoop::Problem)> problem;
  };
  /// `wanted`: globs for label keys. If empty, sends no request.
  PodLabelWatch(protocol::kube::Api& api, std::string node, std::vector<std::string> wanted,
                Callbacks callbacks);
  ~PodLabelWatch();

  void Start();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::adapter::cluster
