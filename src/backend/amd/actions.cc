// Loads amdgpu again, with the modprobe of the machine.
#include "device/actions.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "backend/amd/machine.h"
#include "base/core/printable.h"
#include "base/core/result.h"
#include "base/log.h"
#include "os/core/root.h"
#include "os/loop.h"
#include "os/process/command.h"
#include "os/process/device_users.h"
#include "os/process/launch.h"
#include "os/process/process.h"

namespace penstock::backend::amd {
namespace {

using base::Code;
using base::Error;

/// The driver brings GPUs up one after another, and asks the firmware of each for its memory mode.
constexpr base::Duration kDeadline = device::kLongestReload / 2;
/// So long, too, a reload that an earlier agent began is waited for.
constexpr base::Duration kEarlierEnds = device::kLongestReload - kDeadline;
constexpr base::Duration kLookForEnd = std::chrono::seconds(1);
constexpr char kGroup[] = "penstock-reload";
/// In a process of its own, which goes on where the agent ends meanwhile and its pipe is closed:
/// else the driver would stay unloaded. Which of the two failed is in the status. busybox's
/// modprobe also fails where the driver is gone and a module that it used is not.
constexpr char kReload[] =
    "trap '' PIPE; { modprobe -r amdgpu || [ -d /sys/module -a ! -e /sys/module/amdgpu ] || "
    "exit 3; modprobe amdgpu || exit 4; } 2>&1 & wait $!";
/// Also of scripts of other versions.
constexpr char kReloadBegins[] = "trap '' PIPE; { modprobe -r amdgpu ";
constexpr int kNotUnloaded = 3, kNotLoaded = 4;

/// The process of a reload of an agent that has ended since, while that still runs. Another user's
/// process does not pass for one.
std::optional<pid_t> FindEarlier(const std::string& proc) {
  for (const pid_t pid : os::ListProcesses(proc)) {
    struct stat status {};
    if (::stat((proc + "/" + std::to_string(pid)).c_str(), &status) != 0 ||
        status.st_uid != ::geteuid())
      continue;
    const auto process = os::ReadProcess(proc, pid);
    if (process.ok() && process->uid == ::geteuid() &&
        process->command.find(kReloadBegins) != std::string::npos)
      return pid;
  }
  return std::nullopt;
}

/// The processes that keep the driver in use; blocks as FindDeviceUsers does. Other drivers have
/// files in /dev/dri, too.
std::vector<os::DeviceUser> UsersOfDriver(const device::Paths& paths) {
  auto sysfs = os::Root::Open(paths.sysfs_root);
  os::IsSearchedDevice uses_driver;
  if (sysfs.ok())
    uses_driver = [machine = std::make_shared<const Machine>(*std::move(sysfs))](
                      std::uint32_t major, std::uint32_t minor) {
      return machine->UsesDriver(major, minor);
    };
  return os::FindDeviceUsers(paths.proc_root, {"kfd", "dri/"}, uses_driver);
}

/// Writes the processes that keep the driver in use to the log, and returns how many there are: the
/// reason is also shown in the cluster, where neither ids nor programs belong. Blocks as
/// FindDeviceUsers does.
std::size_t LogUsers(const device::Paths& paths) {
  constexpr std::size_t kMostLogged = 8, kMostOfProgram = 100;
  const auto users = UsersOfDriver(paths);
  for (std::size_t i = 0; i < std::min(users.size(), kMostLogged); ++i) {
    const auto process = os::ReadProcess(paths.proc_root, users[i].pid);
    // Arguments may contain secrets, and logs are collected.
    const std::string program =
        process.ok() ? process->command.substr(0, process->command.find(' ')) : "";
    base::Log(base::kWarn, "amdgpu is in use",
              {{"process", users[i].pid},
               {"program", base::Shortened(program, kMostOfProgram)},
               {"file", base::Printable(users[i].file)}});
  }
  return users.size();
}

/// What keeps the driver in use, and what to do about it.
std::string InUseBy(std::size_t users) {
  if (users == 0) return "end what uses /dev/kfd or /dev/dri, a display for example";
  return "end what uses /dev/kfd or /dev/dri, a display for example: " + std::to_string(users) +
         (users == 1 ? " process, which" : " processes, which") + " the agent's log names";
}

base::Status StatusOf(const base::Result<os::Command::Outcome>& outcome, std::size_t users) {
  if (!outcome.ok()) return outcome.error().Within("modprobe");
  if (outcome->status == 0) return {};
  const std::string words = os::LastLines(outcome->output);
  const std::string said = words.empty() ? "" : ": " + words;
  if (outcome->status == kNotUnloaded)
    return Error(Code::kFailedPrecondition,
                 "amdgpu cannot be unloaded (" + InUseBy(users) + ")" + said);
  if (outcome->status == kNotLoaded)
    return Error(
        Code::kInternal,
        "amdgpu was unloaded and cannot be loaded (run \"modprobe amdgpu\", or reboot)" + said);
  return Error(Code::kUnavailable, "modprobe cannot be started (status " +
                                       std::to_string(outcome->status) + ")" + said);
}

/// A reset of one GPU resets all that xGMI links with it, and only amdgpu knows when it needs one,
/// which it then does by itself.
class AmdActions final : public device::Actions {
 public:
  AmdActions(os::Loop& control, device::Paths paths)
      : control_(control), paths_(std::move(paths)) {}

