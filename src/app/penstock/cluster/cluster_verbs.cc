#include "app/penstock/cluster/cluster_verbs.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <nlohmann/json.hpp>

#include "api/compat/policy_kinds.h"
#include "api/node_state.h"
#include "app/penstock/cluster/explain_show.h"
#include "app/penstock/cluster/nodes_show.h"
#include "app/penstock/cluster/policies_show.h"
#include "app/penstock/local/show.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::app {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr char kAgentPods[] = "app.kubernetes.io/name=penstock";

constexpr char kNodesExamples[] = R"(PROGRAM nodes
PROGRAM nodes -o wide
PROGRAM nodes -w                # again whenever it changes
PROGRAM nodes -o json | jq -r '.nodes[] | select(.problems != []) | .name')";

constexpr char kPoliciesExamples[] = R"(PROGRAM policies
PROGRAM policies cluster-policy   # conditions, and each node that is not ready
PROGRAM policies -w
PROGRAM policies -o json | jq -r '.policies[] | select(.status.state != "ready") | .name')";

constexpr char kExplainExamples[] = R"(PROGRAM explain gpu-1
PROGRAM explain gpu-1 -o json | jq -r '.findings[].next'
PROGRAM explain --pod ml/train    # which label no node has, and the nearest value)";

base::WallTime Now() { return std::chrono::system_clock::now(); }

Error NoKind() {
  return {Code::kFailedPrecondition,
          "this cluster has no NodeState objects (nodestates.penstock.io): install the chart with "
          "penstock.nodeState.crd=true, or run `penstock status` on a node"};
}

Error NoNode(const std::string& node, const std::vector<std::string>& names) {
  const auto near = base::Nearest(node, names);
  return {Code::kNotFound, "the cluster has no node \"" + node + "\"" +
                               (near ? "; did you mean \"" + *near + "\"?" : "")};
}

/// Reads all reports; a specific error where the kind is missing.
Result<std::vector<Json>> Reports(const ApiServer& server) {
  auto reports = ListObjects(server, kinds::NodeStates());
  if (!reports.ok() && reports.error().code() == Code::kNotFound) return NoKind();
  return reports;
}

/// The agent's pods, which help to explain a missing report; empty where they cannot be read.
std::vector<Json> AgentPods(const ApiServer& server,
                            std::map<std::string, std::string> query = {}) {
  query["labelSelector"] = kAgentPods;
  return ListObjects(server, kinds::Pods(), "", std::move(query)).value_or({});
}

std::vector<std::string> NamesOf(const std::vector<Json>& objects) {
  std::vector<std::string> names;
  for (const Json& object : objects)
    names.push_back(analysis::TextAt(object, {"metadata", "name"}));
  return names;
}

/// One node's objects. The caller decides which of them must exist.
struct OneNode {
  analysis::NodeView view;
  bool kind_missing = false;
};

Result<OneNode> ReadNode(const ApiServer& server, const std::string& name) {
  OneNode one;
  std::vector<Json> nodes, states;
  auto node = GetObject(server, kinds::Nodes(), "", name);
  if (node.ok()) {
    nodes.push_back(*std::move(node));
  } else if (node.error().code() != Code::kNotFound) {
    return node.error();
  }
  auto state = GetObject(server, kinds::NodeStates(), "", name);
  if (state.ok()) {
    states.push_back(*std::move(state));
  } else if (state.error().code() == Code::kNotFound) {
    // A missing object and a missing kind both give kNotFound; a list distinguishes them.
    auto any =
        ListObjects(server, kinds::NodeStates(), "", {{"fieldSelector", "metadata.name=" + name}});
    one.kind_missing = !any.ok() && any.error().code() == Code::kNotFound;
  } else {
    return state.error();
  }
  if (nodes.empty() && states.empty()) {
    const auto all = ListObjects(server, kinds::Nodes());
    return NoNode(name, all.ok() ? NamesOf(*all) : std::vector<std::string>{});
  }
  one.view = analysis::JoinNodes(nodes, states,
                                 AgentPods(server, {{"fieldSelector", "spec.nodeName=" + name}}))
                 .front();
  return one;
}

/// The pods of a node and those without a node, as far as they can be read.
analysis::PodsView PodsOf(const ApiServer& server, const analysis::NodeView& node) {
  const auto resources = analysis::ResourceNames(node);
  if (resources.empty()) return {};
  std::vector<Json> pods;
  for (const std::string& on : {node.name, std::string()}) {
    auto some = ListObjects(server, kinds::Pods(), "", {{"fieldSelector", "spec.nodeName=" + on}});
    if (!some.ok()) return {.unknown = some.error().message()};
    for (Json& pod : *some) pods.push_back(std::move(pod));
  }
  return analysis::ReadPods(pods, node.name, resources);
}

std::string StatusOf(const analysis::NodeView& node, const Common& common) {
  if (!node.report) return base::Join(analysis::ProblemsOf(node), "; ") + "\n";
  std::string text = ShowStatus(*node.report, common.wide(), common.style(), Now());
  const std::string age = AgeOf(node.reported_at, Now());
  return age.empty() ? text : text + "\nnothing has changed for " + age + "\n";
}

