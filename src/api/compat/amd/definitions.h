// CustomResourceDefinitions of AMD's resources, from the tables of their fields. Pure.
#pragma once

#include <vector>

#include "api/cluster/definition.h"

namespace penstock::api::compat {

/// That of DeviceConfig. What AMD's definition accepts, this one accepts; unknown fields are kept.
std::vector<ResourceDefinition> AmdDefinitions();

}  // namespace penstock::api::compat
