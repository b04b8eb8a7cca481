// `penstock nodes`, `explain` and `status --node`: questions to the API server, answered as text. Changes nothing.
#pragma once

#include <string>

#include "app/penstock/cluster.h"
#include "app/penstock/verbs.h"

namespace penstock::app {

/// What the verbs print, from a server. kFailedPrecondition where the cluster has no NodeState kind; kNotFound where it has no such node.
base::Result<std::string> NodesText(const Server& server, const Common& common);
base::Result<std::string> ExplainText(const Server& server, const Common& common, const std::string& node);

/// As `penstock status` shows it on the node itself; of all nodes where none is given.
base::Result<std::string> NodeStatusText(const Server& server, const Common& common, const std::string& node);

/// The names of the cluster's nodes, for completion; none where it cannot be asked.
std::vector<std::string> NodeNames(const ClusterOptions& options);

/// The verb that shows a node's report; returns the exit status.
int NodeStatus(const Common& common, const ClusterOptions& options);

/// Adds nodes, explain, migrate and cleanup. `program` is how people call it: "penstock", "kubectl penstock".
void AddClusterVerbs(CLI::App& app, const Common& common, const std::string& program, int& exit_code);

}  // namespace penstock::app
