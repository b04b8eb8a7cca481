// Watches this node's Node object and the ConfigMap that holds its remote configuration. Each
// informer watches one object by name, so memory does not grow with the cluster. Writes nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "adapter/cluster/observed_node.h"
#include "api/config/node_config.h"
#include "api/config/remote_config.h"
#include "protocol/kube/api.h"
#include "protocol/kube/reconcile_loop.h"

namespace penstock::adapter::cluster {

/// Use on the executor of `api`.
class ConfigurationWatch {
 public:
  struct Callbacks {
    /// node() changed, the Node was deleted, or reading it is known to be forbidden.
    std::function<void()> node;
    std::function<void(const api::RemoteConfig&)> remote;
    /// What prevents `what` from being read; an empty text once that is over.
    std::function<void(const std::string& what, protocol::kube::ReconcileLoop::Problem problem)>
        problem;
  };
  /// `where` has its namespace filled in. Without a name there is never a remote configuration.
  ConfigurationWatch(protocol::kube::Api& api, std::string node, api::ConfigMapConfig where,
                     Callbacks callbacks);
  ~ConfigurationWatch();

  void Start();

  /// The newest known Node; null while none is known. Label owners come only from whole objects
  /// (Adopt): the watch leaves them out, since they are the larger half of an object.
  const ObservedNode* node() const;
  /// False before the first whole object, and after other clients changed labels of ours: the
  /// object must then be read again.
  bool owners_known() const;
  /// The permission to read the Node is missing. Work that does not need the Node continues.
  bool node_forbidden() const;

  /// Takes a whole object, the answer to a read or a write. It may be newer or older than what the
  /// watch delivered.
  void Adopt(const nlohmann::json& node);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::adapter::cluster
