// What a container needs of NVIDIA's driver, by name; and how its devices are called in CDI. Tables, no I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/container.h"
#include "device/model.h"

namespace penstock::vendor::nvidia {

inline constexpr std::string_view kCdiKind = "nvidia.com/gpu";

/// NVIDIA container toolkit, pkg/nvcdi/namer.go: "0", "GPU-5a…", "gpu0"; for a MIG device "0:1", "MIG-…", "mig0:1".
std::vector<std::string> CdiDeviceNames(const device::Facts& device, std::span<const device::CdiNames> strategies);

/// The files, links, hooks and variables of a container (reference/toolkit-cdi.md 2.4, 2.5).
device::ContainerDriver ContainerDriverOf(const device::Driver& driver);

/// GDS, MOFED, GDRCopy, NVSwitch, IMEX channels (2.6).
std::vector<device::CdiClass> FurtherCdiClasses();

/// Which of NVIDIA_DRIVER_CAPABILITIES a file of a specification belongs to, by its name ("/usr/lib64/libcuda.so.550.54.15" → "compute");
/// empty: every container has it. What the runtime filters by.
std::string_view CapabilityOf(std::string_view path);

}  // namespace penstock::vendor::nvidia
