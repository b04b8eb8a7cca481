// Finds out whether this node's devices were offered to the kubelet as shares before this agent
// started. Pure.
#pragma once

#include <string>

#include "base/core/result.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "protocol/kubelet/checkpoint.h"

namespace penstock::adapter::kubelet {

/// Returns the evidence, for people: a restored lease, or the kubelet's checkpoint, also where it
/// cannot be read and may contain shares; empty if there is none.
std::string SharesSeen(const node::ledger::Snapshot& ledger,
                       const node::inventory::Snapshot& inventory,
                       const base::Result<protocol::kubelet::Checkpoint>& checkpoint);

}  // namespace penstock::adapter::kubelet
