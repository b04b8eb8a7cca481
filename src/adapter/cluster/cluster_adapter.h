// Joins the API server to the node: writes this node's labels, Events, status and NodeState object,
// and reads its remote configuration from a ConfigMap key that a node label selects. Decides
// nothing about devices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapter/cluster/pod_label_watch.h"
#include "adapter/kubelet/allocatable_confirmation.h"
#include "api/config/node_config.h"
#include "api/config/remote_config.h"
#include "api/report.h"
#include "base/core/result.h"
#include "node/health/status.h"
#include "protocol/kube/api.h"

namespace penstock::adapter::cluster {

/// State of one moment to publish in the cluster.
struct ClusterUpdate {
  std::shared_ptr<const api::Report>
      report;  ///< never null; the same object where it says the same (view/report_cache.h)
  std::optional<std::map<std::string, std::string>>
      labels;  ///< unset until the devices are first read, and while these labels have to wait
  bool known = false;  ///< the devices were read: the rest can be shown although labels wait
  std::map<std::string, std::string>
      annotations;  ///< of the Node, written with the labels; empty value: it has none
  std::optional<std::set<std::string>> pause =
      {};  ///< of Options::clients, those to be stopped now; unset: not known yet
  std::vector<node::health::Notice> notices;  ///< what happened to devices, for Events
  /// Compares what is shown, and of the notices whether there are new ones.
  bool operator==(const ClusterUpdate&) const;
};

/// Lives on the executor of `api`, which is a thread of its own, and is called on it.
class ClusterAdapter {
 public:
  struct Options {
    std::string node;
    std::string namespace_name;
    api::ClusterConfig config;
    api::LabelsConfig labels;
    std::string counters_map = {};                ///< api::TelemetryConfig::counters_map
    std::vector<std::string> holder_labels = {};  ///< api::TelemetryConfig::holder_labels
    std::vector<std::string> requests = {};  ///< keys of the Node's labels by which users ask for
                                             ///< something
    std::map<std::string, std::string> clients = {};  ///< ClientLabels
  };
  struct Callbacks {
    /// The remote configuration, whenever it changes. Called on the adapter's executor; the callee
    /// posts it to its own.
    std::function<void(const api::RemoteConfig&)> remote;
    /// Whether NFD labels this node (annotation nfd.node.kubernetes.io/feature-labels), whenever
    /// that changes.
    std::function<void(bool)> nfd;
    /// Those of Options::requests and clients that the Node has, with their values, whenever they
    /// change.
    /// Called on the adapter's executor.
    std::function<void(const std::map<std::string, std::string>&)> requests = {};
    /// The ConfigMap that selects the shown counters, whenever it changes; its text is that of a
    /// counters file. Called on the adapter's executor.
    std::function<void(const api::RemoteConfig&)> counters = {};
    /// The node's pods with the requested labels, whenever they change; null, once, if no labels
    /// are requested. Called on the adapter's executor.
    std::function<void(std::shared_ptr<const PodsOfNode>)> pods = {};
    /// The adapter's state for status: connected or why not, which RBAC rule is missing, writes so
    /// far.
    std::function<void(const api::AllocatorReport&)> state;
  };

  ClusterAdapter(protocol::kube::Api& api, Options options, Callbacks callbacks);
  ~ClusterAdapter();

  void Start();

  /// Publishes the current state. Writes only differences, and only once the previous write is
  /// known to have arrived.
  void Show(ClusterUpdate update);

  /// The kubelet has these resources: name → capacity and allocatable, as it will report them
  /// itself. Updates the Node object at once. An empty map cancels an update that is not yet
  /// written, since the previous amounts may be outdated.
  void ShowKubeletHas(const adapter::kubelet::KubeletAmounts& resources);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::adapter::cluster
