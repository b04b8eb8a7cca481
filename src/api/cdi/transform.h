// Rewrites specifications: for another view of the same machine (`cdi transform root`), and for
// readers of earlier versions.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "api/cdi/spec.h"

namespace penstock::api::cdi {

/// Which side of the edits is transformed.
enum class Relative { kHost, kContainer };

/// Moves paths below `from` to below `to`; other paths stay (nvidia-ctk, pkg/nvcdi/transform/root).
/// Host side: paths of device nodes and mounts, the programs of hooks, and the arguments of hooks
/// that run on the host. Container side: paths of device nodes and mounts, the arguments of hooks
/// that run in the container (createContainer, startContainer: both sides of "target::link", and
/// behind "--option="), and startContainer's program. `from` and `to` are absolute; empty is "/".
/// The version is raised if the result requires a later one.
Spec TransformRoot(Spec spec, const std::string& from, const std::string& to, Relative relative);

/// Removes additionalGids, which needs version 0.7.0, and returns these groups.
std::set<std::uint32_t> TakeGroups(Spec& spec);

}  // namespace penstock::api::cdi
