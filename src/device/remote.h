// A backend in a worker process: calls with deadlines, a hung worker abandoned, a new one started. Knows no vendor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "device/backend.h"
#include "os/loop.h"

namespace penstock::device {

/// The agent's end. All methods and callbacks on the loop's thread (the agent's I/O loop); nothing blocks. A call that is not answered by its
/// deadline fails with kDeadlineExceeded; the worker is then killed and, if the kernel does not let it die, abandoned: left behind with its
/// pidfd watched. The next call starts a new worker. At most three abandoned workers are tolerated at a time; then calls fail with
/// kUnavailable until one of them has died.
class Remote {
 public:
  struct Options {
    std::vector<std::string> command;  ///< argv of the worker: {"/usr/libexec/penstock-worker", "nvidia", ...}
    base::Duration call_deadline = std::chrono::seconds(5);
    base::Duration open_deadline = std::chrono::seconds(60);  ///< the first open after boot may load firmware
  };
  /// Something about the worker itself changed.
  struct Events {
    std::function<void(std::vector<Evidence>)> evidence;   ///< events as they come, from the event lane
    std::function<void(base::Error)> ended;                ///< the worker died or was abandoned; all its calls have failed; facts must be read anew
  };

  Remote(os::Loop& loop, Options options, Events events);
  ~Remote();  ///< kills the worker
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  void Open(std::function<void(base::Result<Driver>)> done);
  void List(std::function<void(base::Result<std::vector<std::string>>)> done);
  void Describe(const std::string& address, std::function<void(base::Result<Facts>)> done);
  void Read(const std::string& address, std::function<void(base::Result<Reading>)> done);

  /// Ends the worker, which lets go of the driver; the next Open starts a new one.
  void Stop();

  pid_t pid() const;       ///< 0 where no worker runs
  int abandoned() const;   ///< workers that hang in the kernel

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The worker's end: serves a backend on the descriptors of its lanes (control 3, sampling 4, events 5) until the agent closes them.
/// Returns the process's exit status.
int ServeBackend(std::unique_ptr<Backend> backend);

}  // namespace penstock::device
