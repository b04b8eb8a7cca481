// Connects the agent to the API server: a thread of its own with the client and the cluster's
// adapter.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "adapter/cluster/cluster_adapter.h"
#include "api/config/node_config.h"
#include "base/lifetime.h"
#include "os/loop.h"
#include "protocol/kube/client.h"

namespace penstock::app {

/// Constructed, called and destroyed on the control loop, on which it also calls back. Retries
/// while credentials do not exist yet (a token that is mounted late).
class ClusterConnection {
 public:
  struct Callbacks {
    std::function<adapter::cluster::ClusterUpdate()> update;
    std::function<void(const api::RemoteConfig&)> remote;
    std::function<void(bool labels_this_node)> nfd;
    std::function<void(const api::RemoteConfig&)> counters;
    std::function<void(const std::map<std::string, std::string>&)> requests;
    std::function<void(std::shared_ptr<const adapter::cluster::PodsOfNode>)> pods;
  };

  ClusterConnection(base::Executor& control, std::string node, const api::NodeConfig& config,
                    Callbacks callbacks);
  ~ClusterConnection();

  /// Whether the configuration needs an API server: in a pod, or if a kubeconfig is given.
  static bool Wanted(const api::ClusterConfig& config);

  /// Applies changed settings of labels, of the cluster, and of telemetry as far as the adapter
  /// uses it; the settings of the connection itself stay.
  void Reconfigure(const api::NodeConfig& config);

  /// The state of the node may have changed. Changes at the same time are sent as one update.
  void ScheduleUpdate();

  /// Passes on the kubelet's amounts. They are dropped while the cluster is not connected; the
  /// kubelet adapter's next report then replaces them.
  void ShowKubeletHas(const adapter::kubelet::KubeletAmounts& resources);

  const api::AllocatorReport& report() const { return report_; }

  /// Requests to the API server so far; at most ten seconds old.
  const protocol::kube::Requests& requests() const { return requests_; }

 private:
  // On the cluster's loop.
  void Connect();
  void Connected(protocol::kube::ClusterAccess access);
  void OpenAdapter();
  void CountRequests();
  void WriteReport(const api::AllocatorReport& report);
  /// Runs a function on the control loop, unless this object is destroyed by then.
  void OnControl(std::function<void(ClusterConnection&)> function);

  base::Executor& control_;
  const std::string node_;
  const Callbacks callbacks_;
  bool begins_ = true;  // on the cluster's thread: no state was reported yet
  api::AllocatorReport report_{.name = "cluster", .state = "waiting", .reason = "connecting"};
  protocol::kube::Requests requests_;
  bool reporting_ = false;
  base::Lifetime lifetime_;  // of functions on the control loop; outlives the cluster's loop

  os::Loop loop_{"cluster"};
  // The members below are used on the cluster's loop.
  api::NodeConfig config_;
  std::string namespace_;
  std::optional<protocol::kube::Client> client_;
  std::optional<adapter::cluster::ClusterAdapter> adapter_;
  // The last update, for an adapter that does not exist yet.
  std::optional<adapter::cluster::ClusterUpdate> update_;
};

}  // namespace penstock::app
