// Opens paths below a root directory that may be another file system's: absolute links inside it
// stay inside it.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "os/core/fd.h"
#include "os/core/file.h"

namespace penstock::os {

/// A directory whose content is opened with openat2(RESOLVE_IN_ROOT): an absolute link such as
/// /usr/lib/libx.so -> /lib/libx.so.1 leads to the root's own file, and no path escapes. Magic
/// links of /proc (self/exe) are refused unless the root is "/". Where openat2 is not available
/// (before Linux 5.6, or because of an old container engine's seccomp filter), paths are opened
/// below the root without that protection. Any thread.
class Root {
 public:
  /// Errors by errno if the directory cannot be opened.
  static base::Result<Root> Open(const std::string& path);

  /// The root whose directory is at a path below this one, for many files there. Links in it that
  /// lead out of it stay inside it, too.
  base::Result<Root> OpenBelow(const std::string& path) const;

  const std::string& path() const { return path_; }

  /// Opens a path below the root ("/dev/nvidia0" or "dev/nvidia0").
  base::Result<UniqueFd> OpenFile(const std::string& path, int flags) const;
  /// As ReadFile: regular files only, and without blocking on other processes.
  base::Result<std::string> Read(const std::string& path, std::size_t most = kMaxFileBytes) const;
  base::Result<std::vector<std::string>> List(const std::string& path) const;
  base::Result<std::string> ReadLink(const std::string& path) const;
  /// The path of an open file below the root, with all links resolved: "/usr/lib64/libx.so.1.2" for
  /// a file opened as "/lib64/libx.so". Reads /proc/self/fd. kNotFound if the file is not below the
  /// root or has been removed.
  base::Result<std::string> PathOf(const UniqueFd& file) const;
  bool Exists(const std::string& path) const;

 private:
  Root(std::string path, UniqueFd fd, bool confined)
      : path_(std::move(path)), fd_(std::move(fd)), confined_(confined) {}
  std::string path_;
  UniqueFd fd_;
  bool confined_ = true;
};

}  // namespace penstock::os
