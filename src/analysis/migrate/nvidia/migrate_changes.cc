// Adds one row for each difference, counted over nodes.
#include "analysis/migrate/nvidia/migrate_changes.h"

#include <algorithm>
#include <optional>

#include "analysis/migrate/nvidia/migrate_offer.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

using Labels = std::map<std::string, std::string>;
using Resources = std::map<std::string, std::int64_t>;

constexpr char kMig[] = "nvidia.com/mig-";
constexpr std::size_t kMaxNamed = 5;

bool StartsWithOne(const std::string& key, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes,
                             [&key](std::string_view prefix) { return key.starts_with(prefix); });
}

/// Penstock's labels whose name contains a model.
bool IsOfModel(const std::string& key) {
  return StartsWithOne(key, {"nvidia.com/gpu.present.", "nvidia.com/gpu.count.",
                             "nvidia.com/gpu.memory.", "nvidia.com/gpu.replicas.",
                             "nvidia.com/gpu.sharing-strategy.", "nvidia.com/gpu.isolation."});
}

bool IsOthers(const std::string& key) {
  return StartsWithOne(key, {"nvidia.com/gpu.deploy.", "nvidia.com/mig.config",
                             "nvidia.com/gpu.workload.config", "nvidia.com/gpu-driver-upgrade",
                             "nvidia.com/device-plugin.config", "nvidia.com/vm-passthrough"});
}

/// Labels that cannot be predicted from other labels and that come from the same facts as before;
/// and the timestamp of a start.
bool StaysAsItIs(const std::string& key) {
  return StartsWithOne(
      key, {"nvidia.com/gpu.mode", "nvidia.com/gpu.clique", "nvidia.com/vgpu.",
            "nvidia.com/mig.capable", "nvidia.com/mig.strategy", "nvidia.com/mig-",
            "nvidia.com/gpu.machine", "nvidia.com/gpu.family", "nvidia.com/gfd.timestamp"});
}

std::int64_t AmountOf(const Resources& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : found->second;
}

std::string Shown(std::int64_t amount) { return amount == 0 ? "" : std::to_string(amount); }

/// The configuration of some GPUs by the rules of NVIDIA's plugin and of Penstock.
struct Sides {
  PluginSettings settings;
  std::optional<api::NodeConfig> now, then;  ///< nothing: cannot be honoured
};

Sides SidesOf(PluginSettings settings) {
  Sides sides{.now = ConfigOf(settings, api::PluginFiles::kAsNvidia),
              .then = ConfigOf(settings, api::PluginFiles::kExtended)};
  sides.settings = std::move(settings);
  return sides;
}

/// The resources that a node has now, those that it should have now by the rules of NVIDIA's
/// plugin, and those that it will have by Penstock's.
struct Both {
  Resources has, now, then;
  std::string origin;  ///< of the configuration
  bool mig = false;
};

/// The amounts of MIG devices stay: they do not follow from a node's labels, and the strategy by
/// which they are named is kept.
void KeepMigDevices(Both& both) {
  for (const auto& [name, amount] : both.has)
    if (name.starts_with(kMig) || (both.mig && name == "nvidia.com/gpu")) both.then[name] = amount;
}

bool IsOfMigDevices(const std::string& name, const Both& both) {
  return name.starts_with(kMig) || both.mig;
}

std::string NoteOn(const std::string& name, const Both& both, std::size_t gpus, Migration& plan) {
  const std::int64_t has = AmountOf(both.has, name), then = AmountOf(both.then, name);
  if (has == then && IsOfMigDevices(name, both)) return "the same name, one for each MIG device";
  if (has == then) {
    const auto each = gpus == 0 ? 0 : then / static_cast<std::int64_t>(gpus);
    return each > 1 ? "the same name, " + std::to_string(each) + " for each GPU"
                    : "the same name, one for each GPU";
  }
  if (AmountOf(both.now, name) == has) {
    plan.as_nvidia = true;
    return "NVIDIA's plugin reads and ignores resources, rename and devices, which take effect "
           "here; devicePlugin.configFiles: as-nvidia ignores them, too";
  }
  return both.origin.empty() ? "no configuration was found that explains this"
                             : "according to " + both.origin;
}

