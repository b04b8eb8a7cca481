// DeviceConfig's sections about the device plugin, the labeller and the config manager, and what
// all operands have in common.
#include <algorithm>
#include <array>

#include "api/compat/amd/device_config_fields.h"

namespace penstock::api::compat::internal {

const FieldTopic kAgentImage = {
    "spec.*.{image,imagePullPolicy}", FieldFate::kOwnImage,
    "There is one image, the operator's own, which the images of AMD's operands do not choose; "
    "agent.image of a Penstock object does.",
    ""};
const FieldTopic kOneRollout = {
    "spec.{metricsExporter,configManager}.upgradePolicy", FieldFate::kElsewhere,
    "All services run in one pod on each node, which is replaced as devicePlugin.upgradePolicy "
    "says.",
    ""};

namespace {

using base::Value;
using enum FieldType;

constexpr std::string_view kGpuLabel = "feature.node.kubernetes.io/amd-gpu";
constexpr std::string_view kNamingFlag = "resource_naming_strategy", kTypeFlag = "driver_type",
                           kPulseFlag = "pulse";

/// Which labels AMD's labeller can be asked for; the agent writes all of them.
constexpr std::array<std::string_view, 12> kWrittenLabels = {"vram",
                                                             "cu-count",
                                                             "simd-count",
                                                             "device-id",
                                                             "family",
                                                             "product-name",
                                                             "driver-version",
                                                             "driver-src-version",
                                                             "compute-memory-partition",
                                                             "compute-partitioning-supported",
                                                             "memory-partitioning-supported",
                                                             "partitions"};
constexpr std::array<std::string_view, 2> kOtherLabels = {"firmware", "mode"};

void EnableDevicePlugin(PolicyWork& work, const Value& value) {
  Switch& target = work.spec.node.kubelet_allocator;
  if (MaySetShared(work, IsOn(target, true) == value.boolean, "node.allocators.kubelet.enabled"))
    target = value.boolean ? Switch::kOn : Switch::kOff;
}

void EnableLabeller(PolicyWork& work, const Value& value) {
  LabelsConfig& labels = work.spec.node.labels;
  if (MaySetShared(work, IsOn(labels.node, true) == value.boolean, "node.labels.node") &&
      !value.boolean)
    labels.node = labels.node_feature = Switch::kOff;
}

/// MIG devices keep their names: without a strategy of their own they would follow this one.
void SetNaming(PolicyWork& work, const std::string& strategy) {
  if (strategy != "single" && strategy != "mixed")
    return work.problems.Add({}, work.field + "[" + std::string(kNamingFlag) + "]: \"" +
                                     ShownText(strategy) + "\" is none of single, mixed");
  NodeConfig& node = work.spec.node;
  node.parts = strategy == "single" ? PartsStrategy::kSingle : PartsStrategy::kMixed;
  if (node.profiled_parts == PartsStrategy::kDefault) node.profiled_parts = PartsStrategy::kMixed;
}

void PluginFlags(PolicyWork& work, const Value& value) {
  std::vector<std::string> others;
  for (const auto& [flag, text] : TextsOf(value)) {
    if (flag == kNamingFlag) {
      SetNaming(work, text);
    } else if (flag == kTypeFlag) {
      if (text != "container")
        work.Answer(flag, FieldFate::kNotServed,
                    "GPUs are not handed to virtual machines yet; every node serves containers.");
    } else if (flag == kPulseFlag) {
      work.Answer(flag, FieldFate::kElsewhere,
                  "Health is read in any case, of each GPU; node.health.poll of a Penstock object "
                  "has the interval.");
    } else {
      others.push_back(flag);
    }
  }
  AnswerItems(work, others, FieldFate::kElsewhere,
              "the agent does the plugin's work without its program, so these flags have no "
              "effect; node of a Penstock object has the agent's settings.");
}

void LabellerFlags(PolicyWork& work, const Value& value) {
  std::vector<std::string> left_out, unknown;
  for (const Value& item : *value.list) {
    std::string_view flag = item.text;
    while (flag.starts_with('-')) flag.remove_prefix(1);
    if (std::ranges::find(kWrittenLabels, flag) != kWrittenLabels.end()) continue;
    const bool known = std::ranges::find(kOtherLabels, flag) != kOtherLabels.end();
    (known ? left_out : unknown).emplace_back(flag);
  }
  AnswerItems(work, left_out, FieldFate::kNotServed, "the agent does not write these labels.");
  AnswerItems(work, unknown, FieldFate::kUnknown,
              "is no label of AMD's labeller; the agent writes all that it knows.");
}

void SetAgentUpdate(PolicyWork& work, const Value& value) {
  bool& on_delete = work.spec.agent.update.on_delete;
  const bool wanted = value.text == "OnDelete";
  if (MaySetShared(work, on_delete == wanted, "agent.updateStrategy")) on_delete = wanted;
}

void SetMostUnavailable(PolicyWork& work, const Value& value) {
  std::string& most = work.spec.agent.update.max_unavailable;
  if (value.integer < 1)
    return work.Problem("is " + value.text + ", less than 1; no pod could be replaced");
  // The default of the definition asks for nothing of the agents that others have set up.
  if (MaySetShared(work, most == value.text || value.integer == 1, "agent.updateStrategy"))
    most = value.text;
}

void EnableConfigManager(PolicyWork& work, const Value& value) {
  bool& by_label = work.spec.node.parts_by_label;
  if (MaySetShared(work, by_label == value.boolean, "node.parts.byLabel")) by_label = value.boolean;
}

void SetModeProfiles(PolicyWork& work, const Value& value) {
  if (work.On("configManager.enable")) SetMapName(work, value, work.spec.config_maps.mode_profiles);
}

void SelectManagedNodes(PolicyWork& work, const Value& value) {
  if (work.On("configManager.enable") && SelectsOthers(work, value))
    work.Answer("", FieldFate::kElsewhere,
                "The agent of each node follows the label dcm.amd.com/gpu-config-profile: nodes "
                "without it are not changed.");
}

void SelectNodes(PolicyWork& work, const Value& value) {
  if (work.over == nullptr) return TakeLabels(work, value, work.spec.agent.node_selector);
  if (value.map->empty()) return;
  const std::map<std::string, std::string> usual = {{std::string(kGpuLabel), "true"}};
  const bool all = TextsOf(value) == usual;
  work.Answer("", all ? FieldFate::kElsewhere : FieldFate::kNotServed,
              std::string("Agents run on the nodes of the policy of another vendor that is in "
                          "force, and serve AMD's GPUs wherever there are any") +
                  (all ? "."
                       : ", on nodes without these labels, too; agent.nodeSelector of a Penstock "
                         "object chooses the nodes of all agents."));
}

}  // namespace

std::vector<ResourceField> PluginSection() {
  std::vector<ResourceField> fields;
  SectionFields plugin(fields, "devicePlugin");
  plugin.Add({.path = "enableDevicePlugin",
              .type = kBool,
              .text = "Whether the agent offers GPUs to the kubelet (allocators.kubelet.enabled).",
              .schema_default = "true",
              .unset = "true",
              .apply = EnableDevicePlugin});
  plugin.Add({.path = "enableNodeLabeller",
              .type = kBool,
              .text = "Whether the agent labels its node (labels.node).",
              .schema_default = "true",
              .unset = "true",
              .apply = EnableLabeller});
  plugin.AddImage("devicePluginImage", "devicePluginImagePullPolicy", kAgentImage);
  plugin.AddImage("nodeLabellerImage", "nodeLabellerImagePullPolicy", kAgentImage);
  plugin.AddReference("imageRegistrySecret",
                      "Secret for the agent's image; those of all operands together.", nullptr,
                      AddSecretReference);
  plugin.Add({.path = "devicePluginTolerations",
              .type = kTolerations,
              .text = "Taints that the agents' pods tolerate; those of all operands together.",
              .apply = AddTolerations});
  plugin.Add({.path = "nodeLabellerTolerations",
              .type = kTolerations,
              .text = "As devicePluginTolerations.",
              .apply = AddTolerations});
  plugin.Add({.path = "devicePluginArguments",
              .type = kTextMap,
              .text = "resource_naming_strategy says under which names partitions are offered "
                      "(parts.strategy); other flags are answered.",
              .apply = PluginFlags});
  plugin.Add({.path = "nodeLabellerArguments",
              .type = kTexts,
              .text = "The agent writes all labels that it knows; others are answered.",
              .topic = &kItems,
              .apply = LabellerFlags});
  plugin.Add({.path = "upgradePolicy", .type = kMap});
  plugin.Add({.path = "upgradePolicy.upgradeStrategy",
              .text = "How a changed agent replaces the one before it. OnDelete: only where its "
                      "pod is deleted.",
              .words = {"RollingUpdate", "OnDelete"},
              .apply = SetAgentUpdate});
  plugin.Add({.path = "upgradePolicy.maxUnavailable",
              .type = kInt,
              .text = "Nodes without an agent at the same time during a roll-out. Without "
                      "upgradePolicy the new pod starts beside the old one and takes over.",
              .schema_default = "1",
              .apply = SetMostUnavailable});
  plugin.Add(
      {.path = "kubeletSocketPath",
       .text =
           "The kubelet's folder of device plugins on the nodes. With metricsExporter.enable off, "
           "a path that ends in /device-plugins also says where pod-resources is: beside it.",
       .schema_default = "/var/lib/kubelet/device-plugins",
       .apply = SetPluginFolder});
  plugin.Add({.path = "hostNetwork",
              .type = kBool,
              .text = "All services run in one pod on each node, which uses the network of the "
                      "node if metricsExporter.hostNetwork is true.",
              .topic = &kAloneElsewhere});
  return fields;
}

std::vector<ResourceField> ConfigManagerSection() {
  std::vector<ResourceField> fields;
  SectionFields manager(fields, "configManager");
  manager.Add({.path = "enable",
               .type = kBool,
               .text = "Whether the agent divides GPUs as the label "
                       "dcm.amd.com/gpu-config-profile asks (parts.byLabel).",
               .unset = "false",
               .apply = EnableConfigManager});
  manager.AddImage("image", "imagePullPolicy", kAgentImage);
  manager.AddReference("imageRegistrySecret",
                       "Secret for the agent's image; those of all operands together.", nullptr,
                       AddSecretReference);
  manager.AddReference("config", "ConfigMap with profiles under config.json.", nullptr,
                       SetModeProfiles);
  manager.Add({.path = "selector",
               .type = kTextMap,
               .text = "Nodes are chosen by the label of the profile.",
               .topic = &kItemsElsewhere,
               .apply = SelectManagedNodes});
  manager.AddUpgradePolicy(kOneRollout);
  manager.Add({.path = "configManagerTolerations",
               .type = kTolerations,
               .text = "As devicePlugin.devicePluginTolerations.",
               .apply = AddTolerations});
  return fields;
}

std::vector<ResourceField> CommonSections() {
  std::vector<ResourceField> fields = {
      {.path = "selector",
       .type = kTextMap,
       .text = "Labels of the nodes that have an agent; empty: all nodes. With a policy of another "
               "vendor, agents run on the nodes of that one.",
       .apply = SelectNodes}};
  SectionFields common(fields, "commonConfig");
  common.AddAnswered({{.path = "initContainerImage"}}, kAgentImage);
  common.Add({.path = "imageRegistrySecrets",
              .type = kMaps,
              .text = "Secrets for the agent's image; those of all operands together.",
              .apply = AddSecretReferences});
  common.Add({.path = "utilsContainer", .type = kMap});
  common.AddImage("utilsContainer.image", "utilsContainer.imagePullPolicy", kAgentImage);
  common.AddReference("utilsContainer.imageRegistrySecret", "", &kAgentImage, nullptr);
  return fields;
}

}  // namespace penstock::api::compat::internal
