// A signal that asks this program to end while it changes something.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "os/core/fd.h"

namespace penstock::app {

/// While one exists, the first SIGINT, SIGTERM or SIGHUP is only recorded, so that what was begun
/// is ended in order. One that arrives within a second of it belongs to it; a later one ends the
/// program at once. Signals that are ignored stay ignored. At most one exists at a time.
class Interruption {
 public:
  using Clock = std::int64_t (*)();  ///< nanoseconds, never 0; called in a signal handler
  explicit Interruption(Clock clock = Now);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  int signal() const;                   ///< the one that was received; 0: none
  int fd() const { return fd_.get(); }  ///< readable once one was received

  /// This process group is killed where a later signal ends the program; 0: none.
  void Guard(pid_t group);

  /// Ends this program as the signal would have ended it.
  [[noreturn]] void End() const;

 private:
  static std::int64_t Now();
  const os::UniqueFd fd_;
};

}  // namespace penstock::app
