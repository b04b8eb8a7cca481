// Opens paths that only root can redirect.
#pragma once

#include <string>

#include <sys/stat.h>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

struct TrustedPath {
  UniqueFd fd;         ///< O_PATH
  std::string path;    ///< below the root, with all links resolved
  struct stat status;  ///< of the file
};

/// Success if only root (the owner of "/") or this process's user can change a file with this
/// status; otherwise kPermissionDenied. `what` names the file.
base::Status CheckOwner(const struct stat& status, const std::string& what);

/// Opens `path` (absolute) below the folder `root`, inside which absolute links and ".." stay, if
/// CheckOwner accepts the file and every folder and link on the way (including the root). A folder
/// with the sticky bit may be writable by all, since other users cannot move root's files there. A
/// socket may be writable by all, since its mode only says who may connect. kPermissionDenied if a
/// check fails, and for magic links of /proc, which are not paths; kNotFound and others by errno.
/// Blocks for some system calls. Any thread.
base::Result<TrustedPath> OpenTrusted(const std::string& root, const std::string& path);

}  // namespace penstock::os
