// Changes how a GPU is divided, through NVML. Keeps no state.
#pragma once

#include <string>

#include "backend/nvidia/facts.h"
#include "backend/nvidia/nvml.h"
#include "base/core/result.h"
#include "device/backend.h"

namespace penstock::backend::nvidia {

/// OK also where the mode changes only with a reset, because a program has the GPU open: its facts
/// say so.
base::Status SetMigMode(const Nvml& nvml, const Gpu& gpu, const std::string& value);

/// Creates a GPU instance with a compute instance that fills it; of a part that is `outer` the GPU
/// instance alone; of one within another, a compute instance. Returns its address (Mig::Addresses).
base::Result<std::string> CreateMigPart(const Nvml& nvml, const Gpu& gpu,
                                        const device::NewPart& part);

/// Destroys a MIG device, with its GPU instance where it fills that, or a GPU instance without
/// compute instances.
base::Status DestroyMigPart(const Nvml& nvml, const Gpu& gpu, const std::string& address);

}  // namespace penstock::backend::nvidia
