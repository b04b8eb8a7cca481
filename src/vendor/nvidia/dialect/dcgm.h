// The metrics of NVIDIA's dcgm-exporter: names, numbers, types, labels. Pure tables.
#pragma once

#include "device/exporter.h"

namespace penstock::vendor::nvidia {

/// Lives as long as the program.
const device::Exporter& DcgmExporter();

}  // namespace penstock::vendor::nvidia
