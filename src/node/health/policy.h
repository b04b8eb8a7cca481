// Applies the site's policy for errors to the severities of the vendor's documentation. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "device/dialect.h"

namespace penstock::node::health {

/// The last rule that matches kind and code applies. "default", or no matching rule, keeps the
/// vendor's severity; "at-least-drain" raises a lower one to drain. Not called for driver calls
/// that hang or fail: no policy can ignore those.
device::Severity Apply(const std::vector<api::HealthRule>& policy, std::string_view kind,
                       std::int64_t code, device::Severity by_vendor);

}  // namespace penstock::node::health
