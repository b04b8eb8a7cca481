// Supervises the control daemon of one set: takes it over or starts it, sets limits and reads them
// back, watches, restarts and ends it. Never ends a server that may have clients.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/nvidia/mps/folders.h"
#include "backend/nvidia/mps/processes.h"
#include "backend/nvidia/mps/service.h"
#include "backend/nvidia/mps/spec.h"
#include "backend/nvidia/programs.h"
#include "base/backoff.h"
#include "os/loop.h"
#include "os/process/command.h"
#include "os/process/launch.h"

namespace penstock::backend::nvidia::mps {

/// The state of a set.
struct View {
  bool ready = false;
  std::string reason;                ///< why it is not ready
  std::vector<std::string> remarks;  ///< while it is ready: what is not as it should be
  bool own_shm = false;              ///< clients need the set's own /dev/shm
  int percentage = 0;                ///< as read back
  std::vector<base::Bytes> memory;   ///< as read back, per GPU; 0: no limit
  std::vector<bool> exclusive;  ///< per GPU: only processes that go through the server can use it
  int clients = 0;
  std::vector<pid_t> servers;
  bool operator==(const View&) const = default;
};

/// On the loop's thread. The destructor leaves all processes running.
class Supervisor {
 public:
  /// `changed` is called whenever view() or ended() changes, never from within a method of this
  /// class.
  Supervisor(os::Loop& loop, const MpsOptions& options, ServerSpec spec,
             std::function<void()> changed);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  const ServerSpec& spec() const { return spec_; }
  const View& view() const { return view_; }

  /// Takes over the daemon that runs with this spec, or starts one.
  void Begin();

  /// Ends the set as soon as it has no client, but not before `wait` has passed: daemon, compute
  /// modes, folders.
  void End(base::Duration wait = {});
  /// Cancels End. False if it is too late.
  bool Keep();
  bool ending() const { return ending_; }

  /// The programs that it runs from now on are below this root.
  void SetDriverRoot(const std::string& root) { options_.driver_root = root; }
  bool ended() const { return ended_; }

 private:
  /// A program to run, and the callback for its outcome; the callback returns false to skip the
  /// rest of the row.
  struct Step {
    const Program* program = nullptr;
    std::vector<std::string> arguments;
    std::string input;
    std::function<bool(base::Result<os::Command::Outcome>)> take;
  };
  using Row = std::deque<Step>;

  // supervisor.cc: watching
  void Later(base::Duration delay, void (Supervisor::*what)());
  void Run(Row row, std::function<void()> then);
  void Next();
  void Watch(const DaemonProcess& daemon);
  void OnDeath();
  void Check();
  void QueryClients(const std::vector<pid_t>& servers);
  void TakeClients(const std::vector<pid_t>& servers, int clients);
  void Fail(std::string reason);
  void Recover();
  std::vector<std::string> Occupied() const;
  void Quit();
  void ForceQuit();
  void Finish();
  void Set(View view);
  void Notify();

  // supervisor_start.cc: starting
  base::Status FindControl(const std::string& sockets);
  std::optional<DaemonProcess> FindDaemon() const;
  void Start();
  void SetModes();
  void Spawn();
  void OnSpawned(const os::Command::Outcome& outcome);
  void Await();
  void Limit();
  void OnLimits();
  Step ModeStep(const ServerSpec::Gpu& gpu, const std::string& mode);
  Step ControlStep(const std::string& command, std::function<bool(const std::string&)> take);
  os::LaunchOptions Launch() const;
  std::vector<std::string> DaemonEnvironment() const;

  os::Loop& loop_;
  MpsOptions options_;
  const ServerSpec spec_;
  const Folders folders_;
  const std::function<void()> changed_;

  std::optional<Program> control_, smi_;
  View view_;
  View fresh_;  // the state being determined
  bool ending_ = false, quitting_ = false, ended_ = false;
  bool foreign_ = false;    // the daemon was started with a spec other than this set's
  os::UniqueFd daemon_fd_;  // of the supervised daemon; empty: there is none
  Row row_;
  std::function<void()> then_;
  std::unique_ptr<os::Command> command_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  base::TimerId timer_ = 0;
  base::TimePoint start_by_{}, end_from_{}, ready_since_{};
  base::Backoff retry_;
  int ending_rounds_ = 0;  // how often the remains of a dead daemon were signalled to end
  std::string shm_remark_, group_remark_;
  std::map<pid_t, std::size_t> idle_threads_;  // by server: its threads without clients
};

}  // namespace penstock::backend::nvidia::mps
