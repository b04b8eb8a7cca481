// CustomResourceDefinitions of NVIDIA's resources, from the tables of their fields. Pure.
#pragma once

#include <vector>

#include "api/cluster/definition.h"

namespace penstock::api::compat {

/// Those of ClusterPolicy, NVIDIADriver and GPUCluster. What NVIDIA's definitions accept, these
/// accept; unknown fields are kept.
std::vector<ResourceDefinition> NvidiaDefinitions();

}  // namespace penstock::api::compat
