// The metrics of AMD's Device Metrics Exporter: names, labels, settings. Pure tables.
#pragma once

#include "device/exporter.h"

namespace penstock::backend::amd {

/// The only instance, with static lifetime.
const device::Exporter& TheExporter();

}  // namespace penstock::backend::amd
