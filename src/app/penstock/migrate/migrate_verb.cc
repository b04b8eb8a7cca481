// Reads a cluster or files, and this machine where it is the selected node.
#include "app/penstock/migrate/migrate_verb.h"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/penstock/cluster/cluster.h"
#include "os/core/file.h"

namespace penstock::app {

using base::Code;
using base::Result;
using protocol::kube::Resource;

namespace {

constexpr char kExamples[] =
    R"(penstock migrate                                    # on a cluster: what was found, what changes, the commands in order
penstock migrate --node gpu-1                       # one node first
penstock migrate --to nvidia                        # the way back
helm get manifest nvdp -n kube-system | penstock migrate --manifests -
penstock migrate --manifests plugin.yaml --manifests values.yaml -o json)";

struct MigrateOptions {
  ClusterOptions cluster;
  std::string to = "penstock";
  std::vector<std::string> manifests;
};

/// Adds all objects of a kind. Skips a missing kind; adds a remark where the kind may not be read.
void TakeAll(const ApiServer& server, const Resource& kind, const std::string& kind_name,
             analysis::Found& found) {
  const auto objects = ListObjects(server, kind);
  if (!objects.ok()) {
    if (objects.error().code() != Code::kNotFound)
      found.remarks.push_back(kind.plural + " could not be read, so what they use is not known: " +
                              objects.error().message());
    return;
  }
  for (Json object : *objects) {
    object["kind"] = kind_name;  // the items of a list have neither
    object["apiVersion"] = kind.group.empty() ? kind.version : kind.group + "/" + kind.version;
    analysis::TakeObject(object, found);
  }
}

Result<analysis::Found> ReadCluster(const ClusterOptions& options) {
  ASSIGN(const Cluster cluster, FindCluster(options));
  analysis::Found found;
  const auto nodes = ListObjects(cluster.server, kinds::Nodes());
  if (!nodes.ok()) return nodes.error();
  for (Json node : *nodes) {
    node["kind"] = "Node";
    analysis::TakeObject(node, found);
  }
  TakeAll(cluster.server, {"apps", "v1", "daemonsets"}, "DaemonSet", found);
  TakeAll(cluster.server, {"", "v1", "configmaps"}, "ConfigMap", found);
  TakeAll(cluster.server, {"nvidia.com", "v1", "clusterpolicies"}, "ClusterPolicy", found);
  TakeAll(cluster.server, {"amd.com", "v1alpha1", "deviceconfigs"}, "DeviceConfig", found);
  TakeAll(cluster.server, kinds::NodeFeatures(), "NodeFeature", found);
  TakeAll(cluster.server, kinds::Pods(), "Pod", found);
  TakeAll(cluster.server, {"", "v1", "services"}, "Service", found);
  TakeAll(cluster.server, {"node.k8s.io", "v1", "runtimeclasses"}, "RuntimeClass", found);
  TakeAll(cluster.server, {"autoscaling", "v2", "horizontalpodautoscalers"},
          "HorizontalPodAutoscaler", found);
  TakeAll(cluster.server, {"keda.sh", "v1alpha1", "scaledobjects"}, "ScaledObject", found);
  TakeAll(cluster.server, {"monitoring.coreos.com", "v1", "servicemonitors"}, "ServiceMonitor",
          found);
  TakeAll(cluster.server, {"monitoring.coreos.com", "v1", "podmonitors"}, "PodMonitor", found);
  TakeAll(cluster.server, {"monitoring.coreos.com", "v1", "prometheusrules"}, "PrometheusRule",
          found);
  return found;
}

Result<analysis::Found> ReadFiles(const std::vector<std::string>& files) {
  analysis::Found found;
  for (const std::string& file : files) {
    const bool standard_input = file == "-";
    ASSIGN(const std::string text,
           standard_input ? os::ReadAll(STDIN_FILENO, "standard input") : os::ReadInput(file));
    TRY(analysis::TakeFile(text, standard_input ? "standard input" : file, found));
  }
  return found;
}

Result<analysis::Migration> MakePlan(const Common& common, const MigrateOptions& options) {
  ASSIGN(analysis::Found found, options.manifests.empty()
                                    ? ReadCluster(Completed(options.cluster, common))
                                    : ReadFiles(options.manifests));
  found.files = analysis::FilesOfTheStack("");
  const std::string& node = options.cluster.node;
  const bool known =
      std::any_of(found.nodes.begin(), found.nodes.end(),
                  [&node](const analysis::LabelledNode& one) { return one.name == node; });
  if (!node.empty() && options.manifests.empty() && !known)
    return base::Error(Code::kNotFound, "the cluster has no node \"" + node + "\"");
  return analysis::Plan(
      found,
      options.to == "nvidia" ? analysis::Direction::kToNvidia : analysis::Direction::kToPenstock,
      node);
}

Result<Shown> Migrate(const Common& common, const MigrateOptions& options) {
  ASSIGN(const auto plan, MakePlan(common, options));
  const bool clean = plan.problems.empty() && plan.lost.empty();
  return Shown(common.json() ? MigrationToJson(plan) : ShowMigration(plan, common.style()),
               clean ? command::kDone : command::kFailed);
}

}  // namespace

Verb MigrateVerb(const Common& common) {
  const auto options = std::make_shared<MigrateOptions>();
  Verb verb{
      .name = "migrate",
      .summary =
          "Show what changes from NVIDIA's stack or ROCm's programs to Penstock, and the "
          "steps",
      .examples = kExamples,
      .details = "Changes nothing.",
      .exit_status =
          "0 nothing is lost; 1 a resource or label is lost or reduced, something must be fixed "
          "first, or the input was unreadable; 2 usage error",
      .options = {Value("--to", &options->to, "STACK", "direction: penstock or nvidia [penstock]")
                      .OneOf({"penstock", "nvidia"}),
                  Value("--node", &options->cluster.node, "NODE", "only this node [all nodes]"),
                  Value("--manifests", &options->manifests, "FILE",
                        "instead of a cluster: manifests, values of a chart, configurations; - for "
                        "standard input (repeatable)")},
      .formats = command::PlainFormats(),
      .show = [&common, options] { return Migrate(common, *options); }};
  AddClusterOptions(verb, options->cluster);
  return verb;
}

}  // namespace penstock::app
