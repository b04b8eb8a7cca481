// A lock file that one process holds at a time and that names its holder.
#pragma once

#include <string>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// A process that holds a lock.
struct LockHolder {
  pid_t pid = 0;
  UniqueFd pidfd;  ///< of exactly this process
  std::string
      program;  ///< the name of its executable: "penstock-agent"; empty if it cannot be read
};

/// Holds the lock (flock) for its lifetime; the file's content is "<pid>\n". The kernel releases
/// the lock when the process ends, however it ends. Only the owner can open the file (0600), since
/// a process that can open it can lock it. The folder must be writable only by its owner.
class LockFile {
 public:
  /// Takes the lock without waiting. kAlreadyExists if another process holds it; the message names
  /// that process. A file that other users can open, as earlier versions created it, is replaced,
  /// even while another user's process holds it.
  static base::Result<LockFile> Take(const std::string& path);

  /// The process that the file names, if its own descriptors show that it holds the lock. kNotFound
  /// if no process holds the lock; kFailedPrecondition if another process does, as far as can be
  /// seen: a process of another pid namespace, or one that this process may not inspect.
  static base::Result<LockHolder> Holder(const std::string& path);

  /// Whether a process holds the lock. False if that cannot be determined.
  static bool IsHeld(const std::string& path);

 private:
  explicit LockFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace penstock::os
