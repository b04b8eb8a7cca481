// The caller's side of the broker's socket: blocking, for programs. Understands lines, not what they say.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::edge::broker {

/// "<run_dir>/penstock.sock".
std::string SocketPath(const std::string& run_dir);

/// A connection to the agent of a run directory. Not thread-safe. The descriptor is closed on exec.
class Client {
 public:
  /// kUnavailable where no agent answers, kPermissionDenied where the caller may not use it; both say what to do.
  static base::Result<Client> Connect(const std::string& run_dir);

  /// A newline is added.
  base::Status SendLine(std::string_view line);

  /// The next line without its newline. Waits for ever, or `timeout` (kDeadlineExceeded). kUnavailable where the agent closed. Answers may
  /// be long (a status report): at most 16 MiB.
  base::Result<std::string> ReadLine(std::optional<base::Duration> timeout = std::nullopt);

  /// SendLine and ReadLine: one answer to one request; an {"error": ...} answer becomes that error.
  base::Result<std::string> Ask(std::string_view line, base::Duration timeout = std::chrono::seconds(10));

  int fd() const { return fd_.get(); }

 private:
  Client(os::UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  os::UniqueFd fd_;
  std::string path_;
  std::string buffer_;
};

}  // namespace penstock::edge::broker
