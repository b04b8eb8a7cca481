// Recognises the objects of NVIDIA's stack by images, commands and keys, not by names that users
// choose.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "analysis/explain/nodes.h"
#include "analysis/migrate/amd/rocm.h"
#include "analysis/migrate/nvidia/migrate.h"
#include "analysis/migrate/nvidia/migrate_containers.h"
#include "api/compat/nvidia/mig_parted.h"
#include "base/core/strings.h"

namespace penstock::analysis {

using api::compat::Given;
using api::compat::PluginOption;

std::string_view ToString(Part part) {
  switch (part) {
    case Part::kDevicePlugin: return "device plugin";
    case Part::kFeatureDiscovery: return "GPU Feature Discovery";
    case Part::kMps: return "MPS control daemon";
    case Part::kExporter: return "DCGM exporter";
    case Part::kHostEngine: return "DCGM host engine";
    case Part::kToolkit: return "container toolkit";
    case Part::kMigManager: return "MIG manager";
    case Part::kNodeFeatureDiscovery: return "Node Feature Discovery";
    case Part::kPenstock: return "Penstock";
    case Part::kRocmPlugin: return "AMD's device plugin";
    case Part::kRocmLabeller: return "AMD's node labeller";
    case Part::kRocmExporter: return "AMD's Device Metrics Exporter";
    case Part::kRocmConfigManager: return "AMD's Device Config Manager";
  }
  return "";
}

namespace {

constexpr char kHelmRelease[] = "meta.helm.sh/release-name",
               kHelmNamespace[] = "meta.helm.sh/release-namespace";

/// Recognises the part by its command: one image holds all of NVIDIA's programs, and without a
/// command it runs the plugin.
std::optional<Part> PartOf(const Json& container) {
  if (const auto rocm = RocmPartOf(container)) return rocm;
  const std::string program = Program(container), image = ImageName(container);
  if (program == "gpu-feature-discovery" || image == "gpu-feature-discovery")
    return Part::kFeatureDiscovery;
  if (program == "mps-control-daemon") return Part::kMps;
  if (program == "config-manager") return std::nullopt;
  if (program == "nvidia-device-plugin") return Part::kDevicePlugin;
  if (program == "dcgm-exporter" || image == "dcgm-exporter") return Part::kExporter;
  if (program == "nv-hostengine" || image == "dcgm") return Part::kHostEngine;
  if (program == "nvidia-toolkit" || image == "container-toolkit") return Part::kToolkit;
  if (program == "nvidia-mig-manager" || image == "k8s-mig-manager") return Part::kMigManager;
  if (program == "nfd-worker" ||
      (image == "node-feature-discovery" && program != "nfd-master" && program != "nfd-gc"))
    return Part::kNodeFeatureDiscovery;
  if (program == "penstock-agent" || image == "penstock") return Part::kPenstock;
  const std::string name = TextAt(container, {"name"});
  if (image == "k8s-device-plugin" || name == "nvidia-device-plugin" ||
      name == "nvidia-device-plugin-ctr")
    return Part::kDevicePlugin;
  return std::nullopt;
}

/// Settings that only locate things within NVIDIA's own pod. They have no meaning for Penstock.
bool IsPlumbing(std::string_view name) {
  return name == "--config-file" || name == "--node-name" || name == "--mps-root";
}

std::string_view FirstName(const PluginOption& option) {
  return option.flags.empty() ? option.environment.front() : option.flags.front();
}

/// Translates two names of NVIDIA's plugin that mean something else in Penstock.
std::string PluginFlag(const std::string& flag) {
  if (flag == "--driver-root") return "--nvidia-driver-root";
  return flag == "--dev-root" ? "--nvidia-dev-root" : flag;
}

void AddFlag(const std::string& word, const std::string& next, Workload& workload) {
  const auto equals = word.find('=');
  const std::string flag = PluginFlag(word.substr(0, equals));
  for (const PluginOption& option : api::compat::PluginOptions()) {
    if (std::ranges::find(option.flags, flag) == option.flags.end()) continue;
    const bool separate = equals == std::string::npos && !next.empty() && !next.starts_with("-");
    const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                              : separate                  ? next
                                                          : "true";
    if (!IsPlumbing(FirstName(option)))
      workload.given.push_back({std::string(FirstName(option)), value, word.substr(0, equals)});
    return;
  }
  workload.unknown.push_back(word);
}

void AddSettings(const Json& container, Workload& workload) {
  const auto words = Words(container);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i].starts_with("--"))
      AddFlag(words[i], i + 1 < words.size() ? words[i + 1] : "", workload);
  for (const PluginOption& option : api::compat::PluginOptions()) {
    if (IsPlumbing(FirstName(option))) continue;
    const bool given = std::ranges::any_of(
        workload.given, [&](const Given& one) { return one.flag == FirstName(option); });
    for (const std::string_view name : option.environment)
      if (const std::string value = EnvironmentOf(container, name); !given && !value.empty())
        workload.given.push_back(
            {std::string(FirstName(option)), value, "environment " + std::string(name)});
  }
}

