// What an agent keeps of usage for the one after it, as JSON. Reads and writes no file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "node/usage/tally.h"

namespace penstock::node::usage {

struct State {
  std::string boot_id;
  std::vector<Kept> holders;
  std::map<std::string, EnergyReading> energy;  ///< by device
  std::vector<std::string> pending;             ///< lines that were to be written next
};

std::string EncodeState(const State& state);

/// kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is damaged.
base::Result<State> DecodeState(std::string_view text, std::string_view file);

}  // namespace penstock::node::usage
