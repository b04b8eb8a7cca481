// What an image requires of the driver (NVIDIA_REQUIRE_CUDA="cuda>=12.4 brand=tesla,driver>=535,driver<536"). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "hook/runtime/config.h"
#include "hook/runtime/facts.h"
#include "hook/runtime/request.h"

namespace penstock::hook::runtime {

/// What specifications tell of the driver; empty where they do not. The brand of a GPU and its compute capability stand in none.
struct DriverFacts {
  std::string driver;  ///< "550.54.15"
  std::string cuda;    ///< "12.4"
};

/// From the arguments of enable-cuda-compat, which every generator writes, else from the name of libcuda.
DriverFacts ReadDriverFacts(const api::cdi::Edits& edits);

/// Each NVIDIA_REQUIRE_* must hold: terms by blanks are alternatives, those by commas must hold together (libnvidia-container,
/// src/cli/dsl.c). What depends on a fact that nobody tells is let pass, with a remark. kFailedPrecondition says what is required, what
/// there is, and what to do; kInvalidArgument: not a requirement.
base::Result<std::vector<Remark>> CheckRequirements(const Facts& facts, const Config& config, const DriverFacts& driver);

}  // namespace penstock::hook::runtime
