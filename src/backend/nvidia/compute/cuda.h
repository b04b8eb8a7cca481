// The CUDA driver library, loaded at run time. A missing function is a result, not a failure to
// load.
#pragma once

#include <string>

#include "backend/nvidia/compute/cuda_abi.h"
#include "base/core/result.h"
#include "os/library.h"

namespace penstock::backend::nvidia::cuda {

/// The functions that are called, without "cu" and version. Single-threaded.
struct Api {
  Result (*init)(unsigned) = nullptr;
  Result (*driver_version)(int*) = nullptr;  ///< 1000 * major + 10 * minor
  Result (*error_name)(Result, const char**) = nullptr;
  Result (*error_text)(Result, const char**) = nullptr;
  Result (*device_count)(int*) = nullptr;
  Result (*device)(Device*, int) = nullptr;
  Result (*device_name)(char*, int, Device) = nullptr;
  Result (*device_uuid)(Uuid*, Device) = nullptr;
  Result (*create_context)(Context*, unsigned, Device) = nullptr;
  Result (*destroy_context)(Context) = nullptr;
  Result (*load_module)(Module*, const void*) = nullptr;
  Result (*find_kernel)(Kernel*, Module, const char*) = nullptr;
  Result (*allocate)(Pointer*, std::size_t) = nullptr;
  Result (*free)(Pointer) = nullptr;
  Result (*to_device)(Pointer, const void*, std::size_t) = nullptr;
  Result (*to_host)(void*, Pointer, std::size_t) = nullptr;
  Result (*launch)(Kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Stream, void**, void**) = nullptr;
  Result (*synchronize)() = nullptr;
};

class Cuda {
 public:
  /// `path`: of the library; empty: libcuda.so.1 as the loader finds it. kNotFound,
  /// kFailedPrecondition (cannot be loaded), kUnimplemented (lacks a function that is needed).
  static base::Result<Cuda> Load(const std::string& path);

  const Api& api() const { return api_; }

  /// kFailedPrecondition for an answer other than success: "cuInit: CUDA_ERROR_NO_DEVICE (100): no
  /// CUDA-capable device is detected", with what to do where that is known.
  base::Status Check(Result result, const char* call) const;

 private:
  Cuda(os::Library library, const Api& api) : library_(std::move(library)), api_(api) {}

  os::Library library_;
  Api api_;
};

}  // namespace penstock::backend::nvidia::cuda
