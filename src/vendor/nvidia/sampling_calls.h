// The quantities that calls of their own give.
#pragma once

#include "vendor/nvidia/sampling_taking.h"

namespace penstock::vendor::nvidia {

/// Clocks, temperatures, power, utilization, memory, the PCIe link, modes.
void AskBoard(Taking& taking);

/// Errors by location, spare rows, what holds clocks down, the fabric.
void AskCondition(Taking& taking);

}  // namespace penstock::vendor::nvidia
