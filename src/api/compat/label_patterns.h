// Converts regular expressions for label keys, as in dcgm-exporter's allow list, to the globs of
// telemetry.holderLabels. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api::compat {

/// Returns globs that together match the keys in which the expression matches anywhere, as Go's
/// regexp.MatchString does. Supports plain and escaped characters, '.', ".*", ".+", "x?",
/// alternatives, groups, anchors at their ends and a leading "(?i)", which are what allow lists
/// use. Globs compare letters without case. Returns kInvalidArgument with the part of the
/// expression that no glob expresses; nothing is approximated.
base::Result<std::vector<std::string>> GlobsOf(std::string_view expression);

}  // namespace penstock::api::compat
