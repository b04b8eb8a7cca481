// Paths that nobody but root can make lead elsewhere.
#pragma once

#include <string>

#include <sys/stat.h>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

struct TrustedPath {
  UniqueFd fd;         ///< O_PATH
  std::string path;    ///< below the root, with no link on the way
  struct stat status;  ///< of the file
};

/// Nothing where only root (whoever owns "/"), or the user that we are, can change a file with this status; else kPermissionDenied, `what`
/// being its name.
base::Status CheckOwner(const struct stat& status, const std::string& what);

/// Opens `path` (absolute) below the folder `root`, inside which absolute links and ".." stay, if CheckOwner has nothing against any
/// folder and link on the way (the root itself included) nor against the file. A folder with the sticky bit may be writable to all, since
/// others cannot move there what is root's; so may a socket, whose mode says who may connect. kPermissionDenied where that is not so, and
/// for links of /proc, which are no paths; kNotFound and others by errno. Blocks for some system calls. Any thread.
base::Result<TrustedPath> OpenTrusted(const std::string& root, const std::string& path);

}  // namespace penstock::os
