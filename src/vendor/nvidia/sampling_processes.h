// What single processes use of a GPU.
#pragma once

#include "vendor/nvidia/sampling_taking.h"

namespace penstock::vendor::nvidia {

/// Memory of each process that is there, and the share of the GPU's time of those that used some since the last sample.
void AskProcessUse(Taking& taking);

}  // namespace penstock::vendor::nvidia
