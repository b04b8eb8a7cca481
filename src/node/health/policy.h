// What a site wants done about errors, over what the vendor's documentation says. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "api/node_config.h"
#include "device/dialect.h"

namespace penstock::node::health {

/// The last rule that matches kind and code counts; "default", and no rule, leave the vendor's word, and
/// "at-least-drain" makes it stronger where it is milder. What a driver call that hangs or fails
/// says of a device is nobody's to ignore: those are never asked about here.
device::Severity Apply(const std::vector<api::HealthRule>& policy, std::string_view kind, std::int64_t code, device::Severity by_vendor);

}  // namespace penstock::node::health
