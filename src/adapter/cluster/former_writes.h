// Takes back what an agent wrote to the API server before a setting was switched off: its
// NodeFeature object and the condition of its Node. Labels: cluster_adapter.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "adapter/cluster/observed_node.h"
#include "protocol/kube/api.h"
#include "protocol/kube/reconcile_loop.h"

namespace penstock::adapter::cluster {

/// The command with which a user deletes a node's NodeFeature object, in back quotes.
std::string FeatureDeletion(const std::string& node, const std::string& namespace_name);

/// Use on the executor of `api`, one call of each function at a time. Removes only what our field
/// managers have written, by the object's managed fields, and each once: a right that was taken
/// away with the setting is reported, with the command for a user, and not waited for. Where
/// nothing can be left, as the Node shows, nothing is asked of the server.
class FormerWrites {
 public:
  using Done = protocol::kube::ReconcileLoop::Done;
  /// What stays, and why; an empty text once it is gone.
  using Report =
      std::function<void(const std::string& what, protocol::kube::ReconcileLoop::Problem problem)>;

  FormerWrites(protocol::kube::Api& api, const std::string& node, const std::string& namespace_name,
               Report report);
  ~FormerWrites();

  /// `done` gets an error where the server could not answer: call again.
  void TakeFeatureBack(const ObservedNode& node, const Done& done);
  void TakeConditionBack(const ObservedNode& node, const Done& done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::adapter::cluster
