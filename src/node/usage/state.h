// Encodes the usage state that one agent leaves for the next, as JSON. Does no I/O.
#pragma once

#include <map>
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

}  // namespace penstock::node::usage
