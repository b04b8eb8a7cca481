// The cluster's door: what the API server is told of this node (labels, events, its status, its penstock.io object), and the wishes it has
// for it (a ConfigMap's key, chosen by a label). Decides nothing about devices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "api/report.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "door/cluster_pods.h"
#include "door/kubelet_list.h"
#include "edge/kube/api.h"
#include "node/health/status.h"

namespace penstock::door {

/// A configuration that the cluster wishes for this node; `text` empty where none applies (then the agent's own is in force).
struct WishedConfig {
  std::string origin;  ///< "ConfigMap gpu-operator/time-slicing-config, key a100-40gb (label nvidia.com/device-plugin.config)"
  std::string text;
  std::string problem;  ///< why there is none although one was wished for: then what is in force stays
  bool operator==(const WishedConfig&) const = default;
};

/// What the cluster is told; values of one moment.
struct ClusterNews {
  api::Report report;
  std::optional<std::map<std::string, std::string>> labels;  ///< nothing before the first look at the devices
  std::vector<node::health::Notice> notices;                 ///< what happened to devices, for Events
  bool operator==(const ClusterNews&) const;
};

/// Lives on the api's executor, a thread of its own; Show may be called from any thread.
class ClusterDoor {
 public:
  struct Options {
    std::string node;
    std::string namespace_name;
    api::ClusterConfig config;
    api::LabelsConfig labels;
    std::string counters_map = {};                ///< api::TelemetryConfig::counters_map
    std::vector<std::string> holder_labels = {};  ///< api::TelemetryConfig::holder_labels
  };
  struct Callbacks {
    /// The wish, whenever it changes. On the door's executor: the callee posts it on.
    std::function<void(const WishedConfig&)> wished;
    /// Whether NFD labels this node (annotation nfd.node.kubernetes.io/feature-labels), whenever it changes.
    std::function<void(bool)> nfd;
    /// What the ConfigMap says of which counters are shown, whenever it changes; its text is the file's. Likewise.
    std::function<void(const WishedConfig&)> counters = {};
    /// The node's pods with the labels that are wanted, whenever they change; null, once, where none are wanted. Likewise.
    std::function<void(std::shared_ptr<const PodsOfNode>)> pods = {};
    /// The door's state for status: connected or why not, which RBAC rule is missing, writes so far.
    std::function<void(const api::DoorReport&)> state;
  };

  ClusterDoor(edge::kube::Api& api, Options options, Callbacks callbacks);
  ~ClusterDoor();  ///< on the executor

  void Start();

  /// What there is to tell now. Only differences are written, and only once what was written before is known to have arrived.
  void Show(ClusterNews news);

  /// The kubelet has this list: resource → capacity and allocatable, as it will say itself. Brings the Node object up to date at once.
  /// Empty: what it had may not hold any more, and is not written if it has not been.
  void ShowKubeletHas(const KubeletAmounts& resources);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
