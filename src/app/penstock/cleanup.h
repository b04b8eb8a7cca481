// `penstock cleanup`: takes away what Penstock wrote to a cluster, or left on one machine. Removes nothing that somebody else made.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "app/penstock/cluster.h"
#include "app/penstock/verbs.h"
#include "base/core/clock.h"

namespace penstock::app {

struct CleanupOptions {
  ClusterOptions cluster;
  bool in_cluster = false, on_host = false;
  bool dry_run = false;
  std::string namespace_name;  ///< of NodeFeature objects; empty: the context's or the pod's own
  std::string after;           ///< "namespace/name" of a DaemonSet that has to be ready first; empty: none
  std::string timeout = "60s";
  bool linger = false;  ///< on the host: once done, wait to be ended
  bool check = false;   ///< on the host: only say whether something is left
};

/// What was taken away (a sentence each), what is worth knowing, and what could not be done.
struct CleanupOutcome {
  std::vector<std::string> removed, remarks, failures;
};

/// Labels (and annotations) of every Node that a field manager of ours owns alone, NodeState objects, NodeFeature objects of ours. Nothing
/// there is nothing to do. With dry_run the server is asked what it would do.
CleanupOutcome CleanCluster(const Server& server, const CleanupOptions& options);

/// Waits until a DaemonSet's pods are ready, or it is not there (any more). A remark where that did not come true in time.
using Sleep = std::function<void(base::Duration)>;
std::vector<std::string> WaitForDaemonSet(const Server& server, const std::string& name, base::Duration timeout, const base::Clock& clock,
                                          const Sleep& sleep);

/// What of ours lies in the folders of an agent: files, then the folders themselves where nothing else is in them.
std::vector<std::string> LeftOnHost(const api::NodeConfig& config);

/// Removes that. kFailedPrecondition where an agent runs, naming its process.
base::Result<CleanupOutcome> CleanHost(const api::NodeConfig& config, bool dry_run);

/// Adds the verb; with `kubectl` it is the cluster's alone.
void AddCleanup(CLI::App& app, const Common& common, bool kubectl, int& exit_code);

}  // namespace penstock::app
