// ClusterPolicy's sections about the operator and what its pods have in common, and the topics of
// several sections.
#include "api/cluster/kube_json.h"
#include "api/compat/nvidia/cluster_policy_fields.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;

const FieldTopic kOperatorMonitor = {
    "spec.operator.metrics.serviceMonitor", FieldFate::kElsewhere,
    "The operator's own ServiceMonitor is part of its chart, by the value of the same name; the "
    "agents have one by dcgmExporter.serviceMonitor.",
    "operator.metrics.serviceMonitor.enabled"};
const FieldTopic kInitContainer = {"spec.operator.initContainer", FieldFate::kDeprecated,
                                   "Has no effect in NVIDIA's operator either: remove it.", ""};

}  // namespace

const FieldTopic kOneImage = {
    "spec.*.{repository,image,version,imagePullPolicy}", FieldFate::kOwnImage,
    "There is one image, the operator's own, which the images of NVIDIA's operands do not choose; "
    "agent.image of a Penstock object does.",
    ""};
const FieldTopic kOnePodResources = {
    "spec.*.resources", FieldFate::kElsewhere,
    "All services run in one pod on each node, whose requests and limits are agent.resources of a "
    "Penstock object.",
    ""};
const FieldTopic kOnePodNetwork = {
    "spec.*.hostNetwork", FieldFate::kElsewhere,
    "All services run in one pod on each node, which uses the network of the node if "
    "dcgmExporter.hostNetwork is true.",
    ""};
const FieldTopic kNoProgram = {
    "spec.*.args", FieldFate::kElsewhere,
    "The agent does the work of this operand without its program, so flags have no effect; "
    "node of a Penstock object has the agent's settings.",
    ""};

OperandBlock AgentBlock() {
  return {.topic = &kNoProgram,
          .images = &kOneImage,
          .resources = &kOnePodResources,
          .network = &kOnePodNetwork,
          .apply_secrets = AddPullSecrets};
}

