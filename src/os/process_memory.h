// What /proc shows out of another process's memory: its command line and environment. That process, if it wants to, keeps the reader
// waiting for as long as it likes (a thread of its own that holds the memory's lock while it waits for a file system in user space), so the
// reading is done by threads that can be given up.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include <sys/types.h>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// For how long the processes of one user, and of all together, may keep readers waiting.
class Patience {
 public:
  /// Longest wait for one read.
  static constexpr base::Duration kOnce = std::chrono::milliseconds(500);
  /// What is waited longer than this is counted: a machine that is busy is not meant.
  static constexpr base::Duration kCounted = std::chrono::milliseconds(50);
  /// Counted waits within kWindow.
  static constexpr base::Duration kOfOneUser = std::chrono::seconds(1), kOfAll = std::chrono::seconds(4), kWindow = std::chrono::minutes(1);

  /// Whether a read from a process of this user may be waited for.
  bool Has(uid_t uid, base::TimePoint now);
  void Waited(uid_t uid, base::Duration time);

 private:
  base::TimePoint begin_{};
  base::Duration all_{};
  std::map<uid_t, base::Duration> by_user_;
};

/// The first bytes of a file of a process that shows its memory: "cmdline", "environ". `process` is its open folder in /proc, `uid` its
/// real user. kDeadlineExceeded where it keeps the reader waiting; kUnavailable, without waiting, where processes of this user do, or too
/// many of others. Any thread.
base::Result<std::string> ReadMemoryOf(const UniqueFd& process, const std::string& file, std::size_t most, uid_t uid);

}  // namespace penstock::os
