// The modules of NVIDIA's driver, and the files of its driver containers.
#pragma once

#include "device/kernel_driver.h"

namespace penstock::backend::nvidia {

/// The only instance, with static lifetime.
const device::KernelDriver& TheKernelDriver();

}  // namespace penstock::backend::nvidia
