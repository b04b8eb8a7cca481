// Encodes the usage state that one agent leaves for the next, as JSON; and the file by which an
// agent that ends cleanly says so, and how much of the usage its metrics page did not show. Does no
// I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "node/usage/usage_accumulator.h"

namespace penstock::node::usage {

struct State {
  std::string boot_id;
  std::vector<Kept> holders;
  std::map<std::string, EnergyReading> energy;  ///< by device
  std::vector<std::string> pending;             ///< lines still to be written
};

std::string EncodeState(const State& state);

/// Returns kFailedPrecondition if a newer version of the agent wrote the text, kDataLoss if it is
/// damaged.
base::Result<State> DecodeState(std::string_view text, std::string_view file);

/// `state` is the text of the usage state that was written last.
std::string EncodeCleanEnd(const std::vector<Hidden>& hidden, std::string_view state);

/// Returns what was hidden; nothing if the file belongs to another state, that is, if an agent that
/// did not end cleanly wrote the current state. Returns kFailedPrecondition if a newer version of
/// the agent wrote the text, kDataLoss if it is damaged.
base::Result<std::optional<std::vector<Hidden>>> DecodeCleanEnd(std::string_view text,
                                                                std::string_view state,
                                                                std::string_view file);

}  // namespace penstock::node::usage
