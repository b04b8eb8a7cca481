// Specifications for another view of the same machine: `cdi transform root`.
#pragma once

#include <string>

#include "api/cdi/spec.h"

namespace penstock::api::cdi {

/// Which side of the edits is spoken of.
enum class Relative { kHost, kContainer };

/// Paths below `from` lie below `to` then; others stay (nvidia-ctk, pkg/nvcdi/transform/root). On the host's side those of device nodes and
/// mounts, the programs of hooks, and the arguments of hooks that run there; on the container's side those of device nodes and mounts, the
/// arguments of hooks that run in it (createContainer, startContainer: both sides of "target::link", and behind "--option="), and
/// startContainer's program. Both are absolute; empty is "/". The version is raised where what comes of it takes a later one.
Spec TransformRoot(Spec spec, const std::string& from, const std::string& to, Relative relative);

}  // namespace penstock::api::cdi
