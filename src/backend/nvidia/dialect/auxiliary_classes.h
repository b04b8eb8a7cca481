// Tables of the CDI device classes beside the GPUs, and of machines whose NVIDIA driver is in
// unusual places. No I/O.
#pragma once

#include <vector>

#include "device/container.h"

namespace penstock::backend::nvidia {

/// Management, GDS, MOFED, GDRCopy, NVSwitch, IMEX channels, MIG's capabilities (NVIDIA container
/// toolkit, pkg/nvcdi).
std::vector<device::CdiClass> AuxiliaryCdiClasses();

/// Windows Subsystem for Linux, and Tegra.
std::vector<device::CdiPlatform> OtherPlatforms();

}  // namespace penstock::backend::nvidia
