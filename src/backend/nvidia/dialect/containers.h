// What a container needs of NVIDIA's driver, and the CDI names of its devices. Tables, no I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/container.h"
#include "device/model.h"

namespace penstock::backend::nvidia {

inline constexpr std::string_view kCdiKind = "nvidia.com/gpu";

/// NVIDIA container toolkit, pkg/nvcdi/namer.go: "0", "GPU-5a…", "gpu0"; for a MIG device
/// "0:1", "MIG-…", "mig0:1".
std::vector<std::string> CdiDeviceNames(const device::Facts& device,
                                        std::span<const device::CdiNames> strategies);

/// The files, links, hooks and variables of a container.
device::ContainerDriver ContainerDriverOf(const device::Driver& driver);

/// Which of NVIDIA_DRIVER_CAPABILITIES a file of a specification belongs to, by its name
/// ("/usr/lib64/libcuda.so.550.54.15" → "compute"); empty: every container gets it. The runtime
/// filters by it.
std::string_view CapabilityOf(std::string_view path);

}  // namespace penstock::backend::nvidia
