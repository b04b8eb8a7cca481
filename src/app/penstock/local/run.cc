// `penstock run`: requests devices from the agent, waits in the queue, and executes the command.
// Reports on standard error what it waits for.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/local/time_limit.h"
#include "backend/all.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "protocol/broker/client.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using protocol::broker::GrantedRun;
using protocol::broker::WaitingRun;

constexpr int kWaitRanOut = 124;
constexpr int kOwnFailure = 125;
constexpr int kCannotExecute = 126;
constexpr int kNoSuchCommand = 127;
constexpr base::Duration kRunPatience = std::chrono::seconds(30);
constexpr base::Duration kReturnWithin =
    std::chrono::minutes(10);  // how long to wait for an agent that ended
constexpr base::Duration kReturnPause = std::chrono::milliseconds(500);

constexpr char kRunExamples[] =
    R"(penstock run -- python train.py                      # one GPU, whichever is free
penstock run --gpus 2 --model 'A100*' -- ./train.sh
penstock run --device 0,3 --wait 10m -- nvidia-smi -L
penstock run --wait 0 -- ./probe                     # now, or fail
penstock run --time 2:00:00 -- ./train.sh            # ended after two hours; may start before runs that wait for more
penstock run --label experiment=lr01 -- ./train.sh   # a label for `penstock usage --by label:experiment`
penstock run --share 4 -- python serve.py            # a GPU shared with up to three others
penstock run --gpus 2 --share 2 --model 'T4*' -- ./infer.sh
penstock run --mig 1g.5gb -- python serve.py         # a MIG device of this profile
penstock run --min-memory 20G -- python train.py     # the smallest free MIG device or GPU with 20 GB
penstock run --vendor amd --gpus 8 -- ./train.sh     # where a machine has GPUs of several vendors)";

constexpr char kRunDetails[] =
    R"(The command replaces this process: terminal, signals and exit status are its own. It can open its
own GPUs only; it finds them in CUDA_VISIBLE_DEVICES and related variables, where the vendor's
programs need such, and its lease in PENSTOCK_LEASE. The GPUs are released when the command and all its descendants have exited. Ctrl-C
leaves the queue. When the agent restarts, queued runs keep their places.

--time limits how long the run lasts: MINUTES, HOURS:MINUTES:SECONDS, DAYS-HOURS as in Slurm, or
90m, 2h30m. Then its processes get SIGTERM, and 30 s later SIGKILL. A run with --time may start
before one that waits for more GPUs, if it cannot delay that one.

--share N allocates one share of a GPU that the configuration divides into N shares, or else of a
free GPU, which is whole again when its last share is released. The holders of shares take turns.
Nothing protects them from each other's memory use unless the line about the share names another
isolation than none; docs/sharing.md has the table.

A run gets GPUs of one vendor: of --vendor, or else of the first by name that has enough. --device may name
GPUs of several; where several vendors have a GPU 0, --vendor has to say which one is meant.

Without --mig, --min-memory or --device, a run gets whole GPUs. --mig allocates MIG devices of this
profile: free ones (`penstock mig list`), or new ones on GPUs that are set aside for that
(parts.onDemand). --gpus is their number then, though a CUDA program uses only one. --min-memory
allocates the free MIG devices or GPUs with the least memory that is enough.)";

struct RunOptions {
  std::int64_t gpus = 1;
  bool gpus_given = false;
  std::int64_t share = 1;
  std::string model, vendor;
  std::string profile, min_memory;
  bool profile_given = false, min_memory_given = false;
  std::vector<std::string> devices;
  std::string wait, time;
  std::string memory, cores, compute;
  std::vector<std::string> labels;
  std::vector<std::string> command;
};

int FailRun(int status, const std::string& message) {
  std::cerr << "penstock: " << message << "\n";
  return status;
}

int FailRun(const Error& error) {
  return FailRun(error.code() == Code::kDeadlineExceeded ? kWaitRanOut : kOwnFailure,
                 error.message());
}

/// On a terminal, one line that is updated in place; elsewhere only the first line is printed.
class WaitLine {
 public:
  explicit WaitLine(bool terminal) : terminal_(terminal) {}
  ~WaitLine() { Clear(); }

