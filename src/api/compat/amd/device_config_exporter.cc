// DeviceConfig's section about the metrics exporter: the agents' page, and the Service and
// ServiceMonitor in front of it.
#include <algorithm>

#include "api/cluster/kube_json.h"
#include "api/compat/amd/device_config_fields.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;

constexpr std::string_view kEnabled = "metricsExporter.enable";
constexpr std::string_view kMonitorEnabled = "metricsExporter.prometheus.serviceMonitor.enable";
constexpr int kAgentPort = 9400;  // the pods' command line has it

const FieldTopic kProxy = {
    "spec.metricsExporter.rbacConfig.enable", FieldFate::kNotServed,
    "No kube-rbac-proxy stands in front of the metrics, which everyone in the cluster can read; "
    "node.http.webConfigFile of a Penstock object has certificates and users for the agents' page.",
    "metricsExporter.rbacConfig.enable"};
const FieldTopic kMonitorSettings = {
    "spec.metricsExporter.prometheus.serviceMonitor", FieldFate::kNotServed,
    "The ServiceMonitor has no such settings yet; create one of your own, which selects the "
    "Service by its label app.kubernetes.io/service.",
    kMonitorEnabled};
const FieldTopic kExporterPod = {
    "spec.metricsExporter.resource", FieldFate::kElsewhere,
    "All services run in one pod on each node, whose requests and limits are agent.resources of a "
    "Penstock object.",
    kEnabled};

bool HasExporterNames(const TelemetryConfig& telemetry) {
  return std::ranges::any_of(telemetry.names,
                             [](MetricNames one) { return one != MetricNames::kAccelerator; });
}

/// AMD's exporter serves the health of GPUs to AMD's device plugin in any case.
void EnableMetrics(PolicyWork& work, const Value& value) {
  if (value.boolean) work.spec.host.health_sockets = true;
  TelemetryConfig& telemetry = work.spec.node.telemetry;
  if (!MaySetShared(work, HasExporterNames(telemetry) == value.boolean, "node.telemetry.names") ||
      value.boolean)
    return;
  telemetry.names = {MetricNames::kAccelerator};
  telemetry.names_set = true;
}

/// Sets a part of the Service, where there is one.
template <auto kMember>
void SetServicePart(PolicyWork& work, const Value& value) {
  if (!work.On(kEnabled)) return;
  auto& target = DeviceService(work).*kMember;
  if constexpr (std::is_same_v<std::remove_reference_t<decltype(target)>, bool>)
    target = value.boolean;
  else
    target = value.text;
}

void SetServicePort(PolicyWork& work, const Value& value) {
  if (value.integer < 0 || value.integer > 65535)
    return work.Problem("is " + value.text + ", which is no port: 1 to 65535");
  if (work.On(kEnabled) && value.integer != 0)
    DeviceService(work).port = static_cast<int>(value.integer);
}

void SetServiceType(PolicyWork& work, const Value& value) {
  if (!work.On(kEnabled)) return;
  MetricsService& service = DeviceService(work);
  service.type = value.text;
  service.external_traffic_policy = value.text == "NodePort" ? "Local" : "";
}

void SetNodePort(PolicyWork& work, const Value& value) {
  if (!work.On(kEnabled)) return;
  MetricsService& service = DeviceService(work);
  if (service.type == "NodePort")
    service.node_port = static_cast<int>(value.integer);
  else
    work.Answer("", FieldFate::kDeprecated,
                "Has no effect in AMD's operator either, unless serviceType is NodePort.");
}

void AnnotateService(PolicyWork& work, const Value& value) {
  if (work.On(kEnabled)) DeviceService(work).annotations = TextsOf(value);
}

/// Those of other policies remain.
void AnnotatePods(PolicyWork& work, const Value& value) {
  if (!work.On(kEnabled)) return;
  std::vector<std::string> others;
  for (const auto& [key, text] : TextsOf(value)) {
    const auto [found, added] = work.spec.agent.annotations.emplace(key, text);
    if (!added && found->second != text) others.push_back(key);
  }
  AnswerItems(work, others, FieldFate::kNotServed,
              "a policy of another vendor that is in force has another value for the agents' "
              "pods.");
}

void SetExporterFile(PolicyWork& work, const Value& value) {
  if (work.On(kEnabled)) SetMapName(work, value, work.spec.config_maps.exporter);
}

void SelectMeasuredNodes(PolicyWork& work, const Value& value) {
  if (work.On(kEnabled) && SelectsOthers(work, value))
    work.Answer("", FieldFate::kNotServed,
                "The agents of all nodes serve metrics; a selector of one service alone has no "
                "effect.");
}

void UseHostNetwork(PolicyWork& work, const Value& value) {
  if (!work.On(kEnabled)) return;
  bool& target = work.spec.agent.host_network;
  if (!MaySetShared(work, target == value.boolean, "agent.hostNetwork")) return;
  target = value.boolean;
  if (value.boolean && DeviceService(work).port != kAgentPort)
    work.Answer("", FieldFate::kElsewhere,
                "The agents listen on port 9400 of their nodes; metricsExporter.port is that of "
                "the Service.");
}

void LabelMonitor(PolicyWork& work, const Value& value) {
  if (work.On(kEnabled)) TakeLabels(work, value, DeviceService(work).monitor_labels);
}

void RelabelTargets(PolicyWork& work, const Value& value) {
  if (work.On(kEnabled) && !value.list->empty())
    DeviceService(work).relabelings = api::internal::KubeJsonOf(value);
}

