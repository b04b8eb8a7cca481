// `penstock down`: stops the agent of a run directory and removes what it leaves there.
#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app/penstock/common/simulation.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "os/lock_file.h"
#include "protocol/broker/client.h"

namespace penstock::app {

namespace {

using base::Code;
using base::Error;
using base::Result;
using os::LockFile;
using os::LockHolder;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kEndsWithin = 30s;
constexpr std::chrono::milliseconds kEndPollInterval = 50ms;
constexpr char kAgent[] = "penstock-agent";

int FailDown(const Error& error) {
  std::cerr << "penstock down: " << error.message() << "\n";
  return 1;
}

/// Describes the agent for users.
std::string NameOf(const Result<LockHolder>& holder) {
  return holder.ok() ? "process " + std::to_string(holder->pid) : "in another pid namespace";
}

/// Sends the signal only to a process that holds the lock and is an agent: a number in a file
/// proves nothing.
base::Status Signal(const std::string& lock, const Result<LockHolder>& holder,
                    const Error& silence) {
  if (!holder.ok())
    return Error(
        Code::kFailedPrecondition,
        holder.error().message() +
            " (it runs in another pid namespace, e.g. in a container, or as another user)" +
            ", and " + silence.message() + "; stop it where it was started");
  if (holder->program != kAgent)
    return Error(Code::kFailedPrecondition,
                 lock + " is held by process " + std::to_string(holder->pid) + " (" +
                     holder->program + "), which is not an agent and was not stopped");
  if (::syscall(SYS_pidfd_send_signal, holder->pidfd.get(), SIGTERM, nullptr, 0) != 0 &&
      errno != ESRCH)
    return base::ErrnoError(errno, "stop the agent (" + NameOf(holder) + ")");
  return {};
}

/// Asks over the socket, which checks the caller's permission; where no agent responds, sends a
/// signal.
base::Status RequestEnd(const std::string& run_dir, const std::string& lock,
                        const Result<LockHolder>& holder) {
  const auto sent = QueryLine(run_dir, R"({"op":"down"})");
  if (sent.ok()) return {};
  return sent.error().code() == Code::kPermissionDenied ? sent.error()
                                                        : Signal(lock, holder, sent.error());
}

/// Whether the agent ends within `time`. An agent in another pid namespace has ended when its lock
/// is free: the kernel releases the lock last.
bool HasEndedWithin(std::chrono::milliseconds time, const std::string& lock,
                    const Result<LockHolder>& holder) {
  const auto until = std::chrono::steady_clock::now() + time;
  if (!holder.ok()) {
    while (LockFile::IsHeld(lock) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(kEndPollInterval);
    return !LockFile::IsHeld(lock);
  }
  pollfd source{holder->pidfd.get(), POLLIN, 0};
  int count = 0;
  while ((count = ::poll(&source, 1, static_cast<int>(time.count()))) < 0 && errno == EINTR) {}
  return count > 0;
}

base::Status EndAndWait(const std::string& run_dir, const std::string& lock,
                        const Result<LockHolder>& holder) {
  TRY(RequestEnd(run_dir, lock, holder));
  if (HasEndedWithin(kEndsWithin, lock, holder)) return {};
  const std::string by_force =
      holder.ok() ? ", and kill -9 " + std::to_string(holder->pid) + " is safe" : "";
  return Error(Code::kDeadlineExceeded, "the agent (" + NameOf(holder) + ") did not stop within " +
                                            base::FormatDuration(kEndsWithin) + "; see its log" +
                                            by_force);
}

/// Stops the agent of the run directory. Returns 0 also where no agent ran.
int Down(const Common& common) {
  auto config = Resolve(common.settings);
  if (!config.ok()) return FailDown(config.error());
  const std::string& run_dir = config->paths.run_dir;
  const std::string lock = run_dir + "/agent.lock";
  const auto holder = LockFile::Holder(lock);
  const bool runs = holder.ok() || holder.error().code() != Code::kNotFound;
  if (runs)
    if (auto ended = EndAndWait(run_dir, lock, holder); !ended.ok()) return FailDown(ended.error());
  auto simulated = StopSimulation(run_dir);
  if (!simulated.ok()) return FailDown(simulated.error());
  // The lock file stays: without it, two agents could hold locks on two files of the same name.
  ::rmdir(run_dir.c_str());
  std::cout << (runs ? "The agent (" + NameOf(holder) + ") has stopped."
                     : "No agent was running in " + run_dir + ".")
            << (*simulated ? " The simulated machine is removed.\n" : "\n");
  return 0;
}

}  // namespace

command::Verb DownVerb(const Common& common) {
  return {.name = "down",
          .summary = "Stop the agent, and remove a simulated machine",
          .examples = "penstock down\npenstock down --run-dir ~/sim/run",
          .exit_status = "0 no agent is running, 1 it could not be stopped",
          .shares = AgentOptionNames(),
          .run = [&common] { return Down(common); }};
}

}  // namespace penstock::app