  void Show(const WaitingRun& waiting) {
    const std::string what = Amount(waiting);
    const std::string text = "penstock: waiting for " + what + " as " + waiting.ticket +
                             ", place " + std::to_string(waiting.position + 1) + ": " +
                             waiting.reason;
    if (terminal_)
      std::cerr << "\r\x1b[K" << text.substr(0, Width()) << std::flush;
    else if (!shown_)
      std::cerr << text << std::endl;
    shown_ = true;
  }

  /// Prints text that is not about the position in the queue.
  void Print(const std::string& text) {
    Clear();
    std::cerr << "penstock: " << text << std::endl;
  }

  void Clear() {
    if (terminal_ && shown_) std::cerr << "\r\x1b[K" << std::flush;
    shown_ = false;
  }

 private:
  /// Formats an amount: "2 GPUs", "one of 4 shares of 1 GPU", "2 of 1g.5gb".
  static std::string Amount(const WaitingRun& waiting) {
    std::string gpus = std::to_string(waiting.count) + (waiting.count == 1 ? " GPU" : " GPUs");
    if (!waiting.profile.empty())
      gpus = std::to_string(waiting.count) + " of " + Printable(waiting.profile);
    if (!waiting.vendor.empty()) gpus += " of vendor " + Printable(waiting.vendor);
    if (waiting.min_memory.count > 0) gpus += " with " + base::FormatBytes(waiting.min_memory);
    if (waiting.share <= 1) return gpus;
    return "one of " + std::to_string(waiting.share) + " shares of " + gpus;
  }

  static std::size_t Width() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u
                                                                             : 79u;
  }
  const bool terminal_;
  bool shown_ = false;
};

/// Reads an amount of memory that an option asks for.
base::Result<base::Bytes> ReadAmount(const char* option, const std::string& text) {
  auto amount = base::ParseBytes(text);
  if (!amount.ok()) return amount.error().Within(option);
  if (amount->count == 0)
    return Error(Code::kInvalidArgument, std::string(option) + " " + Printable(text) +
                                             ": must be more than nothing, e.g. 10Gi");
  return amount;
}

/// The limits of a run, for the agent, which knows what can be enforced.
base::Status ReadLimits(const RunOptions& options, protocol::broker::RunRequest& run) {
  if (!options.memory.empty()) { ASSIGN(run.memory, ReadAmount("--memory", options.memory)); }
  if (!options.cores.empty() && !options.compute.empty())
    return Error(Code::kInvalidArgument, "--cores and --compute are the same limit; pass one");
  for (const auto& [option, text] :
       {std::pair{"--cores", &options.cores}, std::pair{"--compute", &options.compute}}) {
    if (text->empty()) continue;
    const auto percent = base::ParseInt(*text);
    if (!percent || *percent < 1 || *percent > 100)
      return Error(Code::kInvalidArgument, std::string(option) + " " + Printable(*text) +
                                               ": must be a percentage, 1 to 100");
    run.compute_percent = static_cast<int>(*percent);
  }
  return {};
}

/// Parses "key=value". The last value of a repeated key wins.
base::Result<std::map<std::string, std::string>> ToLabels(const std::vector<std::string>& words) {
  std::map<std::string, std::string> labels;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos)
      return Error(
          Code::kInvalidArgument,
          "--label " + Printable(word) + ": expected KEY=VALUE, e.g. --label experiment=lr01");
    if (const auto checked =
            protocol::broker::CheckLabel(word.substr(0, equals), word.substr(equals + 1));
        !checked.ok())
      return checked.error().Within("--label");
    labels[word.substr(0, equals)] = word.substr(equals + 1);
  }
  if (labels.size() > protocol::broker::kMaxLabels)
    return Error(Code::kInvalidArgument,
                 "--label: at most " + std::to_string(protocol::broker::kMaxLabels));
  return labels;
}

