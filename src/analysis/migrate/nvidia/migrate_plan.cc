// Lists what was found and what its settings mean for Penstock.
#include <algorithm>

#include "analysis/migrate/amd/rocm.h"
#include "analysis/migrate/nvidia/migrate.h"
#include "analysis/migrate/nvidia/migrate_changes.h"
#include "api/compat/nvidia/exporter_options.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

std::string Describe(const Workload& one) {
  std::string text = one.from + ": " + std::string(ToString(one.part));
  if (!one.device_config.empty()) {
    text += " (of DeviceConfig " + one.device_config + ")";
  } else if (!one.policy.empty()) {
    text += " (of ClusterPolicy " + one.policy + ")";
  } else if (!one.release.empty()) {
    text +=
        " (Helm release " + one.release + (one.chart.empty() ? "" : ", chart " + one.chart) + ")";
  }
  if (!one.config_map.empty())
    text += ", configured by ConfigMap " + one.config_map +
            (one.default_key.empty() ? "" : ", by default its key " + one.default_key);
  return text;
}

void AddFound(const Found& found, Migration& plan) {
  for (const Workload& one : found.workloads) plan.found.push_back(Describe(one));
  for (const Policy& one : found.policies)
    plan.found.push_back("ClusterPolicy " + one.name + " of the GPU Operator" +
                         (one.config_map.empty() ? "" : ", config " + one.config_map));
  for (const ConfigFile& one : found.configs)
    plan.found.push_back(one.from + ": a configuration of the device plugin");
  for (const ConfigFile& one : found.counters)
    plan.found.push_back(one.from + ": a file of counters");
  for (const ConfigFile& one : found.layouts) plan.found.push_back(one.from + ": layouts of GPUs");
  if (!found.node_features.empty())
    plan.found.push_back(std::to_string(found.node_features.size()) +
                         " NodeFeature objects of GPU Feature Discovery (" +
                         found.node_features.front() +
                         (found.node_features.size() > 1 ? ", …" : "") + ")");
  for (const std::string& file : found.files) plan.found.push_back("on this machine: " + file);
}

/// Adds the meaning of the stack's settings for Penstock: each sentence once, with its origin.
void AddSettings(const Found& found, Migration& plan) {
  const auto add = [&plan](const std::string& from,
                           const base::Result<api::compat::Translation>& translation) {
    if (!translation.ok()) {
      plan.problems.push_back(from + ": " +
                              base::Join(base::Split(translation.error().message(), '\n'), "; "));
      return;
    }
    for (const std::string& one : translation->not_yet) plan.not_yet.push_back(from + ": " + one);
    for (const std::string& one : translation->remarks) plan.remarks.push_back(from + ": " + one);
  };
  for (const Workload* one : WorkloadsOf(found, {Part::kDevicePlugin, Part::kFeatureDiscovery})) {
    if (!one->given.empty())
      add(one->from, api::compat::TranslateDevicePlugin("", one->from, one->given, {},
                                                        base::ReadingMode::kLenient));
    for (const std::string& flag : one->unknown)
      plan.remarks.push_back(one->from + ": " + flag +
                             " is not a setting of the plugin; it has no effect here");
  }
  for (const Workload* one : WorkloadsOf(found, {Part::kExporter})) {
    add(one->from, api::compat::TranslateExporter("", one->from, one->given, {}));
    for (const std::string& flag : one->unknown)
      plan.remarks.push_back(one->from + ": " + flag +
                             " is not a setting of the exporter; it has no effect here");
  }
  for (const ConfigFile& one : found.configs)
    add(one.from, api::compat::TranslateDevicePlugin(one.text, one.key.empty() ? one.from : one.key,
                                                     {}, {}, base::ReadingMode::kLenient));
  for (const Workload* one : WorkloadsOf(found, {Part::kMps}))
    plan.remarks.push_back(
        one->from +
        ": the agent starts and supervises MPS itself; this one is removed with NVIDIA's plugin");
}

/// Whether anything of NVIDIA's was found; also where nothing was found at all.
bool ConcernsNvidia(const Found& found) {
  const bool on_nodes = std::ranges::any_of(found.nodes, [](const LabelledNode& node) {
    const auto label = node.labels.lower_bound(kNvidiaDomain);
    return label != node.labels.end() && label->first.starts_with(kNvidiaDomain);
  });
  return on_nodes || !found.policies.empty() || !found.configs.empty() || !HasRocm(found) ||
         !WorkloadsOf(found,
                      {Part::kDevicePlugin, Part::kFeatureDiscovery, Part::kMps, Part::kExporter,
                       Part::kHostEngine, Part::kToolkit, Part::kMigManager})
              .empty();
}

void PlanToPenstock(const Found& found, const std::string& node, Migration& plan) {
  const bool nvidia = ConcernsNvidia(found);
  if (HasRocm(found)) {
    plan.from = nvidia ? "NVIDIA's stack and ROCm's programs" : "ROCm's programs";
    AddRocm(found, node, plan);
  }
  if (nvidia) {
    AddSettings(found, plan);
    AddLayouts(found, node, plan);
    AddChanges(found, node, plan);
  } else {
    AddLost(found, plan);
  }
  AddSteps(found, node, plan);
}

void PlanToNvidia(const Found& found, const std::string& node, Migration& plan) {
  AddChangesBack(found, node, plan);
  plan.remarks.emplace_back(
      "nvidia.com labels are set again by GPU Feature Discovery, which needs Node Feature "
      "Discovery on the cluster; so are "
      "feature.node.kubernetes.io labels");
  plan.remarks.emplace_back(
      "a configuration in the plugin's own format (version v1) is read by both; a NodeConfig is "
      "not read by NVIDIA's plugin");
  plan.files.push_back({"/var/lib/penstock, /run/penstock", "the agent's state", "", 0,
                        "removed by the uninstall (`penstock cleanup --host`)"});
  plan.files.push_back({"/var/lib/kubelet/device-plugins/penstock-nvidia.com-gpu-*.sock",
                        "the agent's socket", "nvidia-gpu.sock", 0, ""});
  AddStepsBack(found, plan);
}

/// Adds the operands that an operator will create, where their objects were not given.
Found WithOperands(Found found) {
  for (const Policy& policy : found.policies)
    for (const Workload& operand : policy.operands)
      if (WorkloadsOf(found, {operand.part}).empty()) found.workloads.push_back(operand);
  return found;
}

}  // namespace

std::vector<const Workload*> WorkloadsOf(const Found& found, std::initializer_list<Part> parts) {
  std::vector<const Workload*> some;
  for (const Workload& one : found.workloads)
    if (std::ranges::find(parts, one.part) != parts.end()) some.push_back(&one);
  return some;
}

Migration Plan(const Found& objects, Direction direction, const std::string& node) {
  const Found found = WithOperands(objects);
  Migration plan{.direction = direction};
  AddFound(found, plan);
  plan.remarks = found.remarks;
  plan.problems = found.problems;
  if (direction == Direction::kToPenstock) {
    PlanToPenstock(found, node, plan);
  } else {
    PlanToNvidia(found, node, plan);
  }
  return plan;
}

}  // namespace penstock::analysis
