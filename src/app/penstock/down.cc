// `penstock down`: ends the agent of a run directory and leaves nothing behind.
#include <chrono>
#include <csignal>
#include <iostream>

#include <poll.h>
#include <unistd.h>

#include "app/penstock/ask.h"
#include "app/penstock/simulation.h"
#include "app/penstock/up.h"
#include "edge/broker/client.h"
#include "os/lock_file.h"
#include "os/process.h"

namespace penstock::app {

namespace {

using base::Code;
using base::Error;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kEndsWithin = 30s;

int Fail(const Error& error) {
  std::cerr << "penstock down: " << error.message() << "\n";
  return 1;
}

/// Asks over the socket, which says who may; where nobody answers there, by signal.
base::Status AskToEnd(const std::string& run_dir, pid_t agent) {
  auto asked = AskLine(run_dir, R"({"op":"down"})");
  if (asked.ok() || asked.error().code() == Code::kPermissionDenied) return asked.ok() ? base::Status() : asked.error();
  if (::kill(agent, SIGTERM) != 0 && errno != ESRCH)
    return base::ErrnoError(errno, "end the agent (process " + std::to_string(agent) + ")");
  return {};
}

base::Status EndAndWait(const std::string& run_dir, pid_t agent) {
  auto pidfd = os::OpenPidfd(agent);
  if (!pidfd.ok()) return {};  // it ended just now
  TRY(AskToEnd(run_dir, agent));
  pollfd source{pidfd->get(), POLLIN, 0};
  int count = 0;
  while ((count = ::poll(&source, 1, static_cast<int>(kEndsWithin.count()))) < 0 && errno == EINTR) {}
  if (count > 0) return {};
  return Error(Code::kDeadlineExceeded, "the agent (process " + std::to_string(agent) + ") has not ended after " +
                                            base::FormatDuration(kEndsWithin) + "; its log says why, and kill -9 " + std::to_string(agent) +
                                            " is safe");
}

}  // namespace

int Down(const Common& common) {
  auto config = Resolve(common.settings);
  if (!config.ok()) return Fail(config.error());
  const std::string& run_dir = config->paths.run_dir;
  const auto agent = os::LockFile::Holder(run_dir + "/agent.lock");
  if (agent)
    if (auto ended = EndAndWait(run_dir, *agent); !ended.ok()) return Fail(ended.error());
  auto simulated = StopSimulation(run_dir);
  if (!simulated.ok()) return Fail(simulated.error());
  // The lock's file stays where it is: to remove it would let two agents hold two files of one name.
  ::rmdir(run_dir.c_str());
  std::cout << (agent ? "The agent (process " + std::to_string(*agent) + ") has ended." : "No agent was running in " + run_dir + ".")
            << (*simulated ? " The simulated machine is removed.\n" : "\n");
  return 0;
}

}  // namespace penstock::app
