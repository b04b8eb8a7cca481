// Labels the operator's namespace, so that it may have privileged pods.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class NamespaceLabels {
 public:
  NamespaceLabels(protocol::kube::Api& api, std::string namespace_name);
  ~NamespaceLabels();

  /// Writes these labels, and takes back others of ours, where they differ. One call at a time.
  void Reconcile(const std::map<std::string, std::string>& labels,
                 std::function<void(base::Status)> done);
  /// Whether the last call made them so.
  bool agrees() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
