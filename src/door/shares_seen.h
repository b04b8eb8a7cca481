// Whether this node's devices were offered to the kubelet in shares before this agent started. Pure.
#pragma once

#include <string>

#include "base/core/result.h"
#include "edge/kubelet/checkpoint.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::door {

/// What shows it, for people: a lease that was taken over, or what the kubelet noted, where a note that cannot be read may say so; empty
/// where nothing does.
std::string SharesSeen(const node::ledger::Snapshot& ledger, const node::inventory::Snapshot& inventory,
                       const base::Result<edge::kubelet::Checkpoint>& checkpoint);

}  // namespace penstock::door
