// Decides which families are shown, and which quantities are therefore not needed. Pure; any
// thread.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "api/config/node_config.h"
#include "device/dialect.h"

namespace penstock::node::metrics {

/// Whether pages contain the family: its naming is selected and no glob excludes it.
bool IsShown(const api::TelemetryConfig& config, std::string_view family);

/// Keys of the vendor's quantities that need not be sampled: no page shows a family of theirs, they
/// are no headline metric (sample/headline_metrics.h), and usage does not need them.
std::set<std::string, std::less<>> UnusedQuantities(const device::Dialect& dialect,
                                                    const api::TelemetryConfig& config);

}  // namespace penstock::node::metrics
