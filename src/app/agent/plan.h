// What `penstock plan` is answered: the configuration's part and the node's part of it, joined. Changes nothing.
#pragma once

#include <string>

#include "app/agent/configuration.h"
#include "base/core/result.h"
#include "door/preview.h"
#include "edge/broker/protocol.h"

namespace penstock::app {

/// As JSON (api/plan.h). On the control loop. kInvalidArgument tells all that is wrong with the configuration.
base::Result<std::string> PlanFor(const edge::broker::PlanRequest& request, const Configuration& configuration,
                                  const door::PreviewNode& node);

}  // namespace penstock::app
