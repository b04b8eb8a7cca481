// Reads the lines that the NVIDIA kernel modules write about their devices. Foreign text: anything may be in it.
#pragma once

#include <optional>
#include <string_view>

#include "device/model.h"

namespace penstock::vendor::nvidia {

/// Evidence in one record of the kernel's log, with or without the prefix of /dev/kmsg or dmesg in front. Forms: XIDs of all drivers, with
/// and without "PCI:", pid and MIG instance; SXIDs; a GPU that fell off the bus without an XID. Nothing for any other line.
std::optional<device::Evidence> ParseKernelLine(std::string_view line);

}  // namespace penstock::vendor::nvidia
