// A file that one process holds at a time, and that names its holder.
#pragma once

#include <string>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// A process that holds a lock.
struct LockHolder {
  pid_t pid = 0;
  UniqueFd pidfd;       ///< of just this process
  std::string program;  ///< the name of its executable: "penstock-agent"; empty where that cannot be read
};

/// Held (flock) as long as it lives; the file's content is "<pid>\n". The kernel lets go when the process ends, however it ends. The file
/// is its owner's alone (0600), as whoever can open a file can hold it. It lies in a folder that only its owner can write to.
class LockFile {
 public:
  /// Takes the lock at once. kAlreadyExists where another process holds it; the message names it. A file that others can open, as earlier
  /// versions made it, is replaced, also while one of those others holds it.
  static base::Result<LockFile> Take(const std::string& path);

  /// The process that the file names and that has the lock, by its own descriptors. kNotFound where nobody has it; kFailedPrecondition
  /// where somebody else has, as far as can be seen from here: a process of another pid namespace, or one that is not ours to look at.
  static base::Result<LockHolder> Holder(const std::string& path);

  /// Whether somebody holds it. False where that cannot be seen.
  static bool IsHeld(const std::string& path);

 private:
  explicit LockFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace penstock::os
