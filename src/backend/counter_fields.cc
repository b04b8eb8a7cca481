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

}  // namespace

std::span<const api::compat::CounterField> CounterFields() {
  static const std::vector<api::compat::CounterField> fields = [] {
    std::vector<api::compat::CounterField> all;
    for (const device::Dialect* dialect : backend::Dialects())
      if (const device::Exporter* exporter = dialect->exporter())
        for (const device::ExporterField& field : exporter->fields()) all.push_back(Known(field));
    return all;
  }();
  return fields;
}

}  // namespace penstock::backend
