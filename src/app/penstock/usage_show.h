// How `penstock usage` prints what the agent told it. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/usage.h"
#include "app/penstock/table.h"

namespace penstock::app {

/// Sums as a table, a total last.
std::string ShowUsage(const api::UsageReport& report, const Style& style);

/// The same without a total as CSV (RFC 4180), with a header.
std::string UsageCsv(const api::UsageReport& report);

/// Who holds what unused.
std::string ShowIdle(const std::vector<api::IdleHolder>& idle, const Style& style, base::WallTime now);
std::string IdleCsv(const std::vector<api::IdleHolder>& idle);

}  // namespace penstock::app