  ~AmdActions() override {
    if (looking_.joinable()) looking_.join();
  }

  std::vector<std::string> ResetTogether(
      const device::Facts& device, const std::vector<const device::Facts*>& all) const override {
    std::vector<std::string> together{device.id};
    for (const device::Facts* other : all)
      for (const device::Link& link : device.links)
        if (link.peer == other->id && link.fabric_lanes > 0) together.push_back(other->id);
    return together;
  }

  void SetPaths(const device::Paths& paths) override { paths_ = paths; }

  void Reset(const std::vector<device::Facts>&, std::function<void(base::Status)> done) override {
    Later(std::move(done), Error(Code::kUnimplemented,
                                 "Penstock resets no AMD GPU: amdgpu does so where it can; "
                                 "otherwise reload the driver or reboot"));
  }

  void ReloadDriver(std::function<void(base::Status)> done) override {
    AwaitEarlier(control_.clock().Now() + kEarlierEnds, std::move(done));
  }

 private:
  void AwaitEarlier(base::TimePoint until, std::function<void(base::Status)> done) {
    if (command_)
      return Later(std::move(done),
                   Error(Code::kFailedPrecondition, "the driver is being loaded again"));
    const auto earlier = FindEarlier(paths_.proc_root);
    if (!earlier) return Reload(std::move(done));
    if (control_.clock().Now() >= until) {
      // As LogUsers: the reason is also shown in the cluster.
      base::Log(base::kWarn, "an earlier reload of amdgpu has not ended", {{"process", *earlier}});
      return Later(std::move(done),
                   Error(Code::kDeadlineExceeded,
                         "a reload of amdgpu that an earlier agent began has not ended within " +
                             base::FormatDuration(kEarlierEnds) +
                             " (end its modprobe; where it does not end, reboot)"));
    }
    control_.PostAfter(kLookForEnd, [alive = std::weak_ptr(alive_), this, until, done] {
      if (!alive.expired()) AwaitEarlier(until, done);
    });
  }

  void Reload(std::function<void(base::Status)> done) {
    os::Command::Options options;
    const std::string launcher = os::OwnFolder() + "/penstock-worker";
    options.spawn.arguments =
        os::LaunchArguments(launcher, {.cgroup = kGroup,
                                       .root = paths_.driver_root == "/" ? "" : paths_.driver_root,
                                       .command = {"sh", "-c", kReload}});
    options.spawn.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    options.spawn.new_session = true;
    options.deadline = kDeadline;
    command_ = std::make_unique<os::Command>(
        control_, std::move(options),
        [this, done = std::move(done)](const base::Result<os::Command::Outcome>& outcome) {
          if (outcome.ok() && outcome->status == kNotUnloaded) return LookForUsers(*outcome, done);
          Ended(StatusOf(outcome, 0), done);
        });
  }

  /// On a thread of its own: processes can delay who looks at them.
  void LookForUsers(const os::Command::Outcome& outcome,
                    const std::function<void(base::Status)>& done) {
    if (looking_.joinable()) looking_.join();  // it has posted its last result
    const auto look = [alive = std::weak_ptr(alive_), this, paths = paths_, outcome, done] {
      const base::Status status = StatusOf(outcome, LogUsers(paths));
      control_.Post([alive, this, status, done] {
        if (!alive.expired()) Ended(status, done);
      });
    };
    try {
      looking_ = std::thread(look);
    } catch (const std::system_error&) {  // there may be no more threads
      Ended(StatusOf(outcome, 0), done);
    }
  }

  /// The command, which owns `done`, must outlive the call.
  void Ended(base::Status status, const std::function<void(base::Status)>& done) {
    control_.Post([alive = std::weak_ptr(alive_), this, status = std::move(status), done] {
      if (alive.expired()) return;
      command_.reset();
      done(status);
    });
  }

  void Later(std::function<void(base::Status)> done, Error error) {
    control_.Post(
        [alive = std::weak_ptr(alive_), done = std::move(done), error = std::move(error)] {
          if (!alive.expired()) done(error);
        });
  }

  os::Loop& control_;
  device::Paths paths_;
  std::unique_ptr<os::Command> command_;
  std::thread looking_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<device::Actions> MakeActions(os::Loop& control, const device::Paths& paths) {
  return std::make_unique<AmdActions>(control, paths);
}

}  // namespace penstock::backend::amd
