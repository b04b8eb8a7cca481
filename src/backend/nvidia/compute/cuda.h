// The CUDA driver library, loaded at run time. A missing function is a result, not a failure to
// load.
#pragma once

#include <string>

#include "backend/nvidia/compute/cuda_abi.h"
#include "base/core/result.h"
#include "os/library.h"

namespace penstock::backend::nvidia::cuda {

/// The functions that are called, without "cu" and version. Single-threaded.
struct CudaFunctions {
  CuResult (*init)(unsigned) = nullptr;
  CuResult (*error_name)(CuResult, const char**) = nullptr;
  CuResult (*error_text)(CuResult, const char**) = nullptr;
  CuResult (*device_count)(int*) = nullptr;
  CuResult (*device)(CuDevice*, int) = nullptr;
  CuResult (*device_uuid)(CuUuid*, CuDevice) = nullptr;
  CuResult (*create_context)(CuContext*, unsigned, CuDevice) = nullptr;
  CuResult (*destroy_context)(CuContext) = nullptr;
  CuResult (*load_module)(CuModule*, const void*) = nullptr;
  CuResult (*find_kernel)(CuFunction*, CuModule, const char*) = nullptr;
  CuResult (*allocate)(CuPointer*, std::size_t) = nullptr;
  CuResult (*to_device)(CuPointer, const void*, std::size_t) = nullptr;
  CuResult (*to_host)(void*, CuPointer, std::size_t) = nullptr;
  CuResult (*launch)(CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CuStream, void**, void**) = nullptr;
  CuResult (*synchronize)() = nullptr;
};

class Cuda {
 public:
  /// `path`: of the library; empty: libcuda.so.1 as the loader finds it. kNotFound,
  /// kFailedPrecondition (cannot be loaded), kUnimplemented (lacks a function that is needed).
  static base::Result<Cuda> Load(const std::string& path);

  const CudaFunctions& api() const { return api_; }

  /// kFailedPrecondition for an answer other than success: "cuInit: CUDA_ERROR_NO_DEVICE (100): no
  /// CUDA-capable device is detected", with what to do where that is known.
  base::Status Check(CuResult result, const char* call) const;

 private:
  Cuda(os::Library library, const CudaFunctions& api) : library_(std::move(library)), api_(api) {}

  os::Library library_;
  CudaFunctions api_;
};

}  // namespace penstock::backend::nvidia::cuda
