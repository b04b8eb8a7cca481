// The ledger on disk: a hint for the next start, never the truth.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/core/result.h"
#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

/// What is written is smaller: a share of 32 GPUs in 128 each has at most some 30 KiB.
inline constexpr std::size_t kMostCheckpointBytes = 128u << 20;

/// JSON with a version, the boot id it belongs to, and the leases; of each the first processes alone, with their commands cut, so that
/// somebody with many children does not make it large.
std::string EncodeCheckpoint(const Snapshot& snapshot, std::string_view boot_id);

/// The leases in a checkpoint of this boot; none of another boot. kFailedPrecondition where a newer version of the agent wrote it,
/// kDataLoss where it is damaged.
base::Result<std::vector<Lease>> DecodeCheckpoint(std::string_view text, std::string_view boot_id, std::string_view file);

}  // namespace penstock::node::ledger
