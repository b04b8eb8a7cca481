// Divides GPUs from this process, with the agent's own executor (node/change/division_run.h), where
// no agent runs.
#pragma once

#include <functional>
#include <vector>

#include "api/config/node_config.h"
#include "app/penstock/mig/mig_apply.h"
#include "base/core/result.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {

/// Holds the agent's lock meanwhile. Changes no file of an agent: no layout applies afterwards, and
/// a change that is cut off is not continued. Holders are the processes that the driver reports,
/// and those that the last agent recorded in this boot; where one is in the way, nothing is
/// changed. A GPU that cannot be divided becomes as it was before. `progress` is called for each
/// step. Errors: kAlreadyExists, an agent holds the lock; kUnavailable, the request waits for
/// holders; those of reading what the last agent recorded; kFailedPrecondition, the last agent
/// left changes unfinished, or a holder is in the way; kInvalidArgument, the layout is not
/// possible; kAborted, a GPU could not be divided. Blocks.
Result<std::vector<protocol::broker::DivideProgress>> DivideDirectly(
    const api::NodeConfig& config, const ApplyRequest& request,
    const std::function<void(const protocol::broker::DivideProgress&)>& progress);

}  // namespace penstock::app
