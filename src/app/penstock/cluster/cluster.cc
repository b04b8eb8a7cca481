#include "app/penstock/cluster/cluster.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "api/node_state.h"
#include "protocol/kube/client.h"
#include "protocol/kube/credentials/access.h"

namespace penstock::app {

using base::Result;
using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::Resource;

namespace {

constexpr int kMaxPages = 1000;  // limit for a server whose lists never end

bool IsUnreached(const base::Error& error) {
  return error.code() == base::Code::kUnavailable || error.code() == base::Code::kDeadlineExceeded;
}

}  // namespace

void AddClusterOptions(Verb& verb, ClusterOptions& options) {
  verb.options.push_back(Value("--kubeconfig", &options.kubeconfig, "FILE",
                               "kubeconfig file of the cluster [as kubectl finds it]")
                             .Group("Cluster"));
  verb.options.push_back(
      Value("--context", &options.context, "NAME", "context of the kubeconfig [the current one]")
          .Group("Cluster"));
}

ClusterOptions Completed(ClusterOptions options, const Common& common) {
  const auto given = common.settings.flags.find("--kubeconfig");
  if (options.kubeconfig.empty() && given != common.settings.flags.end())
    options.kubeconfig = given->second;
  return options;
}

std::string ForProgram(std::string_view text, const std::string& program) {
  constexpr std::string_view kPlace = "PROGRAM";
  std::string with(text);
  for (std::size_t at = 0; (at = with.find(kPlace, at)) != std::string::npos; at += program.size())
    with.replace(at, kPlace.size(), program);
  return with;
}

Result<Cluster> FindCluster(const ClusterOptions& options) {
  const auto access = protocol::kube::FindAccess(options.kubeconfig, options.context);
  if (!access.ok()) {
    const bool none = access.error().code() == base::Code::kNotFound;
    return base::Error(
        access.error().code(),
        access.error().message() +
            (none ? "; pass --kubeconfig, or query this machine's own agent with `penstock status`"
                  : ""));
  }
  return Cluster{[access = *access](ApiCall call) -> Result<ApiResponse> {
                   auto answer = protocol::kube::CallAndWait(access, std::move(call));
                   if (answer.ok() || !IsUnreached(answer.error())) return answer;
                   return base::Error(answer.error().code(),
                                      answer.error().message() + " (from " + access.from + ")");
                 },
                 access->namespace_name.empty() ? "default" : access->namespace_name};
}

namespace kinds {
Resource Nodes() { return {"", "v1", "nodes"}; }
Resource NodeStates() {
  return {std::string(api::kNodeStateGroup), std::string(api::kNodeStateVersion),
          std::string(api::kNodeStatePlural)};
}
Resource Pods() { return {"", "v1", "pods"}; }
Resource NodeFeatures() { return {"nfd.k8s-sigs.io", "v1alpha1", "nodefeatures"}; }
}  // namespace kinds

Result<bool> HasKind(const ApiServer& server, const Resource& kind) {
  const std::string path =
      kind.group.empty() ? "/api/" + kind.version : "/apis/" + kind.group + "/" + kind.version;
  const auto group = protocol::kube::Parse(server({.path = path}));
  if (!group.ok() && group.error().code() == base::Code::kNotFound) return false;
  if (!group.ok()) return group.error();
  const Json& resources = analysis::At(*group, {"resources"});
  return resources.is_array() &&
         std::any_of(resources.begin(), resources.end(), [&kind](const Json& one) {
           return analysis::TextAt(one, {"name"}) == kind.plural;
         });
}

Result<Json> GetObject(const ApiServer& server, const Resource& kind,
                       std::string_view namespace_name, std::string_view name) {
  return protocol::kube::Parse(server(protocol::kube::Get(kind, namespace_name, name)));
}

Result<std::vector<Json>> ListObjects(const ApiServer& server, const Resource& kind,
                                      std::string_view namespace_name,
                                      std::map<std::string, std::string> query) {
  query["limit"] = "500";
  std::vector<Json> all;
  for (int page = 0; page < kMaxPages; ++page) {
    ASSIGN(const Json list,
           protocol::kube::Parse(server({.path = kind.Path(namespace_name), .query = query})));
    const Json& items = analysis::At(list, {"items"});
    if (!items.is_array())
      return base::Error(base::Code::kDataLoss,
                         kind.Path(namespace_name) + ": the response is not a list");
    for (const Json& item : items)
      if (item.is_object()) all.push_back(item);
    const std::string next = analysis::TextAt(list, {"metadata", "continue"});
    if (next.empty()) return all;
    query["continue"] = next;
  }
  return base::Error(base::Code::kDataLoss, kind.Path(namespace_name) + ": the list does not end");
}

}  // namespace penstock::app
