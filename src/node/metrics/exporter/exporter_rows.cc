#include "node/metrics/exporter/exporter_rows.h"

#include <algorithm>
#include <set>
#include <span>

namespace penstock::node::metrics {
namespace {

using api::MetricNames;
using device::CounterRow;
using device::ExporterField;
using device::FieldSource;

/// The rows for this exporter's fields. Rows for fields of others leave it its default.
std::vector<CounterRow> RowsIn(const api::TelemetryConfig& config,
                               const device::Exporter& exporter) {
  const std::vector<CounterRow> preset = exporter.DefaultRows();
  std::vector<CounterRow> rows;
  bool families = false;
  for (const api::MetricRow& row : config.counters) {
    if (std::ranges::none_of(exporter.fields(), [&row](const ExporterField& field) {
          return field.name == row.field || field.new_name == row.field;
        }))
      continue;
    const auto known = std::ranges::find(preset, row.field, &CounterRow::field);
    rows.push_back({row.field, row.type,
                    row.help.empty() && known != preset.end() && exporter.has_settings()
                        ? known->help
                        : row.help});
    families = families || row.type != "label";
  }
  // Its settings may choose labels alone.
  if (rows.empty() || (!families && exporter.has_settings()))
    rows.insert(rows.end(), preset.begin(), preset.end());
  return rows;
}

Exposition::Type TypeOf(std::string_view type) {
  return type == "counter" ? Exposition::Type::kCounter
         : type == "gauge" ? Exposition::Type::kGauge
                           : Exposition::Type::kUnknown;
}

Own OwnOf(const device::Quantity& quantity) {
  return quantity.family == "accelerator_utilization_ratio"   ? Own::kUtilization
         : quantity.family == "accelerator_memory_used_bytes" ? Own::kMemory
                                                              : Own::kNothing;
}

/// The help of a field with the unit replaced, for a field whose unit differs under the newer
/// naming: "SM clock frequency (in MHz).".
std::string NewHelp(const std::string& help, const device::Quantity& quantity) {
  const auto begin = help.find("(in ");
  const auto end = help.find(')', begin);
  if (begin == std::string::npos || end == std::string::npos) return help;
  const std::string unit(device::BaseOf(quantity.unit).name);
  return help.substr(0, begin) + (unit == "ratio" ? "(0 to 1" : "(in " + unit) + help.substr(end);
}

/// Sets the quantity that the values come from. Returns false if there is none, so that the family
/// would stay empty.
bool FindQuantity(std::span<const device::Quantity> quantities, ExporterRow& row) {
  const FieldSource source = row.field->source;
  if (source != FieldSource::kQuantity && source != FieldSource::kReasonsInWindow &&
      source != FieldSource::kReasonsTotal)
    return source != FieldSource::kUnavailable;
  const auto found = std::ranges::find(quantities, row.field->from, &device::Quantity::key);
  if (found == quantities.end()) return false;
  row.quantity = static_cast<device::QuantityId>(found - quantities.begin());
  if (source == FieldSource::kQuantity && !row.field->link && row.field->one_link < 0)
    row.own = OwnOf(*found);
  return true;
}

}  // namespace

ExporterRows RowsOf(const device::Dialect& dialect, const api::TelemetryConfig& config) {
  const auto wants = [&config](MetricNames names) {
    return std::ranges::find(config.names, names) != config.names.end();
  };
  const bool old_naming = wants(MetricNames::kExporter),
             new_naming = wants(MetricNames::kExporterNew);
  ExporterRows rows;
  if (!old_naming && !new_naming) return rows;
  const std::string prefix =
      dialect.exporter()->has_settings() ? config.exporter.prefix : std::string();
  std::set<std::string, std::less<>> names;
  const auto add = [&](const ExporterField& field, const CounterRow& counter, bool newer) {
    ExporterRow row{.field = &field,
                    .new_naming = newer,
                    .name = prefix + std::string(newer && !field.new_name.empty() ? field.new_name
                                                                                  : field.name)};
    row.type = TypeOf(counter.type);
    row.help = counter.help;
    if (!FindQuantity(dialect.Quantities(), row) || !names.insert(row.name).second) return;
    if (newer && row.quantity && field.divisor != field.new_divisor)
      row.help = NewHelp(row.help, dialect.Quantities()[*row.quantity]);
    rows.families.push_back(std::move(row));
  };
  const auto fields = dialect.exporter()->fields();
  for (const CounterRow& counter : RowsIn(config, *dialect.exporter())) {
    const auto field = std::ranges::find_if(fields, [&counter](const ExporterField& one) {
      return one.name == counter.field || one.new_name == counter.field;
    });
    if (field == fields.end()) continue;
    if (counter.type == "label") {
      if (field->source == FieldSource::kFact &&
          std::ranges::find(rows.labels, &*field) == rows.labels.end())
        rows.labels.push_back(&*field);
      continue;
    }
    if (field->source == FieldSource::kUnavailable) rows.unavailable.push_back(&*field);
    if (old_naming) add(*field, counter, false);
    if (new_naming) add(*field, counter, true);
  }
  std::ranges::stable_sort(rows.families, [](const ExporterRow& one, const ExporterRow& other) {
    return one.field->number < other.field->number;
  });
  return rows;
}

}  // namespace penstock::node::metrics
