// One set's control daemon through its life: taken over or started, limits set and read back, watched, started again, ended. Never ends a
// server that may have clients.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "os/command.h"
#include "os/launch.h"
#include "os/loop.h"
#include "vendor/nvidia/mps/folders.h"
#include "vendor/nvidia/mps/processes.h"
#include "vendor/nvidia/mps/service.h"
#include "vendor/nvidia/mps/spec.h"
#include "vendor/nvidia/programs.h"

namespace penstock::vendor::nvidia::mps {

/// How a set does.
struct View {
  bool ready = false;
  std::string reason;                ///< why it is not ready
  std::vector<std::string> remarks;  ///< while it is ready: what is not as it should be
  bool own_shm = false;              ///< clients need the set's own /dev/shm
  int percentage = 0;                ///< read back
  std::vector<base::Bytes> memory;   ///< read back, of each GPU; 0: none
  std::vector<bool> exclusive;       ///< of each GPU: who does not go through the server cannot use it
  int clients = 0;
  std::vector<pid_t> servers;
  bool operator==(const View&) const = default;
};

/// On the loop's thread. The destructor leaves everything running.
class Supervisor {
 public:
  /// `changed` is called whenever view() or ended() is another one, never from within a call of ours.
  Supervisor(os::Loop& loop, const MpsOptions& options, Spec spec, std::function<void()> changed);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  const Spec& spec() const { return spec_; }
  const View& view() const { return view_; }

  /// Takes over the daemon that runs with this spec, or starts one.
  void Begin();

  /// Ends it as soon as no client is there: daemon, compute modes, folders. `wait` from now at the earliest.
  void End(base::Duration wait = {});
  /// Not after all. False where it is too late for that.
  bool Keep();
  bool ending() const { return ending_; }
  bool ended() const { return ended_; }

 private:
  /// A program to run, and who takes what came of it: false, where the rest of the row is not to run.
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
  void AskClients(std::vector<pid_t> servers);
  void TakeClients(const std::vector<pid_t>& servers, int clients);
  void Trouble(std::string reason);
  void Recover();
  std::vector<std::string> Occupied() const;
  void Quit();
  void ForceQuit();
  void Finish();
  void Set(View view);
  void Tell();

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
  Step ModeStep(const Spec::Gpu& gpu, const std::string& mode);
  Step ControlStep(const std::string& command, std::function<bool(const std::string&)> take);
  os::LaunchOptions Launch() const;
  std::vector<std::string> DaemonEnvironment() const;

  os::Loop& loop_;
  const MpsOptions options_;
  const Spec spec_;
  const Folders folders_;
  const std::function<void()> changed_;

  std::optional<Program> control_, smi_;
  View view_;
  View fresh_;  // what is being found out
  bool ending_ = false, quitting_ = false, ended_ = false;
  bool foreign_ = false;    // the daemon was started otherwise than this set wants it
  os::UniqueFd daemon_fd_;  // of the daemon that we look after; none: there is none
  Row row_;
  std::function<void()> then_;
  std::unique_ptr<os::Command> command_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  base::TimerId timer_ = 0;
  base::TimePoint start_by_{}, end_from_{}, ready_since_{};
  base::Backoff retry_;
  int ending_rounds_ = 0;  // how often what is left of a dead daemon was told to end
  std::string shm_remark_, group_remark_;
  std::map<pid_t, std::size_t> idle_threads_;  // of servers, when they have no client
};

}  // namespace penstock::vendor::nvidia::mps
