// The CUDA driver library, loaded at run time. A missing function is a result, not a failure to
// load.
#pragma once

#include <string>
#include <utility>
#include <vector>

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

  /// The library of a driver below a root other than this process's. Errors: as above.
  static base::Result<Cuda> LoadBelow(const std::string& driver_root);

  const CudaFunctions& api() const { return api_; }

  /// kResourceExhausted where other processes use the device or its memory, otherwise
  /// kFailedPrecondition for an answer other than success: "cuInit: CUDA_ERROR_NO_DEVICE (100): no
  /// CUDA-capable device is detected", with what to do where that is known.
  base::Status Check(CuResult result, const char* call) const;

 private:
  Cuda(std::vector<os::Library> libraries, const CudaFunctions& api)
      : libraries_(std::move(libraries)), api_(api) {}
  static base::Result<Cuda> Bind(std::vector<os::Library> libraries);

  std::vector<os::Library> libraries_;
  CudaFunctions api_;
};

}  // namespace penstock::backend::nvidia::cuda
