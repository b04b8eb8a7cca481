// Where a container's file tree is, from what the low-level runtime says of the container it starts (OCI runtime specification, "State").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/core/confined_tree.h"
#include "os/core/fd.h"

namespace penstock::hook {

inline constexpr std::size_t kMostStateBytes = 1u << 20;
inline constexpr std::size_t kMostBundleBytes = 16u << 20;

/// The container's root as the state names it: by `root` (crun), else by root.path of the bundle's config.json, relative to the bundle.
/// kInvalidArgument: no such state, with what is missing. kPermissionDenied: config.json may not be read (a user namespace).
base::Result<std::string> FindRoot(std::string_view state);

/// The environment of the container's process, by the bundle's config.json; errors as FindRoot's.
base::Result<std::vector<std::string>> ReadEnvironment(std::string_view state);

/// Opens it. Where config.json may not be read, the directory that the program was started in is the root, if it is a mount of its own:
/// runc starts its createContainer hooks in the root, and in a user namespace it cannot read its own bundle.
base::Result<os::ConfinedTree> OpenRoot(std::string_view state, os::UniqueFd started_in);

}  // namespace penstock::hook