base::Result<protocol::broker::Request> ToRequest(const RunOptions& options) {
  const bool gpus_given = options.gpus_given;
  if (options.gpus < 1 && gpus_given)
    return Error(Code::kInvalidArgument,
                 "--gpus " + std::to_string(options.gpus) +
                     ": must be 1 or more; to run without GPUs, start the command itself");
  if (options.gpus > protocol::broker::kMaxDevices)
    return Error(Code::kInvalidArgument, "--gpus " + std::to_string(options.gpus) + ": at most " +
                                             std::to_string(protocol::broker::kMaxDevices));
  if (options.share < 1 || options.share > protocol::broker::kMaxShares)
    return Error(Code::kInvalidArgument, "--share " + std::to_string(options.share) +
                                             ": a device can be divided into 2 to " +
                                             std::to_string(protocol::broker::kMaxShares) +
                                             " shares; omit --share for a whole device");
  if (!options.devices.empty() &&
      (gpus_given || !options.model.empty() || options.profile_given || options.min_memory_given))
    return Error(Code::kInvalidArgument,
                 "--device already selects the GPUs; omit --gpus, --model, --mig and --min-memory");
  if (options.profile_given && options.profile.empty())
    return Error(Code::kInvalidArgument, "--mig: must be a profile, e.g. 1g.5gb");
  if (options.share > 1 && options.min_memory_given)
    return Error(Code::kInvalidArgument,
                 "--min-memory cannot be combined with --share: a share has no memory of its own");
  protocol::broker::Request request;
  request.operation = protocol::broker::Operation::kRun;
  request.run = {.count = static_cast<int>(options.gpus),
                 .share = static_cast<int>(options.share),
                 .model = options.model,
                 .vendor = options.vendor,
                 .profile = options.profile,
                 .devices = options.devices,
                 .command = base::Join(options.command, " ")};
  ASSIGN(request.run.labels, ToLabels(options.labels));
  TRY(ReadLimits(options, request.run));
  if (options.min_memory_given) {
    ASSIGN(request.run.min_memory, ReadAmount("--min-memory", options.min_memory));
  }
  if (!options.time.empty()) {
    const auto time = ParseTimeLimit(options.time);
    if (!time.ok()) return time.error().Within("--time");
    request.run.time = *time;
  }
  if (options.wait.empty()) return request;
  if (options.wait == "0") {
    request.run.wait = base::Duration::zero();
    return request;
  }
  auto wait = base::ParseDuration(options.wait);
  if (!wait.ok()) return wait.error().Within("--wait");
  request.run.wait = *wait;
  return request;
}

/// Waits in the queue, across restarts of the agent.
class Wait {
 public:
  Wait(std::string run_dir, protocol::broker::Request request, WaitLine& line)
      : run_dir_(std::move(run_dir)), request_(std::move(request)), line_(line) {}

  base::Result<GrantedRun> Query() {
    auto granted = QueryOnce();
    while (!granted.ok() && may_return_ && granted.error().code() == Code::kUnavailable) {
      line_.Print(granted.error().message() + "; waiting up to " +
                  base::FormatDuration(kReturnWithin) + " for the agent, to keep the place " +
                  request_.run.ticket);
      granted = Return();
    }
    return granted;
  }

 private:
  using Time = std::chrono::steady_clock;

  /// Performs one request. The agent enforces the wait's timeout; the deadline here is for an agent
  /// that stops responding.
  base::Result<GrantedRun> QueryOnce() {
    may_return_ = false;
    ASSIGN(auto client, protocol::broker::Client::Connect(run_dir_));
    TRY(client.SendLine(EncodeRequest(request_)));
    std::optional<base::Duration> patience = kRunPatience;
    for (;;) {
      const auto text = client.ReadLine(patience);
      if (!text.ok())
        return text.error().code() == Code::kDeadlineExceeded
                   ? Error(Code::kUnavailable, text.error().message())
                   : text.error();
      ASSIGN(const auto answer, protocol::broker::DecodeRunAnswer(*text));
      if (answer.granted) return *answer.granted;
      if (answer.waiting) line_.Show(*answer.waiting);
      may_return_ = answer.waiting && answer.waiting->resumable;
      if (answer.waiting) request_.run.ticket = answer.waiting->ticket;
      patience.reset();
      if (request_.run.wait) patience = *request_.run.wait + kRunPatience;
    }
  }

