#include "app/penstock/mig/mig_hooks.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/printable.h"
#include "base/core/quantity.h"
#include "os/core/fd.h"
#include "os/core/file.h"
#include "os/process/process.h"
#include "os/trusted_path.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using Time = std::chrono::steady_clock;

constexpr std::size_t kLongestHooks = 1u << 20;
constexpr base::Duration kGroupLook = std::chrono::milliseconds(20);

Result<std::string> ReadTrusted(const std::string& file) {
  std::error_code failed;
  const std::string path = std::filesystem::absolute(file, failed).string();
  if (failed) return base::ErrnoError(failed.value(), "find " + file);
  auto trusted = os::OpenTrusted("/", path);
  if (!trusted.ok())
    return trusted.error().Within("the hooks of this file would run with your rights, and it is " +
                                  std::string("not read"));
  // What was checked is read, not what has this name now.
  const std::string opened = "/proc/self/fd/" + std::to_string(trusted->fd.get());
  const os::UniqueFd fd(::open(opened.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return base::ErrnoError(errno, "open " + file);
  return os::ReadRegular(fd.get(), file, kLongestHooks);
}

enum class Awaited { kEnded, kLate, kInterrupted };

/// Waits until the child has ended. `interrupt`: a descriptor, readable once a signal arrived; -1:
/// none counts.
Awaited AwaitEnd(const os::Child& child, base::Duration time, int interrupt) {
  const auto until = Time::now() + time;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Time::now());
    if (left.count() <= 0) return Awaited::kLate;
    std::array<pollfd, 2> waited{{{child.pidfd.get(), POLLIN, 0}, {interrupt, POLLIN, 0}}};
    const int ready = ::poll(waited.data(), waited.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return Awaited::kLate;
    if (ready <= 0) continue;
    return waited[0].revents != 0 ? Awaited::kEnded : Awaited::kInterrupted;
  }
}

siginfo_t StatusOf(const os::Child& child) {
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED) != 0 &&
         errno == EINTR) {}
  return info;
}

}  // namespace

Result<MigHookRunner> MigHookRunner::Open(const std::string& file, Options options) {
  ASSIGN(const std::string text, ReadTrusted(file));
  ASSIGN(auto hooks, api::compat::ReadMigHooks(text, file));
  return MigHookRunner(std::move(hooks), std::move(options));
}

Status MigHookRunner::Run(const char* name) const {
  const auto hooks = hooks_.find(name);
  if (hooks == hooks_.end()) return {};
  const bool last = std::string_view(name) == api::compat::kApplyExit;
  for (const api::compat::MigHook& hook : hooks->second)
    if (const Status ran = RunOne(hook, last); !ran.ok())
      return ran.error().Within("hook " + std::string(name));
  return {};
}

/// Not reaped yet, so the number is still that of its session.
Status MigHookRunner::End(const os::Child& child, const std::string& command) const {
  ::kill(-child.pid, SIGTERM);
  ::kill(-child.pid, SIGCONT);  // a stopped process would not handle SIGTERM
  const auto until = Time::now() + options_.grace;
  while (os::GroupRuns("/proc", child.pid) && Time::now() < until)
    std::this_thread::sleep_for(kGroupLook);
  ::kill(-child.pid, SIGKILL);
  return Error(Code::kCancelled, command + " was ended, because a signal ends this program");
}

Status MigHookRunner::RunOne(const api::compat::MigHook& hook, bool last) const {
  Interruption* const interruption = options_.interruption;
  const std::string command = base::Printable(hook.command);
  if (!last && interruption != nullptr && interruption->signal() != 0)
    return Error(Code::kCancelled,
                 command + " was not started, because a signal ends this program");
  os::SpawnOptions spawn{.arguments = {hook.command}, .new_session = true, .folder = hook.folder};
  spawn.arguments.insert(spawn.arguments.end(), hook.arguments.begin(), hook.arguments.end());
  auto environment = options_.environment;
  environment.insert(hook.environment.begin(), hook.environment.end());
  for (const auto& [variable, value] : environment)
    spawn.environment.push_back(variable + "=" + value);
  const os::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return base::ErrnoError(errno, "open /dev/null");
  spawn.descriptors = {{null.get(), 0}};
  spawn.standard_output = options_.show_output ? STDERR_FILENO : null.get();
  ASSIGN(const os::Child child, os::Spawn(spawn));
  if (interruption != nullptr) interruption->Guard(child.pid);
  const Awaited awaited =
      AwaitEnd(child, options_.deadline, last || interruption == nullptr ? -1 : interruption->fd());
  Status ended;
  if (awaited == Awaited::kInterrupted) ended = End(child, command);
  if (awaited == Awaited::kLate) {
    ::kill(-child.pid, SIGKILL);  // its session: not reaped yet, so the number is still its own
    ended = Error(Code::kDeadlineExceeded,
                  command + " did not end within " + base::FormatDuration(options_.deadline));
  }
  if (interruption != nullptr) interruption->Guard(0);
  const siginfo_t info = StatusOf(child);
  if (!ended.ok()) return ended;
  if (info.si_code == CLD_EXITED && info.si_status == 0) return {};
  return Error(Code::kAborted,
               command +
                   (info.si_code == CLD_EXITED ? " ended with status " : " ended by signal ") +
                   std::to_string(info.si_status) +
                   (options_.show_output ? "" : "; --debug shows its output"));
}

}  // namespace penstock::app
