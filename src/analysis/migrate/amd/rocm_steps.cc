// The part of the commands that concerns ROCm's programs.
#include <algorithm>
#include <set>

#include "analysis/migrate/amd/rocm.h"
#include "analysis/migrate/nvidia/migrate_changes.h"

namespace penstock::analysis {

namespace {

/// The namespace of a ConfigMap of a workload: its own.
std::string NamespaceOfMap(const Workload& one) {
  return one.config_map.empty() ? "" : one.namespace_name;
}

/// Names a ConfigMap in the values, and copies it first where it is in another namespace.
void UseMap(const Workload& one, const std::string& space, const std::string& value,
            std::string& values, Migration& plan) {
  if (one.config_map.empty()) return;
  if (!one.namespace_name.empty() && one.namespace_name != space) {
    const std::string file = one.config_map + ".json";
    plan.steps.push_back({"kubectl " + InNamespace(one.namespace_name) + "get configmap " +
                              ForShell(one.config_map) + " -o jsonpath='{.data.config\\.json}' > " +
                              ForShell(file),
                          "the file of " + std::string(ToString(one.part))});
    plan.steps.push_back(
        {"kubectl " + InNamespace(space) + "create configmap " + ForShell(one.config_map) +
             " --from-file=config.json=" + ForShell(file),
         "the agents read it from the release's own namespace, which has to exist (kubectl create "
         "namespace " +
             space + ")"});
  }
  values += " --set " + value + "=" + ForShell(one.config_map);
}

void Remove(const Workload& one, const std::string& why, std::set<std::string>& done,
            Migration& plan) {
  if (one.kind == "values" || !one.device_config.empty()) return;
  const std::string space =
      one.release_namespace.empty() ? one.namespace_name : one.release_namespace;
  const std::string command =
      one.release.empty()
          ? "kubectl " + InNamespace(one.namespace_name) + "delete daemonset " + ForShell(one.name)
          : "helm " + InNamespace(space) + "uninstall " + ForShell(one.release);
  if (done.insert(command).second) plan.steps.push_back({command, why});
}

}  // namespace

bool KeepsNamesOfModes(const Found& found) {
  for (const Workload* one : WorkloadsOf(found, {Part::kRocmPlugin}))
    for (const auto& given : one->given)
      if (given.flag == "-resource_naming_strategy") return given.value == "mixed";
  // The strategy of plugins that are not visible shows in what nodes have.
  bool modes = false, whole = false;
  for (const LabelledNode& node : found.nodes)
    for (const auto& [name, amount] : node.capacity) {
      modes |= amount > 0 && name.starts_with(kAmdDomain) && name.find("_nps") != std::string::npos;
      whole |= amount > 0 && name == "amd.com/gpu";
    }
  return modes && !whole;
}

std::string RocmNamespace(const Found& found) {
  for (const Workload* one : WorkloadsOf(found, {Part::kRocmConfigManager, Part::kRocmExporter}))
    if (const std::string space = NamespaceOfMap(*one); !space.empty()) return space;
  return "";
}

void AddRocmValues(const Found& found, const std::string& space, Replaced replaced,
                   std::string& values, Migration& plan) {
  const bool of_operator = replaced == Replaced::kOperator;
  if (KeepsNamesOfModes(found))
    values += std::string(" --set penstock.") + (of_operator ? "spec.node" : "config") +
              ".parts.strategy=mixed";
  const auto use = [&](Part part, const char* value) {
    for (const Workload* one : WorkloadsOf(found, {part})) {
      if (one->config_map.empty()) continue;
      UseMap(*one, space, value, values, plan);
      return;
    }
  };
  use(Part::kRocmConfigManager, of_operator ? "penstock.spec.configMaps.modeProfiles"
                                            : "penstock.parts.modeProfilesConfigMap");
  use(Part::kRocmExporter,
      of_operator ? "penstock.spec.configMaps.exporter" : "penstock.telemetry.exporterConfigMap");
}

void AddRocmRemoval(const Found& found, Migration& plan) {
  std::set<std::string> done;
  for (const Workload* one : WorkloadsOf(found, {Part::kRocmPlugin, Part::kRocmLabeller}))
    Remove(
        *one,
        "Penstock's agent takes over at once. Drain a node first: AMD's plugin names its devices "
        "differently, so what running pods hold is known by their processes alone",
        done, plan);
  for (const Workload* one : WorkloadsOf(found, {Part::kRocmConfigManager}))
    Remove(*one, "both follow the same label: do not run both", done, plan);
  for (const Workload* one : WorkloadsOf(found, {Part::kRocmExporter}))
    Remove(
        *one,
        "once the dashboards and alerts work with Penstock's pages; a read of the driver's error "
        "counts clears the hardware's, so do not run both for long",
        done, plan);
  for (const DeviceConfigName& one : found.device_configs)
    plan.steps.push_back(
        {"kubectl " + InNamespace(one.namespace_name) + "patch deviceconfig " + ForShell(one.name) +
             R"( --type merge -p '{"spec":{"devicePlugin":{"enableDevicePlugin":false,"enableNodeLabeller":false},"metricsExporter":{"enable":false},"configManager":{"enable":false}}}')",
         "AMD's operator removes its device plugin, node labeller, exporter and config manager, "
         "and "
         "keeps the driver. Drain the nodes first: AMD's plugin names its devices differently"});
}

}  // namespace penstock::analysis
