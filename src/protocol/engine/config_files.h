// Reads and replaces files of another program and keeps their links, mode, owner and security
// label. Does not interpret their content.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "os/core/root.h"

namespace penstock::protocol::engine {

/// Files below a root: "/", or another mount namespace's (/proc/PID/root). Links are followed
/// inside it. Blocks. Any thread.
class ConfigFiles {
 public:
  static base::Result<ConfigFiles> Open(const std::string& root);

  /// Returns nothing if there is no such file. Errors by errno; kResourceExhausted for a file that
  /// is too long to be a configuration.
  base::Result<std::optional<std::string>> Read(const std::string& path) const;

  /// Replaces a file's content, or creates the file and its folders (0644, 0755). Readers see the
  /// old or the new content, also after a crash. A link stays, and its target is replaced; a
  /// dangling link is refused (kFailedPrecondition).
  base::Status Write(const std::string& path, const std::string& content) const;

  /// Removes a file. A missing file is no error.
  base::Status Remove(const std::string& path) const;

  /// Returns whether anything is at the path, dangling links included.
  bool Holds(const std::string& path) const;

  /// Returns the target of a symbolic link; nothing if the path is no link or does not exist.
  std::optional<std::string> LinkTarget(const std::string& path) const;

  /// Creates a symbolic link; replaces nothing (kAlreadyExists). Its folder must exist.
  base::Status MakeLink(const std::string& path, const std::string& target) const;

  /// Removes a symbolic link if it has this target.
  base::Status RemoveLink(const std::string& path, const std::string& target) const;

  /// Returns the paths that match, sorted; only the pattern's last part may have wildcards.
  std::vector<std::string> Match(const std::string& pattern) const;

 private:
  explicit ConfigFiles(os::Root root) : root_(std::move(root)) {}
  base::Result<std::string> RealPath(const std::string& path) const;
  base::Result<std::string> InRealFolder(const std::string& path) const;

  os::Root root_;
};

}  // namespace penstock::protocol::engine
