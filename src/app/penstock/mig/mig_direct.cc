#include "app/penstock/mig/mig_direct.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/devices/backend_connection.h"
#include "app/devices/paths.h"
#include "app/penstock/common/probe_devices.h"
#include "app/penstock/common/programs.h"
#include "app/penstock/mig/mig_machine.h"
#include "app/state_files.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "device/remote.h"
#include "node/change/device_change.h"
#include "node/change/division_run.h"
#include "node/ledger/checkpoint.h"
#include "node/partition/plan.h"
#include "node/partition/select.h"
#include "os/core/file.h"
#include "os/lock_file.h"
#include "os/loop.h"
#include "os/process/process.h"

namespace penstock::app {
namespace {

using base::Status;
using device::Facts;
using node::change::DivisionRun;
using node::partition::DesiredDivision;
using protocol::broker::DivideProgress;

constexpr base::Duration kDriverReleased = std::chrono::milliseconds(50);
constexpr int kReleaseTries = 100;

/// The text of a file of the last agent; empty where there is none.
Result<std::string> ReadState(const std::string& path, std::size_t most) {
  auto text = os::ReadFile(path, most);
  if (text.ok() || text.error().code() != Code::kNotFound) return text;
  return std::string();
}

/// Who holds devices by what the last agent recorded in this boot, by id.
Result<std::map<std::string, std::string>> RecordedHolders(const std::string& state_dir) {
  const std::string journal = JournalPath(state_dir), ledger = LedgerPath(state_dir);
  ASSIGN(const std::string changes, ReadState(journal, os::kMaxFileBytes));
  if (!changes.empty()) {
    ASSIGN(const auto unfinished, node::change::DecodeChanges(changes, journal));
    if (!unfinished.empty())
      return Error(Code::kFailedPrecondition,
                   "the agent that ended left a change of devices unfinished (" + journal +
                       "): start an agent, which finishes it");
  }
  std::map<std::string, std::string> holders;
  ASSIGN(const std::string text, ReadState(ledger, node::ledger::kMaxCheckpointBytes));
  if (text.empty()) return holders;
  ASSIGN(const std::string boot, os::ReadBootId("/proc"));
  ASSIGN(const auto leases, node::ledger::DecodeCheckpoint(text, boot, ledger));
  for (const node::ledger::Lease& lease : leases)
    for (const node::ledger::Slot& slot : lease.slots)
      holders[slot.device] = (lease.pod.empty() ? "the run of " + lease.user
                                                : "pod " + lease.namespace_name + "/" + lease.pod) +
                             ", as the agent that ended recorded";
  return holders;
}

/// One vendor's GPUs, from the first look at them to the last step. On its own loop.
class DirectDivision {
 public:
  using Progress = std::function<void(const DivideProgress&)>;

  DirectDivision(const api::NodeConfig& config, const std::string& worker,
                 const ApplyRequest& request, const Progress& progress,
                 std::map<std::string, std::string> holders)
      : config_(config),
        request_(request),
        progress_(progress),
        loop_("divide"),
        remote_(loop_, {.command = WorkerCommand(worker, MigDialect().vendor(),
                                                 PathsOf(config, MigDialect().vendor()))}),
        actions_(backend::MakeActions(MigDialect().vendor(), loop_,
                                      PathsOf(config, MigDialect().vendor()))) {
    machine_.holders = std::move(holders);
  }

  Result<std::vector<DivideProgress>> Run() {
    ProbeOnce(remote_, [this](Result<Seen> seen) {
      if (!seen.ok()) return End(seen.error());
      machine_.devices = std::move(seen->devices);
      machine_.remarks = std::move(seen->problems);
      machine_.on_demand = OnDemandGpus(config_, machine_);
      ReadHolders(0);
    });
    loop_.Run();
    run_.reset();
    return *std::move(result_);
  }

 private:
  struct Job {
    Facts gpu;
    DesiredDivision desired, before;
    DivideProgress progress;
    bool mode_only = false;
  };

  void End(Result<std::vector<DivideProgress>> result) {
    result_ = std::move(result);
    loop_.Stop();
  }

  // --- what is there, and what shall be done

  void ReadHolders(std::size_t next) {
    if (next == machine_.devices.size()) return Plan();
    const Facts& device = machine_.devices[next];
    remote_.Read(device.address, [this, next](const Result<device::Reading>& reading) {
      // A part without a compute instance has no reading, nor any process.
      if (reading.ok()) NoteProcesses(machine_.devices[next].id, *reading);
      ReadHolders(next + 1);
    });
  }

  void NoteProcesses(const std::string& device, const device::Reading& reading) {
    for (const device::DeviceProcess& process : reading.processes)
      if (!process.graphics_only)
        machine_.holders.emplace(device, "process " + std::to_string(process.pid));
  }

  void Plan() {
    auto selection = node::partition::SelectDevices(request_.layout, machine_.gpus());
    if (!selection.ok()) return End(selection.error());
    for (const std::string& remark : machine_.remarks) Remark(remark);
    std::vector<std::string> impossible, held;
    for (const auto& [gpu, rule] : selection->devices) {
      Job job{.gpu = *gpu,
              .progress = {gpu->id, device::NumberOf(*gpu), rule ? "divided" : "unselected", ""}};
      const Status possible = rule == nullptr ? Status() : PlanOne(*rule, job);
      if (!possible.ok())
        (possible.error().code() == Code::kFailedPrecondition ? held : impossible)
            .push_back(job.progress.number + ": " + possible.error().message());
      jobs_.push_back(std::move(job));
    }
    if (!impossible.empty())
      return End(Error(Code::kInvalidArgument, base::Join(impossible, "; ")));
    if (!held.empty()) return End(Error(Code::kFailedPrecondition, base::Join(held, "; ")));
    Next(0);
  }

