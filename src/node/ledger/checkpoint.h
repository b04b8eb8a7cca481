// The ledger on disk: a hint for the next start, never the truth.
#pragma once

#include <string>
#include <string_view>

#include "base/core/result.h"
#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

/// JSON with a version, the boot id it belongs to, and the leases.
std::string EncodeCheckpoint(const Snapshot& snapshot, std::string_view boot_id);

/// The leases in a checkpoint of this boot; none of another boot. kFailedPrecondition where a newer version of the agent wrote it (then it
/// must be left alone), kDataLoss where it is damaged (then it is started without).
base::Result<std::vector<Lease>> DecodeCheckpoint(std::string_view text, std::string_view boot_id, std::string_view file);

}  // namespace penstock::node::ledger
