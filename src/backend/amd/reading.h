// The state and the measured values of AMD's GPUs.
#pragma once

#include <map>
#include <string>

#include "backend/amd/machine.h"
#include "backend/amd/ras.h"
#include "device/model.h"
#include "device/telemetry.h"

namespace penstock::backend::amd {

/// What a GPU's error counters said last, by block: while it is reset they say nothing, which is no
/// recovery.
using LastCounts = std::map<std::string, RasCounts>;

/// Reading a counter moves the errors from the hardware into the driver's sums, which is what the
/// file shows: reading often loses nothing.
device::Reading ReadGpu(const Machine& machine, const AmdGpu& gpu, LastCounts& last);

device::Sample SampleGpu(const Machine& machine, const AmdGpu& gpu,
                         const device::SampleRequest& request);

}  // namespace penstock::backend::amd
