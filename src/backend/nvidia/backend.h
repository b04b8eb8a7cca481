// NVIDIA's implementation of device::Backend, over NVML and the kernel's files.
#pragma once

#include <memory>

#include "device/backend.h"

namespace penstock::backend::nvidia {

/// Creates the backend; it touches nothing before Open. Addresses are NVML's indices as text. A
/// wait for events continues during Close; the driver is released when that wait ends.
std::unique_ptr<device::Backend> MakeBackend(const device::Paths& paths);

}  // namespace penstock::backend::nvidia
