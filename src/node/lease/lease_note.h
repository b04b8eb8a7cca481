// Encodes and decodes the note that a control group carries about its lease, for an agent that
// starts later. Does no I/O.
#pragma once

#include <string>
#include <string_view>

#include "base/core/result.h"
#include "node/ledger/ledger.h"

namespace penstock::node::lease {

/// Returns JSON of the lease without its processes, which the group itself lists; the command is
/// truncated to fit.
std::string EncodeNote(const ledger::Lease& lease);

/// Returns the lease, in state kHeld with enforcement kDevices. kDataLoss where the note is corrupt
/// or belongs to another lease than `id`. Ignores keys of a newer agent.
base::Result<ledger::Lease> DecodeNote(std::string_view note, const std::string& id);

}  // namespace penstock::node::lease