/// Finds the ConfigMap that the pod's config-manager reads: the one mounted at the path that it
/// reads.
void AddConfigManager(const Json& pod, Workload& workload) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : Items(pod, {list})) {
      if (Program(container) != "config-manager") continue;
      workload.default_key = EnvironmentOf(container, "DEFAULT_CONFIG");
      workload.fallbacks = base::Split(EnvironmentOf(container, "FALLBACK_STRATEGIES"), ',');
      std::string source = EnvironmentOf(container, "CONFIG_FILE_SRCDIR");
      if (source.empty()) source = "/available-configs";
      for (const Json& mount : Items(container, {"volumeMounts"}))
        for (const Json& volume : Items(pod, {"volumes"}))
          if (TextAt(mount, {"mountPath"}) == source &&
              TextAt(mount, {"name"}) == TextAt(volume, {"name"}))
            workload.config_map = TextAt(volume, {"configMap", "name"});
      return;
    }
  }
}

/// Finds the ConfigMap with the MIG manager's layouts: the one mounted where its file is.
void AddLayouts(const Json& pod, const Json& container, Workload& workload) {
  const std::string folder = base::FolderOf(EnvironmentOf(container, "CONFIG_FILE"));
  for (const Json& mount : Items(container, {"volumeMounts"}))
    for (const Json& volume : Items(pod, {"volumes"}))
      if (!folder.empty() && TextAt(mount, {"mountPath"}) == folder &&
          TextAt(mount, {"name"}) == TextAt(volume, {"name"}))
        workload.config_map = TextAt(volume, {"configMap", "name"});
}

struct HelmRelease {
  std::string name, namespace_name;
};
/// The release of Helm that an object is part of; empty: none is known.
HelmRelease HelmReleaseOf(const Json& object) {
  const auto annotations = TextsAt(object, {"metadata", "annotations"}),
             labels = TextsAt(object, {"metadata", "labels"});
  const auto text = [](const auto& map, const char* key) {
    return map.contains(key) ? map.at(key) : std::string();
  };
  if (std::string name = text(annotations, kHelmRelease); !name.empty())
    return {std::move(name), text(annotations, kHelmNamespace)};
  if (text(labels, "app.kubernetes.io/managed-by") != "Helm") return {};
  return {text(labels, "app.kubernetes.io/instance"),  // as printed by `helm template`
          TextAt(object, {"metadata", "namespace"})};
}

/// Adds the object where it is a workload of the stack; returns whether it is.
bool TakeWorkload(const Json& object, Found& found) {
  const Json& pod = At(object, {"spec", "template", "spec"});
  for (const Json& container : Items(pod, {"containers"})) {
    const auto part = PartOf(container);
    if (!part) continue;
    Workload workload{.part = *part,
                      .kind = TextAt(object, {"kind"}),
                      .name = TextAt(object, {"metadata", "name"})};
    workload.namespace_name = TextAt(object, {"metadata", "namespace"});
    workload.from = workload.kind + " " +
                    (workload.namespace_name.empty() ? "" : workload.namespace_name + "/") +
                    workload.name;
    HelmRelease release = HelmReleaseOf(object);
    workload.release = std::move(release.name);
    workload.release_namespace = std::move(release.namespace_name);
    workload.chart = TextAt(object, {"metadata", "labels", "helm.sh/chart"});
    for (const Json& owner : Items(object, {"metadata", "ownerReferences"}))
      if (TextAt(owner, {"kind"}) == "ClusterPolicy") workload.policy = TextAt(owner, {"name"});
    workload.image = TextAt(container, {"image"});
    workload.labels = TextsAt(object, {"spec", "template", "metadata", "labels"});
    workload.selects = TextsAt(pod, {"nodeSelector"});
    if (*part == Part::kDevicePlugin || *part == Part::kFeatureDiscovery) {
      AddSettings(container, workload);
      AddConfigManager(pod, workload);
    }
    if (*part == Part::kExporter) TakeExporter(pod, container, workload);
    if (*part == Part::kMigManager) AddLayouts(pod, container, workload);
    TakeRocm(object, container, workload);
    found.workloads.push_back(std::move(workload));
    return true;
  }
  return false;
}

/// Whether a pod belongs to the stack itself.
bool IsOfTheStack(const Json& pod) {
  const Json& containers = Items(pod, {"spec", "containers"});
  return std::ranges::any_of(containers,
                             [](const Json& container) { return PartOf(container).has_value(); });
}

