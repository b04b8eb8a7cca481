// Watches the cluster's policies of all kinds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/effective_spec.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class PolicyWatch {
 public:
  struct Callbacks {
    std::function<void()> changed;
    std::function<void(const std::string& plural, const base::Status& why)> problem;
  };
  PolicyWatch(protocol::kube::Api& api, Callbacks callbacks);
  ~PolicyWatch();

  /// Begins to watch the kind that a definition ("penstocks.penstock.io") names; does nothing for
  /// other definitions.
  void Start(const std::string& definition);

  /// Whether all policies that take effect are known.
  bool synced() const;
  std::vector<PolicyObject> policies() const;
  /// By its key (KeyOf); null if there is none. Valid until the next change.
  const PolicyObject* Find(const std::string& key) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::cluster
