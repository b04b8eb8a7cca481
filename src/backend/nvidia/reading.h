// Takes one reading of a GPU's state. Keeps no state; health is judged elsewhere.
#pragma once

#include <string>

#include "backend/nvidia/nvml.h"
#include "base/core/result.h"
#include "device/model.h"

namespace penstock::backend::nvidia {

/// The reading of a GPU whose handle is unavailable: it is lost or must be reset.
device::Reading Unreachable(abi::Return code, std::string_view function, const std::string& id);

/// Makes all calls of a reading. A GPU that reports that it is lost is unreachable, whatever else
/// still answers. kUnavailable: the driver went away.
/// `in_mig_mode`: the processes of its MIG devices are left out.
base::Result<device::Reading> TakeReading(const Nvml& nvml, abi::Device device,
                                          const std::string& id, bool in_mig_mode);

/// The same for a MIG device. Whether its GPU must be recovered is in the reading of the GPU, which
/// concerns all of its parts.
base::Result<device::Reading> TakeMigReading(const Nvml& nvml, abi::Device mig_device,
                                             const std::string& id);

}  // namespace penstock::backend::nvidia