void AddResources(const Both& both, std::size_t gpus, bool counted, Migration& plan) {
  std::set<std::string> names;
  for (const auto& [name, amount] : both.has) names.insert(name);
  for (const auto& [name, amount] : both.then) names.insert(name);
  for (const std::string& name : names) {
    PlannedChange change{name, Shown(AmountOf(both.has, name)), Shown(AmountOf(both.then, name)), 0,
                         NoteOn(name, both, gpus, plan)};
    if (counted) {
      CountOnNodes(plan.resources, std::move(change));
    } else {
      change.note = "of " + std::to_string(gpus) + " GPUs" +
                    (both.origin.empty() ? "" : ", by " + both.origin) + ": " + change.note;
      plan.resources.push_back(std::move(change));
    }
  }
}

void AddLabels(const Labels& now, const Labels& then, Migration& plan) {
  for (const auto& [key, value] : now) {
    if (!key.starts_with(kNvidiaDomain) || IsOthers(key) || StaysAsItIs(key)) continue;
    const auto predicted = then.find(key);
    if (predicted == then.end()) {
      CountOnNodes(plan.labels, {key, value, "", 0, "removed with GPU Feature Discovery"});
    } else if (predicted->second != value) {
      CountOnNodes(plan.labels, {key, value, predicted->second, 0, ""});
    }
  }
  for (const auto& [key, value] : then)
    if (!now.contains(key) && !StaysAsItIs(key))
      CountOnNodes(plan.labels, {key, "", value, 0, "new"});
}

std::string LabelOf(const LabelledNode& node, const std::string& key) {
  const auto found = node.labels.find(key);
  return found == node.labels.end() ? "" : found->second;
}

/// Adds a remark where two DaemonSets serve one node: each takes over the other's resource at the
/// kubelet.
void AddTwoPlugins(const Found& found, const LabelledNode& node, Migration& plan) {
  std::vector<std::string> names;
  for (const Workload* one : PluginsOf(found, node))
    if (one->kind == "DaemonSet") names.push_back(one->from);
  if (names.size() < 2) return;
  const std::string problem = std::to_string(names.size()) +
                              " device plugins serve the same nodes: " + base::Join(names, ", ") +
                              "; remove one first, or pass the manifests of only one";
  if (std::ranges::find(plan.problems, problem) == plan.problems.end())
    plan.problems.push_back(problem);
}

void AddNode(const Found& found, const LabelledNode& node, Migration& plan) {
  AddTwoPlugins(found, node, plan);
  Sides sides = SidesOf(SettingsOf(found, node));
  const PluginSettings& settings = sides.settings;
  if (!settings.known) sides.now = sides.then = ConfigOfLabels(node.labels);
  if (!settings.problem.empty())
    plan.remarks.push_back(node.name + ": " + settings.problem +
                           "; its part of this plan is based on its labels");
  const auto gpus = GpusOf(node, sides.now.value_or(api::NodeConfig()));
  const std::string machine = LabelOf(node, "nvidia.com/gpu.machine");
  const Offered now = OfferOf(sides.now.value_or(api::NodeConfig()), gpus, machine);
  const Offered then = sides.then ? OfferOf(*sides.then, gpus, machine) : Offered();
  Both both{.now = now.resources, .then = then.resources, .origin = settings.origin};
  both.mig = LabelOf(node, "nvidia.com/gpu.product").find("-MIG-") != std::string::npos;
  for (const auto& [name, amount] : node.capacity)
    if (name.starts_with(kNvidiaDomain) && amount > 0) both.has[name] = amount;
  if (both.has.empty() && gpus.devices.empty()) return;
  KeepMigDevices(both);
  AddResources(both, gpus.devices.size(), true, plan);
  // Those of MIG devices do not follow from other labels, and stay.
  if (!both.mig && !LabelOf(node, "nvidia.com/gpu.count").empty())
    AddLabels(node.labels, then.labels, plan);
}

