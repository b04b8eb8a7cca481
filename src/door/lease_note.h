// What a control group says of the lease it belongs to, for an agent that starts later. No I/O.
#pragma once

#include <string>
#include <string_view>

#include "base/core/result.h"
#include "node/ledger/ledger.h"

namespace penstock::door {

/// JSON of the lease without its processes, which the group itself tells; the command is cut to fit.
std::string EncodeNote(const node::ledger::Lease& lease);

/// The lease, held, enforced by devices. kDataLoss where the note is damaged or belongs to another lease than `id`. Keys of a newer agent
/// are passed over.
base::Result<node::ledger::Lease> DecodeNote(std::string_view note, const std::string& id);

}  // namespace penstock::door
