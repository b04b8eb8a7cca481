// Formats the usage that the agent reported for `penstock usage`. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/usage.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

/// The sums as a table, the total last.
std::string ShowUsage(const api::UsageReport& report, const Style& style);

/// The same sums without the total as CSV (RFC 4180) with a header.
std::string UsageCsv(const api::UsageReport& report);

/// Holders that do not use their devices.
std::string ShowIdle(const std::vector<api::IdleHolder>& idle, const Style& style,
                     base::WallTime now);
std::string IdleCsv(const std::vector<api::IdleHolder>& idle);

}  // namespace penstock::app
