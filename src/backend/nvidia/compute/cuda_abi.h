// The part of the CUDA driver API that is called here, declared by us: building needs no CUDA.
// Types, values and the versions in names are those of the driver API's manual (CUDA 11.0 to 13.0,
// "CUDA Driver API", sections Initialization, Device, Context, Module, Memory, Execution Control).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::backend::nvidia::cuda {

using CuResult = int;  // CUresult
inline constexpr CuResult kSuccess = 0;
inline constexpr CuResult kOutOfMemory = 2;             // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr CuResult kNoDevice = 100;              // CUDA_ERROR_NO_DEVICE
inline constexpr CuResult kDeviceUnavailable = 46;      // CUDA_ERROR_DEVICE_UNAVAILABLE
inline constexpr CuResult kSystemDriverMismatch = 803;  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
inline constexpr CuResult kSystemNotReady = 802;        // CUDA_ERROR_SYSTEM_NOT_READY

using CuDevice = int;  // CUdevice
using CuContext = struct ContextTag*;
using CuModule = struct ModuleTag*;
using CuFunction = struct KernelTag*;  // CUfunction
using CuStream = struct StreamTag*;
using CuPointer = std::uint64_t;  // CUdeviceptr
using CuUuid = std::array<unsigned char, 16>;

}  // namespace penstock::backend::nvidia::cuda
