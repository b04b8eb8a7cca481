// Accesses the file tree of a container from outside, where the tree may be hostile and may change
// meanwhile: no path in it leads out of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/core/fd.h"
#include "os/core/file.h"

namespace penstock::os {

struct TreeEntry {
  std::string name;
  unsigned char type =
      0;  ///< DT_REG, DT_LNK, …; DT_UNKNOWN if the file system does not report it (readdir(3))
};

/// A directory below which everything is opened by descriptors and openat2(RESOLVE_IN_ROOT |
/// RESOLVE_NO_MAGICLINKS): absolute links stay inside, magic links of /proc are refused. Unlike
/// os::Root it never falls back to weaker protection, and it can write. Any thread.
///
/// Functions that write keep three more rules. They stay on the tree's own mount, since what a user
/// mounted into the container is not the container's (kFailedPrecondition). They never follow a
/// link at the place of the created or replaced file: the new file is created beside it under a
/// random name and renamed. A process that is killed during a write leaves either the old content
/// or the new, and at most one file with a random name.
class ConfinedTree {
 public:
  /// kUnimplemented if the kernel has no openat2 (before 5.6, or a seccomp filter);
  /// kInvalidArgument if the path is the machine's own root; otherwise errors by errno. The path
  /// itself is trusted.
  static base::Result<ConfinedTree> Open(const std::string& path);

  /// As Open, for a directory that is already open.
  static base::Result<ConfinedTree> Take(UniqueFd directory, std::string path);

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }

  /// The tree below a directory, which may be a mount of its own; absolute links in it resolve from
  /// that directory.
  base::Result<ConfinedTree> Below(const std::string& path) const;

  /// Returns an O_PATH descriptor.
  base::Result<UniqueFd> Locate(const std::string& path) const;
  bool Exists(const std::string& path) const { return Locate(path).ok(); }

  /// Opens a regular file for reading. Anything else is kInvalidArgument and is not opened: opening
  /// a FIFO would block, and opening a device would have side effects.
  base::Result<UniqueFd> OpenRegular(const std::string& path) const;
  /// Content of a regular file, with the same limit as ReadFile.
  base::Result<std::string> Read(const std::string& path, std::size_t most = kMaxFileBytes) const;
  /// Sorted by name; kResourceExhausted beyond `most` entries.
  base::Result<std::vector<TreeEntry>> List(const std::string& path,
                                            std::size_t most = 1u << 16) const;
  base::Result<std::string> ReadLink(const std::string& path) const;

  /// As mkdir -p; returns the directory's O_PATH descriptor. kFailedPrecondition for a dangling
  /// link on the way.
  base::Result<UniqueFd> MakeDirectories(const std::string& path, unsigned mode = 0755) const;

  /// Creates or replaces a file, and missing parent directories. kAlreadyExists if the path is a
  /// directory.
  base::Status Write(const std::string& path, std::string_view content, unsigned mode = 0644) const;
  /// Creates a file, and missing parent directories; kAlreadyExists if the path exists.
  base::Status Create(const std::string& path, std::string_view content,
                      unsigned mode = 0644) const;
  /// Creates or replaces a symbolic link, and missing parent directories; does nothing if it has
  /// the same target already.
  base::Status WriteLink(const std::string& target, const std::string& path) const;
  /// Removes a file or link; does nothing if it does not exist.
  base::Status Remove(const std::string& path) const;
  base::Status ChangeMode(const std::string& path, unsigned mode) const;

 private:
  ConfinedTree(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  enum class Mounts { kAll, kOwn };
  UniqueFd TryOpen(const std::string& path, int flags, Mounts mounts) const;
  base::Result<UniqueFd> Open(const std::string& path, int flags, Mounts mounts) const;
  base::Result<UniqueFd> EnterOrMake(int parent, const std::string& path, const std::string& name,
                                     unsigned mode) const;
  base::Error Explain(int error, const std::string& doing, const std::string& path) const;

  std::string path_;
  UniqueFd fd_;
};

/// "/a/b" for "a//./x/../b": absolute, without empty, "." and ".." parts; computed from the text
/// alone.
std::string CleanPath(std::string_view path);

}  // namespace penstock::os
