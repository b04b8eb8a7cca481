// How single fields of a ClusterPolicy take effect.
#include "api/compat/nvidia/cluster_policy_fields.h"
#include "api/config/node_config_check.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

using base::Value;

void AddLabels(PolicyWork& work, const Value& value) {
  TakeLabels(work, value, work.spec.agent.labels);
}

void AddAnnotations(PolicyWork& work, const Value& value) {
  for (const auto& [key, text] : TextsOf(value)) work.spec.agent.annotations[key] = text;
}

void AddPullSecrets(PolicyWork& work, const Value& value) {
  AddSecretNames(work, value, work.spec.agent.pull_secrets);
}

void SetRuntimeClass(PolicyWork& work, const Value& value) {
  if (!api::internal::IsObjectName(value.text, true))
    return work.Problem("\"" + base::Printable(value.text) +
                        "\" is not the name of a RuntimeClass");
  work.runtime_class = value.text;
}

void SetMonitorLabels(PolicyWork& work, const Value& value) {
  if (work.On("dcgmExporter.enabled"))
    TakeLabels(work, value, ExporterService(work).monitor_labels);
}

void GiveLabelPatterns(PolicyWork& work, const Value& value) {
  std::vector<std::string> patterns;
  for (const Value& item : *value.list) patterns.push_back(item.text);
  // Without enablePodLabels they have no effect, in NVIDIA's exporter either.
  if (!patterns.empty() && work.On("dcgmExporter.enablePodLabels"))
    GiveExporter(work, "--kubernetes-pod-label-allowlist-regex", base::Join(patterns, ","));
}

MetricsService& ExporterService(PolicyWork& work) {
  auto& services = work.spec.services;
  if (services.empty())
    services.push_back({.name = "nvidia-dcgm-exporter",
                        .labels = {{"app", "nvidia-dcgm-exporter"}},
                        .annotations = {{"prometheus.io/scrape", "true"}}});
  return services.front();
}

}  // namespace penstock::api::compat::internal
