// How a GPU does: one polled look. Keeps nothing, judges nothing.
#pragma once

#include <string>

#include "base/core/result.h"
#include "device/model.h"
#include "vendor/nvidia/nvml.h"

namespace penstock::vendor::nvidia {

/// What can be said of a GPU whose very handle is not to be had: that it is lost, or must be reset.
device::Reading Unreachable(abi::Return code, std::string_view function, const std::string& id);

/// Asks everything there is to ask. A GPU that says of itself that it is lost is unreachable, whatever else still answers.
/// kUnavailable where the driver went away.
base::Result<device::Reading> TakeReading(const Nvml& nvml, abi::Device device, const std::string& id);

}  // namespace penstock::vendor::nvidia
