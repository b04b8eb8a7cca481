// `penstock up`: starts an agent and waits for it.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/kept_configuration.h"
#include "app/penstock/common/programs.h"
#include "app/penstock/common/simulation.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/local/show.h"
#include "os/core/file.h"
#include "os/lock_file.h"

namespace penstock::app {

namespace {

using base::Code;
using base::Error;
using namespace std::chrono_literals;

constexpr base::Duration kReadyWithin =
    90s;  // the first open of a driver after boot may load firmware
constexpr std::size_t kShownLog = 4096;

struct UpOptions {
  std::string simulate;  ///< machine; empty: this machine's hardware
  bool detach = false;
};

int FailUp(const Error& error) {
  std::cerr << "penstock up: " << error.message() << "\n";
  return 1;
}

/// Returns kAlreadyExists where an agent runs in this run directory.
base::Status CheckAlone(const std::string& run_dir) {
  const std::string path = run_dir + "/agent.lock";
  const auto holder = os::LockFile::Holder(path);
  if (!holder.ok())
    return {};  // an agent that is not visible from here is detected by the new
                // agent itself
  struct stat status {};
  std::string since;
  if (::stat(path.c_str(), &status) == 0)
    since =
        " since " + base::FormatTime(std::chrono::system_clock::from_time_t(status.st_mtim.tv_sec));
  return Error(Code::kAlreadyExists,
               "an agent is already running: process " + std::to_string(holder->pid) + since +
                   " holds " + path + "; see `penstock status`, or stop it with `penstock down`");
}

/// One run of the verb, from the agent's start to its end or, when detached, its readiness.
class Start {
 public:
  Start(const Common& common, UpOptions options, api::NodeConfig config, Settings settings,
        NotifySocket notices)
      : common_(common),
        options_(std::move(options)),
        config_(std::move(config)),
        settings_(std::move(settings)),
        notices_(std::move(notices)) {}

  int Run() {
    TakeSignals();
    if (auto spawned = Spawn(); !spawned.ok()) return FailUp(spawned.error());
    while (true) {
      std::array<pollfd, 3> sources{{{agent_.pidfd.get(), POLLIN, 0},
                                     {signals_.get(), POLLIN, 0},
                                     {notices_.fd(), POLLIN, 0}}};
      const int count = ::poll(sources.data(), sources.size(), Patience());
      if (count < 0 && errno != EINTR) return FailUp(base::ErrnoError(errno, "wait for the agent"));
      if (count == 0) return GiveUp();
      if ((sources[2].revents & POLLIN) != 0) ReadNotice();
      if ((sources[1].revents & POLLIN) != 0) Forward();
      if ((sources[0].revents & POLLIN) != 0) return Ended();
      if (ready_ && options_.detach) return 0;
    }
  }

 private:
  const std::string& run_dir() const { return config_.paths.run_dir; }
  std::string LogPath() const { return config_.paths.state_dir + "/agent.log"; }

  void TakeSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = os::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
  }

  base::Status Spawn() {
    ASSIGN(const std::string program, FindProgram("penstock-agent"));
    os::SpawnOptions spawn{.arguments = {program, "--no-wait"},
                           .environment = notices_.Environment(),
                           .new_session = true};
    for (std::string& argument : ToArguments(settings_))
      spawn.arguments.push_back(std::move(argument));
    if (options_.detach) {
      TRY(os::MakeDirectories(config_.paths.state_dir));
      log_ = os::UniqueFd(::open(LogPath().c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
      if (!log_) return base::ErrnoError(errno, "open the agent's log " + LogPath());
      log_start_ = ::lseek(log_.get(), 0, SEEK_END);
      spawn.standard_output = log_.get();
    }
    ASSIGN(agent_, os::Spawn(spawn));
    started_ = std::chrono::steady_clock::now();
    return {};
  }

  /// The milliseconds that the agent may still take; unlimited: -1.
  int Patience() const {
    if (ready_ || !options_.detach) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        started_ + kReadyWithin - std::chrono::steady_clock::now());
    return left > 0ms ? static_cast<int>(left.count()) : 0;
  }

  void ReadNotice() {
    const auto notice = notices_.Read(agent_.pid);
    // In the foreground the agent's own log lines show the same.
    if (!notice.status.empty() && !ready_ && common_.terminal && options_.detach)
      std::cerr << "\r\033[K" << Printable(notice.status) << std::flush;
    if (!notice.ready || ready_) return;
    ready_ = true;
    if (common_.terminal && options_.detach) std::cerr << "\r\033[K";
    ShowWhatIsFound();
  }

  void ShowWhatIsFound() const {
    const auto report = QueryReport(run_dir());
    if (!report.ok()) {
      std::cerr << "penstock up: the agent is ready, but cannot be queried: "
                << report.error().message() << "\n";
      return;
    }
    std::cout << ShowFound(*report, common_.style(), std::chrono::system_clock::now());
    if (options_.detach)
      std::cout << "\nThe agent runs as process " << agent_.pid << " and logs to " << LogPath()
                << ". Stop it with: penstock down\n";
    std::cout << std::flush;
  }

  /// Ends the agent for every signal that would end this program. Always sends SIGTERM: the agent
  /// treats a terminal's signals the same.
  void Forward() {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) ::kill(agent_.pid, SIGTERM);
  }

