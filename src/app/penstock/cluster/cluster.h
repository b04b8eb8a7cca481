// A blocking client of the API server for all verbs: calls, objects, lists.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "analysis/objects.h"
#include "app/penstock/common/verbs.h"
#include "base/core/result.h"
#include "protocol/kube/api.h"

namespace penstock::app {

using protocol::kube::Json;

/// How often -w lists the objects of a cluster.
inline constexpr base::Duration kWatchInterval = std::chrono::seconds(5);

/// The cluster, and one of its nodes.
struct ClusterOptions {
  std::string kubeconfig;  ///< empty: found as kubectl finds it
  std::string context;     ///< empty: the current context
  std::string node;        ///< empty: all nodes
};

/// Adds --kubeconfig and --context. `options` must outlive the parsing.
void AddClusterOptions(command::Verb& verb, ClusterOptions& options);

/// Returns the options with --kubeconfig, where it was given before the verb for the whole program.
ClusterOptions Completed(ClusterOptions options, const Common& common);

/// Replaces PROGRAM in a help text by the name under which the program was called.
std::string ForProgram(std::string_view text, const std::string& program);

/// Performs a call and blocks. A function, so that tests can replace the server.
using ApiServer = std::function<base::Result<protocol::kube::ApiResponse>(protocol::kube::ApiCall)>;

/// An API server, and the caller's namespace.
struct Cluster {
  ApiServer server;
  std::string namespace_name;  ///< of the context, or of the pod
};

/// Returns the cluster of a kubeconfig, or of the pod that this program runs in. Errors say where a
/// configuration was looked for and what to do.
base::Result<Cluster> FindCluster(const ClusterOptions& options);

/// The kinds of objects that the verbs read.
namespace kinds {
protocol::kube::Resource Nodes();
protocol::kube::Resource NodeStates();
protocol::kube::Resource Pods();
protocol::kube::Resource NodeFeatures();
}  // namespace kinds

/// Whether the server has the kind. Every user may list the API's kinds; listing objects of an
/// absent kind may be refused as forbidden instead of not found.
base::Result<bool> HasKind(const ApiServer& server, const protocol::kube::Resource& kind);

/// Reads one object. kNotFound where it does not exist.
base::Result<Json> GetObject(const ApiServer& server, const protocol::kube::Resource& kind,
                             std::string_view namespace_name, std::string_view name);

/// Reads all objects of a kind, page by page; of all namespaces where none is given. `query`:
/// "labelSelector", "fieldSelector". kNotFound where the server does not have the kind.
base::Result<std::vector<Json>> ListObjects(const ApiServer& server,
                                            const protocol::kube::Resource& kind,
                                            std::string_view namespace_name = "",
                                            std::map<std::string, std::string> query = {});

}  // namespace penstock::app