Result<std::string> StatusOfOne(const ApiServer& server, const Common& common,
                                const std::string& name) {
  ASSIGN(const OneNode one, ReadNode(server, name));
  if (one.kind_missing) return NoKind();
  if (!one.view.report)
    return Error(Code::kNotFound,
                 "node " + name + ": " + base::Join(analysis::ProblemsOf(one.view), "; "));
  return common.json() ? api::NodeDocument(*one.view.report) : StatusOf(one.view, common);
}

bool MayBeLeftOut(const api::compat::PolicyKind& kind, const Error& error) {
  return error.code() == Code::kNotFound ||
         (error.code() == Code::kPermissionDenied && kind.namespaced);
}

/// All policies whose kinds the cluster has, in the order of the kinds; of those in namespaces all
/// that may be listed, since the operator reads the ones in its own.
Result<std::vector<PolicyToShow>> Policies(const ApiServer& server) {
  std::vector<PolicyToShow> policies;
  bool any_kind = false;
  for (const api::compat::PolicyKind& kind : api::compat::PolicyKinds()) {
    auto objects = ListObjects(server, {kind.group, kind.version, kind.plural});
    if (!objects.ok() && MayBeLeftOut(kind, objects.error())) continue;
    if (!objects.ok()) return objects.error();
    any_kind = true;
    for (Json& object : *objects) policies.push_back({base::ToLower(kind.kind), std::move(object)});
  }
  if (!any_kind)
    return Error(Code::kFailedPrecondition,
                 "this cluster has no ClusterPolicy, Penstock, NVIDIADriver or DeviceConfig "
                 "objects: they come with the operator (chart gpu-operator)");
  return policies;
}

/// Connects to the cluster, and calls the function with it.
Result<Shown> Ask(const ClusterOptions& options,
                  const std::function<Result<std::string>(const ApiServer&)>& text_of) {
  ASSIGN(const Cluster cluster, FindCluster(options));
  ASSIGN(const std::string text, text_of(cluster.server));
  return Shown(text);
}

}  // namespace

Result<std::string> NodesText(const ApiServer& server, const Common& common) {
  ASSIGN(const auto nodes, ListObjects(server, kinds::Nodes()));
  ASSIGN(const auto states, Reports(server));
  const auto views = analysis::JoinNodes(nodes, states, AgentPods(server));
  return common.json() ? NodesToJson(views)
                       : ShowNodes(views, common.wide(), common.style(), Now());
}

Result<std::string> PoliciesText(const ApiServer& server, const Common& common,
                                 const std::string& name) {
  ASSIGN(std::vector<PolicyToShow> policies, Policies(server));
  if (!name.empty()) {
    std::vector<std::string> names;
    std::vector<PolicyToShow> chosen;
    for (PolicyToShow& policy : policies) {
      names.push_back(analysis::TextAt(policy.object, {"metadata", "name"}));
      if (names.back() == name || policy.resource + "/" + names.back() == name)
        chosen.push_back(std::move(policy));
    }
    if (chosen.empty()) {
      const auto near = base::Nearest(name, names);
      return Error(Code::kNotFound, "the cluster has no policy \"" + name + "\"" +
                                        (near ? "; did you mean \"" + *near + "\"?" : ""));
    }
    policies = std::move(chosen);
  }
  if (common.json()) return PoliciesToJson(policies);
  if (policies.empty())
    return std::string("the cluster has no policies: the operator does nothing without one\n");
  if (name.empty()) return ShowPolicies(policies, common.style(), Now());
  std::string text;
  for (const PolicyToShow& policy : policies)
    text += (text.empty() ? "" : "\n") + ShowPolicy(policy, common.style(), Now());
  return text;
}

Result<std::string> ExplainText(const ApiServer& server, const Common& common,
                                const std::string& node) {
  ASSIGN(OneNode one, ReadNode(server, node));
  analysis::PodsView pods = PodsOf(server, one.view);
  const analysis::Explanation explanation =
      analysis::Explain(std::move(one.view), std::move(pods), one.kind_missing);
  return common.json() ? ExplanationToJson(explanation)
                       : ShowExplanation(explanation, common.style(), Now());
}

Result<std::string> PlacementText(const ApiServer& server, const Common& common,
                                  const std::string& space, const std::string& name) {
  ASSIGN(const Json pod, GetObject(server, kinds::Pods(), space, name));
  ASSIGN(const auto nodes, ListObjects(server, kinds::Nodes()));
  const analysis::PodPlacement placement = analysis::Place(pod, nodes);
  return common.json() ? PlacementToJson(placement) : ShowPlacement(placement, common.style());
}

