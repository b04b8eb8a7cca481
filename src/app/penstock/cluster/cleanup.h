// `penstock cleanup`: removes what Penstock wrote to a cluster or left on one machine, and nothing
// that others created.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "app/penstock/cluster/cluster.h"
#include "app/penstock/common/verbs.h"
#include "base/core/clock.h"

namespace penstock::app {

struct CleanupOptions {
  ClusterOptions cluster;
  bool in_cluster = false, on_host = false, policies = false;
  bool dry_run = false;
  std::string namespace_name;  ///< of NodeFeature objects; empty: the context's or the pod's own
  std::string after;  ///< "namespace/name" of a DaemonSet to wait for first, until it is ready;
                      ///< empty: none
  std::string timeout = "60s";
  std::string release;          ///< "namespace/name" of a helm release, whose policies are deleted
  bool after_operator = false;  ///< in the cluster: also what the operator left
  bool crds = false;            ///< ... and the CRDs, with all their objects
  bool linger = false;          ///< on the host: when done, wait to be terminated
  bool check = false;           ///< on the host: only report whether something is left
  bool keep_state = false;      ///< on the host: what an agent keeps for its successor stays
};

/// What was removed (one sentence each), remarks, and failures.
struct CleanupOutcome {
  std::vector<std::string> removed, remarks, failures;
};

/// Removes the labels and annotations of every Node that only Penstock's field managers own, its
/// condition, NodeState objects, and Penstock's NodeFeature objects. Succeeds where there are none.
/// With dry_run the server performs a dry run.
void CleanCluster(const ApiServer& server, const CleanupOptions& options, CleanupOutcome& outcome);

/// Waits until a DaemonSet's pods are ready or the DaemonSet does not exist. Returns a remark where
/// the timeout passes first.
using Sleep = std::function<void(base::Duration)>;
std::vector<std::string> WaitForDaemonSet(const ApiServer& server, const std::string& name,
                                          base::Duration timeout, const base::Clock& clock,
                                          const Sleep& sleep);

/// Returns Penstock's files in the folders of an agent, then those folders that contain nothing
/// else.
std::vector<std::string> LeftOnHost(const api::NodeConfig& config);

/// Removes these, and starts what an agent has stopped of the host's services. kFailedPrecondition
/// where an agent runs; the error names its process.
base::Result<CleanupOutcome> CleanHost(const api::NodeConfig& config, bool dry_run);

/// Returns what others see of an agent that has ended: its record of what it changed in container
/// engines, the files by which other programs wait for the node, its labels for NFD, and its CDI
/// specifications, unless devices are held: containers that hold them start again only with these.
std::vector<std::string> SeenOnHost(const api::NodeConfig& config);

/// Removes these, and starts what an agent has stopped of the host's services. What it keeps for
/// its successor stays, and so do its programs: `penstock-runtime` ends the containers that it
/// started. Errors as above.
base::Result<CleanupOutcome> CleanSeen(const api::NodeConfig& config, bool dry_run);

}  // namespace penstock::app
