// What becomes of NVIDIA's MIG manager: the layouts in its ConfigMap, and the labels of nodes that
// name them.
#include <algorithm>
#include <set>

#include "analysis/migrate/nvidia/migrate.h"
#include "analysis/migrate/nvidia/migrate_changes.h"
#include "api/compat/nvidia/mig_parted.h"
#include "backend/all.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

constexpr char kLabel[] = "nvidia.com/mig.config";
/// The operator's own ConfigMap, and what it sets on nodes without the label.
constexpr char kOperatorsMap[] = "default-mig-parted-config", kOperatorsDefault[] = "all-disabled";

const ConfigFile* FileOf(const Found& found, const std::string& map) {
  const auto file = std::ranges::find_if(found.layouts, [&map](const ConfigFile& one) {
    return map.empty() ? one.config_map.empty() : one.config_map == map;
  });
  return file == found.layouts.end() ? nullptr : &*file;
}

/// The layouts of a file; reports what is wrong with it.
std::set<std::string> NamesIn(const ConfigFile& file, Migration& plan) {
  const auto layouts =
      api::compat::TranslateMigParted(file.text, file.key.empty() ? file.from : file.key,
                                      backend::FindDialect("nvidia")->part_terms()->read_profile);
  if (!layouts.ok()) {
    plan.problems.push_back(file.from + ": " +
                            base::Join(base::Split(layouts.error().message(), '\n'), "; "));
    return {};
  }
  const auto names = layouts->names();
  return {names.begin(), names.end()};
}

/// What nodes ask for by the label, except for the whole GPUs that the operator asks for.
std::map<std::string, std::vector<std::string>> Requested(const Found& found,
                                                          const std::string& only) {
  std::map<std::string, std::vector<std::string>> nodes;
  for (const LabelledNode& node : found.nodes) {
    const auto label = node.labels.find(kLabel);
    if (label != node.labels.end() && !label->second.empty() && (only.empty() || node.name == only))
      nodes[label->second].push_back(node.name);
  }
  return nodes;
}

}  // namespace

MigLayouts MigLayoutsOf(const Found& found) {
  MigLayouts layouts;
  for (const Workload* one : WorkloadsOf(found, {Part::kMigManager}))
    layouts.config_map = one->config_map;
  for (const Policy& one : found.policies) {
    if (!one.layouts_map.empty()) layouts.config_map = one.layouts_map;
    if (one.default_layout != kOperatorsDefault) layouts.default_layout = one.default_layout;
    layouts.strategy = one.mig_strategy;
  }
  if (layouts.config_map == kOperatorsMap) layouts.config_map.clear();
  if (const ConfigFile* file = FileOf(found, layouts.config_map); file != nullptr)
    layouts.namespace_name = file->namespace_name;
  return layouts;
}

void AddLayouts(const Found& found, const std::string& only, Migration& plan) {
  const MigLayouts layouts = MigLayoutsOf(found);
  std::map<std::string, std::set<std::string>> names;  // by ConfigMap
  for (const ConfigFile& one : found.layouts) names[one.config_map] = NamesIn(one, plan);
  const auto requested = Requested(found, only);
  for (const auto& [layout, nodes] : requested) {
    plan.remarks.push_back(std::string(kLabel) + "=" + layout + " (" + Named(nodes) +
                           "): the agent follows this label; GPUs that are divided so already are "
                           "not touched");
    const auto known = names.find(layouts.config_map);
    if (known != names.end() && !known->second.empty() && !known->second.contains(layout))
      plan.problems.push_back(std::string(kLabel) + "=" + layout + " (" + Named(nodes) +
                              "): the layouts in " + FileOf(found, layouts.config_map)->from +
                              " have no such name: correct the label, or add the layout");
  }
  if (layouts.config_map.empty() && (!requested.empty() || !layouts.default_layout.empty()))
    plan.remarks.emplace_back(
        "layouts: without a ConfigMap of your own, the agent makes them from the profiles of each "
        "node's GPUs (`penstock mig generate-config`); all-disabled, all-enabled, all-balanced and "
        "all-PROFILE have the names that NVIDIA's have");
  for (const Policy& one : found.policies)
    if (!one.gpu_clients_map.empty())
      plan.remarks.push_back(
          "ClusterPolicy " + one.name + ": migManager.gpuClientsConfig (" + one.gpu_clients_map +
          "): those of its services of the host that have a GPU open are stopped "
          "while it is divided" +
          (ReplacesOperator(found, only)
               ? ""
               : ", with --set migManager.gpuClientsConfig.name=" + one.gpu_clients_map +
                     " and that ConfigMap in the release's namespace") +
          "; pods are stopped by the labels nvidia.com/gpu.deploy.{client,dcgm,nvsm}");
}

}  // namespace penstock::analysis
