// The part of the CUDA driver API that is called here, declared by us: building needs no CUDA.
// Types, values and the versions in names are those of the driver API's manual (CUDA 11.0 to 13.0,
// "CUDA Driver API", sections Initialization, Device, Context, Module, Memory, Execution Control).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::backend::nvidia::cuda {

using Result = int;  // CUresult
inline constexpr Result kSuccess = 0;
inline constexpr Result kNoDevice = 100;              // CUDA_ERROR_NO_DEVICE
inline constexpr Result kDeviceUnavailable = 46;      // CUDA_ERROR_DEVICE_UNAVAILABLE
inline constexpr Result kSystemDriverMismatch = 803;  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
inline constexpr Result kSystemNotReady = 802;        // CUDA_ERROR_SYSTEM_NOT_READY

using Device = int;  // CUdevice
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Kernel = struct KernelTag*;  // CUfunction
using Stream = struct StreamTag*;
using Pointer = std::uint64_t;  // CUdeviceptr
using Uuid = std::array<unsigned char, 16>;

}  // namespace penstock::backend::nvidia::cuda
