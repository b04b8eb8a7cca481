// What `penstock plan` is answered: the configuration's part and the node's part of it, joined. Changes nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/agent/configuration.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "door/preview.h"
#include "edge/broker/protocol.h"

namespace penstock::app {

/// The node at one moment, with what `node` refers to.
struct KeptPreviewNode {
  std::shared_ptr<const node::inventory::Snapshot> inventory;
  std::shared_ptr<const node::ledger::Snapshot> ledger;
  door::PreviewNode node;
};

/// As JSON (api/plan.h). Called on the control loop, where `done` is called too; made on `io`, since a large configuration takes a third of
/// a second. kInvalidArgument tells all that is wrong with the configuration.
void PlanOn(base::Executor& io, base::Executor& control, const edge::broker::PlanRequest& request, const Configuration& configuration,
            KeptPreviewNode node, std::function<void(base::Result<std::string>)> done);

}  // namespace penstock::app
