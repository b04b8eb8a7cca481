// Parses the lines that the NVIDIA kernel modules write to the kernel's log. The text is untrusted.
#pragma once

#include <optional>
#include <string_view>

#include "device/model.h"

namespace penstock::backend::nvidia {

/// The evidence in one record of the kernel's log, with or without the prefix of /dev/kmsg or
/// dmesg. Recognized forms: XIDs of all drivers, with and without "PCI:", pid and MIG instance;
/// SXIDs; a GPU that fell off the bus without an XID; and kDriverLoaded, the first line of
/// nvidia.ko: "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15 ...", of the open module
/// "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64 ...". Nothing for any other line.
std::optional<device::Evidence> ParseKernelLine(std::string_view line);

}  // namespace penstock::backend::nvidia