/// Adds the changes where no nodes are known.
void AddExamples(const Found& found, Migration& plan) {
  AddTwoPlugins(found, {}, plan);
  PluginSettings settings = SettingsOf(found, {});
  std::vector<std::pair<std::string, std::string>> texts;  // origin, text
  for (const ConfigFile& config : found.configs) texts.emplace_back(config.from, config.text);
  if (texts.empty()) texts.emplace_back();
  for (const auto& [origin, text] : texts) {
    settings.origin = origin;
    settings.text = text;
    const Sides sides = SidesOf(settings);
    if (!sides.now || !sides.then) continue;  // AddSettings has reported why
    const auto gpus = ExampleGpus(*sides.then);
    Both both{.now = OfferOf(*sides.now, gpus).resources,
              .then = OfferOf(*sides.then, gpus).resources,
              .origin = origin};
    both.has = both.now;
    AddResources(both, gpus.devices.size(), false, plan);
  }
}

template <typename Uses>
std::vector<std::string> UsersOf(const Found& found, Uses uses) {
  std::vector<std::string> names;
  for (const GpuConsumer& one : found.consumers)
    if (uses(one)) names.push_back(one.name);
  return names;
}

/// Adds pods that use GPUs without requesting them from the kubelet.
void AddUnrequested(const Found& found, Migration& plan) {
  const auto all = UsersOf(found, [](const GpuConsumer& one) {
    return one.resources.empty() && !one.visible_devices.empty() && one.visible_devices != "void" &&
           one.visible_devices != "none";
  });
  if (!all.empty())
    plan.remarks.push_back("NVIDIA_VISIBLE_DEVICES without a resource, in " + Named(all) +
                           ": NVIDIA's runtime gives GPUs to such a pod, Penstock's only to a "
                           "privileged one (docs/containers.md)");
  const auto classes = UsersOf(
      found, [](const GpuConsumer& one) { return one.runtime_class.starts_with("nvidia"); });
  if (!classes.empty())
    plan.remarks.push_back("NVIDIA's runtimeClassName in " + Named(classes) +
                           ": such pods start only while a RuntimeClass of that name exists and "
                           "the engine knows its handler");
}

bool GivesCdi(const Workload& one) {
  return std::ranges::any_of(one.given, [](const api::compat::Given& given) {
    return given.flag == "--device-list-strategy" && given.value.find("cdi") != std::string::npos;
  });
}

/// Adds files on nodes, of the parts that are installed. An operator's policy creates the first
/// two.
void AddFiles(const Found& found, Migration& plan) {
  const auto has = [&found](Part part) { return !WorkloadsOf(found, {part}).empty(); };
  const bool policy = !found.policies.empty();
  if (policy || has(Part::kDevicePlugin))
    plan.files.push_back({"/var/lib/kubelet/device-plugins/nvidia-gpu.sock", "the plugin's socket",
                          "penstock-nvidia.com-gpu-*.sock", 0, ""});
  if (policy || has(Part::kFeatureDiscovery))
    plan.files.push_back(
        {"/etc/kubernetes/node-feature-discovery/features.d/gfd", "labels written to a file", "", 0,
         "labels are set on the Node object; set labels.featuresFile if a file is required"});
  if (std::ranges::any_of(found.workloads, GivesCdi))
    plan.files.push_back(
        {"/var/run/cdi/k8s.device-plugin.nvidia.com-*", "CDI specifications",
         "under the same names", 0,
         "the agent writes its own in their place; running pods keep their devices"});
  if (has(Part::kMps))
    plan.files.push_back(
        {"/run/nvidia/mps", "of the MPS control daemon", "unchanged", 0, "unused without it"});
}

/// Adds the files of this machine, where it is a node.
void AddFilesHere(const Found& found, Migration& plan) {
  for (const std::string& file : found.files) {
    if (file.ends_with("/config.toml")) {
      plan.files.push_back({file, "the toolkit's settings", "read unchanged", 0,
                            "`penstock runtime doctor` reports which have no effect"});
    } else if (file.find("/cdi/nvidia") != std::string::npos) {
      plan.files.push_back(
          {file, "written by nvidia-ctk", "unchanged", 0,
           "`penstock runtime doctor` reports whether its names conflict with the agent's"});
    } else if (file.ends_with("/98-nvidia.sh")) {
      plan.files.push_back({file, "runs nvidia-container-cli", "unchanged", 0,
                            "enroot needs NVIDIA's toolkit here as long as it uses this hook"});
    }
  }
}

}  // namespace

