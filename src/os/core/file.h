// Whole files: read with a bound, written so that a crash leaves the old or the new one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

inline constexpr std::size_t kMostFileBytes = 16u << 20;

/// The content of a regular file. Never waits for somebody else: a pipe, a device or a socket is kInvalidArgument. Errors by errno;
/// kResourceExhausted where it is larger than `most`.
base::Result<std::string> ReadFile(const std::string& path, std::size_t most = kMostFileBytes);

/// The same of a file that is open already, from its current offset. It must have been opened with O_NONBLOCK, or the open has waited.
base::Result<std::string> ReadRegular(int fd, const std::string& name, std::size_t most = kMostFileBytes);

/// What a person names on a command line, which may be a pipe or a device too ("<(...)", /dev/stdin, /dev/null): waits until it ends.
base::Result<std::string> ReadInput(const std::string& path, std::size_t most = kMostFileBytes);

/// The rest of an open file, from its current offset.
base::Result<std::string> ReadAll(int fd, const std::string& name, std::size_t most = kMostFileBytes);

/// Writes all of it to an open file, from its current offset.
base::Status WriteAll(int fd, std::string_view content, const std::string& name);

/// Writes to a temporary file beside, syncs, renames: readers see the old or the new content, also after a crash. Nothing is left behind
/// on failure (a full or read-only disk).
base::Status WriteFileAtomically(const std::string& path, std::string_view content, unsigned mode = 0644);

/// Writes to an existing file in one write(2), as sysfs and cgroupfs want it.
base::Status WriteControlFile(const std::string& path, std::string_view content);

/// mkdir -p.
base::Status MakeDirectories(const std::string& path, unsigned mode = 0755);

/// Names in a directory without . and .., sorted.
base::Result<std::vector<std::string>> ListDirectory(const std::string& path);

/// The same of an open directory.
base::Result<std::vector<std::string>> ListAll(UniqueFd directory, const std::string& name);

/// A file of a folder as it was found.
struct FolderFile {
  std::string path;
  base::Result<std::string> text;  ///< or why it could not be read
};

/// The files of a folder whose names end in one of the suffixes, sorted by name. Links to files are followed, folders below are passed
/// over, a file that is none (a pipe, a device) is not waited for. A folder that is not there has no files; one that cannot be listed, or
/// is itself a link, is the only entry, with the error. Blocks.
std::vector<FolderFile> ReadFolder(const std::string& folder, std::span<const std::string_view> suffixes, std::size_t most);

bool Exists(const std::string& path);

/// What a symbolic link says.
base::Result<std::string> ReadLink(const std::string& path);

}  // namespace penstock::os