  Status PlanOne(const api::LayoutRule& rule, Job& job) const {
    ASSIGN(auto desired, node::partition::DesiredOn(job.gpu, rule, MigDialect()));
    const auto now = machine_.DivisionOf(job.gpu);
    job.desired = desired.division;
    job.before = node::partition::AsItIs(now, job.desired.mode);
    // Of parts only the driver can say more, once the mode is there.
    job.mode_only = request_.mode_only || machine_.on_demand.contains(job.gpu.id);
    if (job.mode_only || now.profiles.empty()) desired.division.parts.clear();
    if (WhyNotAsDesired(now, job.desired, job.mode_only).empty()) return {};
    const auto plan = node::partition::MakePlan(now, desired.division, {});
    return plan.ok() ? Status() : Status(plan.error());
  }

  // --- one GPU after the other

  void Next(std::size_t number) {
    while (number < jobs_.size() && jobs_[number].progress.state == "unselected") ++number;
    if (number == jobs_.size()) return Conclude();
    Begin(number, false);
  }

  void Begin(std::size_t number, bool back) {
    Job& job = jobs_[number];
    run_ = std::make_unique<DivisionRun>(
        DivisionRun::Tools{
            .backend = remote_,
            .holder_of =
                [this](const std::string& id) {
                  const auto found = machine_.holders.find(id);
                  return found == machine_.holders.end() ? std::string() : found->second;
                },
            .reset = [this](const Facts& gpu,
                            std::function<void(Status)> done) { Reset(gpu, std::move(done)); },
            .progress =
                [this, &job](const std::string& step) {
                  progress_({job.progress.device, job.progress.number, "dividing", step});
                }},
        DivisionRun::Goal{
            .device = job.gpu.id,
            .address = job.gpu.address,
            .desired = [wanted = back ? job.before : job.desired](const auto&) { return wanted; },
            .mode_only = !back && job.mode_only,
            .skip_reset = request_.skip_reset});
    run_->Start([this, number, back](const Status& outcome) {
      // Not from within the run, which the next one replaces.
      loop_.Post([this, number, back, outcome] { Ended(number, back, outcome); });
    });
  }

  void Ended(std::size_t number, bool back, const Status& outcome) {
    DivideProgress& progress = jobs_[number].progress;
    if (!back && !outcome.ok()) {
      progress.state = "failed";
      progress.reason = outcome.error().message();
      return Begin(number, true);
    }
    if (!outcome.ok())
      progress.reason += "; and it could not become as before: " + outcome.error().message();
    progress_(progress);
    Next(number + 1);
  }

  void Conclude() {
    std::vector<DivideProgress> all;
    std::vector<std::string> failed;
    for (const Job& job : jobs_) {
      all.push_back(job.progress);
      if (job.progress.state == "failed")
        failed.push_back(job.progress.number + ": " + job.progress.reason);
    }
    if (!failed.empty()) return End(Error(Code::kAborted, base::Join(failed, "; ")));
    End(std::move(all));
  }

  // --- a reset, for a mode to take effect

  void Reset(const Facts& gpu, std::function<void(Status)> done) {
    std::vector<const Facts*> all = machine_.gpus();
    if (actions_ == nullptr || actions_->ResetTogether(gpu, all).size() > 1)
      return done(Error(Code::kUnimplemented,
                        "the mode takes effect with a reset that cannot be made for it alone: "
                        "reset all devices, or reboot"));
    remote_.Stop();
    AwaitRelease(kReleaseTries, [this, gpu, done = std::move(done)] {
      actions_->Reset({gpu}, [this, done](const Status& reset) {
        remote_.Open([done, reset](const Result<device::Driver>& opened) {
          done(!reset.ok() || opened.ok() ? reset : Status(opened.error()));
        });
      });
    });
  }

  void AwaitRelease(int tries, std::function<void()> then) {
    if (remote_.abandoned() == 0 || tries == 0) return then();
    loop_.PostAfter(kDriverReleased,
                    [this, tries, then = std::move(then)] { AwaitRelease(tries - 1, then); });
  }

  const api::NodeConfig& config_;
  const ApplyRequest& request_;
  const Progress& progress_;
  os::Loop loop_;
  device::Remote remote_;
  const std::unique_ptr<device::Actions> actions_;
  MigMachine machine_;
  std::vector<Job> jobs_;
  std::unique_ptr<DivisionRun> run_;
  std::optional<Result<std::vector<DivideProgress>>> result_;
};

}  // namespace

Result<std::vector<DivideProgress>> DivideDirectly(
    const api::NodeConfig& config, const ApplyRequest& request,
    const std::function<void(const DivideProgress&)>& progress) {
  if (request.wait)
    return Error(Code::kUnavailable, "only an agent waits for holders, and none runs");
  TRY(os::MakeDirectories(config.paths.run_dir));
  ASSIGN(const auto lock, os::LockFile::Take(LockPath(config.paths.run_dir)));
  ASSIGN(auto holders, RecordedHolders(config.paths.state_dir));
  ASSIGN(const std::string worker, FindProgram("penstock-worker"));
  return DirectDivision(config, worker, request, progress, std::move(holders)).Run();
}

}  // namespace penstock::app
