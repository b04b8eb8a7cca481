// Finds a container's file tree from the state that the low-level runtime passes to a hook (OCI
// runtime specification, "State").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/core/confined_tree.h"
#include "os/core/fd.h"

namespace penstock::hook {

inline constexpr std::size_t kMaxStateBytes = 1u << 20;
inline constexpr std::size_t kMaxBundleBytes = 16u << 20;

/// The path of the container's root: the state's `root` (crun), otherwise root.path of the bundle's
/// config.json, relative to the bundle. kInvalidArgument: not a container state; the message names
/// what is missing. kPermissionDenied: config.json cannot be read (a user namespace).
base::Result<std::string> FindRoot(std::string_view state);

/// The environment of the container's process, from the bundle's config.json; errors as for
/// FindRoot.
base::Result<std::vector<std::string>> ReadEnvironment(std::string_view state);

/// Opens the container's root. If config.json cannot be read, the root is the directory that the
/// program was started in, provided that it is a mount of its own: runc starts createContainer
/// hooks in the root, and in a user namespace it cannot read its own bundle.
base::Result<os::ConfinedTree> OpenRoot(std::string_view state, os::UniqueFd started_in);

}  // namespace penstock::hook
