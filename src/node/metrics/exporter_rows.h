// Which families of a vendor's own exporter are shown, in which naming. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/node_config.h"
#include "device/dialect.h"
#include "node/metrics/exposition.h"

namespace penstock::node::metrics {

/// What of a device's value is the holder's own where each holder has a series: vendors' exporters tell just these by process.
enum class Own { kNothing, kUtilization, kMemory };

/// A family.
struct ExporterRow {
  const device::ExporterField* field = nullptr;
  bool new_naming = false;
  std::string name;
  Exposition::Type type = Exposition::Type::kGauge;
  std::string help;
  std::optional<device::QuantityId> quantity;  ///< of fields of kQuantity, kReasonsInWindow and kReasonsTotal
  Own own = Own::kNothing;
};

struct ExporterRows {
  std::vector<ExporterRow> families;                 ///< in the exporter's order
  std::vector<const device::ExporterField*> labels;  ///< facts that are labels of all of them
  std::vector<const device::ExporterField*> not_to_be_had;
};

/// The rows of the configuration, or the exporter's own where it has none, under each naming that telemetry.names wants; a row may name its
/// field in either. No family is there twice. Fields that nobody knows here are left out: those who check a configuration tell of them.
/// `dialect` has an exporter and outlives the rows.
ExporterRows RowsOf(const device::Dialect& dialect, const api::TelemetryConfig& config);

}  // namespace penstock::node::metrics
