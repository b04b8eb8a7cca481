// Combines two sources: each device reports the quantities that it does not support
// (DeviceSample::unsupported), and the dialect's table says which devices have a quantity.
#include "node/metrics/unavailable.h"

#include <algorithm>
#include <set>

#include "node/metrics/unused_quantities.h"

namespace penstock::node::metrics {
namespace {

/// The models whose devices do not have the quantity.
std::vector<std::string> ModelsWithout(std::string_view vendor, device::QuantityId quantity,
                                       const inventory::Snapshot& inventory,
                                       const sample::Snapshot& samples) {
  std::set<std::string> models;
  for (const inventory::Entry& entry : inventory.devices) {
    // Parts have less than whole devices, which is no fault of the list.
    if (entry.facts->vendor != vendor || !entry.facts->parent.empty() ||
        entry.health.state == device::HealthState::kGone)
      continue;
    const sample::DeviceSample* sample = samples.Find(entry.facts->id);
    if (sample != nullptr &&
        std::ranges::find(sample->unsupported, quantity) != sample->unsupported.end())
      models.insert(entry.facts->model);
  }
  return {models.begin(), models.end()};
}

std::string ReasonOf(const device::Quantity& quantity) {
  return quantity.has.empty()
             ? "the driver does not report it"
             : "the driver does not report it; documented for: " + std::string(quantity.has);
}

/// A default with the fields of all models requests none of a certain model.
bool IsRequested(const device::ExporterField& field, const device::Exporter& exporter,
                 const api::TelemetryConfig& config) {
  return !exporter.has_settings() ||
         std::ranges::any_of(config.counters, [&field](const api::MetricRow& row) {
           return row.field == field.name || row.field == field.new_name;
         });
}

}  // namespace

std::vector<Unavailable> UnavailableOf(const device::Dialect& dialect,
                                       const api::TelemetryConfig& config, const ExporterRows& rows,
                                       const inventory::Snapshot& inventory,
                                       const sample::Snapshot& samples) {
  std::vector<Unavailable> all;
  for (const ExporterRow& row : rows.families) {
    if (!row.quantity || !IsShown(config, row.name) ||
        !IsRequested(*row.field, *dialect.exporter(), config))
      continue;
    auto models = ModelsWithout(dialect.vendor(), *row.quantity, inventory, samples);
    if (!models.empty())
      all.push_back({row.name, std::move(models), ReasonOf(dialect.Quantities()[*row.quantity])});
  }
  for (const device::ExporterField* field : rows.unavailable)
    if (IsShown(config, field->name))
      all.push_back({std::string(field->name), {}, std::string(field->from)});
  return all;
}

}  // namespace penstock::node::metrics
