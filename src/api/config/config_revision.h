// Which text of the operator's ConfigMap is for an agent: that of its pod's revision.
#pragma once

#include <string>
#include <string_view>

#include "base/core/hash.h"

namespace penstock::api {

/// Names the revision of an agent's configuration file in its environment; unset: whatever the
/// file says is for this agent.
inline constexpr std::string_view kConfigRevisionVariable = "PENSTOCK_CONFIG_REVISION";

inline std::string ConfigRevision(std::string_view text) {
  return std::to_string(base::Hash(text));
}

}  // namespace penstock::api
