// NVIDIA GPUs behind the vendor-neutral seam, over NVML and the kernel's files.
#pragma once

#include <memory>

#include "device/backend.h"

namespace penstock::vendor::nvidia {

/// Nothing is touched before Open. Addresses are NVML's indices as text. Events go on while Close is called; the driver is let go of when
/// the wait for them ends.
std::unique_ptr<device::Backend> MakeBackend(const device::Paths& paths);

}  // namespace penstock::vendor::nvidia