void AddServiceParts(SectionFields& exporter) {
  exporter.Add({.path = "port",
                .type = kInt,
                .text = "Port of the Service. The agents listen on 9400.",
                .schema_default = "5000",
                .apply = SetServicePort});
  exporter.Add({.path = "serviceType",
                .text = "Type of the Service <name>-metrics-exporter.",
                .schema_default = "ClusterIP",
                .words = {"ClusterIP", "NodePort"},
                .apply = SetServiceType});
  exporter.Add({.path = "nodePort",
                .type = kInt,
                .text = "Port of the nodes, of the type NodePort; if not set, the server chooses "
                        "one.",
                .least = 30000,
                .most = 32767,
                .apply = SetNodePort});
  exporter.Add({.path = "serviceAnnotations",
                .type = kTextMap,
                .text = "Annotations of the Service.",
                .apply = AnnotateService});
}

void AddMonitorParts(SectionFields& exporter) {
  const std::string at = "prometheus.serviceMonitor";
  exporter.Add({.path = "prometheus", .type = kMap});
  exporter.Add({.path = at, .type = kMap});
  exporter.Add({.path = at + ".enable",
                .type = kBool,
                .text = "Whether there is a ServiceMonitor, where the cluster has this kind.",
                .apply = SetServicePart<&MetricsService::monitor>});
  exporter.Add({.path = at + ".interval",
                .type = kDuration,
                .text = "How often Prometheus scrapes.",
                .apply = SetServicePart<&MetricsService::interval>});
  exporter.Add({.path = at + ".honorLabels",
                .type = kBool,
                .text = "Whether the metrics' own labels win over Prometheus'.",
                .schema_default = "true",
                .apply = SetServicePart<&MetricsService::honor_labels>});
  exporter.Add({.path = at + ".labels",
                .type = kTextMap,
                .text = "Labels of the ServiceMonitor.",
                .apply = LabelMonitor});
  exporter.Add({.path = at + ".relabelings",
                .type = kRelabelings,
                .text = "Rules for the labels of targets, passed on as they are.",
                .apply = RelabelTargets});
  exporter.AddAnswered({{.path = at + ".honorTimestamps", .type = kBool},
                        {.path = at + ".attachMetadata", .type = kOpenMap},
                        {.path = at + ".metricRelabelings", .type = kRelabelings}},
                       kMonitorSettings);
  // AMD's operator has these take effect with its proxy alone.
  exporter.AddAnswered({{.path = at + ".authorization", .type = kOpenMap},
                        {.path = at + ".bearerTokenFile"},
                        {.path = at + ".tlsConfig", .type = kOpenMap}},
                       kProxy);
}

void AddProxy(SectionFields& exporter) {
  const std::string at = "rbacConfig";
  exporter.AddAnswered({{.path = at, .type = kMap},
                        {.path = at + ".enable", .type = kBool},
                        {.path = at + ".image"},
                        {.path = at + ".disableHttps", .type = kBool}},
                       kProxy);
  for (const char* reference : {".secret", ".clientCAConfigMap"})
    exporter.AddReference(at + reference, "", &kProxy, nullptr);
  exporter.AddAnswered({{.path = at + ".staticAuthorization", .type = kMap},
                        {.path = at + ".staticAuthorization.enable", .type = kBool},
                        {.path = at + ".staticAuthorization.clientName"}},
                       kProxy);
}

}  // namespace

MetricsService& DeviceService(PolicyWork& work) { return work.spec.services.back(); }

std::vector<ResourceField> ExporterSection() {
  std::vector<ResourceField> fields;
  SectionFields exporter(fields, "metricsExporter");
  exporter.Add(
      {.path = "enable",
       .type = kBool,
       .text = "Whether there is the Service <name>-metrics-exporter, and the names of "
               "AMD's exporter are among the metrics. The agent's own metrics remain. The agents "
               "serve the health of GPUs on the exporter's socket.",
       .unset = "false",
       .apply = EnableMetrics});
  exporter.AddImage("image", "imagePullPolicy", kAgentImage);
  exporter.AddReference("imageRegistrySecret",
                        "Secret for the agent's image; those of all operands together.", nullptr,
                        AddSecretReference);
  exporter.Add({.path = "tolerations",
                .type = kTolerations,
                .text = "As devicePlugin.devicePluginTolerations.",
                .apply = AddTolerations});
  AddServiceParts(exporter);
  exporter.AddReference("config", "ConfigMap with the exporter's file under config.json.", nullptr,
                        SetExporterFile);
  AddMonitorParts(exporter);
  AddProxy(exporter);
  exporter.Add({.path = "selector",
                .type = kTextMap,
                .text = "The agents of all nodes serve metrics.",
                .topic = &kItems,
                .apply = SelectMeasuredNodes});
  exporter.AddUpgradePolicy(kOneRollout);
  exporter.Add({.path = "podResourceAPISocketPath",
                .text = "The kubelet's folder on the nodes, and /pod-resources.",
                .schema_default = "/var/lib/kubelet/pod-resources",
                .apply = [](PolicyWork& work, const Value& value) {
                  if (work.On(kEnabled)) SetResourceFolder(work, value);
                }});
  // AMD's definition has these limits as a default.
  exporter.Add(
      {.path = "resource",
       .type = kResources,
       .usual =
           {R"({"limits":{"cpu":"2","memory":"4G"},"requests":{"cpu":"500m","memory":"512M"}})"},
       .topic = &kExporterPod});
  exporter.Add({.path = "podAnnotations",
                .type = kTextMap,
                .text = "Annotations of the agents' pods.",
                .apply = AnnotatePods});
  exporter.Add({.path = "hostNetwork",
                .type = kBool,
                .text = "Whether the agent's pod uses the network of its node.",
                .apply = UseHostNetwork});
  return fields;
}

}  // namespace penstock::api::compat::internal
