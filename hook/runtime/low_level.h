// Finds the low-level OCI runtime that this program calls.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/core/result.h"

namespace penstock::hook::runtime {

/// The absolute path of the first candidate ("runc", "/usr/libexec/crun") that exists. Names are
/// searched in the absolute folders of `path` (the engine's PATH; a relative one would be relative
/// to the bundle), then in the usual folders. kNotFound if there is none; kFailedPrecondition if it
/// is this program itself (`self`), which would call itself endlessly. Blocks for some system
/// calls.
base::Result<std::string> FindLowLevelRuntime(std::span<const std::string> candidates,
                                              std::string_view path, const std::string& self);

}  // namespace penstock::hook::runtime
