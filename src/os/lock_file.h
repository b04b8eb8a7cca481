// A file that one process holds at a time, and that names its holder.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// Held (flock) as long as it lives; the file's content is "<pid>\n". The kernel lets go when the process ends, however it ends.
class LockFile {
 public:
  /// Takes the lock at once. kAlreadyExists where another process holds it; the message names it.
  static base::Result<LockFile> Take(const std::string& path);

  /// The process that the file names, where one holds the lock now; nothing where nobody does.
  static std::optional<pid_t> Holder(const std::string& path);

 private:
  explicit LockFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace penstock::os
