// Samples the quantities that have calls of their own.
#pragma once

#include "backend/nvidia/sampling/sample_builder.h"

namespace penstock::backend::nvidia {

/// Clocks, temperatures, power, utilization, memory, the PCIe link, modes.
void ReadBoard(SampleBuilder& builder);

/// Errors by location, spare rows, reasons for reduced clocks, the fabric.
void ReadCondition(SampleBuilder& builder);

}  // namespace penstock::backend::nvidia
