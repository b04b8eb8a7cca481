// The API server as the tool's verbs ask it: a call and its answer, objects, lists. Waits for each answer; knows no verb.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/penstock/verbs.h"
#include "base/core/result.h"
#include "edge/kube/api.h"

namespace CLI {
class App;
}

namespace penstock::app {

using edge::kube::Json;

/// Which cluster, and which node of it.
struct ClusterOptions {
  std::string kubeconfig;  ///< empty: as kubectl finds one
  std::string context;     ///< empty: the current one
  std::string node;        ///< empty: all
};

/// Adds --kubeconfig and --context. `options` must outlive the parsing.
void AddClusterOptions(CLI::App& app, ClusterOptions& options);

/// With --kubeconfig as it may have been given before the verb, for the whole program.
ClusterOptions Completed(ClusterOptions options, const Common& common);

/// A text for help, with PROGRAM in it, for the name by which people call the program.
std::string ForProgram(std::string_view text, const std::string& program);

/// Answers a call; blocks. A function, so that tests can be the server.
using Server = std::function<base::Result<edge::kube::Answer>(edge::kube::Call)>;

/// An API server, and the namespace of whoever asks.
struct Cluster {
  Server server;
  std::string namespace_name;  ///< of the context, or of the pod
};

/// The one that a kubeconfig, or the pod that this runs in, names. An error says what was looked for and what to do.
base::Result<Cluster> FindCluster(const ClusterOptions& options);

/// Kinds of objects that are asked for here.
namespace kinds {
edge::kube::Resource Nodes();
edge::kube::Resource NodeStates();
edge::kube::Resource Pods();
edge::kube::Resource NodeFeatures();
}  // namespace kinds

/// One object. kNotFound where there is none.
base::Result<Json> GetObject(const Server& server, const edge::kube::Resource& kind, std::string_view namespace_name,
                             std::string_view name);

/// All objects of a kind, page by page; of all namespaces where none is given. `query`: "labelSelector", "fieldSelector". kNotFound where
/// the server has no such kind.
base::Result<std::vector<Json>> ListObjects(const Server& server, const edge::kube::Resource& kind, std::string_view namespace_name = "",
                                            std::map<std::string, std::string> query = {});

// Reading objects that somebody else made: what is missing or of another type is empty.

/// The text at a path of keys, e.g. {"metadata", "name"}.
std::string TextAt(const Json& object, std::initializer_list<std::string_view> path);

/// What is at a path of keys; null where there is nothing.
const Json& At(const Json& object, std::initializer_list<std::string_view> path);

/// The texts of a map, e.g. labels.
std::map<std::string, std::string> TextsAt(const Json& object, std::initializer_list<std::string_view> path);

}  // namespace penstock::app