/// Whether the text of a key is a configuration of the plugin, to tell its ConfigMaps from
/// unrelated ones.
bool IsPluginConfig(const std::string& text) {
  if (api::compat::Recognise(text) != api::compat::Document::kDevicePlugin) return false;
  const std::string lines = "\n" + text;
  const auto has = [&lines](std::string_view key) {
    return lines.find("\n" + std::string(key) + ":") != std::string::npos ||
           lines.find("\"" + std::string(key) + "\":") != std::string::npos;
  };
  return has("sharing") || has("flags") || (has("version") && (has("resources") || has("imex")));
}

void TakeConfigMap(const Json& object, Found& found) {
  const std::string name = TextAt(object, {"metadata", "name"}),
                    space = TextAt(object, {"metadata", "namespace"});
  found.config_maps.push_back({name, space, TextsAt(object, {"data"})});
  for (const auto& [key, text] : found.config_maps.back().data) {
    const ConfigFile file{"ConfigMap " + (space.empty() ? "" : space + "/") + name + ", key " + key,
                          name, space, key, text};
    if (api::compat::LooksLikeMigParted(text))
      found.layouts.push_back(file);
    else if (IsPluginConfig(text))
      found.configs.push_back(file);
  }
}

void TakeNode(const Json& object, Found& found) {
  const NodeView view = JoinNodes({object}, {}, {}).front();
  found.nodes.push_back({view.name, view.labels, view.capacity, {}});
  for (const Json& taint : Items(object, {"spec", "taints"}))
    found.nodes.back().taints.insert(TextAt(taint, {"key"}));
}

void TakePolicy(const Json& object, Found& found) {
  const std::string name = TextAt(object, {"metadata", "name"});
  found.policies.push_back(PolicyOf(At(object, {"spec"}), name, "ClusterPolicy " + name));
  HelmRelease release = HelmReleaseOf(object);
  found.policies.back().release = std::move(release.name);
  found.policies.back().release_namespace = std::move(release.namespace_name);
}

void TakeNodeFeature(const Json& object, Found& found) {
  const std::string name = TextAt(object, {"metadata", "name"});
  if (name.starts_with("nvidia-features-for-"))
    found.node_features.push_back(TextAt(object, {"metadata", "namespace"}) + "/" + name);
}

/// The workload that the operator creates from one of its keys; nothing where the key is disabled.
std::optional<Workload> OperandOf(const Json& spec, const char* key, Part part,
                                  const std::string& policy, const std::string& from) {
  const Json& settings = At(spec, {key});
  const Json& enabled = At(settings, {"enabled"});
  if (!settings.is_object() || enabled == false || enabled == "false") return std::nullopt;
  Workload operand{
      .part = part, .kind = "ClusterPolicy", .from = from + ", " + key, .policy = policy};
  operand.image = TextAt(settings, {"image"}) + ":" + TextAt(settings, {"version"});
  if (part == Part::kExporter) {
    TakeExporter(Json(), settings, operand);
    operand.counters_map = TextAt(settings, {"config", "name"});
  } else {
    AddSettings(settings, operand);
  }
  return operand;
}

}  // namespace

Policy PolicyOf(const Json& spec, const std::string& name, const std::string& from) {
  Policy policy{.name = name,
                .config_map = TextAt(spec, {"devicePlugin", "config", "name"}),
                .default_key = TextAt(spec, {"devicePlugin", "config", "default"}),
                .mig_strategy = TextAt(spec, {"mig", "strategy"}),
                .layouts_map = TextAt(spec, {"migManager", "config", "name"}),
                .default_layout = TextAt(spec, {"migManager", "config", "default"}),
                .gpu_clients_map = TextAt(spec, {"migManager", "gpuClientsConfig", "name"})};
  for (const auto& [key, part] :
       {std::pair("devicePlugin", Part::kDevicePlugin), std::pair("dcgmExporter", Part::kExporter)})
    if (auto operand = OperandOf(spec, key, part, name, from))
      policy.operands.push_back(*std::move(operand));
  return policy;
}

void TakeObject(const Json& object, Found& found) {
  const std::string kind = TextAt(object, {"kind"});
  if (kind == "DaemonSet" && TakeWorkload(object, found)) return;
  if (IsConsumerKind(kind) && !IsOfTheStack(object)) return TakeConsumer(object, found);
  if (TakeMonitoring(object, found)) return;
  if (kind == "ConfigMap") return TakeConfigMap(object, found);
  if (kind == "ClusterPolicy") return TakePolicy(object, found);
  if (kind == "DeviceConfig") return TakeDeviceConfig(object, found);
  if (kind == "NodeFeature") return TakeNodeFeature(object, found);
  if (kind == "Node" && !TextAt(object, {"metadata", "name"}).empty())
    return TakeNode(object, found);
  if (kind.ends_with("List"))
    for (const Json& item : Items(object, {"items"})) TakeObject(item, found);
}

}  // namespace penstock::analysis
