// `penstock nodes`, `policies`, `explain` and `status --node`: query the API server and print text.
// Change nothing.
#pragma once

#include <string>

#include "app/penstock/cluster/cluster.h"
#include "app/penstock/common/verbs.h"

namespace penstock::app {

/// The output of the verbs. kFailedPrecondition where the cluster does not have the kind NodeState;
/// kNotFound where it has no such node.
base::Result<std::string> NodesText(const ApiServer& server, const Common& common);
/// One line for each policy; all of one where a name is given, with or without its resource
/// ("clusterpolicy/cluster-policy"). kFailedPrecondition where the cluster has none of the kinds.
base::Result<std::string> PoliciesText(const ApiServer& server, const Common& common,
                                       const std::string& name);
base::Result<std::string> ExplainText(const ApiServer& server, const Common& common,
                                      const std::string& node);

/// Formats a node like `penstock status` on the node itself; all nodes where none is given.
base::Result<std::string> NodeStatusText(const ApiServer& server, const Common& common,
                                         const std::string& node);

/// The names of the cluster's nodes, for shell completion; empty where the cluster cannot be
/// queried.
std::vector<std::string> NodeNames(const ClusterOptions& options);

/// The report of the options' node; of all nodes where none is given.
base::Result<command::Shown> NodeStatus(const Common& common, const ClusterOptions& options);

}  // namespace penstock::app
