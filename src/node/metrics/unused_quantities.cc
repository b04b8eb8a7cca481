#include "node/metrics/unused_quantities.h"

#include <algorithm>
#include <vector>

#include "api/metrics.h"
#include "base/core/strings.h"
#include "node/metrics/exporter/exporter_rows.h"
#include "node/sample/headline_metrics.h"

namespace penstock::node::metrics {
namespace {

/// Usage needs the energy even if no page shows it. Usage also needs power and utilization, but
/// these are headline metrics.
constexpr std::string_view kEnergy = "accelerator_energy_joules_total";

bool Matches(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(
      globs, [name](const std::string& glob) { return base::GlobMatch(glob, name); });
}

/// By quantity.
std::vector<bool> Wanted(const device::Dialect& dialect, const api::TelemetryConfig& config) {
  const auto quantities = dialect.Quantities();
  std::vector<bool> wanted(quantities.size());
  for (std::size_t i = 0; i < quantities.size(); ++i) {
    const std::string_view family = quantities[i].family;
    wanted[i] = family == kEnergy || (!family.empty() && IsShown(config, family));
  }
  for (std::size_t headline = 0; headline < sample::kHeadlineMetrics; ++headline)
    for (const device::QuantityId id :
         sample::QuantitiesOf(static_cast<sample::HeadlineMetric>(headline), quantities))
      wanted[id] = true;
  if (dialect.exporter() == nullptr) return wanted;
  for (const ExporterRow& row : RowsOf(dialect, config).families)
    if (row.quantity && IsShown(config, row.name)) wanted[*row.quantity] = true;
  return wanted;
}

}  // namespace

bool IsShown(const api::TelemetryConfig& config, std::string_view family) {
  const bool own = family.starts_with("accelerator_");
  if (own && std::ranges::find(config.names, api::MetricNames::kAccelerator) == config.names.end())
    return false;
  if (Matches(config.include, family)) return true;
  const api::MetricFamily* known = own ? api::FindMetricFamily(family) : nullptr;
  return (known == nullptr || !known->on_request) && !Matches(config.exclude, family);
}

std::set<std::string, std::less<>> UnusedQuantities(const device::Dialect& dialect,
                                                    const api::TelemetryConfig& config) {
  const auto quantities = dialect.Quantities();
  const std::vector<bool> wanted = Wanted(dialect, config);
  std::set<std::string, std::less<>> left_out;
  for (std::size_t i = 0; i < quantities.size(); ++i)
    if (!wanted[i]) left_out.emplace(quantities[i].key);
  return left_out;
}

}  // namespace penstock::node::metrics
