// Runs a backend in a worker process: calls have deadlines; a hung worker is abandoned and a new
// one started. Vendor-neutral.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "device/backend.h"
#include "os/loop.h"

namespace penstock::device {

/// The agent's end. All methods and callbacks run on the loop's thread (the agent's control loop);
/// nothing blocks, and no callback runs inside the call that it belongs to.
///
/// The worker gets one call at a time, control before sampling, and the call's deadline counts from
/// when it is sent, so that the call that misses its deadline is the one that hangs. That call
/// fails with kDeadlineExceeded, the calls queued behind it with kCancelled. The worker is killed
/// and, if the kernel does not let it die, abandoned: left behind with its pidfd watched. Open
/// starts a new worker if none runs; other calls then fail with kUnavailable.
///
/// At most eight abandoned workers are tolerated at a time; then Open fails with kUnavailable until
/// one of them has died. Samples are taken while there are fewer than six: the last two places are
/// for the calls that read the health of devices. A deadline that passed while this process was
/// stopped (a stopped virtual machine or cgroup) starts again.
class Remote final : public AsyncBackend {
 public:
  struct Options {
    std::vector<std::string>
        command;  ///< argv of the worker: {"/usr/libexec/penstock-worker", "nvidia", ...}
    base::Duration call_deadline = std::chrono::seconds(5);
    base::Duration open_deadline =
        std::chrono::seconds(60);  ///< the first open after boot may load firmware
    base::Duration control_deadline =
        std::chrono::seconds(60);  ///< of calls that change a device: some drivers reset it
    /// Asked before a worker is started; Open fails with the error. kNotFound without a message:
    /// this machine has nothing of the vendor's.
    std::function<base::Status()> may_start;
  };
  Remote(os::Loop& loop, Options options);
  ~Remote() override;  ///< kills the worker
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  void Listen(Events events) override;
  void Open(Done<Driver> done) override;
  void List(Done<std::vector<std::string>> done) override;
  void Describe(const std::string& address, Done<Facts> done) override;
  void Read(const std::string& address, Done<Reading> done) override;
  void TakeSample(const std::string& address, const SampleRequest& request,
                  Done<Sample> done) override;
  void SetMode(const std::string& address, const std::string& mode, const std::string& value,
               Done<std::string> done) override;
  void CreatePart(const std::string& device, const NewPart& part, Done<std::string> done) override;
  void DestroyPart(const std::string& address, Done<std::string> done) override;
  void Stop() override;

  /// Sets the command of the workers that are started from now on.
  void SetCommand(std::vector<std::string> command);

  pid_t pid() const;  ///< 0 if no worker runs
  int abandoned() const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The descriptors of the worker's lanes: sockets to the agent.
inline constexpr int kControlLane = 3, kSamplingLane = 4, kEventsLane = 5;

/// The worker's end: serves a backend on its lanes, one thread each, until the agent closes them or
/// dies. Returns the process's exit status. Pass it to _exit: a thread may still hang in the
/// backend.
int ServeBackend(std::unique_ptr<Backend> backend);

}  // namespace penstock::device
