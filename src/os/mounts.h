// Finds and removes the mounts below a folder.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

/// A path as mountinfo has it, which writes white space and backslashes as octal escapes.
std::string PlainMountPoint(std::string_view text);

/// The mount points at `folder` and below it, in the text of /proc/PID/mountinfo, so that each
/// comes before those that contain it; one with several mounts on top of each other is there as
/// often.
std::vector<std::string> MountsBelow(std::string_view mountinfo, std::string_view folder);

/// What UnmountBelow did.
struct Unmounted {
  std::size_t mounts = 0;
  std::vector<std::string> lazily;  ///< mount points that were in use: their last user ends them
};

/// Unmounts everything at a folder and below it in this mount namespace, and so where its mounts
/// are shared with. Success also if nothing is mounted there. kPermissionDenied: this process lacks
/// CAP_SYS_ADMIN. Blocks.
base::Result<Unmounted> UnmountBelow(const std::string& folder);

/// Whether something is mounted at exactly this folder, as this process sees it.
bool IsMountPoint(const std::string& folder);

}  // namespace penstock::os
