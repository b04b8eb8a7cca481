// What happens before a container is made: its bundle gets the devices that it asks for.
#pragma once

#include <string>

#include "base/core/result.h"
#include "hook/runtime/config.h"
#include "hook/runtime/run_log.h"

namespace penstock::hook::runtime {

/// Reads the bundle's config.json, and replaces it where devices are asked for. Killed at any moment, it leaves the old file or the new
/// one. Errors say why the container cannot be started and what to do; then the file is as it was. Blocks for file system calls.
base::Status PrepareBundle(const std::string& bundle, const Config& config, RunLog& log);

}  // namespace penstock::hook::runtime
