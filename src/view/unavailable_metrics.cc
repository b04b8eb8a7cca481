#include "view/unavailable_metrics.h"

#include <utility>

#include "node/metrics/unavailable.h"

namespace penstock::view {

std::vector<api::UnavailableMetric> UnavailableMetrics(
    const api::TelemetryConfig& telemetry, const std::vector<const device::Dialect*>& dialects,
    const node::inventory::Snapshot& inventory, const node::sample::Snapshot& samples) {
  std::vector<api::UnavailableMetric> metrics;
  for (const device::Dialect* dialect : dialects) {
    if (dialect->exporter() == nullptr || inventory.FindVendor(dialect->vendor()) == nullptr)
      continue;
    const auto rows = node::metrics::RowsOf(*dialect, telemetry);
    for (auto& one : node::metrics::UnavailableOf(*dialect, telemetry, rows, inventory, samples))
      metrics.push_back({std::move(one.family), std::move(one.models), std::move(one.reason)});
  }
  return metrics;
}

}  // namespace penstock::view
