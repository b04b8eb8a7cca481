// Actions on NVIDIA devices through the programs of their driver. Links no library of the driver.
#pragma once

#include <memory>

#include "device/actions.h"
#include "device/backend.h"
#include "os/loop.h"

namespace penstock::backend::nvidia {

/// Actions that run nvidia-smi of the driver root. On the loop's thread. A reset may take 25
/// minutes (NVIDIA's own limit, NVSentinel); then it is killed.
std::unique_ptr<device::Actions> MakeActions(os::Loop& control, const device::Paths& paths);

}  // namespace penstock::backend::nvidia
