// Which of the fields that pages were asked to show this node's devices do not have. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "api/node_config.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/metrics/exporter_rows.h"
#include "node/sample/samples.h"

namespace penstock::node::metrics {

/// A family of a vendor's exporter that stays without a value.
struct Unavailable {
  std::string family;
  std::vector<std::string> models;  ///< of devices that do not have it, ascending; empty: none has it here
  std::string reason;               ///< after a colon, without a period
  bool operator==(const Unavailable&) const = default;
};

/// In the order of the page. `rows` are RowsOf the same configuration. Known of a device once it was sampled.
std::vector<Unavailable> UnavailableOf(const device::Dialect& dialect, const api::TelemetryConfig& config, const ExporterRows& rows,
                                       const inventory::Snapshot& inventory, const sample::Snapshot& samples);

}  // namespace penstock::node::metrics
