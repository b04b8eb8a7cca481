// One of many leads: a Lease of coordination.k8s.io/v1, as client-go's leader election has it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "edge/kube/api.h"

namespace penstock::edge::kube {

/// On the api's executor. Times are the holder's own clock's intervals between renewals seen, never the times written in the object.
class LeaderElection {
 public:
  struct Options {
    std::string namespace_name, name, identity;
    base::Duration lease = std::chrono::seconds(15);
    base::Duration renew_within = std::chrono::seconds(10);
    base::Duration retry = std::chrono::seconds(2);
  };
  struct Callbacks {
    std::function<void()> leading;
    std::function<void(const std::string& why)> stopped;  ///< must not act any more
  };
  LeaderElection(Api& api, Options options, Callbacks callbacks);
  ~LeaderElection();  ///< gives the lease back where it is held

  void Start();
  bool leads() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kube
