// Translates the resources of NVIDIA's GPU Operator, ClusterPolicy (nvidia.com/v1) and GPUCluster
// (nvidia.com/v1alpha1), into Penstock's. Pure.
#pragma once

#include <string_view>

#include "api/cluster/penstock.h"
#include "api/compat/policy_translation.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// `object`: as the API server has it (JSON), with its defaults or without. Its driver has no name,
/// and is for all nodes that no other driver selects. kInvalidArgument: all values that cannot be
/// meant, each with its path and what is possible.
base::Result<PolicyTranslation> TranslateClusterPolicy(std::string_view object);

/// Everything with which a ClusterPolicy can mark nodes.
NodeMarks AllPolicyMarks();

}  // namespace penstock::api::compat
