// MIG's capability files: device files that permit their holders to use a partition or to manage
// partitions. Text only, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/core/result.h"

namespace penstock::backend::nvidia {

/// Capability → minor number of its device file: "config" → 1, "gpu0/gi3/ci0/access" → 31.
using CapabilityMinors = std::map<std::string, std::uint32_t, std::less<>>;

/// Parses /proc/driver/nvidia-caps/mig-minors (NVIDIA, "MIG User Guide", "/dev based
/// nvidia-capabilities"): lines "CAPABILITY MINOR". kInvalidArgument lists all lines that are
/// malformed or repeat a capability, with file and line.
base::Result<CapabilityMinors> ParseCapabilityMinors(std::string_view text, std::string_view file);

/// "/dev/nvidia-caps/nvidia-cap31".
std::string CapabilityFile(std::uint32_t minor);

/// The files that permit their holders to change partitions ("config") and to see those of all GPUs
/// ("monitor"), if they exist.
base::Result<std::map<std::string, std::string>> ManagementCapabilityFiles(
    std::string_view mig_minors);

}  // namespace penstock::backend::nvidia
