// Takes back what agents wrote to the API server, once they have ended and no policy is wanted any
// more: labels, annotations and the condition of Nodes, and NodeStates. Also of nodes that do not
// respond.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/kube/api.h"
#include "protocol/kube/node_fields.h"

namespace penstock::cluster {

/// Use on the api's executor. Looks once at every Node and NodeState: what an agent writes
/// afterwards, which still runs on a node that does not respond, stays.
class AgentTraces {
 public:
  AgentTraces(protocol::kube::Api& api, std::function<void()> changed);
  ~AgentTraces();

  /// Begins; does nothing where it has.
  void TakeBack();
  void Forget();         ///< a policy is in force again: what is left is its agents'
  bool settled() const;  ///< everything was looked at, and nothing is left

  std::vector<std::string> unsettled() const;   ///< names of nodes of which something is left
  std::vector<std::string> taken_back() const;  ///< ... was taken back
  bool listed() const;                          ///< unsettled() has all of them
  std::uint64_t writes() const;                 ///< since the start
  std::vector<std::string> problems() const;    ///< of what cannot be read or written

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What agents wrote to a Node, by its managed fields. Pure.
struct NodeTrace {
  std::string uid;
  bool condition = false;  ///< AcceleratorsReady
  /// Also labels of the operator's with which an agent had stopped programs for a change of
  /// devices: with that, and with "true" afterwards, the agent became their only manager.
  protocol::kube::OwnedKeys marks;
  bool any() const { return condition || !marks.empty(); }
};
NodeTrace TraceOn(const nlohmann::json& node);

}  // namespace penstock::cluster
