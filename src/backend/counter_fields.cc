#include "backend/counter_fields.h"

#include <vector>

#include "backend/all.h"

namespace penstock::backend {

namespace {

using device::FieldSource;

api::compat::CounterField Known(const device::ExporterField& field) {
  return {
      .name = field.name,
      .new_name = field.new_name,
      .text = field.source == FieldSource::kFact,
      .unavailable = field.source == FieldSource::kUnavailable ? field.from : std::string_view()};
}

/// Of all exporters, or of those with settings.
std::vector<api::compat::CounterField> FieldsOf(bool all_exporters) {
  std::vector<api::compat::CounterField> all;
  for (const device::Dialect* dialect : backend::Dialects())
    if (const device::Exporter* exporter = dialect->exporter();
        exporter != nullptr && (all_exporters || exporter->has_settings()))
      for (const device::ExporterField& field : exporter->fields()) all.push_back(Known(field));
  return all;
}

}  // namespace

std::span<const api::compat::CounterField> CounterFields() {
  static const std::vector<api::compat::CounterField> fields = FieldsOf(true);
  return fields;
}

std::span<const api::compat::CounterField> SettingsFields() {
  static const std::vector<api::compat::CounterField> fields = FieldsOf(false);
  return fields;
}

}  // namespace penstock::backend
