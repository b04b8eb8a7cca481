// Gives a copy of the simulated library the symbols that its driver branch had: newer ones are made to look absent. Touches one file.
#pragma once

#include <cstdint>
#include <string>

#include "base/core/result.h"

namespace penstock::sim {

/// Makes dlsym fail for every function of functions.def that came after `branch`, in the shared library at `path`.
/// kDataLoss where that is no 64-bit ELF library with a dynamic symbol table.
base::Status HideNewerSymbols(const std::string& path, std::uint32_t branch);

}  // namespace penstock::sim
