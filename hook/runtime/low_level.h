// Finding the runtime that does the work.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/core/result.h"

namespace penstock::hook::runtime {

/// The first of the candidates ("runc", "/usr/libexec/crun") that there is, as an absolute path. Names are looked for in the absolute
/// folders of `path` (PATH as the engine has it; a relative one would be the bundle's), then in the usual ones. kNotFound where there is
/// none; kFailedPrecondition where it is this very program, `self`, which would call itself for ever. Blocks for some system calls.
base::Result<std::string> FindLowLevelRuntime(std::span<const std::string> candidates, std::string_view path, const std::string& self);

}  // namespace penstock::hook::runtime
