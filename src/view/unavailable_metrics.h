// Finds metrics that were requested and that this node's devices do not have, for reports and
// users.
#pragma once

#include <vector>

#include "api/config/node_config.h"
#include "api/report.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/sample/samples.h"

namespace penstock::view {

/// Of the exporters of all vendors that have devices here; in the order of the metrics page.
std::vector<api::UnavailableMetric> UnavailableMetrics(
    const api::TelemetryConfig& telemetry, const std::vector<const device::Dialect*>& dialects,
    const node::inventory::Snapshot& inventory, const node::sample::Snapshot& samples);

}  // namespace penstock::view
