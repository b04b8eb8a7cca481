// What can be done to NVIDIA devices, through the programs of their driver. Decides nothing; links no library of the driver.
#pragma once

#include <memory>

#include "device/actions.h"
#include "device/backend.h"
#include "os/loop.h"

namespace penstock::vendor::nvidia {

/// Over nvidia-smi of the driver root. On the loop's thread; a reset may take 25 minutes (NVIDIA's own limit, NVSentinel) and is killed
/// then.
std::unique_ptr<device::Actions> MakeActions(os::Loop& control, const device::Paths& paths);

}  // namespace penstock::vendor::nvidia
