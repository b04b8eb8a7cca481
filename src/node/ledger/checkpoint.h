// Encodes and decodes the ledger's checkpoint on disk: a hint for the next start, never the truth.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

/// What was enforced on the holders of a lease when it was allocated, of its slots with limits.
struct LeaseLimits {
  struct OfSlot {
    std::string id;
    device::Limits limits;
    bool operator==(const OfSlot&) const = default;
  };
  std::string id;
  std::vector<OfSlot> slots;
  bool operator==(const LeaseLimits&) const = default;
};

/// Returns the limits of leases as JSON with a version and the boot id. They are in a file of their
/// own, because 0.1.0 takes a checkpoint with keys that it does not know for damaged. Those of
/// parts are in the checkpoint.
std::string EncodeLimits(const Snapshot& snapshot, std::string_view boot_id);

/// Returns the limits of leases of this boot, by id. Errors as of DecodeCheckpoint.
base::Result<std::vector<LeaseLimits>> DecodeLimits(std::string_view text, std::string_view boot_id,
                                                    std::string_view file);

/// Gives a lease that was found again the limits that it had. `limits` as DecodeLimits returns
/// them.
void RestoreLimits(const std::vector<LeaseLimits>& limits, Lease& lease);

/// Whether EncodeLimits returns another text for these leases. Does not look at leases that both
/// share.
bool LimitsDiffer(const Leases& now, const Leases& before);

}  // namespace penstock::node::ledger
