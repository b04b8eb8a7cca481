// Reads the list of services of the host that NVIDIA's MIG manager stops for a change (clients.yaml
// of the ConfigMap default-gpu-clients, version v1). Pure.
//
// Source: mig-parted, cmd/nvidia-mig-manager/main.go and reconfigure_mig.go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api::compat {

/// In the order in which they are stopped; empty for an empty file. kInvalidArgument, with all
/// problems as "file:line:column: key: ...": the MIG manager accepts units of other kinds, too.
Result<std::vector<std::string>> TranslateGpuClients(std::string_view text, std::string_view file);

}  // namespace penstock::api::compat
