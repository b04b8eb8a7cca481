// Checks what an image requires of the driver (NVIDIA_REQUIRE_CUDA="cuda>=12.4
// brand=tesla,driver>=535,driver<536"). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "hook/runtime/facts.h"
#include "hook/runtime/nvidia/config.h"
#include "hook/runtime/nvidia/request.h"

namespace penstock::hook::runtime {

/// Facts about the driver in CDI specifications; empty if not stated. No specification states a
/// GPU's brand or compute capability.
struct DriverFacts {
  std::string driver;  ///< "550.54.15"
  std::string cuda;    ///< "12.4"
};

/// Reads them from the arguments of enable-cuda-compat, which every generator writes, otherwise
/// from the file name of libcuda.
DriverFacts ReadDriverFacts(const api::cdi::CdiEdits& edits);

/// Every NVIDIA_REQUIRE_* must hold: terms separated by blanks are alternatives, terms separated by
/// commas must all hold (libnvidia-container, src/cli/dsl.c). A term about an unknown fact passes,
/// with a remark. kFailedPrecondition says what is required, what the machine has, and what to do;
/// kInvalidArgument: not a requirement.
base::Result<std::vector<Remark>> CheckRequirements(const RuntimeFacts& facts, const Config& config,
                                                    const DriverFacts& driver);

}  // namespace penstock::hook::runtime
