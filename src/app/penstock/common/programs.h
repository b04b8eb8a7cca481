// Finds and runs the other Penstock programs that `penstock` starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/process/command.h"
#include "os/process/process.h"

namespace penstock::app {

/// Looks beside the running program, then in ../libexec/penstock from there. kNotFound names both
/// places.
base::Result<std::string> FindProgram(std::string_view name);

/// Waits for a child and returns its exit status; 128 plus the signal number where a signal ended
/// it. Blocks.
int Reap(const os::Child& child);

/// Runs a program to its end. Where it fails, its output is the error message. Blocks.
base::Status RunToEnd(const std::vector<std::string>& arguments);

/// Returns the output and the exit status of a program. Kills it at the deadline and returns
/// kDeadlineExceeded. Other errors are those of os::Spawn. Blocks.
base::Result<os::Command::Outcome> RunFor(const std::vector<std::string>& arguments,
                                          base::Duration deadline);

/// Receives a program's progress by the NOTIFY_SOCKET protocol (sd_notify(3)): an abstract socket
/// with a name chosen by the kernel.
class NotifySocket {
 public:
  static base::Result<NotifySocket> Make();

  int fd() const { return fd_.get(); }

  /// The environment of this program with NOTIFY_SOCKET set to this socket.
  std::vector<std::string> Environment() const;

  struct Notice {
    bool ready = false;
    std::string status;  ///< the last STATUS=
  };
  /// Returns the messages from this process so far and ignores those of other processes. Does not
  /// block.
  Notice Read(pid_t from) const;

 private:
  NotifySocket(os::UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  os::UniqueFd fd_;
  std::string name_;
};

}  // namespace penstock::app
