// Encodes and decodes the ledger's checkpoint on disk: a hint for the next start, never the truth.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/core/result.h"
#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

/// Real checkpoints are smaller: one lease for each share of 32 GPUs with 128 shares each, of 30
/// KiB each at most.
inline constexpr std::size_t kMaxCheckpointBytes = 128u << 20;

/// Returns JSON with a version, the boot id it belongs to, and the leases. Of each lease only the
/// first processes are written, with their commands truncated, so that a holder with many child
/// processes does not make the file large.
std::string EncodeCheckpoint(const Snapshot& snapshot, std::string_view boot_id);

/// Returns the leases of a checkpoint of this boot; none for another boot. kFailedPrecondition
/// where a newer version of the agent wrote it, kDataLoss where it is corrupt.
base::Result<std::vector<Lease>> DecodeCheckpoint(std::string_view text, std::string_view boot_id,
                                                  std::string_view file);

}  // namespace penstock::node::ledger
