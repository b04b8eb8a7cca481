// Adds the requested devices to a container's bundle before the container is created.
#pragma once

#include <string>

#include "base/core/result.h"
#include "hook/runtime/nvidia/config.h"
#include "hook/runtime/run_log.h"

namespace penstock::hook::runtime {

/// Reads the bundle's config.json, and replaces it if the container requests devices. If killed at
/// any moment, it leaves either the old file or the new one. Errors say why the container cannot be
/// started and what to do; the file is then unchanged. Blocks for file system calls.
base::Status PrepareBundle(const std::string& bundle, const Config& config, RunLog& log);

}  // namespace penstock::hook::runtime
