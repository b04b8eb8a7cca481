// The checks that ParseNodeConfig and Validate share; private to api.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/node_config.h"

namespace penstock::api::internal {

/// Told of each problem: the key as a dotted path ("doors.assign[0].door"), and what is wrong with it.
using Report = std::function<void(std::string_view key, const std::string& message)>;

void Check(const NodeConfig& config, const Report& report);

}  // namespace penstock::api::internal