Result<std::string> NodeStatusText(const ApiServer& server, const Common& common,
                                   const std::string& node) {
  if (!node.empty()) return StatusOfOne(server, common, node);
  ASSIGN(const auto states, Reports(server));
  std::string text;
  Json all = Json::array();
  for (const analysis::NodeView& view : analysis::JoinNodes({}, states, {})) {
    if (common.json() && view.report)
      all.push_back(base::ParseJson<Json>(api::NodeDocument(*view.report)));
    text += (text.empty() ? "" : "\n") + ("== node " + Printable(view.name)) + "\n" +
            StatusOf(view, common);
  }
  if (common.json())
    return base::JsonText(
        Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", all}, {"reports", all}});
  return text.empty() ? "no agent has reported to this cluster yet\n" : text;
}

std::vector<std::string> NodeNames(const ClusterOptions& options) {
  const auto cluster = FindCluster(options);
  if (!cluster.ok()) return {};
  const auto nodes = ListObjects(cluster->server, kinds::Nodes());
  return nodes.ok() ? NamesOf(*nodes) : std::vector<std::string>{};
}

Result<Shown> NodeStatus(const Common& common, const ClusterOptions& options) {
  return Ask(options,
             [&](const ApiServer& server) { return NodeStatusText(server, common, options.node); });
}

Verb NodesVerb(const Common& common, const std::string& program) {
  const auto options = std::make_shared<ClusterOptions>();
  Verb verb{
      .name = "nodes",
      .summary =
          "Show the nodes of a cluster: drivers, devices, allocators, configuration and problems",
      .examples = ForProgram(kNodesExamples, program),
      .details = "Requires permission to list nodes and nodestates.penstock.io.",
      .exit_status = "0 shown, 1 the cluster could not be queried",
      .formats = command::WideFormats(),
      .names = {"node", ".nodes[*].name"},
      .watch = true,
      .watch_interval = kWatchInterval,
      .show = [&common, options] {
        return Ask(Completed(*options, common),
                   [&](const ApiServer& server) { return NodesText(server, common); });
      }};
  AddClusterOptions(verb, *options);
  return verb;
}

Verb PoliciesVerb(const Common& common, const std::string& program) {
  struct Given {
    ClusterOptions cluster;
    std::string name;
  };
  const auto given = std::make_shared<Given>();
  Verb verb{.name = "policies",
            .summary =
                "Show how far the operator is with each ClusterPolicy, Penstock, NVIDIADriver and "
                "DeviceConfig object",
            .examples = ForProgram(kPoliciesExamples, program),
            .details =
                "Requires permission to list these kinds. DeviceConfigs, which are in namespaces, "
                "are left out where that is missing; the operator reads those in its own "
                "namespace.",
            .exit_status = "0 shown, 1 the cluster could not be queried, or has no such object",
            .options = {Argument("NAME", &given->name,
                                 "an object: cluster-policy, clusterpolicy/cluster-policy [all]")},
            .formats = command::PlainFormats(),
            .names = {"policy", ".policies[*].name"},
            .watch = true,
            .watch_interval = kWatchInterval,
            .show = [&common, given] {
              return Ask(Completed(given->cluster, common), [&](const ApiServer& server) {
                return PoliciesText(server, common, given->name);
              });
            }};
  AddClusterOptions(verb, given->cluster);
  return verb;
}

Verb ExplainVerb(const Common& common, const std::string& program) {
  struct Given {
    ClusterOptions cluster;
    std::string node, pod;
  };
  const auto given = std::make_shared<Given>();
  Verb verb{
      .name = "explain",
      .summary =
          "Explain why a node has the capacity that it has, or why no node can have a "
          "pod, and what to do next",
      .examples = ForProgram(kExplainExamples, program),
      .exit_status = "0 shown, 1 the cluster could not be queried, or has no such object",
      .options = {Argument("NODE", &given->node, "the node's name"),
                  Value("--node", &given->cluster.node, "NODE", "the same as the argument")
                      .Excludes({"NODE"}),
                  Value("--pod", &given->pod, "[NAMESPACE/]NAME",
                        "a pod instead of a node [of the context's namespace]")
                      .Excludes({"NODE", "--node"})},
      .formats = command::PlainFormats(),
      .check = [given]() -> base::Status {
        if (given->cluster.node.empty()) given->cluster.node = given->node;
        if (const std::string& pod = given->pod;
            pod.ends_with('/') || pod.starts_with('/') || std::ranges::count(pod, '/') > 1)
          return base::Error(Code::kInvalidArgument, "--pod takes [NAMESPACE/]NAME");
        if (!given->cluster.node.empty() || !given->pod.empty()) return {};
        return Error(Code::kInvalidArgument,
                     "NODE is missing: the name of a node, or a pod with --pod");
      },
      .show = [&common, given]() -> Result<Shown> {
        ASSIGN(const Cluster cluster, FindCluster(Completed(given->cluster, common)));
        const auto slash = given->pod.find('/');
        const bool is_named = slash != std::string::npos;
        ASSIGN(const std::string text,
               given->pod.empty()
                   ? ExplainText(cluster.server, common, given->cluster.node)
                   : PlacementText(cluster.server, common,
                                   is_named ? given->pod.substr(0, slash) : cluster.namespace_name,
                                   is_named ? given->pod.substr(slash + 1) : given->pod));
        return Shown(text);
      }};
  AddClusterOptions(verb, given->cluster);
  return verb;
}

}  // namespace penstock::app
