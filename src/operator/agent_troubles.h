// Reads the agents' pods while a roll-out of them does not get on, to say why.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class AgentTroubles {
 public:
  struct Callbacks {
    std::function<void()> changed;                         ///< troubles()
    std::function<void(const base::Status& why)> problem;  ///< of reading; ok once it is over
  };
  AgentTroubles(protocol::kube::Api& api, std::string namespace_name, Callbacks callbacks);
  ~AgentTroubles();

  /// Begins to read, or ends. At rest nothing is read: a cluster has one such pod for each node.
  void Read(bool wanted);

  /// Why pods are not ready, the first by node: "n2: agent: CrashLoopBackOff: ...".
  std::vector<std::string> troubles() const;

  /// Why a node has no agent that is ready, while that is read; empty: it has one, or none is
  /// wanted there. An agent that does not start beside one that runs takes nothing from its node.
  std::string WhyNoneOn(const std::string& node) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::cluster