  /// Retries until an agent runs and accepts the request.
  base::Result<GrantedRun> Return() {
    const Time::time_point until = Time::now() + kReturnWithin;
    for (;;) {
      std::this_thread::sleep_for(kReturnPause);
      if (wait_) {
        request_.run.wait = *wait_ - (Time::now() - begun_);
        if (*request_.run.wait <= base::Duration::zero())
          return Error(Code::kDeadlineExceeded,
                       "waited " + base::FormatDuration(*wait_) + ": no agent responded");
      }
      auto granted = QueryOnce();
      if (granted.ok() || may_return_) return granted;
      // An agent without tickets: go to the end of its queue.
      if (granted.error().code() == Code::kInvalidArgument && !request_.run.ticket.empty()) {
        request_.run.ticket.clear();
        continue;
      }
      const bool later = granted.error().code() == Code::kUnavailable ||
                         granted.error().code() == Code::kResourceExhausted;
      if (!later || Time::now() >= until) return granted;
    }
  }

  const std::string run_dir_;
  protocol::broker::Request request_;
  WaitLine& line_;
  const Time::time_point begun_ = Time::now();
  const std::optional<base::Duration> wait_ = request_.run.wait;
  bool may_return_ = false;  // the agent keeps this run's place in the queue
};

/// Prints when the run will be ended.
void ReportEnd(const GrantedRun& granted) {
  const std::string how = ": SIGTERM, and SIGKILL 30 s later\n";
  if (granted.time)
    std::cerr << "penstock: this run is ended after " << base::FormatDuration(*granted.time)
              << " (--time)" << how;
  if (granted.time_while_others_wait &&
      (!granted.time || *granted.time_while_others_wait < *granted.time))
    std::cerr << "penstock: after " << base::FormatDuration(*granted.time_while_others_wait)
              << " this run may be ended if another user waits for its GPUs (queue.perUser.time)"
              << how;
}

/// "3", "0:1"; the id of a device that has no number.
std::string NumberOf(const protocol::broker::GrantedDevice& device) {
  if (!device.number.empty()) return Printable(device.number);
  return device.index < 0 ? device.id : std::to_string(device.index);
}

/// Prints what the user of a share must know: which share it is, how the device is shared, and what
/// sharing does not enforce.
void ReportShares(const GrantedRun& granted) {
  for (const auto& device : granted.devices) {
    if (device.shares <= 1) continue;
    const auto mark = device.slot.rfind("::");
    const std::string which = mark == std::string::npos ? "" : device.slot.substr(mark + 2) + " ";
    std::cerr << "penstock: share " << which << "of " << device.shares << " of "
              << (device.index < 0 && device.number.empty() ? "" : "GPU ") << NumberOf(device)
              << " (" << Printable(device.model) << "), " << device.sharing
              << "; isolation: " << device.isolation
              << (device.isolation == "none" ? ", the other holders can use all its memory" : "")
              << (device.memory_limit.count > 0
                      ? "; memory limit: " + base::FormatBytes(device.memory_limit)
                      : "")
              << (device.compute_percent > 0
                      ? "; compute limit: " + std::to_string(device.compute_percent) + " %"
                      : "")
              << "\n";
  }
}

/// Prints which parts the run got: it did not name them.
void ReportParts(const RunOptions& options, const GrantedRun& granted) {
  if (options.profile.empty() && options.min_memory.empty()) return;
  for (const auto& device : granted.devices)
    std::cerr << "penstock: " << (device.profile.empty() ? "GPU " : "MIG device ")
              << NumberOf(device) << " (" << Printable(device.model)
              << (device.profile.empty() ? "" : ", " + Printable(device.profile)) << ")\n";
  if (!options.profile.empty() && granted.devices.size() > 1)
    std::cerr << "penstock: a CUDA program uses only one of these MIG devices\n";
}