void CountOnNodes(std::vector<PlannedChange>& changes, PlannedChange change) {
  const auto same = std::ranges::find_if(changes, [&change](const PlannedChange& one) {
    return one.what == change.what && one.now == change.now && one.then == change.then &&
           one.note == change.note;
  });
  if (same == changes.end()) {
    changes.push_back(std::move(change));
    changes.back().nodes = 1;
  } else {
    ++same->nodes;
  }
}

std::string Named(const std::vector<std::string>& names) {
  if (names.size() <= kMaxNamed) return base::Join(names, ", ");
  return base::Join({names.begin(), names.begin() + kMaxNamed}, ", ") + " and " +
         std::to_string(names.size() - kMaxNamed) + " more";
}

void AddLost(const Found& found, Migration& plan) {
  const auto add = [&plan](const PlannedChange& change, const std::string& what,
                           const std::vector<std::string>& users) {
    plan.lost.push_back(what + ": " + change.now + " now, " +
                        (change.then.empty() ? "none" : change.then) + " then" +
                        (change.nodes > 0 ? " on " + std::to_string(change.nodes) +
                                                (change.nodes == 1 ? " node" : " nodes")
                                          : "") +
                        (users.empty() ? "" : "; used by " + Named(users)));
  };
  for (const PlannedChange& change : plan.resources) {
    if (base::ParseInt(change.then).value_or(0) >= base::ParseInt(change.now).value_or(0)) continue;
    add(change, change.what, UsersOf(found, [&change](const GpuConsumer& one) {
          return one.resources.contains(change.what);
        }));
  }
  for (const PlannedChange& change : plan.labels) {
    const auto users = UsersOf(found, [&change](const GpuConsumer& one) {
      const auto wanted = one.selects.find(change.what);
      return wanted != one.selects.end() && wanted->second == change.now;
    });
    if (!change.now.empty() && (change.then.empty() || !users.empty()))
      add(change, "label " + change.what, users);
  }
}

void AddChanges(const Found& found, const std::string& only, Migration& plan) {
  for (const LabelledNode& node : found.nodes)
    if (only.empty() || node.name == only) AddNode(found, node, plan);
  if (found.nodes.empty()) AddExamples(found, plan);
  AddLost(found, plan);
  AddUnrequested(found, plan);
  plan.remarks.emplace_back(
      "labels are set by server-side apply under the field manager penstock-labels; "
      "nvidia.com/gfd.timestamp is the agent's start");
  if (!found.node_features.empty())
    plan.remarks.emplace_back(
        "when the NodeFeature objects of GPU Feature Discovery are deleted, NFD removes its "
        "nvidia.com labels from the nodes; the agent sets its own again within a second");
  AddMonitoring(found, only, plan);
  AddFiles(found, plan);
  AddFilesHere(found, plan);
}

void AddChangesBack(const Found& found, const std::string& only, Migration& plan) {
  plan.resources.push_back({"nvidia.com/gpu", "", "", 0,
                            "the same name; with sharing or MIG in the configuration, the names "
                            "that NVIDIA's plugin derives"});
  for (const LabelledNode& node : found.nodes) {
    if (!only.empty() && node.name != only) continue;
    for (const auto& [key, value] : node.labels) {
      if (key == "nvidia.com/gpu.isolation") {
        CountOnNodes(plan.labels,
                     {key, value, "", 0, "Penstock only: GPU Feature Discovery has no such label"});
      } else if (IsOfModel(key)) {
        CountOnNodes(plan.labels,
                     {key, value, "", 0,
                      "Penstock only: GPU Feature Discovery has no labels for each model"});
      }
    }
  }
}

}  // namespace penstock::analysis
