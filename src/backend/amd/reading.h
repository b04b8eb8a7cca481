// The state and the measured values of AMD's GPUs.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "backend/amd/gpu_metrics.h"
#include "backend/amd/machine.h"
#include "backend/amd/ras.h"
#include "device/model.h"
#include "device/telemetry.h"

namespace penstock::backend::amd {

/// What a GPU's error counters said last, by block: while it is reset they say nothing, which is no
/// recovery.
using LastCounts = std::map<std::string, RasCounts, std::less<>>;

/// Reading a counter moves the errors from the hardware into the driver's sums, which is what the
/// file shows: reading often loses nothing.
device::Reading ReadGpu(const Machine& machine, const AmdGpu& gpu, LastCounts& last);

base::Result<GpuMetrics> ReadMetrics(const Machine& machine, const AmdGpu& gpu);

/// Reads a GPU's gpu_metrics, or says what was read a moment ago. Called when they are needed.
using MetricsOf = std::function<base::Result<GpuMetrics>()>;

device::Sample SampleGpu(const Machine& machine, const AmdGpu& gpu, const MetricsOf& metrics,
                         const device::SampleRequest& request);

/// Of a partition, what gpu_metrics has of each. `part`: its number within the GPU.
device::Sample SamplePart(unsigned part, const MetricsOf& metrics,
                          const device::SampleRequest& request);

}  // namespace penstock::backend::amd
