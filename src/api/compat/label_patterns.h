// Regular expressions over labels' keys, as dcgm-exporter's allow list has them, into the globs that telemetry.holderLabels has. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api::compat {

/// Globs that together match the keys that the expression matches anywhere in them, as Go's regexp.MatchString does. Understood are plain
/// characters, escaped ones, '.', ".*", ".+", "x?", alternatives, groups, anchors at their ends and a leading "(?i)": what allow lists are
/// made of. Globs compare letters without case. kInvalidArgument says what of it has no glob; nothing is approximated.
base::Result<std::vector<std::string>> GlobsOf(std::string_view expression);

}  // namespace penstock::api::compat
