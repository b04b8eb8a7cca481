// Carries out what was decided about nodes: evictions and deletions of pods, and then the Node's
// labels, annotations and cordon in one write.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "operator/driver/rollout_plan.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class NodeWriter {
 public:
  struct Result {
    /// kAborted: the Node is not as the decision supposed; nothing of it was written.
    base::Status status;
    nlohmann::json node;  ///< as the server has answered it last; null: not at all
    std::map<std::string, std::string> refused;  ///< evictions: pod's uid → why
  };
  struct Callbacks {
    std::function<nlohmann::json(const nlohmann::json& node)> reduce;
    /// The server has answered that the Node says so now; it was `basis` before.
    std::function<void(const std::string& node, const nlohmann::json& basis, const NodeStep& step)>
        written;
    /// May call Write.
    std::function<void(const std::string& node, Result result)> done;
  };
  NodeWriter(protocol::kube::Api& api, Callbacks callbacks);
  ~NodeWriter();

  /// Does nothing for a node that is being written. `basis`: the Node, reduced, for which `write`
  /// was decided.
  void Write(const std::string& node, nlohmann::json basis, NodeWrite write);

  /// Of the nodes that are being written, or wait for it.
  std::map<std::string, NodeStep> steps() const;
  std::uint64_t writes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
