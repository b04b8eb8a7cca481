// What an agent that ended cleanly leaves beside its state of usage: that it did, and how much of what was used its page did not show.
// Reads and writes no file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "node/usage/tally.h"

namespace penstock::node::usage {

/// `state` is the text of the state that was written last.
std::string EncodeCleanEnd(const std::vector<Hidden>& hidden, std::string_view state);

/// What was hidden; nothing where it belongs to another state, one that was written by an agent that did not end cleanly.
/// kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is damaged.
base::Result<std::optional<std::vector<Hidden>>> DecodeCleanEnd(std::string_view text, std::string_view state, std::string_view file);

}  // namespace penstock::node::usage
