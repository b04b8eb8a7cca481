// Keys of NodeConfig that were named after NVIDIA's programs before each vendor had its own: what
// users wrote stays valid.
#pragma once

#include "api/config/config_terms.h"

namespace penstock::api::compat {

inline constexpr FormerKey kFormerKeys[] = {
    {"nvidia", "paths.nvmlLibrary", "paths.libraries.nvidia"},
    {"nvidia", "sharing.mps.root", "sharing.serverRoots.nvidia"},
    {"nvidia", "sharing.mps.hostRoot", "sharing.hostServerRoots.nvidia"},
    {"nvidia", "telemetry.xidWindow", "telemetry.errorsWindow"},
    {"nvidia", "parts.migStrategy", "parts.profiledStrategy"},
};

}  // namespace penstock::api::compat
