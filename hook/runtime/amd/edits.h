// What a container gets of AMD's devices, beside what it requests otherwise.
#pragma once

#include <optional>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "hook/runtime/facts.h"
#include "hook/runtime/nvidia/config.h"
#include "hook/runtime/nvidia/request.h"
#include "hook/runtime/run_log.h"

namespace penstock::hook::runtime {

/// The edits for AMD_VISIBLE_DEVICES, complete; nothing if it requests nothing, may request
/// nothing, or `other`, of the container's creator, counts. Errors as in ReadAmdRequest and
/// ResolveAmd. Blocks for file system calls.
base::Result<std::optional<api::cdi::CdiEdits>> AmdEdits(const RuntimeFacts& facts,
                                                         const DeviceRequest& other,
                                                         const Config& config, RunLog& log);

}  // namespace penstock::hook::runtime
