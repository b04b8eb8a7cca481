// The processes on a GPU, as the driver lists them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "backend/nvidia/nvml_device.h"

namespace penstock::backend::nvidia {

struct RunningProcess {
  std::optional<std::uint64_t> memory;  ///< nothing if the driver does not report it
  bool graphics_only = true;            ///< only in the list of graphics processes
};

enum class ProcessesOf {
  kDevice,    ///< all
  kGpuAlone,  ///< of a GPU in MIG mode, those that are on none of its instances
};

/// All processes that compute, draw, or compute through MPS, by pid.
std::map<std::int32_t, RunningProcess> ReadRunningProcesses(
    NvmlDevice& nvml_device, ProcessesOf which = ProcessesOf::kDevice);

}  // namespace penstock::backend::nvidia
