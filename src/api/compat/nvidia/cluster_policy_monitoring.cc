// ClusterPolicy's sections about metrics: DCGM, its exporter, the exporter of a node's status.
#include <algorithm>

#include "api/cluster/kube_json.h"
#include "api/compat/nvidia/cluster_policy_fields.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;

const FieldTopic kHostEngine = {
    "spec.dcgm.enabled", FieldFate::kElsewhere,
    "No nv-hostengine is started, so nothing listens on port 5555: the agent reads the driver "
    "itself and serves DCGM's metrics on port 9400. Programs that connect to DCGM need a host "
    "engine of their own.",
    "dcgm.enabled"};
constexpr std::string_view kJobDirectory = "/var/lib/dcgm-exporter/job-mapping";

void EnableExporter(PolicyWork& work, const Value& value) {
  TelemetryConfig& telemetry = work.spec.node.telemetry;
  if (value.boolean) {
    ExporterService(work);
  } else {
    telemetry.names = {MetricNames::kAccelerator};
    telemetry.names_set = true;
  }
}

/// Sets a part of the exporter's Service, where there is one.
template <auto kMember>
void SetService(PolicyWork& work, const Value& value) {
  if (!work.On("dcgmExporter.enabled")) return;
  auto& target = ExporterService(work).*kMember;
  if constexpr (std::is_same_v<std::remove_reference_t<decltype(target)>, bool>)
    target = value.boolean;
  else
    target = value.text;
}

/// A part that has to be one of several words; the definition accepts any.
template <auto kMember>
void SetServiceWord(PolicyWork& work, const Value& value, const std::vector<std::string>& words) {
  if (value.text.empty()) return;
  if (std::ranges::find(words, value.text) == words.end())
    return work.Problem("\"" + base::Printable(value.text) + "\" is none of " +
                        base::Join(words, ", "));
  SetService<kMember>(work, value);
}

void AddServiceFields(std::vector<ResourceField>& fields) {
  const std::string service = "dcgmExporter.service";
  const std::string monitor = "dcgmExporter.serviceMonitor";
  fields.push_back({.path = service, .type = kMap});
  fields.push_back({.path = service + ".type",
                    .text = "Type of the Service nvidia-dcgm-exporter.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      SetServiceWord<&MetricsService::type>(
                          work, value, {"ClusterIP", "NodePort", "LoadBalancer"});
                    }});
  fields.push_back({.path = service + ".internalTrafficPolicy",
                    .text = "Local: a client in the cluster reaches the agent of its own node.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      SetServiceWord<&MetricsService::internal_traffic_policy>(
                          work, value, {"Cluster", "Local"});
                    }});
  fields.push_back({.path = monitor, .type = kMap});
  fields.push_back({.path = monitor + ".enabled",
                    .type = kBool,
                    .text = "Whether there is a ServiceMonitor, where the cluster has this kind.",
                    .apply = SetService<&MetricsService::monitor>});
  fields.push_back({.path = monitor + ".interval",
                    .type = kDuration,
                    .text = "How often Prometheus scrapes.",
                    .apply = SetService<&MetricsService::interval>});
  fields.push_back({.path = monitor + ".scrapeTimeout",
                    .type = kDuration,
                    .text = "How long Prometheus waits for the metrics.",
                    .apply = SetService<&MetricsService::scrape_timeout>});
  fields.push_back({.path = monitor + ".honorLabels",
                    .type = kBool,
                    .text = "Whether the metrics' own labels win over Prometheus'.",
                    .apply = SetService<&MetricsService::honor_labels>});
  fields.push_back({.path = monitor + ".additionalLabels",
                    .type = kTextMap,
                    .text = "Labels of the ServiceMonitor.",
                    .apply = SetMonitorLabels});
  fields.push_back({.path = monitor + ".relabelings",
                    .type = kRelabelings,
                    .text = "Rules for the labels of targets, passed on as they are.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      if (work.On("dcgmExporter.enabled") && !value.list->empty())
                        ExporterService(work).relabelings = api::internal::KubeJsonOf(value);
                    }});
}

/// The operator mounts the directory into the agents' pods.
void SetJobDirectory(PolicyWork& work, const Value& value) {
  if (!work.On("dcgmExporter.enabled") || !work.On("dcgmExporter.hpcJobMapping.enabled")) return;
  std::string directory(kJobDirectory);
  SetAbsolutePath(work, value, directory);
  if (directory.find_first_not_of('/') == std::string::npos)
    return work.Problem("\"" + directory + "\" cannot be mounted into a pod; name a directory");
  GiveExporter(work, "--hpc-job-mapping-dir", directory);
}

