// Specifications for another view of the same machine: `cdi transform root`.
#pragma once

#include <string>

#include "api/cdi/spec.h"

namespace penstock::api::cdi {

/// Which side of the edits is spoken of.
enum class Relative { kHost, kContainer };

/// Paths below `from` lie below `to` then; others stay. On the host's side device nodes, mounts and hooks; on the container's device nodes,
/// mounts and the arguments of hooks that name them.
Spec TransformRoot(Spec spec, const std::string& from, const std::string& to, Relative relative);

}  // namespace penstock::api::cdi
