// Which families are shown, and which quantities nobody needs then. Pure; any thread.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "api/node_config.h"
#include "device/dialect.h"

namespace penstock::node::metrics {

/// Whether pages have the family: its naming is wanted, and no glob leaves it out.
bool IsShown(const api::TelemetryConfig& config, std::string_view family);

/// Keys of the vendor's quantities of which no page shows a family, and which nothing else needs: people who look (sample::Glance), and
/// what holders' usage is made of. They need not be asked for.
std::set<std::string, std::less<>> LeftOut(const device::Dialect& dialect, const api::TelemetryConfig& config);

}  // namespace penstock::node::metrics
