// What `penstock up`, `status`, `ps` and `door list` print for people, from a report. Pure; programs read the JSON.
#pragma once

#include <string>
#include <string_view>

#include "api/report.h"
#include "app/penstock/table.h"
#include "base/core/clock.h"

namespace penstock::app {

/// What an agent found: the devices with their ids, what is wrong, the drivers, the doors and why one is not open.
std::string ShowFound(const api::Report& report, const Style& style, base::WallTime now);

/// The devices as they stand: health, door, holder; where some are shared, how many shares are free and what keeps their holders apart.
/// `wide` adds ids, since when, resources and limits.
std::string ShowStatus(const api::Report& report, bool wide, const Style& style, base::WallTime now);

/// Metrics without a value, a line for all that have one reason; empty: there are none.
std::string ShowUnavailable(const std::vector<api::UnavailableMetric>& metrics, std::string_view indent);

/// What is in force and what of it is not, and the conditions: those that are not so, with `wide` all of them.
std::string ShowConfiguration(const api::Report& report, bool wide, const Style& style, base::WallTime now);

/// "4m10s", since then (RFC 3339); empty where the time is not known.
std::string AgeOf(const std::string& since, base::WallTime now);

/// Who holds what. `wide` adds the slots' own names.
std::string ShowHolders(const api::Report& report, bool wide, const Style& style, base::WallTime now);

/// Which door each device is at, under which name it is offered there, and why not.
std::string ShowDoors(const api::Report& report, const Style& style);

/// The model without its vendor's name in front, which would be the same in each row: "NVIDIA A100-SXM4-40GB" is "A100-SXM4-40GB".
std::string ModelOf(std::string_view vendor, const std::string& model);

/// Whether several may have shares of the device at once.
bool IsShared(const api::DeviceReport& device);

}  // namespace penstock::app
