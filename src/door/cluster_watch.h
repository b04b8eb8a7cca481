// What the API server says to this node: its Node object, and the configuration that is wished for it. One object each, by name: its memory
// does not grow with the cluster. Writes nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/node_config.h"
#include "door/cluster.h"
#include "door/cluster_node.h"
#include "door/cluster_work.h"
#include "edge/kube/api.h"

namespace penstock::door {

/// On the api's executor.
class ClusterWatch {
 public:
  struct Callbacks {
    /// node() is another one now, or there is none any more, or it is known that it may not be read.
    std::function<void()> node;
    std::function<void(const WishedConfig&)> wished;
    /// What keeps something from being known; no text once that is over.
    std::function<void(const std::string& what, ClusterWork::Problem problem)> problem;
  };
  /// `where` with its namespace filled in; without a name nothing is ever wished.
  ClusterWatch(edge::kube::Api& api, std::string node, api::ConfigMapConfig where, Callbacks callbacks);
  ~ClusterWatch();

  void Start();

  /// The newest there is; null while none is known. Whose its labels are is known from whole objects alone (Adopt), since a watch leaves
  /// that out: it is the larger half of an object.
  const NodeView* node() const;
  /// False before the first whole object, and once others have changed labels of ours: then it is to be read again.
  bool owners_known() const;
  /// The right to read it is missing: what can be done without it goes on.
  bool node_forbidden() const;

  /// A whole object, the answer of a read or a write; it may be newer than what the watch has brought, or older.
  void Adopt(const nlohmann::json& node);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::door