bool IsThere(const std::string& command) {
  if (command.find('/') != std::string::npos)
    return ::access(command.c_str(), F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
  const char* path = std::getenv("PATH");
  for (const std::string& folder : base::Split(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    struct stat file {};
    if (::stat(((folder.empty() ? "." : folder) + "/" + command).c_str(), &file) == 0 &&
        !S_ISDIR(file.st_mode))
      return true;
  }
  return false;
}

int Become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  return FailRun(error == ENOENT ? kNoSuchCommand : kCannotExecute,
                 command[0] + ": " + std::strerror(error));
}

int Run(const Common& common, const RunOptions& options) {
  const std::vector<std::string>& command = options.command;
  if (command.empty())
    return FailRun(
        kOwnFailure,
        "no command given; pass it after `--`: penstock run --gpus 1 -- python train.py");
  const auto request = ToRequest(options);
  if (!request.ok()) return FailRun(kOwnFailure, request.error().message());
  if (!IsThere(command[0])) return FailRun(kNoSuchCommand, command[0] + ": command not found");
  const auto config = Resolve(common.settings);
  if (!config.ok()) return FailRun(kOwnFailure, config.error().message());

  WaitLine line(common.terminal);
  const auto granted = Wait(config->paths.run_dir, *request, line).Query();
  line.Clear();
  if (!granted.ok()) return FailRun(granted.error());
  if (granted->enforcement == "visibility")
    std::cerr << "penstock: visibility only: " << granted->reason << "\n";
  ReportParts(options, *granted);
  ReportShares(*granted);
  ReportEnd(*granted);
  for (const auto& [name, value] : granted->environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv("PENSTOCK_LEASE", granted->lease.c_str(), 1);
  return Become(command);
}

std::vector<std::string> Vendors() {
  std::vector<std::string> names;
  for (const device::Dialect* dialect : backend::Dialects()) names.emplace_back(dialect->vendor());
  return names;
}

}  // namespace

Verb RunVerb(const Common& common) {
  const auto options = std::make_shared<RunOptions>();
  Verb run{
      .name = "run",
      .summary = "Run a command on GPUs of its own, after waiting for them",
      .usage = "-- COMMAND [ARGUMENT...]",
      .examples = kRunExamples,
      .details = kRunDetails,
      .exit_status =
          "the command's own; 124 the wait timed out, 125 Penstock failed (the message says why), "
          "126 the command cannot be executed, 127 the command was not found",
      .options =
          {Value("--gpus", &options->gpus, "N", "number of GPUs, or of MIG devices with --mig [1]")
               .Given(&options->gpus_given),
           Value("--share", &options->share, "N",
                 "one of N equal shares of each GPU instead of the whole [1: whole]"),
           Value("--model", &options->model, "GLOB",
                 "only GPUs whose model matches, e.g. 'A100*' or '*T4*'"),
           Value("--vendor", &options->vendor, "VENDOR",
                 "only GPUs of this vendor [the first by name that has enough]")
               .OneOf(Vendors()),
           Value("--mig", &options->profile, "PROFILE",
                 "MIG devices of this profile instead of whole GPUs, e.g. 1g.5gb")
               .Given(&options->profile_given),
           Value("--min-memory", &options->min_memory, "SIZE",
                 "the smallest MIG devices or GPUs that have at least this much, e.g. 20Gi or 20G")
               .Given(&options->min_memory_given),
           Value("--device", &options->devices, "UUID|INDEX", "exactly these (comma-separated)")
               .Separated(),
           Value("--label", &options->labels, "KEY=VALUE",
                 "label for usage and metrics, e.g. experiment=lr01 (repeatable)"),
           Value("--wait", &options->wait, "TIME",
                 "how long to wait, e.g. 10m; 0: do not wait [no limit]"),
           Value("--time", &options->time, "TIME",
                 "time limit, e.g. 90 (minutes), 2:00:00 or 2h; then the run is ended")},
      .shares = AgentOptionNames(),
      .command = &options->command,
      .run = [options, &common] { return Run(common, *options); }};
  run.options.push_back(Value("--memory", &options->memory, "SIZE",
                              "only shares whose server (MPS) limits the memory of a process to "
                              "this or less, e.g. 10Gi"));
  run.options.push_back(
      Value("--compute", &options->compute, "PERCENT", "likewise, its compute time: 1 to 100"));
  run.options.push_back(Value("--cores", &options->cores, "PERCENT", "the same as --compute"));
  return run;
}

}  // namespace penstock::app