  int GiveUp() const {
    return FailUp({Code::kDeadlineExceeded,
                   "the agent (process " + std::to_string(agent_.pid) + ") is not ready after " +
                       base::FormatDuration(kReadyWithin) + " and keeps trying; see " + LogPath()});
  }

  int Ended() const {
    const int status = Reap(agent_);
    if (options_.detach)
      std::cerr << LogTail() << "penstock up: the agent exited with status " << status
                << " before it was ready\n";
    if (!options_.simulate.empty())
      if (auto stopped = StopSimulation(run_dir()); !stopped.ok())
        std::cerr << "penstock up: " << stopped.error().message() << "\n";
    ::rmdir(run_dir().c_str());  // only where it is empty
    return options_.detach && status == 0 ? 1 : status;
  }

  std::string LogTail() const {
    const off_t end = ::lseek(log_.get(), 0, SEEK_END);
    ::lseek(log_.get(), std::max<off_t>(log_start_, end - static_cast<off_t>(kShownLog)), SEEK_SET);
    return os::ReadAll(log_.get(), "the agent's log", 2 * kShownLog).value_or("");
  }

  const Common& common_;
  const UpOptions options_;
  const api::NodeConfig config_;
  const Settings settings_;
  const NotifySocket notices_;
  os::UniqueFd signals_;
  os::UniqueFd log_;
  off_t log_start_ = 0;
  os::Child agent_;
  std::chrono::steady_clock::time_point started_;
  bool ready_ = false;
};

/// Starts an agent, prints what it found, and waits until it ends; with `detach` returns once the
/// agent is ready. Returns the agent's own exit status where it ended, else 0 or 1.
int Up(const Common& common, const UpOptions& options) {
  auto resolved = ResolveForStart(common.settings);
  if (!resolved.ok()) return FailUp(resolved.error());
  if (!resolved->problem.empty())
    std::cerr << "penstock up: " << resolved->problem << "\npenstock up: the agent starts with "
              << resolved->origin << "\n";
  api::NodeConfig config = std::move(resolved->config);
  const std::string& run_dir = config.paths.run_dir;
  if (auto alone = CheckAlone(run_dir); !alone.ok()) return FailUp(alone.error());
  if (auto made = os::MakeDirectories(run_dir); !made.ok())
    return FailUp(
        {made.error().code(),
         made.error().message() + "; run as root, or pass a writable --run-dir and --state-dir"});

  Settings settings = common.settings;
  if (!options.simulate.empty()) {
    if (auto simulated = StartSimulation(options.simulate, run_dir); !simulated.ok())
      return FailUp(simulated.error());
    UseSimulation(run_dir, config, settings);
  }
  auto notices = NotifySocket::Make();
  if (!notices.ok()) return FailUp(notices.error());
  return Start(common, options, std::move(config), std::move(settings), *std::move(notices)).Run();
}

constexpr char kUpExamples[] =
    R"(penstock up                                    # this machine's accelerators; Ctrl-C stops the agent
penstock up --detach                           # in the background, until `penstock down`
penstock up --simulate t4-x1 --run-dir ~/sim/run --state-dir ~/sim/state --listen off
penstock up --config /etc/penstock/node.yaml)";

}  // namespace

Verb UpVerb(const Common& common) {
  const auto options = std::make_shared<UpOptions>();
  return {
      .name = "up",
      .summary = "Start an agent on this machine and show what it found",
      .examples = kUpExamples,
      .exit_status =
          "the agent's own in the foreground; with --detach 0 once it is ready, 1 if it could not "
          "start or was already running",
      .options = {Value(
                      "--simulate", &options->simulate, "MACHINE",
                      "a simulated machine instead of this one's devices (see penstock-sim list)"),
                  Flag("--detach", &options->detach,
                       "return once the agent is ready, and leave it running")},
      .shares = NodeOptionNames(),
      .run = [options, &common] { return Up(common, *options); }};
}

}  // namespace penstock::app