namespace {

void AddMonitor(std::vector<ResourceField>& fields) {
  const std::string at = "operator.metrics.serviceMonitor.";
  fields.push_back({.path = "operator.metrics", .type = kMap});
  fields.push_back({.path = "operator.metrics.serviceMonitor", .type = kMap});
  for (const auto& [name, type] :
       {std::pair("enabled", kBool), std::pair("interval", kDuration),
        std::pair("scrapeTimeout", kDuration), std::pair("honorLabels", kBool),
        std::pair("additionalLabels", kTextMap), std::pair("relabelings", kRelabelings)})
    fields.push_back({.path = at + name, .type = type, .topic = &kOperatorMonitor});
}

// Of all pods: of the agents', and of the driver's, if it is this object's.

void AddPodLabels(PolicyWork& work, const Value& value) {
  AddLabels(work, value);
  for (const Value::Entry& entry : *value.map)
    if (entry.key != "app" && entry.key != "app.kubernetes.io/part-of")  // as in NVIDIA's operator
      work.driver.labels[entry.key] = entry.value.text;
}

void AddPodAnnotations(PolicyWork& work, const Value& value) {
  AddAnnotations(work, value);
  for (const Value::Entry& entry : *value.map)
    work.driver.annotations[entry.key] = entry.value.text;
}

void SetTolerations(PolicyWork& work, const Value& value) {
  work.spec.agent.tolerations = work.driver.tolerations = api::internal::KubeJsonOf(value);
}

void SetPriorityClass(PolicyWork& work, const Value& value) {
  SetPriorityName(work, value, work.spec.agent.priority_class);
  if (!work.spec.agent.priority_class.empty())
    work.driver.priority_class = work.spec.agent.priority_class;
}

void SetPodSecurityContext(PolicyWork& work, const Value& value) {
  if (value.map->empty()) return;
  work.spec.agent.pod_security_context = work.driver.pod_security_context =
      api::internal::KubeJsonOf(value);
}

std::vector<ResourceField> DaemonsetFields() {
  return {
      {.path = "daemonsets", .type = kMap},
      {.path = "daemonsets.labels",
       .type = kTextMap,
       .text = "Labels of the agents' and the driver's pods.",
       .apply = AddPodLabels},
      {.path = "daemonsets.annotations",
       .type = kTextMap,
       .text = "Annotations of the agents' and the driver's pods.",
       .apply = AddPodAnnotations},
      {.path = "daemonsets.tolerations",
       .type = kTolerations,
       .text = "Taints that the agents' and the driver's pods tolerate.",
       .apply = SetTolerations},
      {.path = "daemonsets.priorityClassName",
       .text = "Priority of the agents' and the driver's pods.",
       .apply = SetPriorityClass},
      {.path = "daemonsets.podSecurityContext",
       .type = kOpenMap,
       .text = "Security context of the agents' and the driver's pods.",
       .apply = SetPodSecurityContext},
      {.path = "daemonsets.updateStrategy",
       .text = "How a changed agent replaces the one before it. OnDelete: only where its pod is "
               "deleted. Drivers have driver.upgradePolicy.",
       .schema_default = "RollingUpdate",
       .words = {"RollingUpdate", "OnDelete"},
       .apply =
           [](PolicyWork& work, const Value& value) {
             work.spec.agent.update.on_delete = value.text == "OnDelete";
           }},
      {.path = "daemonsets.rollingUpdate", .type = kMap},
      {.path = "daemonsets.rollingUpdate.maxUnavailable",
       .type = kNumberOrPercent,
       .text = "Nodes without an agent at the same time during a roll-out. If not set, the new pod "
               "starts beside the old one and takes over.",
       .apply = [](PolicyWork& work,
                   const Value& value) { work.spec.agent.update.max_unavailable = value.text; }},
  };
}

std::vector<ResourceField> HostFields() {
  return {
      {.path = "hostPaths", .type = kMap},
      {.path = "hostPaths.rootFS",
       .text = "The agent finds the root of its host without this: it does not change into it.",
       .usual = {"/"},
       .topic = &kAloneElsewhere},
      {.path = "hostPaths.driverInstallDir",
       .text = "Root of a driver that a container installed; a driver of the host itself is found "
               "without this.",
       .unset = "/run/nvidia/driver",
       .apply =
           [](PolicyWork& work, const Value& value) {
             SetAbsolutePath(work, value, work.spec.host.driver_root);
           }},
      {.path = "hostPaths.kubeletRootDir",
       .text =
           "The kubelet's folder on the nodes, its --root-dir. That of device plugins is the same "
           "under each.",
       .schema_default = "/var/lib/kubelet",
       .apply =
           [](PolicyWork& work, const Value& value) {
             SetAbsolutePath(work, value, work.spec.host.kubelet_dir);
           }},
      {.path = "psa", .type = kMap},
      {.path = "psa.enabled",
       .type = kBool,
       .text = "Whether the operator's namespace is labelled for privileged pods.",
       .apply = [](PolicyWork& work,
                   const Value& value) { work.spec.privileged_namespace = value.boolean; }},
      {.path = "psp", .type = kMap},
      {.path = "psp.enabled",
       .type = kBool,
       .text = "Kubernetes has no PodSecurityPolicies since 1.25; psa.enabled labels the "
               "operator's namespace.",
       .topic = &kAloneDeprecated},
      {.path = "cdi", .type = kMap},
      {.path = "cdi.enabled",
       .type = kBool,
       .text = "The agent writes CDI specifications in any case, since its container runtime reads "
               "them too: engines inject devices by CDI where they can, and otherwise by the "
               "RuntimeClass. With false, there is a RuntimeClass for the handler of "
               "operator.runtimeClass only.",
       .schema_default = "true",
       .topic = &kAloneElsewhere},
      {.path = "cdi.nriPluginEnabled",
       .type = kBool,
       .text = "Devices are not injected by an NRI plugin yet; where the engine supports CDI, its "
               "configuration needs no change for CDI either.",
       .schema_default = "false",
       .topic = &kAlone},
      {.path = "cdi.default",
       .type = kBool,
       .text = "Has no effect in NVIDIA's operator either: remove it.",
       .schema_default = "false",
       .topic = &kAloneDeprecated},
  };
}

}  // namespace

std::vector<ResourceField> OperatorFields() {
  std::vector<ResourceField> fields = {
      {.path = "operator", .type = kMap},
      {.path = "operator.runtimeClass",
       .text = "Name of the RuntimeClass whose handler the agent configures, beside nvidia-cdi and "
               "nvidia-legacy.",
       .schema_default = "nvidia",
       .unset = "nvidia",
       .apply = SetRuntimeClass},
      {.path = "operator.use_ocp_driver_toolkit",
       .type = kBool,
       .text = "The driver's container compiles its modules itself, on OpenShift too, without its "
               "driver toolkit.",
       .topic = &kAloneElsewhere},
      {.path = "operator.labels",
       .type = kTextMap,
       .text = "Labels of the agents' pods; those of daemonsets.labels take precedence.",
       .apply = AddLabels},
      {.path = "operator.annotations",
       .type = kTextMap,
       .text = "Annotations of the agents' pods; those of daemonsets.annotations take precedence.",
       .apply = AddAnnotations},
      {.path = "operator.defaultRuntime",
       .text = "The agent of each node finds the container engine of its node.",
       .topic = &kAloneDeprecated},
      {.path = "operator.initContainer", .type = kMap},
  };
  AddOperand(fields, "operator.initContainer", {.topic = &kInitContainer, .only_images = true});
  AddMonitor(fields);
  for (auto& more : {DaemonsetFields(), HostFields()})
    fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

}  // namespace penstock::api::compat::internal
