// Watches the ConfigMap that selects the shown counters, as dcgm-exporter's --configmap-data does.
// Does not parse the CSV.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/config/remote_config.h"
#include "protocol/kube/api.h"
#include "protocol/kube/reconcile_loop.h"

namespace penstock::adapter::cluster {

/// Returns the text of a ConfigMap (`name` is "ns/name"; null: it does not exist) under the key
/// "metrics", where dcgm-exporter looks, else under its only key, as in ConfigMaps made for the GPU
/// operator. If there is no text, `problem` says what to do.
api::RemoteConfig ChooseCounters(const std::string& name, const nlohmann::json* config_map);

/// Use on the executor of `api`. Watches one object by name, so memory does not grow with the
/// cluster.
class CountersWatch {
 public:
  struct Callbacks {
    std::function<void(const api::RemoteConfig&)> reported;
    /// What prevents the read; an empty text once that is over.
    std::function<void(protocol::kube::ReconcileLoop::Problem)> problem;
  };
  /// `where` is "namespace:name"; if it is empty, no callback is ever called.
  CountersWatch(protocol::kube::Api& api, const std::string& where, Callbacks callbacks);
  ~CountersWatch();

  void Start();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::adapter::cluster
