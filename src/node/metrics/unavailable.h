// Finds the configured fields that this node's devices do not have. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/metrics/exporter/exporter_rows.h"
#include "node/sample/samples.h"

namespace penstock::node::metrics {

/// A family of a vendor's exporter that has no value.
struct Unavailable {
  std::string family;
  /// Of devices that do not have it, ascending; empty: no device can have it.
  std::vector<std::string> models;
  std::string reason;  ///< fits after a colon; no final period
  bool operator==(const Unavailable&) const = default;
};

/// In the order of the page. `rows` must be RowsOf of the same configuration. A device counts once
/// it was sampled.
std::vector<Unavailable> UnavailableOf(const device::Dialect& dialect,
                                       const api::TelemetryConfig& config, const ExporterRows& rows,
                                       const inventory::Snapshot& inventory,
                                       const sample::Snapshot& samples);

}  // namespace penstock::node::metrics
