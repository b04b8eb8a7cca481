// Formats a report for users of `penstock up`, `status`, `ps` and `assign list`. Pure. Programs
// read the JSON instead.
#pragma once

#include <string>
#include <string_view>

#include "api/report.h"
#include "app/penstock/common/table.h"
#include "base/core/clock.h"

namespace penstock::app {

/// What an agent found: the devices with their ids, problems, the drivers, the allocators and why
/// one is not open.
std::string ShowFound(const api::Report& report, const Style& style, base::WallTime now);

/// The current state of the devices: health, allocator, holder; for shared devices the free shares
/// and the isolation of their holders. `wide` adds ids, times of the last change, resources and
/// limits.
std::string ShowStatus(const api::Report& report, bool wide, const Style& style,
                       base::WallTime now);

/// Metrics without a value, one line per reason; empty: there are none.
std::string ShowUnavailable(const std::vector<api::UnavailableMetric>& metrics,
                            std::string_view indent);

/// The effective configuration, its settings that are not in force, and the conditions that do not
/// hold; with `wide` all conditions.
std::string ShowConfiguration(const api::Report& report, bool wide, const Style& style,
                              base::WallTime now);

/// The time since then (RFC 3339), "4m10s"; empty where the time is unknown.
std::string AgeOf(const std::string& since, base::WallTime now);

/// The holders of the devices. `wide` adds the slots' own names.
std::string ShowHolders(const api::Report& report, bool wide, const Style& style,
                        base::WallTime now);

/// The allocator of each device, the name under which it is offered there, and why it is not
/// offered.
std::string ShowAllocators(const api::Report& report, const Style& style);

/// The model without its vendor's name, which would be the same in each row: "NVIDIA
/// A100-SXM4-40GB" becomes "A100-SXM4-40GB".
std::string ModelOf(std::string_view vendor, const std::string& model);

}  // namespace penstock::app
