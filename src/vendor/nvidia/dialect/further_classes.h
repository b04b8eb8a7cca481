// Devices beside the GPUs that CDI knows of, and machines on which NVIDIA's driver does not lie where it does else. Tables, no I/O.
#pragma once

#include <vector>

#include "device/container.h"

namespace penstock::vendor::nvidia {

/// Management, GDS, MOFED, GDRCopy, NVSwitch, IMEX channels, MIG's capabilities (NVIDIA container toolkit, pkg/nvcdi).
std::vector<device::CdiClass> FurtherCdiClasses();

/// Windows' subsystem for Linux, and Tegra.
std::vector<device::CdiPlatform> OtherPlatforms();

}  // namespace penstock::vendor::nvidia
