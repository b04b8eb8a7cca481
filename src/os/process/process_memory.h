// Reads a process's command line and environment from /proc, which the kernel takes from that
// process's memory. That process can block the reader for as long as it likes (by a thread that
// holds the memory's lock while it waits for a user-space file system), so separate threads that
// can be abandoned do the reading.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// When a read was asked for, and when a thread began it, if one has.
struct ReadTimes {
  base::TimePoint asked;
  std::optional<base::TimePoint> begun;
};

/// The budget for waiting on reads: for the processes of one user, and for all together. A process
/// answers for the time of the read alone: a busy machine may not let the threads run.
class Patience {
 public:
  /// Longest wait for one read, from when it begins.
  static constexpr base::Duration kOnce = std::chrono::milliseconds(500);
  /// Longest wait for a thread to begin one.
  static constexpr base::Duration kForAThread = std::chrono::seconds(2);
  /// Only reads longer than this count.
  static constexpr base::Duration kCounted = std::chrono::milliseconds(50);
  /// Limits on counted waits within kWindow.
  static constexpr base::Duration kOfOneUser = std::chrono::seconds(1),
                                  kOfAll = std::chrono::seconds(4),
                                  kWindow = std::chrono::minutes(1);

  /// Whether the budget allows waiting for a read from a process of this user.
  bool Has(uid_t uid, base::TimePoint now);
  /// Until when to wait for a read that has not ended.
  static base::TimePoint Until(const ReadTimes& read);
  /// Takes a read that has ended, or that is not waited for any longer, from the budget.
  void Waited(uid_t uid, const ReadTimes& read, base::TimePoint ended);

 private:
  base::TimePoint begin_{};
  base::Duration all_{};
  std::map<uid_t, base::Duration> by_user_;
};

/// Reads the first `most` bytes of a /proc file that shows process memory: "cmdline", "environ".
/// `process` is the process's open folder in /proc, `uid` its real user. kDeadlineExceeded if the
/// process blocks the reader; kUnavailable, without waiting, if processes of this user, or too many
/// of other users, block readers. Any thread.
base::Result<std::string> ReadMemoryOf(const UniqueFd& process, const std::string& file,
                                       std::size_t most, uid_t uid);

}  // namespace penstock::os
