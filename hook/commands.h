// Runs the hook that a call names, with the flags of nvidia-cdi-hook.
#pragma once

#include <span>
#include <string>

#include "os/core/fd.h"

namespace penstock::hook {

/// Runs a call. `words` are the program's arguments without its name; `started_in` is the directory
/// that the program was started in. Reads the container's state from standard input. Returns the
/// exit status: 0, or 1 after one message on standard error.
int RunCall(std::span<const std::string> words, os::UniqueFd started_in);

}  // namespace penstock::hook
