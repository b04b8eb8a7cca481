// Who holds devices where no agent runs that knows it.
#pragma once

#include <map>
#include <string>

#include "api/config/node_config.h"
#include "base/core/result.h"

namespace penstock::app {

/// The holders that the last agent recorded in this boot and that are still there, by the id of
/// their device. A run is there while it has a process. A pod is there while it has one or the
/// kubelet has a folder of it; one whose name the agent did not learn is taken to be there. Errors:
/// kFailedPrecondition, that agent left a change of devices unfinished; those of reading its files.
/// Blocks.
base::Result<std::map<std::string, std::string>> RecordedHolders(const api::PathsConfig& paths);

}  // namespace penstock::app
