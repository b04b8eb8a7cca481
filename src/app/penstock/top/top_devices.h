// Formats the devices of the live view (`penstock top`). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/samples.h"
#include "app/penstock/top/top_draw.h"

namespace penstock::app {

/// A device in `lines_each` lines, 1 or 2, of exactly `columns` columns.
std::vector<std::string> DeviceLines(const api::SampledDevice& device, std::size_t lines_each,
                                     std::size_t columns, const Pen& pen);

/// The totals of all devices in one line: "8 devices  busy 43%  memory 212G/640G  power
/// 2913/5600W".
std::string DevicesTogether(const std::vector<api::SampledDevice>& devices);

}  // namespace penstock::app
