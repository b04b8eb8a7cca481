// MIG's capability files: the device files whose holders may use a partition, or may manage partitions. Text only, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::vendor::nvidia {

/// Capability → minor number of its device file: "config" → 1, "gpu0/gi3/ci0/access" → 31.
using CapabilityMinors = std::map<std::string, std::uint32_t, std::less<>>;

/// Reads /proc/driver/nvidia-caps/mig-minors (NVIDIA, "MIG User Guide", "/dev based nvidia-capabilities"): lines "CAPABILITY MINOR". All
/// lines that are no such thing, or name a capability twice, at once: kInvalidArgument, with file and line.
base::Result<CapabilityMinors> ParseCapabilityMinors(std::string_view text, std::string_view file);

/// "/dev/nvidia-caps/nvidia-cap31".
std::string CapabilityFile(std::uint32_t minor);

/// What a container needs to use a compute instance beside its GPU's own file: the files of the GPU instance and of the compute instance.
/// `gpu` is the GPU's minor number. kNotFound: the driver has no such instance; the message says which.
base::Result<std::vector<std::string>> PartitionCapabilityFiles(const CapabilityMinors& minors, unsigned gpu, unsigned gpu_instance,
                                                                unsigned compute_instance);

/// The files whose holders may change partitions ("config") and see those of all GPUs ("monitor"), as far as there are.
base::Result<std::map<std::string, std::string>> ManagementCapabilityFiles(std::string_view mig_minors);

}  // namespace penstock::vendor::nvidia
