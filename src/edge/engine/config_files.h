// Files of another program, read and replaced with all that is theirs: links, mode, owner, security label. Knows nothing of what is in
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "os/core/root.h"

namespace penstock::edge::engine {

/// Files below a root: "/", or another mount namespace's (/proc/PID/root). Links are followed inside it. Blocks. Any thread.
class ConfigFiles {
 public:
  static base::Result<ConfigFiles> Open(const std::string& root);

  /// Nothing where there is no such file. Errors by errno; kResourceExhausted for what is too long to be a configuration.
  base::Result<std::optional<std::string>> Read(const std::string& path) const;

  /// Replaces a file's content, or makes it with its folders (0644, 0755): readers see the old or the new one, also after a crash. A link
  /// stays, and what it leads to is replaced; a link to nothing is refused (kFailedPrecondition).
  base::Status Write(const std::string& path, const std::string& content) const;

  /// What is not there need not be removed.
  base::Status Remove(const std::string& path) const;

  /// Whether anything lies there, a link to nothing included.
  bool Holds(const std::string& path) const;

  /// Where a symbolic link leads; nothing: it is none, or not there.
  std::optional<std::string> LinkTarget(const std::string& path) const;

  /// Makes a symbolic link; replaces nothing (kAlreadyExists). Its folder must be there.
  base::Status MakeLink(const std::string& path, const std::string& target) const;

  /// Removes a symbolic link, if it is one that leads there.
  base::Status RemoveLink(const std::string& path, const std::string& target) const;

  /// Paths that match, sorted; the pattern's last part alone may have wildcards.
  std::vector<std::string> Match(const std::string& pattern) const;

 private:
  explicit ConfigFiles(os::Root root) : root_(std::move(root)) {}
  base::Result<std::string> RealPath(const std::string& path) const;
  base::Result<std::string> InRealFolder(const std::string& path) const;

  os::Root root_;
};

}  // namespace penstock::edge::engine
