// Selects the families of a vendor's own exporter that are shown, and their naming. Pure; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "device/dialect.h"
#include "node/metrics/exposition.h"

namespace penstock::node::metrics {

/// The holder's own part of a value, where each holder has a series: vendors' exporters report just
/// these per process.
enum class Own { kNothing, kUtilization, kMemory };

/// One family.
struct ExporterRow {
  const device::ExporterField* field = nullptr;
  bool new_naming = false;
  std::string name;
  Exposition::Type type = Exposition::Type::kGauge;
  std::string help;
  /// For fields of kQuantity, kReasonsInWindow and kReasonsTotal.
  std::optional<device::QuantityId> quantity;
  Own own = Own::kNothing;
};

struct ExporterRows {
  std::vector<ExporterRow> families;                 ///< in the exporter's order
  std::vector<const device::ExporterField*> labels;  ///< facts that are labels of all families
  std::vector<const device::ExporterField*> unavailable;
};

/// Returns the rows of the configuration, or the exporter's own if it has none, under each naming
/// that telemetry.names selects; a row may name its field in either. No family occurs twice.
/// Unknown fields are skipped: the check of the configuration reports them. `dialect` must have an
/// exporter and outlive the rows.
ExporterRows RowsOf(const device::Dialect& dialect, const api::TelemetryConfig& config);

}  // namespace penstock::node::metrics
