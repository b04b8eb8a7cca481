// The devices of the live view. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/samples.h"
#include "app/penstock/top_draw.h"

namespace penstock::app {

/// A device in `lines_each` lines, 1 or 2, of exactly so many columns.
std::vector<std::string> DeviceLines(const api::SampledDevice& device, std::size_t lines_each, std::size_t columns, const Pen& pen);

/// What the devices do together, in one line: "8 devices  busy 43%  memory 212G/640G  power 2913/5600W".
std::string DevicesTogether(const std::vector<api::SampledDevice>& devices);

}  // namespace penstock::app
