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

/// By block of the chip.
using ErrorCounts = std::map<std::string, RasCounts, std::less<>>;

/// The most errors that a GPU's counters have shown since its driver made them. Reading a counter
/// moves the errors from the hardware into the driver's sums, which is what the file shows; what
/// falls was read or cleared by another program, or cannot be read during a reset: no recovery.
struct MostErrors {
  std::string folder;  ///< which it was, see Machine::PciFolderInstance: the driver makes another
                       ///< one when it is loaded or bound to the GPU again
  ErrorCounts counts;
  bool fell = false;  ///< it was said that a counter fell
};

/// `in_reset`: whether the driver says that it resets the GPU now.
device::Reading ReadGpu(const Machine& machine, const AmdGpu& gpu, MostErrors& most,
                        bool& in_reset);

base::Result<GpuMetrics> ReadMetrics(const Machine& machine, const AmdGpu& gpu);

/// Reads a GPU's gpu_metrics, or says what was read a moment ago. Called when they are needed.
using MetricsOf = std::function<base::Result<GpuMetrics>()>;

device::Sample SampleGpu(const Machine& machine, const AmdGpu& gpu, const MetricsOf& metrics,
                         const device::SampleRequest& request);

/// Of a partition, what gpu_metrics has of each. `part`: its number within the GPU.
device::Sample SamplePart(unsigned part, const MetricsOf& metrics,
                          const device::SampleRequest& request);

}  // namespace penstock::backend::amd
