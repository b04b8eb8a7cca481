// Watches the policies of all kinds: the cluster's, and those in the operator's own namespace.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/effective_spec.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor. Of a kind whose objects live in namespaces it asks for those in
/// `namespace_name` only: what users of other namespaces write is not seen.
class PolicyWatch {
 public:
  struct Callbacks {
    std::function<void()> changed;
    std::function<void(const std::string& plural, const base::Status& why)> problem;
  };
  PolicyWatch(protocol::kube::Api& api, std::string namespace_name, Callbacks callbacks);
  ~PolicyWatch();

  /// Begins to watch the kind that a definition ("penstocks.penstock.io") names; does nothing for
  /// other definitions.
  void Start(const std::string& definition);

  /// Whether all policies that take effect are known. Where there are more of a kind than are kept,
  /// they are not: the oldest could be one of the others. A kind that the server does not have, for
  /// a minute, has none.
  bool synced() const;
  std::vector<PolicyObject> policies() const;
  /// Reads the names of all policies that take effect once more, from the server's own store, and
  /// calls `done`: kUnavailable where one of them is not known yet, since the watch of its kind
  /// lags (each has its own, which begins again by itself after a break), or the error of reading.
  void Confirm(std::function<void(const base::Status& all_are_known)> done);
  /// By its key (KeyOf); null if there is none. Valid until the next change.
  const PolicyObject* Find(const std::string& key) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
