// The other programs of ours that `penstock` starts: where they lie, and how they are run. Knows nothing of what they do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/command.h"
#include "os/process.h"

namespace penstock::app {

/// Beside the running program, or in ../libexec/penstock from there. kNotFound names both.
base::Result<std::string> FindProgram(std::string_view name);

/// The exit status of a child once it has ended, 128 and the signal's number where a signal ended it. Blocks.
int Reap(const os::Child& child);

/// Runs a program to its end. Its output is kept and becomes the error's message where it fails. Blocks.
base::Status RunToEnd(const std::vector<std::string>& arguments);

/// What a program wrote and how it ended; killed after the deadline, which is kDeadlineExceeded then. Other errors as os::Spawn's. Blocks.
base::Result<os::Command::Outcome> RunFor(const std::vector<std::string>& arguments, base::Duration deadline);

/// Where a program tells how far it is, by the NOTIFY_SOCKET protocol (sd_notify(3)): an abstract socket with a name of the kernel's
/// choice.
class NotifySocket {
 public:
  static base::Result<NotifySocket> Make();

  int fd() const { return fd_.get(); }

  /// This program's environment with NOTIFY_SOCKET set to this socket.
  std::vector<std::string> Environment() const;

  struct News {
    bool ready = false;
    std::string status;  ///< the last STATUS= there was
  };
  /// What has come from this process so far; what others send is passed over. Does not block.
  News Read(pid_t from) const;

 private:
  NotifySocket(os::UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  os::UniqueFd fd_;
  std::string name_;
};

}  // namespace penstock::app
