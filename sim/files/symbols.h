// Limits a copy of the simulated library to the symbols of its driver branch: makes newer ones
// appear absent. Changes one file.
#pragma once

#include <cstdint>
#include <string>

#include "base/core/result.h"

namespace penstock::sim {

/// Makes dlsym fail for every function of functions.def that is newer than `branch`, in the shared
/// library at `path`. Returns kDataLoss if that is not a 64-bit ELF library with a dynamic symbol
/// table.
base::Status HideNewerSymbols(const std::string& path, std::uint32_t branch);

}  // namespace penstock::sim
