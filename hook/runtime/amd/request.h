// Determines which of AMD's devices a container requests by AMD_VISIBLE_DEVICES. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/registry.h"
#include "base/core/result.h"
#include "hook/runtime/facts.h"

namespace penstock::hook::runtime {

inline constexpr std::string_view kAmdVisibleDevices = "AMD_VISIBLE_DEVICES";

struct AmdRequest {
  std::vector<std::string> devices;  ///< qualified CDI names: "amd.com/gpu=all", "amd.com/gpu=3"
  std::vector<std::string> ids;      ///< of whole GPUs, as CDI names: "GPU-e3aa1c5bd7b5f051"

  bool Empty() const { return devices.empty() && ids.empty(); }
};

/// Whether the variable is not set or requests nothing: "void", "none", "".
bool RequestsNothing(const RuntimeFacts& facts);

/// Reads the variable: "all"; or indices, ranges of them ("0-3") and unique ids of GPUs
/// ("0xE3AA1C5BD7B5F051"), separated by commas (ROCm container-toolkit, internal/oci/oci.go;
/// "Running Workloads"). "void", "none" and nothing request nothing. kInvalidArgument: a word is
/// none of these; kResourceExhausted: more words than any machine has devices.
base::Result<AmdRequest> ReadAmdRequest(const RuntimeFacts& facts);

/// The CDI names of the request's devices. An id is that of the GPU, or of all its partitions where
/// it is divided. kNotFound: no specification names it; with what to do.
base::Result<std::vector<std::string>> ResolveAmd(
    const AmdRequest& request, std::span<const api::cdi::Registry::Listed> known);

}  // namespace penstock::hook::runtime
