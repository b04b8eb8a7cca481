// Metrics that were asked for and that this node's devices do not have, for reports and for people.
#pragma once

#include <vector>

#include "api/node_config.h"
#include "api/report.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/sample/samples.h"

namespace penstock::door {

/// Of the exporters of all vendors that have something here; in the order of the page.
std::vector<api::UnavailableMetric> UnavailableMetrics(const api::TelemetryConfig& telemetry,
                                                       const std::vector<const device::Dialect*>& dialects,
                                                       const node::inventory::Snapshot& inventory, const node::sample::Snapshot& samples);

}  // namespace penstock::door
