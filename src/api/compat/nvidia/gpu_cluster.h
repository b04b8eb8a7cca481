// Reads GPUCluster objects (nvidia.com/v1alpha1), which ask for NVIDIA's driver for dynamic
// resource allocation. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "api/compat/policy_translation.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// What is answered to a GPUCluster, in the schema's order: dynamic resource allocation is not
/// served yet, so nothing of it takes effect. `object`: as the API server has it (JSON).
/// kInvalidArgument: all values that cannot be meant, each with its path.
base::Result<std::vector<FieldAnswer>> AnswerGpuCluster(std::string_view object);

}  // namespace penstock::api::compat
