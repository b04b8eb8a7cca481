// What changes, and in which order to do it.
#include <algorithm>
#include <set>

#include "app/penstock/migrate.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::app {

namespace {

constexpr char kGpu[] = "nvidia.com/gpu";

/// A resource that a configuration shares.
struct Shared {
  std::string resource, how;
  std::int64_t replicas = 0;
  bool renamed = false;
};

std::vector<Shared> SharedIn(const ConfigFile& config) {
  std::vector<Shared> shared;
  const auto document = base::ParseYaml(config.text, config.from);
  const base::Value* sharing = document.ok() ? document->Find("sharing") : nullptr;
  if (sharing == nullptr) return shared;
  for (const char* how : {"timeSlicing", "mps"}) {
    const base::Value* one = sharing->Find(how);
    const base::Value* resources = one == nullptr ? nullptr : one->Find("resources");
    if (resources == nullptr || !resources->list) continue;
    const base::Value* rename = one->Find("renameByDefault");
    for (const base::Value& resource : *resources->list) {
      const base::Value* name = resource.Find("name");
      const base::Value* replicas = resource.Find("replicas");
      if (name == nullptr || replicas == nullptr) continue;
      const std::string full = name->text.find('/') == std::string::npos ? "nvidia.com/" + name->text : name->text;
      shared.push_back({full, how, replicas->integer, rename != nullptr && rename->boolean});
    }
  }
  return shared;
}

std::vector<const Workload*> WorkloadsOf(const Found& found, std::initializer_list<Part> parts) {
  std::vector<const Workload*> some;
  for (const Workload& one : found.workloads)
    if (std::find(parts.begin(), parts.end(), one.part) != parts.end()) some.push_back(&one);
  return some;
}

std::string Describe(const Workload& one) {
  std::string text = one.from + ": " + std::string(ToString(one.part));
  if (!one.policy.empty()) {
    text += " (of ClusterPolicy " + one.policy + ")";
  } else if (!one.release.empty()) {
    text += " (Helm release " + one.release + (one.chart.empty() ? "" : ", chart " + one.chart) + ")";
  }
  if (!one.config_map.empty())
    text += ", configured by ConfigMap " + one.config_map + (one.default_key.empty() ? "" : ", by default its key " + one.default_key);
  return text;
}

void AddFound(const Found& found, Migration& plan) {
  for (const Workload& one : found.workloads) plan.found.push_back(Describe(one));
  for (const Policy& one : found.policies)
    plan.found.push_back("ClusterPolicy " + one.name + " of the GPU Operator" +
                         (one.config_map.empty() ? "" : ", config " + one.config_map));
  for (const ConfigFile& one : found.configs) plan.found.push_back(one.from + ": a configuration of the device plugin");
  if (!found.node_features.empty())
    plan.found.push_back(std::to_string(found.node_features.size()) + " NodeFeature objects of GPU Feature Discovery (" +
                         found.node_features.front() + (found.node_features.size() > 1 ? ", …" : "") + ")");
  for (const std::string& file : found.files) plan.found.push_back("on this machine: " + file);
}

/// What the settings of the stack mean here; each sentence once, with where it comes from.
void AddSettings(const Found& found, Migration& plan) {
  const auto add = [&plan](const std::string& from, const base::Result<api::compat::Translation>& translation) {
    if (!translation.ok()) {
      plan.problems.push_back(from + ": " + base::Join(base::Split(translation.error().message(), '\n'), "; "));
      return;
    }
    for (const std::string& one : translation->not_yet) plan.not_yet.push_back(from + ": " + one);
    for (const std::string& one : translation->remarks) plan.remarks.push_back(from + ": " + one);
  };
  for (const Workload* one : WorkloadsOf(found, {Part::kDevicePlugin, Part::kFeatureDiscovery})) {
    if (!one->given.empty()) add(one->from, api::compat::TranslateDevicePlugin("", one->from, one->given, {}, base::Reading::kLenient));
    for (const std::string& flag : one->unknown)
      plan.remarks.push_back(one->from + ": " + flag + " is none of the plugin's settings; it has no meaning here");
  }
  for (const ConfigFile& one : found.configs)
    add(one.from, api::compat::TranslateDevicePlugin(one.text, one.key.empty() ? one.from : one.key, {}, {}, base::Reading::kLenient));
  for (const Policy& one : found.policies)
    if (one.mig_strategy == "single" || one.mig_strategy == "mixed")
      plan.not_yet.push_back("ClusterPolicy " + one.name + ": mig.strategy " + one.mig_strategy +
                             ": MIG devices are not to be had yet; GPUs in MIG mode are withheld");
  for (const Workload* one : WorkloadsOf(found, {Part::kMps}))
    plan.remarks.push_back(one->from + ": the agent starts and watches MPS itself; this one goes with NVIDIA's plugin");
}

std::int64_t NumberIn(const std::map<std::string, std::string>& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? 0 : base::ParseInt(found->second).value_or(0);
}

/// The same change of several nodes is told once.
void Count(std::vector<Change>& changes, Change change) {
  const auto same = std::find_if(changes.begin(), changes.end(), [&change](const Change& one) {
    return one.what == change.what && one.now == change.now && one.then == change.then && one.note == change.note;
  });
  if (same == changes.end()) {
    changes.push_back(std::move(change));
    changes.back().nodes = 1;
  } else {
    ++same->nodes;
  }
}

void AddNodeResources(const LabelledNode& node, Migration& plan) {
  const std::int64_t replicas = NumberIn(node.labels, "nvidia.com/gpu.replicas");
  const std::string shares = "the same name, " + std::to_string(replicas) + " for each GPU that is shared";
  for (const auto& [name, amount] : node.capacity) {
    if (!name.starts_with("nvidia.com/") || amount == 0) continue;
    const std::string now = std::to_string(amount);
    if (name == kGpu || name.ends_with(".shared")) {
      Count(plan.resources, {name, now, now, 0, replicas > 1 ? shares : "the same name, one for each GPU"});
    } else {
      Count(plan.resources, {name, now, "", 0, "not to be had yet"});
    }
  }
}

/// Without nodes to look at: what the configurations say.
void AddConfiguredResources(const Found& found, Migration& plan) {
  plan.resources.push_back({kGpu, "", "", 0, "the same name, one for each GPU that is not shared"});
  for (const ConfigFile& config : found.configs)
    for (const Shared& one : SharedIn(config)) {
      const std::string shares = std::to_string(one.replicas) + " for each GPU";
      plan.resources.push_back({one.renamed ? one.resource + ".shared" : one.resource, shares, shares, 0, config.from + ": " + one.how});
    }
}

/// Our labels with a model in their name.
bool IsOfModel(const std::string& key) {
  static constexpr std::array<std::string_view, 6> kFamilies = {"nvidia.com/gpu.present.",          "nvidia.com/gpu.count.",
                                                                "nvidia.com/gpu.memory.",           "nvidia.com/gpu.replicas.",
                                                                "nvidia.com/gpu.sharing-strategy.", "nvidia.com/gpu.isolation."};
  return std::any_of(kFamilies.begin(), kFamilies.end(), [&key](std::string_view prefix) { return key.starts_with(prefix); });
}

bool IsOthers(const std::string& key) {
  static constexpr std::array<std::string_view, 6> kOthers = {"nvidia.com/gpu.deploy.",          "nvidia.com/mig.config",
                                                              "nvidia.com/gpu.workload.config",  "nvidia.com/gpu-driver-upgrade",
                                                              "nvidia.com/device-plugin.config", "nvidia.com/vm-passthrough"};
  return std::any_of(kOthers.begin(), kOthers.end(), [&key](std::string_view prefix) { return key.starts_with(prefix); });
}

/// What cannot be told from labels alone and comes from the same facts as before.
bool StaysAsItIs(const std::string& key) {
  static constexpr std::array<std::string_view, 6> kFacts = {"nvidia.com/gpu.mode",    "nvidia.com/gpu.clique",  "nvidia.com/vgpu.",
                                                             "nvidia.com/mig.capable", "nvidia.com/gpu.machine", "nvidia.com/gpu.family"};
  return std::any_of(kFacts.begin(), kFacts.end(), [&key](std::string_view prefix) { return key.starts_with(prefix); });
}

void AddNodeLabels(const LabelledNode& node, Migration& plan) {
  if (NumberIn(node.labels, "nvidia.com/gpu.count") == 0) return;  // nobody labels it now: all of them are new there
  const auto then = PredictLabels(node.labels);
  for (const auto& [key, value] : node.labels) {
    if (!key.starts_with("nvidia.com/") || IsOthers(key) || StaysAsItIs(key)) continue;
    const auto predicted = then.find(key);
    if (key == "nvidia.com/gfd.timestamp") continue;
    if (predicted == then.end()) {
      Count(plan.labels, {key, value, "", 0, "it goes with GPU Feature Discovery"});
    } else if (predicted->second != value) {
      Count(plan.labels, {key, value, predicted->second, 0, ""});
    }
  }
  for (const auto& [key, value] : then)
    if (!node.labels.contains(key) && !StaysAsItIs(key)) Count(plan.labels, {key, "", value, 0, "new"});
}

bool Has(const Found& found, Part part) { return !WorkloadsOf(found, {part}).empty(); }

bool GivesCdi(const Workload& one) {
  return std::any_of(one.given.begin(), one.given.end(), [](const api::compat::Given& given) {
    return given.flag == "--device-list-strategy" && given.value.find("cdi") != std::string::npos;
  });
}

/// Files on nodes, of those parts that are there. An operator's policy makes the first two.
void AddFiles(const Found& found, Migration& plan) {
  const bool policy = !found.policies.empty();
  if (policy || Has(found, Part::kDevicePlugin))
    plan.files.push_back(
        {"/var/lib/kubelet/device-plugins/nvidia-gpu.sock", "the plugin's socket", "penstock-nvidia.com-gpu-*.sock", 0, ""});
  if (policy || Has(found, Part::kFeatureDiscovery))
    plan.files.push_back({"/etc/kubernetes/node-feature-discovery/features.d/gfd", "where it labels by file", "", 0,
                          "labels go to the Node object; labels.featuresFile names a file where one is wanted"});
  if (std::any_of(found.workloads.begin(), found.workloads.end(), GivesCdi))
    plan.files.push_back({"/var/run/cdi/k8s.device-plugin.nvidia.com-*", "CDI specifications", "under the same names", 0,
                          "the agent writes its own in their place; pods that run keep what they were given"});
  if (Has(found, Part::kMps)) plan.files.push_back({"/run/nvidia/mps", "of the MPS control daemon", "as it is", 0, "of no use without it"});
}

void AddChanges(const Found& found, const std::string& only, Migration& plan) {
  for (const LabelledNode& node : found.nodes) {
    if (!only.empty() && node.name != only) continue;
    AddNodeResources(node, plan);
    AddNodeLabels(node, plan);
  }
  if (found.nodes.empty()) AddConfiguredResources(found, plan);
  plan.remarks.emplace_back(
      "labels are set by server-side apply under the field manager penstock-labels; nvidia.com/gfd.timestamp is the agent's start");
  if (!found.node_features.empty())
    plan.remarks.emplace_back(
        "when the NodeFeature objects of GPU Feature Discovery go, NFD takes its nvidia.com labels from the nodes; the agent sets its own "
        "again within a second");
  AddFiles(found, plan);
}

std::string Namespace(const std::string& name) { return name.empty() ? "" : "-n " + name + " "; }

void AddCheckSteps(const Found& found, Migration& plan) {
  std::set<std::string> told;
  for (const ConfigFile& one : found.configs)
    if (!one.config_map.empty() && told.insert(one.namespace_name + "/" + one.config_map).second)
      plan.steps.push_back(
          {"kubectl " + Namespace(one.namespace_name) + "get configmap " + one.config_map + " -o yaml | penstock config check --lenient -",
           "what of its files is wrong, passed over or not to be had yet"});
}

/// ConfigMaps are read from the release's own namespace, so Penstock is best installed where they are.
void AddInstallStep(const Found& found, Migration& plan) {
  std::string space = "penstock", values, config;
  for (const Workload* one : WorkloadsOf(found, {Part::kDevicePlugin})) {
    if (one->config_map.empty() && one->release.empty()) continue;
    if (!one->namespace_name.empty()) space = one->namespace_name;
    if (!one->release.empty()) {
      const std::string in = one->release_namespace.empty() ? one->namespace_name : one->release_namespace;
      plan.steps.push_back({"helm " + Namespace(in) + "get values " + one->release + " -o yaml > values.yaml",
                            "Penstock's chart has the same values under the same names"});
      values = " -f values.yaml";
      break;
    }
    config = " --set config.name=" + one->config_map + (one->default_key.empty() ? "" : " --set config.default=" + one->default_key);
  }
  for (const Policy& one : found.policies) {
    if (one.config_map.empty() || !values.empty()) continue;
    config = " --set config.name=" + one.config_map + (one.default_key.empty() ? "" : " --set config.default=" + one.default_key);
    for (const ConfigFile& file : found.configs)
      if (file.config_map == one.config_map && !file.namespace_name.empty()) space = file.namespace_name;
  }
  plan.steps.push_back({"helm " + Namespace(space) + "install penstock deploy/helm/penstock" +
                            (space == "penstock" ? " --create-namespace" : "") + values + config,
                        "its agents wait beside NVIDIA's plugin (`kubectl penstock nodes` says stepped-back) and take over when it goes"});
}

void AddRemovalSteps(const Found& found, const std::string& node, Migration& plan) {
  const std::string why =
      "Penstock's agent takes over at once; running pods keep their GPUs. A node where GPUs are shared is better drained first";
  std::set<std::string> done;
  for (const Workload* one : WorkloadsOf(found, {Part::kDevicePlugin, Part::kFeatureDiscovery, Part::kMps})) {
    if (one->kind == "values" || !one->policy.empty()) continue;
    if (!one->release.empty()) {
      const std::string in = one->release_namespace.empty() ? one->namespace_name : one->release_namespace;
      if (done.insert("helm " + one->release).second) plan.steps.push_back({"helm " + Namespace(in) + "uninstall " + one->release, why});
    } else {
      plan.steps.push_back({"kubectl " + Namespace(one->namespace_name) + "delete daemonset " + one->name, why});
    }
  }
  for (const Policy& one : found.policies) {
    if (node.empty()) {
      plan.steps.push_back({"kubectl patch clusterpolicy " + one.name +
                                R"( --type merge -p '{"spec":{"devicePlugin":{"enabled":false},"gfd":{"enabled":false}}}')",
                            "the operator takes its device plugin and GPU Feature Discovery away and leaves the driver and the toolkit"});
    } else {
      plan.steps.push_back({"kubectl label node " + node +
                                " nvidia.com/gpu.deploy.device-plugin=false nvidia.com/gpu.deploy.gpu-feature-discovery=false --overwrite",
                            "the operator takes the two away from this node alone"});
    }
  }
  if (!found.node_features.empty())
    plan.steps.push_back({"kubectl get nodefeatures -A | grep nvidia-features-for-",
                          "they go with GPU Feature Discovery; delete what is left, or NFD keeps labelling from it"});
}

void PlanToPenstock(const Found& found, const std::string& node, Migration& plan) {
  AddSettings(found, plan);
  AddChanges(found, node, plan);
  AddCheckSteps(found, plan);
  AddInstallStep(found, plan);
  AddRemovalSteps(found, node, plan);
  plan.steps.push_back({node.empty() ? "kubectl penstock nodes" : "kubectl penstock explain " + node,
                        "says for each node who serves it, and what is wrong"});
}

void PlanToNvidia(const Found& found, const std::string& node, Migration& plan) {
  plan.resources.push_back({kGpu, "", "", 0, "the same name; with sharing or MIG in the configuration, as NVIDIA's plugin makes of it"});
  for (const LabelledNode& one : found.nodes) {
    if (!node.empty() && one.name != node) continue;
    for (const auto& [key, value] : one.labels) {
      if (key == "nvidia.com/gpu.isolation") {
        Count(plan.labels, {key, value, "", 0, "ours alone: GPU Feature Discovery does not tell it"});
      } else if (IsOfModel(key)) {
        Count(plan.labels, {key, value, "", 0, "ours alone: GPU Feature Discovery has no labels for each model"});
      }
    }
  }
  plan.remarks.emplace_back(
      "nvidia.com labels are set again by GPU Feature Discovery, which needs Node Feature Discovery on the cluster; so are "
      "feature.node.kubernetes.io labels");
  plan.remarks.emplace_back(
      "a configuration in the plugin's own format (version v1) is read by both; a NodeConfig is not read by NVIDIA's plugin");
  plan.files.push_back(
      {"/var/lib/penstock, /run/penstock", "the agent's state", "", 0, "removed by the uninstall (`penstock cleanup --host`)"});
  plan.files.push_back({"/var/lib/kubelet/device-plugins/penstock-nvidia.com-gpu-*.sock", "the agent's socket", "nvidia-gpu.sock", 0, ""});
  std::string release = "penstock", space = "penstock";
  for (const Workload* one : WorkloadsOf(found, {Part::kPenstock}))
    if (!one->release.empty()) release = one->release, space = one->namespace_name;
  plan.steps.push_back({"helm " + Namespace(space) + "get values " + release + " -o yaml > values.yaml",
                        "values of NVIDIA's chart have their names here; those below `penstock` are ours alone: take them out"});
  plan.steps.push_back(
      {"helm " + Namespace(space) + "uninstall " + release, "the kubelet sees the devices gone; running pods keep theirs"});
  plan.steps.push_back({"kubectl penstock cleanup", "labels and objects of ours; the chart's own uninstall does that already"});
  plan.steps.push_back({"helm " + Namespace(space) + "install nvdp nvdp/nvidia-device-plugin -f values.yaml --set gfd.enabled=true",
                        "its plugin registers nvidia.com/gpu anew"});
}

}  // namespace

Migration Plan(const Found& found, Direction direction, const std::string& node) {
  Migration plan{.direction = direction};
  AddFound(found, plan);
  plan.remarks = found.remarks;
  if (direction == Direction::kToPenstock) {
    PlanToPenstock(found, node, plan);
  } else {
    PlanToNvidia(found, node, plan);
  }
  return plan;
}

}  // namespace penstock::app
