// The agent's way to the API server: a thread of its own with the client and the cluster's door. Construction only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/node_config.h"
#include "door/cluster.h"
#include "edge/kube/client.h"
#include "os/loop.h"

namespace penstock::app {

/// Constructed, told and destroyed on the control loop, where it also calls back. Credentials that are not there yet (a token that is
/// mounted late) are looked for again.
class ClusterLine {
 public:
  struct Callbacks {
    std::function<door::ClusterNews()> news;
    std::function<void(const door::WishedConfig&)> wished;
    std::function<void(bool labels_this_node)> nfd;
    std::function<void(const door::WishedConfig&)> counters;
    std::function<void(std::shared_ptr<const door::PodsOfNode>)> pods;
  };

  ClusterLine(base::Executor& control, std::string node, const api::NodeConfig& config, Callbacks callbacks);
  ~ClusterLine();

  /// Whether a configuration wants an API server: in a pod, or where a kubeconfig is named.
  static bool Wanted(const api::ClusterConfig& config);

  /// Another configuration of labels, cluster and what telemetry needs of it; what the connection itself needs stays as it was.
  void Reconfigure(const api::NodeConfig& config);

  /// There may be news. What changes together is told together.
  void TellSoon();

  /// Of this moment: where the cluster is not reached yet, the kubelet's own next tick has to do.
  void ShowKubeletHas(const door::KubeletAmounts& resources);

  const api::DoorReport& report() const { return report_; }

  /// Asked of the API server so far; at most ten seconds old.
  const edge::kube::Requests& requests() const { return requests_; }

 private:
  // On the cluster's loop.
  void Connect();
  void Connected(edge::kube::Access access);
  void OpenDoor();
  void CountRequests();
  void TellReport(const api::DoorReport& report);
  /// Runs a function on the control loop, if this is still there then.
  void OnControl(std::function<void(ClusterLine&)> function);

  base::Executor& control_;
  const std::string node_;
  const Callbacks callbacks_;
  bool begins_ = true;  // on the line's own thread: nothing was told yet
  api::DoorReport report_{.name = "cluster", .state = "waiting", .reason = "connecting"};
  edge::kube::Requests requests_;
  bool telling_ = false;
  const std::shared_ptr<ClusterLine*> self_;  // null inside once destroyed: for functions on their way to the control loop

  os::Loop loop_{"cluster"};
  // On the cluster's loop, all of them.
  api::NodeConfig config_;
  std::string namespace_;
  std::optional<edge::kube::Client> client_;
  std::optional<door::ClusterDoor> door_;
  std::optional<door::ClusterNews> news_;  // the last ones, for a door that is not there yet
};

}  // namespace penstock::app