void AddSeriesFields(std::vector<ResourceField>& fields) {
  fields.push_back({.path = "dcgmExporter.enablePodLabels",
                    .type = kBool,
                    .text = "Series have the labels of the pod that holds the GPU "
                            "(telemetry.holderLabels).",
                    .apply = [](PolicyWork& work, const Value& value) {
                      if (value.boolean)
                        GiveExporter(work, "--kubernetes-enable-pod-labels", "true");
                    }});
  fields.push_back({.path = "dcgmExporter.podLabelAllowlistRegex",
                    .type = kTexts,
                    .text = "Which labels these are (telemetry.holderLabels).",
                    .apply = GiveLabelPatterns});
  fields.push_back({.path = "dcgmExporter.enablePodUID",
                    .type = kBool,
                    .text = "Series have the pod's UID (telemetry.podUid).",
                    .apply = [](PolicyWork& work, const Value& value) {
                      if (value.boolean) GiveExporter(work, "--kubernetes-enable-pod-uid", "true");
                    }});
  fields.push_back({.path = "dcgmExporter.hpcJobMapping", .type = kMap});
  fields.push_back({.path = "dcgmExporter.hpcJobMapping.enabled",
                    .type = kBool,
                    .text = "Series have the label hpc_job with the jobs of the GPU "
                            "(telemetry.jobDirectory)."});
  fields.push_back({.path = "dcgmExporter.hpcJobMapping.directory",
                    .text = "Directory of each node with a file for each GPU, in which the "
                            "workload manager lists its jobs.",
                    .unset = kJobDirectory,
                    .apply = SetJobDirectory});
}

/// The families of the exporter are on the agents' one page. A monitor takes these alone: the
/// others would be there twice, in the job of nvidia-dcgm-exporter, too; nor do annotations have a
/// page scraped twice.
void EnableStatusExporter(PolicyWork& work, const Value& value) {
  work.spec.node.validation.exporter_names = value.boolean;
  if (!value.boolean) return;
  MetricsService service{.name = "nvidia-node-status-exporter",
                         .port = 8000,
                         .labels = {{"app", "nvidia-node-status-exporter"}},
                         .monitor = true};
  if (!work.On("dcgmExporter.enabled")) service.annotations = {{"prometheus.io/scrape", "true"}};
  service.metric_relabelings.text =
      R"([{"sourceLabels":["__name__"],"regex":"gpu_operator_.*","action":"keep"}])";
  work.spec.services.push_back(std::move(service));
}

void SetCounters(PolicyWork& work, const Value& value) {
  SetMapName(work, value, work.spec.config_maps.counters);
}

}  // namespace

std::vector<ResourceField> MonitoringFields() {
  std::vector<ResourceField> fields = {
      {.path = "dcgm", .type = kMap},
      {.path = "dcgm.enabled", .type = kBool, .topic = &kHostEngine},
      {.path = "dcgm.hostPort", .type = kInt, .topic = &kHostEngine},
  };
  AddOperand(fields, "dcgm", {.topic = &kHostEngine});
  fields.push_back({.path = "dcgmExporter", .type = kMap});
  fields.push_back({.path = "dcgmExporter.enabled",
                    .type = kBool,
                    .text = "Whether there is the Service nvidia-dcgm-exporter, and DCGM's names "
                            "are among the metrics. The agent's own metrics remain.",
                    .unset = "true",
                    .apply = EnableExporter});
  OperandBlock exporter = AgentBlock();
  exporter.apply_variables = ExporterVariables;
  exporter.apply_arguments = ExporterArguments;
  exporter.apply_network = [](PolicyWork& work, const Value& value) {
    work.spec.agent.host_network = value.boolean;
  };
  AddOperand(fields, "dcgmExporter", exporter);
  fields.push_back({.path = "dcgmExporter.hostPID",
                    .type = kBool,
                    .text = "The agent's pod is in the process namespace of its host in any case.",
                    .topic = &kAloneElsewhere});
  fields.push_back({.path = "dcgmExporter.annotations",
                    .type = kTextMap,
                    .text = "Annotations of the agents' pods.",
                    .apply = AddAnnotations});
  fields.push_back({.path = "dcgmExporter.config", .type = kMap});
  fields.push_back({.path = "dcgmExporter.config.name",
                    .text = "ConfigMap with a file of counters under dcgm-metrics.csv.",
                    .apply = SetCounters});
  AddServiceFields(fields);
  AddSeriesFields(fields);
  fields.push_back({.path = "nodeStatusExporter", .type = kMap});
  fields.push_back({.path = "nodeStatusExporter.enabled",
                    .type = kBool,
                    .text = "Whether the agents' page has the families gpu_operator_node_* "
                            "(validation.exporterNames), and there is the Service "
                            "nvidia-node-status-exporter, port 8000, which leads to that page, "
                            "with a ServiceMonitor for these families where the cluster has this "
                            "kind.",
                    .apply = EnableStatusExporter});
  AddOperand(fields, "nodeStatusExporter", AgentBlock());
  return fields;
}

}  // namespace penstock::api::compat::internal
