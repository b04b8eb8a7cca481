// Elects one leader among several candidates with a Lease of coordination.k8s.io/v1, as client-go's
// leader election does.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "protocol/kube/api.h"

namespace penstock::protocol::kube {

/// Use on the api's executor. Times are intervals of the own clock between observed renewals, never
/// the times written in the object.
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
    std::function<void(const std::string& why)> stopped;  ///< must not act as the leader any more
  };
  LeaderElection(Api& api, Options options, Callbacks callbacks);
  ~LeaderElection();  ///< releases the lease if it is held

  void Start();
  bool leads() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube
