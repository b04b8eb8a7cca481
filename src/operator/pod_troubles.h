// Reads the pods of a DaemonSet of the operator while they are not as wanted, to say why: those of
// agents while a roll-out does not get on, and those that take back what agents left on their
// hosts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class PodTroubles {
 public:
  struct Callbacks {
    std::function<void()> changed;                         ///< troubles()
    std::function<void(base::Duration)> due_after;         ///< troubles() may have changed then
    std::function<void(const base::Status& why)> problem;  ///< of reading; ok once it is over
  };
  /// `instance`: the pods' label app.kubernetes.io/instance.
  PodTroubles(protocol::kube::Api& api, std::string namespace_name, std::string instance,
              Callbacks callbacks);
  ~PodTroubles();

  /// Begins to read, or ends. At rest nothing is read: a cluster has one such pod for each node.
  void Read(bool wanted);

  /// False while it begins to read: what is not found then may be there.
  bool has_read() const;

  /// Why pods are not ready, the first by node: "n2: agent: CrashLoopBackOff: ...". That a pod ends
  /// is no trouble, unless its Node is gone or not ready, or it takes longer than a minute: then
  /// its node does not respond.
  std::vector<std::string> troubles() const;

  /// By node, why no agent of it is ready, while that is read; nothing of a node that has one or
  /// for which there is no pod. An agent that does not start beside one that runs takes nothing
  /// from its node.
  std::map<std::string, std::string> WhyNone() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
