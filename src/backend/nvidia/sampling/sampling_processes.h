// Samples the use of a GPU by single processes.
#pragma once

#include "backend/nvidia/running_processes.h"
#include "backend/nvidia/sampling/sample_builder.h"

namespace penstock::backend::nvidia {

/// Samples the memory of each running process, and the share of GPU time of each process that used
/// the GPU since the last sample.
void ReadProcessUse(SampleBuilder& builder, ProcessesOf which);

}  // namespace penstock::backend::nvidia
