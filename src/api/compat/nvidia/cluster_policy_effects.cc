// How single fields of a ClusterPolicy take effect.
#include <algorithm>

#include "api/cluster/kube_json.h"
#include "api/cluster/penstock_check.h"
#include "api/compat/nvidia/cluster_policy_fields.h"
#include "api/config/node_config_check.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;

std::map<std::string, std::string> TextsOf(const Value& value) {
  std::map<std::string, std::string> texts;
  for (const Value::Entry& entry : *value.map) texts[entry.key] = entry.value.text;
  return texts;
}

void SetName(PolicyWork& work, const Value& value, std::string_view what, std::string& target) {
  if (!value.text.empty() && !api::internal::IsObjectName(value.text, true))
    return work.Problem("\"" + base::Printable(value.text) + "\" is not the name of a " +
                        std::string(what));
  target = value.text;
}

}  // namespace

bool PolicyWork::On(std::string_view path) const { return IsFieldOn(reading, fields, path); }

void PolicyWork::Problem(const std::string& message) const {
  problems.Add({}, field + ": " + message);
}

void PolicyWork::Answer(std::string_view item, FieldFate fate, std::string_view text) const {
  answers.push_back(
      {field + (item.empty() ? "" : "[" + base::Printable(item) + "]"), fate, std::string(text)});
}

void ApplyFields(PolicyWork& work) {
  for (const ResourceField& field : work.fields) {
    if (field.apply == nullptr) continue;
    if (!work.without.empty() && field.path.starts_with(work.without)) continue;
    const Value* given = work.reading.Find(field.path);
    std::optional<Value> otherwise;
    const auto dot = field.path.rfind('.');
    const bool inside = dot != std::string::npos &&
                        work.reading.Find(std::string_view(field.path).substr(0, dot)) != nullptr;
    // A default of the definition applies where the map around it is set.
    if (given == nullptr && (inside || !field.unset.empty())) otherwise = DefaultOf(field);
    if (given == nullptr && !otherwise) continue;
    work.field = "spec." + field.path;
    field.apply(work, given != nullptr ? *given : *otherwise);
  }
}

void TakeLabels(PolicyWork& work, const Value& value, std::map<std::string, std::string>& target) {
  const auto labels = TextsOf(value);
  api::internal::CheckLabelMap("", labels, [&](std::string_view, const std::string& message) {
    work.Problem(base::Printable(message));
  });
  for (const auto& [key, text] : labels) target[key] = text;
}

void AddLabels(PolicyWork& work, const Value& value) {
  TakeLabels(work, value, work.spec.agent.labels);
}

void AddAnnotations(PolicyWork& work, const Value& value) {
  for (const auto& [key, text] : TextsOf(value)) work.spec.agent.annotations[key] = text;
}

void AddSecretNames(PolicyWork& work, const Value& value, std::vector<std::string>& target) {
  for (const Value& item : *value.list) {
    if (!api::internal::IsObjectName(item.text, true)) {
      work.Problem("\"" + base::Printable(item.text) + "\" is not the name of a Secret");
    } else if (std::ranges::find(target, item.text) == target.end()) {
      target.push_back(item.text);
    }
  }
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

void SetAbsolutePath(PolicyWork& work, const Value& value, std::string& target) {
  if (value.text.empty()) return;
  if (value.text.front() != '/' || !base::IsPrintable(value.text))
    return work.Problem("\"" + base::Printable(value.text) + "\" must be an absolute path");
  target = value.text;
}

void SetMapName(PolicyWork& work, const Value& value, std::string& target) {
  SetName(work, value, "ConfigMap", target);
}

void SetSecretName(PolicyWork& work, const Value& value, std::string& target) {
  SetName(work, value, "Secret", target);
}

void SetPriorityName(PolicyWork& work, const Value& value, std::string& target) {
  SetName(work, value, "PriorityClass", target);
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
