// The metrics of NVIDIA's dcgm-exporter: names, numbers, types, labels. Pure tables.
#pragma once

#include "device/exporter.h"

namespace penstock::backend::nvidia {

/// The only instance, with static lifetime.
const device::Exporter& DcgmExporter();

}  // namespace penstock::backend::nvidia
