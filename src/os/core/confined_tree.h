// The file tree of a container, seen from outside while it may be hostile and changing: nothing in it leads out of it.
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
  unsigned char type = 0;  ///< DT_REG, DT_LNK, …; DT_UNKNOWN where the file system does not say (readdir(3))
};

/// A directory below which everything is reached by descriptors and openat2(RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS): absolute links stay
/// inside, links of /proc are refused. Unlike os::Root it never falls back to anything weaker, and it can write. Any thread.
///
/// What writes keeps three rules more. It does not leave the tree's own mount: what a user mounted into the container belongs to somebody
/// else (kFailedPrecondition). What is created or replaced is never reached through a link that stands in its place: it is made beside
/// under a random name and renamed. And whoever is killed in between leaves the old content or the new, and at most that random name.
class ConfinedTree {
 public:
  /// kUnimplemented where the kernel has no openat2 (before 5.6, or a filter); kInvalidArgument where the path is the machine's own root;
  /// else errors by errno. The path itself is trusted.
  static base::Result<ConfinedTree> Open(const std::string& path);

  /// The same of a directory that is open already.
  static base::Result<ConfinedTree> Take(UniqueFd directory, std::string path);

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }

  /// The tree below a directory, which may be a mount of its own; links in it that are absolute lead to its own begin.
  base::Result<ConfinedTree> Below(const std::string& path) const;

  /// An O_PATH descriptor.
  base::Result<UniqueFd> Locate(const std::string& path) const;
  bool Exists(const std::string& path) const { return Locate(path).ok(); }

  /// Opens a regular file to read; kInvalidArgument for anything else (a FIFO would block, a device would act), which is not opened.
  base::Result<UniqueFd> OpenRegular(const std::string& path) const;
  /// Content of a regular file, bounded as ReadFile.
  base::Result<std::string> Read(const std::string& path, std::size_t most = kMostFileBytes) const;
  /// Sorted by name; kResourceExhausted beyond `most` entries.
  base::Result<std::vector<TreeEntry>> List(const std::string& path, std::size_t most = 1u << 16) const;
  base::Result<std::string> ReadLink(const std::string& path) const;

  /// mkdir -p; the directory's O_PATH descriptor. kFailedPrecondition where a link on the way leads nowhere.
  base::Result<UniqueFd> MakeDirectories(const std::string& path, unsigned mode = 0755) const;

  /// Creates or replaces a file, with the directories on the way. kAlreadyExists: a directory stands there.
  base::Status Write(const std::string& path, std::string_view content, unsigned mode = 0644) const;
  /// Creates a file where nothing stands yet, with the directories on the way; kAlreadyExists where something does.
  base::Status Create(const std::string& path, std::string_view content, unsigned mode = 0644) const;
  /// Creates or replaces a symbolic link, with the directories on the way; nothing is done where it says the same already.
  base::Status WriteLink(const std::string& target, const std::string& path) const;
  /// Removes a file or link; nothing is done where there is none.
  base::Status Remove(const std::string& path) const;
  base::Status ChangeMode(const std::string& path, unsigned mode) const;

 private:
  ConfinedTree(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  enum class Mounts { kAll, kOwn };
  UniqueFd TryOpen(const std::string& path, int flags, Mounts mounts) const;
  base::Result<UniqueFd> Open(const std::string& path, int flags, Mounts mounts) const;
  base::Result<UniqueFd> EnterOrMake(int parent, const std::string& path, const std::string& name, unsigned mode) const;
  base::Error Explain(int error, const std::string& doing, const std::string& path) const;

  std::string path_;
  UniqueFd fd_;
};

/// "/a/b" of "a//./x/../b": absolute, without empty, "." and ".." parts, by the text alone.
std::string CleanPath(std::string_view path);

}  // namespace penstock::os
