// The ConfigMap that says which counters are shown, as dcgm-exporter's --configmap-data has it. Reads no CSV.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "door/cluster.h"
#include "door/cluster_work.h"
#include "edge/kube/api.h"

namespace penstock::door {

/// The text in a ConfigMap ("ns/name", null: there is none): under the key "metrics", where dcgm-exporter looks; else under its only key,
/// as ConfigMaps are made for the GPU operator. What cannot be had is a problem that says what to do.
WishedConfig ChooseCounters(const std::string& name, const nlohmann::json* config_map);

/// On the api's executor. One object by name: its memory does not grow with the cluster.
class ClusterCounters {
 public:
  struct Callbacks {
    std::function<void(const WishedConfig&)> told;
    std::function<void(ClusterWork::Problem)> problem;  ///< what keeps it from being known; no text once that is over
  };
  /// `where` is "namespace:name"; empty: nothing is ever told.
  ClusterCounters(edge::kube::Api& api, const std::string& where, Callbacks callbacks);
  ~ClusterCounters();

  void Start();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::door
