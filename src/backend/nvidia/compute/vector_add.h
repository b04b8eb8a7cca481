// Adds two vectors on a GPU and compares the sum: shows that driver, library and GPU compute
// together. Allocates three vectors of device memory and creates one context, for a moment.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "backend/nvidia/compute/cuda.h"
#include "base/core/result.h"

namespace penstock::backend::nvidia::cuda {

/// The kernel in PTX, which the driver assembles for any GPU from compute capability 5.0 on.
std::string_view VectorAddPtx();

/// Elements of a block.
inline constexpr unsigned kBlock = 256;

struct VectorAdd {
  std::string device;  ///< "GPU-5a…", "MIG-…", an index, or empty: the first that is visible
  int elements = 50'000;
  /// Gets each step before it begins: "Copy input data from the host memory to the CUDA device".
  std::function<void(const std::string&)> step = [](const std::string&) {};
};

/// Blocks until the sum is compared; a GPU that hangs blocks it for good, so that it runs in a
/// process of its own. Errors: kNotFound (no such device), kFailedPrecondition (a call of the
/// driver failed, with its name), kResourceExhausted (others use the device), kDataLoss (the GPU
/// computed another sum).
base::Status AddVectors(const Cuda& cuda, const VectorAdd& wanted);

}  // namespace penstock::backend::nvidia::cuda
