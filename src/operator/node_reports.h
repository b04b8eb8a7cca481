// Watches what agents report of their nodes (NodeState), and says by it, by the labels of the Nodes
// and by the agents' pods which nodes are ready.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "operator/fleet_state.h"
#include "operator/node_marker.h"
#include "operator/pod_troubles.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class NodeReports {
 public:
  struct Callbacks {
    /// Of a node; null: there is no report of it any more. Reduced (ReducedNodeState).
    std::function<void(const std::string& node, const nlohmann::json* report)> changed;
    std::function<void()> synced;
    std::function<void(const base::Status& why)> problem;  ///< of reading; ok once it is over
  };
  /// `nodes` and `agents` must outlive this.
  NodeReports(protocol::kube::Api& api, const NodeMarker& nodes, const PodTroubles& agents,
              Callbacks callbacks);
  ~NodeReports();

  /// Begins to read: call it once the server knows the kind.
  void Start();
  bool synced() const;       ///< false before Start
  std::size_t size() const;  ///< number of reports
  /// Of which there is a report: each of them has, or has had, an agent.
  const std::set<std::string>& nodes() const;

  /// Whether some node reports devices of a vendor.
  bool has_devices() const;
  /// The nodes whose devices are held.
  std::vector<std::string> Holders() const;

  // How nodes are, where `spec` is in force.

  /// Those whose labels show devices.
  FleetState Labelled(const api::PenstockSpec& spec) const;
  /// These, and those that report devices.
  FleetState All(const api::PenstockSpec& spec) const;
  /// Those that report devices of this vendor.
  VendorNodes OfVendor(const std::string& vendor, const api::PenstockSpec& spec) const;
  /// Those on which pods can start, also where no label that is known here shows the devices that
  /// an agent serves.
  std::set<std::string> Ready(const api::PenstockSpec& spec) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
