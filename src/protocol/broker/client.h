// Sends requests to the agent over the broker's socket and reads its answers, line by line. Blocks,
// without threads; for programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::protocol::broker {

/// "<run_dir>/penstock.sock".
std::string SocketPath(const std::string& run_dir);

/// A connection to the agent of a run directory. Not thread-safe. The descriptor is close-on-exec.
class Client {
 public:
  /// kUnavailable if no agent answers, kPermissionDenied if the caller may not use it; both errors
  /// say what to do. An agent that hangs accepts some connections; after that this waits
  /// indefinitely, or up to `patience` (kDeadlineExceeded).
  static base::Result<Client> Connect(const std::string& run_dir,
                                      std::optional<base::Duration> patience = std::nullopt);

  /// Sends a line and adds the newline.
  base::Status SendLine(std::string_view line);

  /// Returns the next line without its newline. Waits indefinitely, or up to `timeout`
  /// (kDeadlineExceeded). kUnavailable if the agent closed the connection. Answers may be long (a
  /// status report): at most 16 MiB.
  base::Result<std::string> ReadLine(std::optional<base::Duration> timeout = std::nullopt);

  /// From now on ReadLine ends with kCancelled once this descriptor is readable. -1: none.
  void InterruptBy(int fd) { interrupt_ = fd; }

  /// Calls SendLine and ReadLine: one answer to one request. An {"error": ...} answer becomes that
  /// error.
  base::Result<std::string> Query(std::string_view line,
                                  base::Duration timeout = std::chrono::seconds(10));

  /// The agent's process, as it was when it began to listen (unix(7), SO_PEERCRED). 0: it is not
  /// visible here (another pid namespace).
  pid_t Pid() const;

  int fd() const { return fd_.get(); }

 private:
  Client(os::UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  os::UniqueFd fd_;
  std::string path_;
  std::string buffer_;
  int interrupt_ = -1;
};

}  // namespace penstock::protocol::broker
