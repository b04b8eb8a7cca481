#include "analysis/metric_names.h"

#include <algorithm>
#include <set>

#include "api/config/node_config.h"
#include "api/metrics.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

using device::CounterRow;
using device::ExporterField;
using device::FieldSource;

void AddSources(const std::vector<const device::Dialect*>& dialects, MetricName& metric) {
  for (const device::Dialect* dialect : dialects) {
    for (const device::Quantity& quantity : dialect->Quantities()) {
      if (quantity.family != metric.name) continue;
      metric.sources.push_back({std::string(dialect->vendor()), std::string(quantity.key),
                                std::string(quantity.labels), std::string(quantity.source),
                                std::string(quantity.has)});
      const auto* exporter = dialect->exporter();
      if (exporter == nullptr) continue;
      for (const ExporterField& field : exporter->fields())
        if (field.source == FieldSource::kQuantity && field.from == quantity.key)
          metric.also.emplace_back(field.name);
    }
  }
}

MetricName Ours(const api::MetricFamily& family,
                const std::vector<const device::Dialect*>& dialects) {
  MetricName metric{.name = std::string(family.name),
                    .names = family.name.starts_with("penstock_") ? "penstock" : "accelerator",
                    .group = std::string(ToString(family.group)),
                    .type = std::string(ToString(family.type)),
                    .unit = std::string(family.unit),
                    .labels = LabelsOf(family),
                    .meaning = std::string(family.help),
                    .note = std::string(family.note),
                    .by_default = !family.on_request};
  AddSources(dialects, metric);
  return metric;
}

/// The meaning of a field that has no quantity.
std::string_view MeaningOf(FieldSource source) {
  switch (source) {
    case FieldSource::kFact: return "A fact about the device or its driver.";
    case FieldSource::kLastError: return "Code of the last error; 0 if there was none.";
    case FieldSource::kErrorsInWindow: return "Errors within telemetry.errorsWindow, by code.";
    case FieldSource::kReasonsInWindow:
      return "Samples within telemetry.clockEventsWindow in which clocks were limited, by reason.";
    case FieldSource::kErrorsTotal: return "Errors since the agent started, by code.";
    case FieldSource::kReasonsTotal:
      return "Number of times clocks began to be limited, by reason, as observed at collections.";
    case FieldSource::kHealth: return "Health: 0 healthy, 10 unknown, 20 unhealthy.";
    case FieldSource::kHealthy: return "Health: 1 healthy, 0 unhealthy.";
    case FieldSource::kDevices: return "Number of devices of the node.";
    case FieldSource::kPeers: return "Link from this device to another device.";
    case FieldSource::kQuantity: return "As reported by the driver.";
    case FieldSource::kUnavailable: break;
  }
  return "Not supported here.";
}

std::vector<std::string> NamesOf(const device::ExporterLabels& labels) {
  std::vector<std::string> names;
  for (const auto& [name, value] : labels) names.push_back(name);
  return names;
}

/// Describes an exporter field under its older name, or under the newer one.
MetricName Exported(const device::Dialect& dialect, const ExporterField& field, bool newer,
                    const std::vector<CounterRow>& rows) {
  const auto quantities = dialect.Quantities();
  const auto quantity = std::ranges::find(quantities, field.from, &device::Quantity::key);
  const auto row = std::ranges::find(rows, field.name, &CounterRow::field);
  const bool measured = quantity != quantities.end() && field.source == FieldSource::kQuantity;
  const api::MetricFamily* family = measured ? api::FindMetricFamily(quantity->family) : nullptr;
  MetricName metric{.name = std::string(newer ? field.new_name : field.name),
                    .names = std::string(api::ToString(newer ? api::MetricNames::kExporterNew
                                                             : api::MetricNames::kExporter)),
                    .group = "exporter"};
  metric.by_default = row != rows.end() && !newer;
  if (field.source == FieldSource::kUnavailable) metric.unavailable = field.from;
  metric.type = !metric.unavailable.empty()          ? ""
                : row != rows.end()                  ? row->type
                : field.source == FieldSource::kFact ? "label"
                : measured && quantity->counter      ? "counter"
                                                     : "gauge";
  metric.labels = NamesOf(dialect.exporter()->LabelsOf(
      {}, nullptr, field.link ? 0 : -1, {.hostname = "-", .hostname_labels = {"hostname"}}));
  if (field.index)
    for (std::string& name : NamesOf(dialect.exporter()->PartLabels(field, "0", {}, 0)))
      metric.labels.push_back(std::move(name));
  metric.meaning = row != rows.end() && !newer ? std::string(base::Trim(row->help))
                   : family != nullptr         ? std::string(family->help)
                                               : std::string(MeaningOf(field.source));
  if (measured) {
    metric.sources.push_back({std::string(dialect.vendor()), std::string(quantity->key), "",
                              std::string(quantity->source), std::string(quantity->has)});
    if (family != nullptr)
      metric.also.push_back(
          std::string(family->name) +
          (quantity->labels.empty() ? "" : "{" + std::string(quantity->labels) + "}"));
  }
  if (!field.new_name.empty())
    metric.also.insert(metric.also.begin(), std::string(newer ? field.name : field.new_name));
  return metric;
}

}  // namespace

std::vector<MetricName> AllMetricNames(const std::vector<const device::Dialect*>& dialects) {
  std::vector<MetricName> all;
  for (const api::MetricFamily& family : api::MetricFamilies())
    all.push_back(Ours(family, dialects));
  for (const device::Dialect* dialect : dialects) {
    if (dialect->exporter() == nullptr) continue;
    const auto rows = dialect->exporter()->DefaultRows();
    std::set<std::string_view> names;  // several fields may share a name under the newer naming
    for (const ExporterField& field : dialect->exporter()->fields()) names.insert(field.name);
    for (const ExporterField& field : dialect->exporter()->fields()) {
      all.push_back(Exported(*dialect, field, false, rows));
      if (!field.new_name.empty() && names.insert(field.new_name).second)
        all.push_back(Exported(*dialect, field, true, rows));
    }
  }
  return all;
}

const MetricName* FindMetricName(const std::vector<MetricName>& all, std::string_view name) {
  const std::string wanted = base::ToLower(name);
  const auto exact = std::ranges::find(all, name, &MetricName::name);
  if (exact != all.end()) return &*exact;
  const auto found = std::ranges::find_if(
      all, [&wanted](const MetricName& one) { return base::ToLower(one.name) == wanted; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace penstock::analysis
