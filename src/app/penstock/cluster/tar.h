// Writes archives in the format of POSIX.1-2001's ustar (pax, "ustar Interchange Format"). Pure.
#pragma once

#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

struct ArchivedFile {
  std::string path;  ///< relative, at most 255 bytes
  std::string content;
};

/// An archive of regular files (mode 0644, of root) that were changed at `time`.
/// kInvalidArgument: a path that does not fit.
base::Result<std::string> Tar(const std::vector<ArchivedFile>& files, base::WallTime time);

}  // namespace penstock::app
