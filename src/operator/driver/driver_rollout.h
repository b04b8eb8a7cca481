// Keeps the nodes' drivers as they are wanted: watches Nodes and pods, and carries out the plan
// (rollout_plan.h) node by node.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/cluster/penstock.h"
#include "operator/driver/rollout_plan.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class DriverRollout {
 public:
  struct Callbacks {
    std::function<void()> due;  ///< there is something for Turn
    /// There is something for Turn then, if nothing happens before.
    std::function<void(base::Duration delay)> due_after;
    std::function<void(const base::Status& why)> problem;  ///< of reading; ok once it is over
    /// A DaemonSet of ours as it is, or null.
    std::function<const nlohmann::json*(const std::string& name)> daemon_set;
    std::function<void(nlohmann::json& object)> own;  ///< sets the owner of an object of ours
  };
  /// `host`: of the Events about Nodes.
  DriverRollout(protocol::kube::Api& api, const std::string& host, Callbacks callbacks);
  ~DriverRollout();

  /// Sets what is wanted. Without drivers, what was written to nodes is taken back. `unreadable`:
  /// drivers whose objects cannot be read, so that their nodes stay as they are.
  void Want(const api::PenstockSpec& spec, std::set<std::string> unreadable,
            DriverInstallation installation);

  /// Sets what the node's agent reports; empty: it has not looked for a driver, or is gone.
  void SetReport(const std::string& node, const std::optional<DriverReport>& report);

  /// Decides again, and begins to write to the nodes. False: not everything was read yet.
  bool Turn();

  /// Of the last turn.
  const RolloutPlan& plan() const;
  /// Whether no node has anything of ours that is not wanted, or lacks something; false before a
  /// turn about the drivers that are wanted now.
  bool settled() const;
  std::uint64_t writes() const;        ///< of nodes, evictions and deletions, since the start
  std::uint64_t check_writes() const;  ///< of pods that check images
  std::size_t refused() const;         ///< pods that are there, and could not be evicted or deleted
  /// Errors of the last writes, by their texts.
  std::vector<std::string> problems() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
