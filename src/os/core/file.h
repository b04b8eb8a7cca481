// Reads whole files with a size limit, and writes them so that a crash leaves either the old or the
// new content.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

inline constexpr std::size_t kMaxFileBytes = 16u << 20;

/// The content of a regular file. Never blocks on another process: a pipe, device or socket is
/// kInvalidArgument. Errors by errno; kResourceExhausted if the file is larger than `most`.
base::Result<std::string> ReadFile(const std::string& path, std::size_t most = kMaxFileBytes);

/// As ReadFile, for a file that is already open, from its current offset. Open it with O_NONBLOCK;
/// otherwise the open itself may block.
base::Result<std::string> ReadRegular(int fd, const std::string& name,
                                      std::size_t most = kMaxFileBytes);

/// The content of a file that a user names on a command line, which may also be a pipe or a device
/// ("<(...)", /dev/stdin, /dev/null): waits until it ends.
base::Result<std::string> ReadInput(const std::string& path, std::size_t most = kMaxFileBytes);

/// The rest of an open file, from its current offset.
base::Result<std::string> ReadAll(int fd, const std::string& name,
                                  std::size_t most = kMaxFileBytes);

/// Writes all of `content` to an open file, at its current offset.
base::Status WriteAll(int fd, std::string_view content, const std::string& name);

/// Writes to a temporary file beside it, syncs, and renames: readers see either the old or the new
/// content, also after a crash. Leaves no file behind on failure (a full or read-only disk).
base::Status WriteFileAtomically(const std::string& path, std::string_view content,
                                 unsigned mode = 0644);

/// Writes to an existing file in one write(2), as sysfs and cgroupfs require.
base::Status WriteControlFile(const std::string& path, std::string_view content);

/// As mkdir -p.
base::Status MakeDirectories(const std::string& path, unsigned mode = 0755);

/// Names in a directory without "." and "..", sorted.
base::Result<std::vector<std::string>> ListDirectory(const std::string& path);

/// As ListDirectory, for an open directory.
base::Result<std::vector<std::string>> ListAll(UniqueFd directory, const std::string& name);

/// A file of a folder, as it was when it was read.
struct FolderFile {
  std::string path;
  base::Result<std::string> text;  ///< or why reading failed
};

/// The files of a folder whose names end in one of the suffixes, sorted by name. Links to files are
/// followed, subfolders are skipped, and special files (a pipe, a device) do not block. A missing
/// folder has no files; for a folder that cannot be listed or is itself a link, the only entry
/// holds the error. Blocks.
std::vector<FolderFile> ReadFolder(const std::string& folder,
                                   std::span<const std::string_view> suffixes, std::size_t most);

/// Whether two paths lead to the same file or folder, which exists.
bool IsSame(const std::string& path, const std::string& other);

bool Exists(const std::string& path);

/// The target of a symbolic link.
base::Result<std::string> ReadLink(const std::string& path);

}  // namespace penstock::os
