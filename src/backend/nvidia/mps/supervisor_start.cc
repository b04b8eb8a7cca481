// Starting: sets compute modes (not of MIG devices: "this mode is not supported when the GPU is in
// MIG mode as we use multiple MPS servers", MIG user guide, "MIG with CUDA MPS"), launches the
// daemon in its own environment, sets limits and reads them back. A set is ready when its limits
// have been read back.
#include <algorithm>

#include "backend/nvidia/mps/answers.h"
#include "backend/nvidia/mps/supervisor.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/core/file.h"

namespace penstock::backend::nvidia::mps {
namespace {

using Outcome = os::Command::Outcome;

constexpr const char* kSharedMemory = "/dev/shm";
constexpr auto kAwaitEvery = std::chrono::milliseconds(50);
constexpr auto kAwaitMost = std::chrono::seconds(3);

/// The last line of a program's output, or its exit status.
std::string MessageOf(const base::Result<Outcome>& result) {
  if (!result.ok()) return result.error().message();
  const auto lines = base::Split(base::Trim(result->output), '\n');
  return lines.back().empty() ? "it exited with status " + std::to_string(result->status)
                              : lines.back();
}

}  // namespace

// Prepares the program that starts the daemon and that queries the daemon listening in that folder.
base::Status Supervisor::FindControl(const std::string& sockets) {
  ASSIGN(control_, FindProgram(options_.driver_root, "nvidia-cuda-mps-control"));
  control_->environment.push_back("CUDA_MPS_PIPE_DIRECTORY=" + sockets);
  control_->environment.push_back("CUDA_MPS_LOG_DIRECTORY=" + folders_.log);
  return {};
}

/// With several daemons it is unclear whose servers are whose; the next start ends them all.
std::optional<DaemonProcess> Supervisor::FindDaemon() const {
  auto daemons = FindDaemons(options_.proc_root, folders_);
  return daemons.size() == 1 ? std::optional(std::move(daemons.front())) : std::nullopt;
}

void Supervisor::Begin() {
  const auto daemon = FindDaemon();
  if (const auto found = FindControl(daemon ? daemon->sockets : folders_.daemon); !found.ok())
    return Fail(found.error().message());
  if (!daemon && !Occupied().empty()) return Fail("its MPS control daemon is gone");
  if (!daemon) return Recover();
  Watch(*daemon);
  if (daemon->sockets == folders_.daemon)
    if (const auto shared = ShareSocket(folders_); !shared.ok())
      return Fail(shared.error().message());
  fresh_ = {};
  fresh_.own_shm = daemon->own_shm;
  foreign_ = daemon->spec != spec_;
  if (foreign_) {
    View view = view_;
    view.reason =
        "an MPS control daemon with other settings runs in its place; it is replaced when its "
        "clients have exited";
    base::Log(base::kInfo, view.reason,
              {{"set", spec_.set}, {"pid", static_cast<int>(daemon->pid)}});
    Set(std::move(view));
    return Check();
  }
  base::Log(base::kInfo, "MPS server of an earlier agent adopted",
            {{"set", spec_.set}, {"pid", static_cast<int>(daemon->pid)}});
  Limit();
}

void Supervisor::Start() {
  // The driver may have been installed, removed or moved since the last try.
  if (const auto found = FindControl(folders_.daemon); !found.ok())
    return Fail(found.error().message());
  if (const auto made = MakeFolders(folders_); !made.ok()) return Fail(made.error().message());
  shm_remark_ =
      options_.own_shm && !options_.launcher.empty() ? MountShm(folders_, options_.proc_root) : "";
  if (const auto noted = WriteNote(folders_, spec_); !noted.ok())
    return Fail(noted.error().message());
  fresh_ = {};
  SetModes();
}

Supervisor::Step Supervisor::ModeStep(const ServerSpec::Gpu& gpu, const std::string& mode) {
  Step step;
  step.program = &*smi_;
  step.arguments = {"-i", gpu.id, "-c", mode};
  return step;
}

void Supervisor::SetModes() {
  auto smi = FindProgram(options_.driver_root, "nvidia-smi");
  if (!smi.ok()) return Spawn();  // OnLimits reports what is missing
  smi_ = *std::move(smi);
  Row row;
  for (const ServerSpec::Gpu& gpu : spec_.gpus) {
    if (gpu.is_mig_device()) continue;
    row.push_back(ModeStep(gpu, "EXCLUSIVE_PROCESS"));
    row.back().take = [id = gpu.id](const base::Result<Outcome>& result) {
      if (!result.ok() || result->status != 0)
        base::Log(base::kWarn, "cannot set the compute mode of a GPU",
                  {{"device", id}, {"error", MessageOf(result)}});
      return true;
    };
  }
  Run(std::move(row), [this] { Spawn(); });
}

os::LaunchOptions Supervisor::Launch() const {
  os::LaunchOptions launch;
  launch.cgroup = std::string(kGroup);
  const bool whole_root = !OwnLoader(options_.driver_root).empty();
  const std::string shm = options_.own_shm ? folders_.shm : kSharedMemory;
  if (!whole_root) {
    if (options_.own_shm) launch.binds = {{shm, kSharedMemory}};
    launch.command = control_->command;
  } else {
    // A driver root with a system of its own: the daemon runs inside that root, because it starts
    // its server by the path that the server has there.
    launch.root = options_.driver_root;
    launch.scratch = options_.driver_root + "/mnt";
    launch.binds = {{folders_.daemon, launch.scratch + "/daemon"},
                    {folders_.log, launch.scratch + "/log"},
                    {shm, launch.root + kSharedMemory}};
    launch.command = {control_->inside};
  }
  launch.command.emplace_back("-d");
  return launch;
}

std::vector<std::string> Supervisor::DaemonEnvironment() const {
  const bool whole_root = !OwnLoader(options_.driver_root).empty();
  std::vector<std::string> environment;
  std::string path = ProgramFolders(
      options_.driver_root, whole_root);  // the daemon looks there for nvidia-cuda-mps-server
  for (const std::string& entry : control_->environment) {
    if (entry.starts_with("PATH="))
      path += ":" + entry.substr(5);
    else if (!entry.starts_with("CUDA_"))
      environment.push_back(entry);
  }
  // The limits apply from the start: a container may already be waiting for the socket.
  environment.insert(
      environment.end(),
      {"PATH=" + path, "CUDA_MPS_PIPE_DIRECTORY=" + (whole_root ? "/mnt/daemon" : folders_.daemon),
       "CUDA_MPS_LOG_DIRECTORY=" + (whole_root ? "/mnt/log" : folders_.log),
       "CUDA_VISIBLE_DEVICES=" + VisibleDevices(spec_),
       "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=" + std::to_string(spec_.percentage),
       "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=" + MemoryLimits(spec_),
       std::string(kSpecVariable) + "=" + WriteSpec(spec_),
       std::string(kFolderVariable) + "=" + folders_.all});
  return environment;
}

void Supervisor::Spawn() {
  os::Command::Options run;
  const os::LaunchOptions launch = Launch();
  run.spawn.arguments =
      options_.launcher.empty() ? launch.command : os::LaunchArguments(options_.launcher, launch);
  run.spawn.environment = DaemonEnvironment();
  run.spawn.new_session = true;
  run.deadline = options_.start_deadline;
  command_ = std::make_unique<os::Command>(
      loop_, std::move(run), [this](const base::Result<Outcome>& result) {
        if (!result.ok() || result->status != 0)
          return Fail("nvidia-cuda-mps-control cannot be started: " + MessageOf(result));
        OnSpawned(*result);
      });
}

void Supervisor::OnSpawned(const Outcome& outcome) {
  const os::LaunchRemarks remarks = os::ReadLaunchRemarks(outcome.output);
  group_remark_.clear();
  if (!remarks.group.empty())
    group_remark_ = "its MPS server ends with the agent: " + remarks.group;
  if (options_.own_shm && !remarks.mounts.empty())
    shm_remark_ = "containers share the host's /dev/shm with its MPS server: " + remarks.mounts;
  else if (options_.own_shm && options_.launcher.empty())
    shm_remark_ = "containers share the host's /dev/shm with its MPS server";
  start_by_ = loop_.clock().Now() + std::min<base::Duration>(kAwaitMost, options_.start_deadline);
  Await();
}

// The program exits when the daemon listens; the daemon may have ended again meanwhile.
void Supervisor::Await() {
  const auto daemon = FindDaemon();
  if (!daemon) {
    if (loop_.clock().Now() >= start_by_)
      return Fail(
          "nvidia-cuda-mps-control exits immediately after its start; its messages are in " +
          folders_.log + "/control.log");
    return Later(kAwaitEvery, &Supervisor::Await);
  }
  Watch(*daemon);
  if (const auto shared = ShareSocket(folders_); !shared.ok())
    return Fail(shared.error().message());
  fresh_.own_shm = daemon->own_shm;
  Limit();
}

Supervisor::Step Supervisor::ControlStep(const std::string& command,
                                         std::function<bool(const std::string&)> take) {
  Step step;
  step.program = &*control_;
  step.input = command + "\n";
  step.take = [this, command, take = std::move(take)](const base::Result<Outcome>& result) {
    if (result.ok() && result->status == 0) return take(result->output);
    if (!result.ok() && result.error().code() == base::Code::kDeadlineExceeded)
      Fail("its MPS control daemon did not answer within " +
           base::FormatDuration(options_.answer_deadline));
    else
      Fail("its MPS control daemon cannot be queried (" + command + "): " + MessageOf(result));
    return false;
  };
  return step;
}

// The limits read back are the ones in force; the answers to the set commands are ignored.
void Supervisor::Limit() {
  const auto whatever = [](const std::string&) { return true; };
  fresh_.memory.assign(spec_.gpus.size(), {});
  fresh_.exclusive.assign(spec_.gpus.size(), false);
  Row row;
  row.push_back(ControlStep(
      "set_default_active_thread_percentage " + std::to_string(spec_.percentage), whatever));
  for (std::size_t i = 0; i < spec_.gpus.size(); ++i)
    row.push_back(ControlStep("set_default_device_pinned_mem_limit " + std::to_string(i) + " " +
                                  std::to_string(spec_.gpus[i].memory.mebibytes()) + "M",
                              whatever));
  row.push_back(
      ControlStep("get_default_active_thread_percentage", [this](const std::string& answer) {
        const auto percentage = ReadPercentage(answer);
        if (!percentage) {
          Fail("its MPS control daemon answered " + Quote(answer) + " instead of a percentage");
          return false;
        }
        fresh_.percentage = static_cast<int>(*percentage);
        return true;
      }));
  for (std::size_t i = 0; i < spec_.gpus.size(); ++i)
    row.push_back(ControlStep(
        "get_default_device_pinned_mem_limit " + std::to_string(i),
        [this, i](const std::string& answer) {
          fresh_.memory[i] = ReadMemory(answer, spec_.gpus[i].memory).value_or(base::Bytes{});
          return true;
        }));
  auto smi = FindProgram(options_.driver_root, "nvidia-smi");
  smi_ = smi.ok() ? std::optional(*std::move(smi)) : std::nullopt;
  for (std::size_t i = 0; smi_ && i < spec_.gpus.size(); ++i) {
    if (spec_.gpus[i].is_mig_device()) continue;
    row.push_back({&*smi_,
                   {"-i", spec_.gpus[i].id, "--query-gpu=compute_mode", "--format=csv,noheader"},
                   "",
                   [this, i](const auto& result) {
                     fresh_.exclusive[i] =
                         result.ok() && base::Trim(result->output) == "Exclusive_Process";
                     return true;
                   }});
  }
  Run(std::move(row), [this] { OnLimits(); });
}

void Supervisor::OnLimits() {
  View view = std::move(fresh_);
  view.ready = true;
  view.reason.clear();
  view.remarks.clear();
  for (const std::string& remark : {group_remark_, shm_remark_})
    if (!remark.empty()) view.remarks.push_back(remark);
  // Of MIG devices no mode was asked for: that programs can bypass MPS shows in their isolation.
  const bool has_mode = !spec_.gpus.front().is_mig_device();
  if (has_mode && !smi_)
    view.remarks.push_back(
        "there is no nvidia-smi to set the compute mode EXCLUSIVE_PROCESS, so programs that bypass "
        "MPS are not limited");
  else if (has_mode && std::ranges::find(view.exclusive, false) != view.exclusive.end())
    view.remarks.push_back(
        "the compute mode EXCLUSIVE_PROCESS is not in effect, so programs that bypass MPS are not "
        "limited");
  if (view.percentage != spec_.percentage)
    view.remarks.push_back("its MPS server enforces " + std::to_string(view.percentage) +
                           "% of compute where " + std::to_string(spec_.percentage) +
                           "% was requested");
  ready_since_ = loop_.clock().Now();
  Set(std::move(view));
  Check();
}

}  // namespace penstock::backend::nvidia::mps
