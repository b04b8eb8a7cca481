// Reads the small files of a folder into which other users may write: its entries may be anything,
// and may change meanwhile.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

/// How much of a folder is read.
struct ForeignLimits {
  std::size_t entries = 0;  ///< names of any kind
  std::size_t files = 0;
  std::size_t bytes = 0;  ///< of each file
};

struct ForeignFile {
  std::string name;
  base::Result<std::string> text;  ///< its first bytes, or why it was not read, without its name
  bool cut = false;                ///< the file is longer than the limit
};

struct ForeignFolder {
  std::vector<ForeignFile> files;  ///< shorter names first, then sorted by name
  bool more_entries = false;       ///< there are more entries than the limit
  std::size_t more_files = 0;      ///< number of wanted names beyond the limit
};

/// Reads the files whose names `wanted` accepts. Reads nothing but regular files with one name:
/// links lead to files that the user who made them may not be able to read, and opening a device
/// has effects. Never waits for another process: not for the writer of a FIFO, nor for the holder
/// of a lease (fcntl(2)). The folder itself must not be a symbolic link (kFailedPrecondition);
/// links on the way to it are followed. kNotFound: there is no folder. Blocks for system calls.
base::Result<ForeignFolder> ReadForeignFolder(const std::string& path, const ForeignLimits& limits,
                                              const std::function<bool(std::string_view)>& wanted);

}  // namespace penstock::os
