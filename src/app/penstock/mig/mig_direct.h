// Divides GPUs from this process, with the agent's own executor (node/change/division_run.h), where
// no agent runs.
#pragma once

#include <functional>
#include <vector>

#include "api/config/node_config.h"
#include "app/penstock/mig/mig_apply.h"
#include "app/penstock/mig/mig_interrupt.h"
#include "base/core/result.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {

/// Holds the agent's lock meanwhile. Changes no file of an agent: no layout applies afterwards, and
/// a change that is cut off is not continued. Holders are the processes that the driver reports,
/// and those of RecordedHolders; where one is in the way, nothing is changed. A GPU that cannot be
/// divided becomes as it was before. A worker process that ends is replaced, once for each call or
/// GPU. `progress` is called for each step. Errors: kAlreadyExists, an agent holds the lock;
/// kUnavailable, the request waits for holders, or a GPU that the layout selects does not respond;
/// those of RecordedHolders; kFailedPrecondition, a holder is in the way, or the processes or parts
/// of a GPU cannot be read; kInvalidArgument, the layout is not possible; kAborted, a GPU could not
/// be divided; kCancelled, a signal arrived: the GPU that was being divided is divided, or as
/// before, as are those after it. Blocks.
Result<std::vector<protocol::broker::DivideProgress>> DivideDirectly(
    const Common& common, const api::NodeConfig& config, const ApplyRequest& request,
    const Interruption& interruption,
    const std::function<void(const protocol::broker::DivideProgress&)>& progress);

}  // namespace penstock::app
