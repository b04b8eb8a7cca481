// Answers `penstock plan`: what a configuration would change on this node.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/agent/configuration.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "protocol/broker/protocol.h"
#include "view/preview.h"

namespace penstock::app {

/// The node at one moment; holds the snapshots that `node` refers to.
struct KeptPreviewNode {
  std::shared_ptr<const node::inventory::Snapshot> inventory;
  std::shared_ptr<const node::ledger::Snapshot> ledger;
  view::PreviewNode node;
};

/// Returns the preview as JSON (api/config_preview.h). Called on the control loop, on which `done`
/// is called too; computed on `io`, since a large configuration takes a third of a second.
/// kInvalidArgument contains all errors of the configuration.
void PreviewOn(base::Executor& io, base::Executor& control,
               const protocol::broker::PreviewRequest& request, const Configuration& configuration,
               KeptPreviewNode node, std::function<void(base::Result<std::string>)> done);

}  // namespace penstock::app
