// A device says itself which quantities it never has (DeviceSample::unsupported); the tables say where a quantity is to be found.
#include "node/metrics/unavailable.h"

#include <algorithm>
#include <set>

#include "node/metrics/left_out.h"

namespace penstock::node::metrics {
namespace {

/// By model, what devices of it do not have.
std::vector<std::string> ModelsWithout(std::string_view vendor, device::QuantityId quantity, const inventory::Snapshot& inventory,
                                       const sample::Snapshot& samples) {
  std::set<std::string> models;
  for (const inventory::Entry& entry : inventory.devices) {
    if (entry.facts->vendor != vendor || entry.health.state == device::HealthState::kGone) continue;
    const sample::DeviceSample* sample = samples.Find(entry.facts->id);
    if (sample != nullptr && std::find(sample->unsupported.begin(), sample->unsupported.end(), quantity) != sample->unsupported.end())
      models.insert(entry.facts->model);
  }
  return {models.begin(), models.end()};
}

std::string ReasonOf(const device::Quantity& quantity) {
  return quantity.has.empty() ? "the driver does not tell it" : "only on: " + std::string(quantity.has);
}

}  // namespace

std::vector<Unavailable> UnavailableOf(const device::Dialect& dialect, const api::TelemetryConfig& config, const ExporterRows& rows,
                                       const inventory::Snapshot& inventory, const sample::Snapshot& samples) {
  std::vector<Unavailable> all;
  for (const ExporterRow& row : rows.families) {
    if (!row.quantity || !IsShown(config, row.name)) continue;
    auto models = ModelsWithout(dialect.vendor(), *row.quantity, inventory, samples);
    if (!models.empty()) all.push_back({row.name, std::move(models), ReasonOf(dialect.Quantities()[*row.quantity])});
  }
  for (const device::ExporterField* field : rows.not_to_be_had)
    if (IsShown(config, field->name)) all.push_back({std::string(field->name), {}, std::string(field->from)});
  return all;
}

}  // namespace penstock::node::metrics
