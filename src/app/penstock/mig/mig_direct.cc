#include "app/penstock/mig/mig_direct.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <sys/epoll.h>

#include "app/devices/backend_connection.h"
#include "app/devices/driver_root.h"
#include "app/devices/paths.h"
#include "app/penstock/common/probe_devices.h"
#include "app/penstock/common/programs.h"
#include "app/penstock/mig/mig_holders.h"
#include "app/penstock/mig/mig_machine.h"
#include "app/state_files.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "device/remote.h"
#include "node/change/division_run.h"
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

/// A layout that means every GPU, so one that does not respond, too.
bool SelectsAll(const api::Layout& layout) {
  return std::ranges::any_of(layout.rules, &api::LayoutRule::all_devices);
}

/// One vendor's GPUs, from the first look at them to the last step. On its own loop.
class DirectDivision {
 public:
  using Progress = std::function<void(const DivideProgress&)>;

  DirectDivision(const Common& common, const api::NodeConfig& config, const std::string& worker,
                 const ApplyRequest& request, const Interruption& interruption,
                 const Progress& progress, std::map<std::string, std::string> holders)
      : config_(config),
        request_(request),
        interruption_(interruption),
        progress_(progress),
        loop_("divide"),
        remote_(loop_, {.command = WorkerCommand(worker, MigDialect().vendor(),
                                                 PathsOf(config, MigDialect().vendor()))}),
        actions_(backend::MakeActions(MigDialect().vendor(), loop_,
                                      PathsOf(config, MigDialect().vendor()))) {
    machine_.holders = std::move(holders);
    machine_.program = NameCalled(common);
  }

  Result<std::vector<DivideProgress>> Run() {
    TRY(loop_.Watch(interruption_.fd(), EPOLLIN, [this](std::uint32_t) {
      loop_.Unwatch(interruption_.fd());
      interrupted_ = true;
      if (!changing_) Conclude();
    }));
    ProbeOnce(remote_, [this](Result<Seen> seen) {
      if (!seen.ok()) return End(seen.error());
      machine_.devices = std::move(seen->devices);
      machine_.remarks = std::move(seen->problems);
      if (!machine_.remarks.empty() && SelectsAll(request_.layout))
        return End(Error(Code::kUnavailable, base::Join(machine_.remarks, "; ")));
      // A device that hung took the session in which the others were described with it.
      reopened_ = !machine_.remarks.empty();
      for (const Facts* gpu : machine_.gpus())
        if (const std::string why = machine_.WhyNotKnown(*gpu); !why.empty())
          unread_.emplace(gpu->id, why);
      machine_.on_demand = OnDemandGpus(config_, machine_);
      ReadHolders(0, true);
    });
    loop_.Run();
    run_.reset();
    loop_.Unwatch(interruption_.fd());
    return *std::move(result_);
  }

 private:
  struct Job {
    Facts gpu;
    DesiredDivision desired, before;
    DivideProgress progress;
    bool mode_only = false;
    bool ended = false;
  };

  void End(Result<std::vector<DivideProgress>> result) {
    result_ = std::move(result);
    loop_.Stop();
  }

  // --- what is there, and what shall be done

  /// `again`: a worker that ends meanwhile is replaced.
  void ReadHolders(std::size_t next, bool again) {
    if (next == machine_.devices.size()) return Plan();
    const Facts& device = machine_.devices[next];
    const Facts& gpu = GpuOf(device);
    if (unread_.contains(gpu.id)) return ReadHolders(next + 1, true);
    // Another worker finds the parts of a GPU once it has described that.
    if (reopened_ && described_.insert(gpu.id).second)
      return remote_.Describe(
          gpu.address, [this, next, again](const Result<Facts>&) { ReadHolders(next, again); });
    remote_.Read(device.address, [this, next, again](const Result<device::Reading>& reading) {
      if (reading.ok() && reading->reachable) {
        NoteProcesses(machine_.devices[next].id, *reading);
      } else if (!reading.ok() && again && remote_.pid() == 0) {
        return WithDriver([this, next](const Status& opened) {
          opened.ok() ? ReadHolders(next, false) : End(opened.error());
        });
      } else {
        NoteUnread(machine_.devices[next], reading);
      }
      ReadHolders(next + 1, true);
    });
  }

  /// Opens the driver again where the worker process has ended.
  void WithDriver(std::function<void(const Status&)> then) {
    if (remote_.pid() != 0) return then({});
    reopened_ = true;
    described_.clear();
    remote_.Open([then = std::move(then)](const Result<device::Driver>& opened) {
      then(opened.ok() ? Status() : Status(opened.error()));
    });
  }

  void NoteUnread(const Facts& device, const Result<device::Reading>& reading) {
    std::string why = "it does not respond";
    if (!reading.ok()) why = reading.error().message();
    if (reading.ok() && !reading->evidence.empty()) why = reading->evidence.front().text;
    const std::string part = device.parent.empty() ? "" : "of " + device.id + " ";
    unread_.emplace(GpuOf(device).id, "the processes " + part + "are unknown: " + why);
  }

  const Facts& GpuOf(const Facts& device) const {
    const auto parent = std::ranges::find(machine_.devices, device.parent, &Facts::id);
    return parent == machine_.devices.end() ? device : GpuOf(*parent);
  }

  void NoteProcesses(const std::string& device, const device::Reading& reading) {
    for (const device::DeviceProcess& process : reading.processes)
      if (!process.graphics_only)
        machine_.holders.emplace(device, "process " + std::to_string(process.pid));
  }

  void Plan() {
    auto selection = node::partition::SelectDevices(request_.layout, machine_.gpus());
    if (!selection.ok()) return End(selection.error());
    for (const std::string& remark : machine_.remarks) Remark(machine_.program, remark);
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
    job.before = node::partition::AsItIs(now, job.desired);
    // Of parts only the driver can say more, once the mode is there.
    job.mode_only = request_.mode_only || machine_.on_demand.contains(job.gpu.id);
    if (job.mode_only || now.profiles.empty()) desired.division.parts.clear();
    const bool known = job.mode_only || machine_.WhyNotKnown(job.gpu).empty();
    if (known && WhyNotAsDesired(now, job.desired, job.mode_only).empty()) return {};
    if (const auto unread = unread_.find(job.gpu.id); unread != unread_.end())
      return Error(Code::kFailedPrecondition, unread->second);
    const auto plan = node::partition::MakePlan(now, desired.division, {});
    return plan.ok() ? Status() : Status(plan.error());
  }

  // --- one GPU after the other

  void Next(std::size_t number) {
    while (number < jobs_.size() && jobs_[number].progress.state == "unselected") ++number;
    if (number == jobs_.size() || interrupted_) return Conclude();
    Begin(number, Try::kFirst);
  }

  enum class Try { kFirst, kSecond, kBack };  // the last one makes it as it was before

  void Begin(std::size_t number, Try which) {
    changing_ = true;
    if (remote_.pid() == 0)
      return WithDriver([this, number, which](const Status& opened) {
        if (opened.ok()) return Begin(number, which);
        Ended(number, which == Try::kFirst ? Try::kSecond : which, opened);
      });
    Job& job = jobs_[number];
    const bool back = which == Try::kBack;
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
    run_->Start([this, number, which](const Status& outcome) {
      // Not from within the run, which ends here.
      loop_.Post([this, number, which, outcome] { Ended(number, which, outcome); });
    });
  }

  void Ended(std::size_t number, Try which, const Status& outcome) {
    run_.reset();
    DivideProgress& progress = jobs_[number].progress;
    // Another run goes on from where the device is.
    if (!outcome.ok() && which == Try::kFirst && remote_.pid() == 0)
      return Begin(number, Try::kSecond);
    if (!outcome.ok() && which != Try::kBack) {
      progress.state = "failed";
      progress.reason = outcome.error().message();
      return Begin(number, Try::kBack);
    }
    if (!outcome.ok())
      progress.reason += "; and it could not become as before: " + outcome.error().message();
    changing_ = false;
    jobs_[number].ended = true;
    progress_(progress);
    Next(number + 1);
  }

  void Conclude() {
    std::vector<DivideProgress> all;
    std::vector<std::string> failed, left;
    for (const Job& job : jobs_) {
      all.push_back(job.progress);
      if (job.progress.state == "failed")
        failed.push_back(job.progress.number + ": " + job.progress.reason);
      else if (job.progress.state != "unselected" && !job.ended)
        left.push_back(job.progress.number);
    }
    if (interrupted_ && (jobs_.empty() || !left.empty()))
      failed.insert(failed.begin(),
                    "interrupted, and as before: " +
                        (left.empty() ? "all GPUs" : "GPU " + base::Join(left, ", ")));
    if (!failed.empty())
      return End(Error(interrupted_ ? Code::kCancelled : Code::kAborted, base::Join(failed, "; ")));
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
  const Interruption& interruption_;
  const Progress& progress_;
  os::Loop loop_;
  device::Remote remote_;
  const std::unique_ptr<device::Actions> actions_;
  MigMachine machine_;
  std::map<std::string, std::string> unread_;  // why holders are not known, by id of the GPU
  std::vector<Job> jobs_;
  std::unique_ptr<DivisionRun> run_;
  std::set<std::string> described_;  // ids of GPUs, since the driver was opened again
  bool reopened_ = false, changing_ = false, interrupted_ = false;
  std::optional<Result<std::vector<DivideProgress>>> result_;
};

}  // namespace

Result<std::vector<DivideProgress>> DivideDirectly(
    const Common& common, const api::NodeConfig& config, const ApplyRequest& request,
    const Interruption& interruption, const std::function<void(const DivideProgress&)>& progress) {
  if (request.wait)
    return Error(Code::kUnavailable, "only an agent waits for holders, and none runs");
  TRY(os::MakeDirectories(config.paths.run_dir));
  ASSIGN(const auto lock, os::LockFile::Take(LockPath(config.paths.run_dir)));
  ASSIGN(auto holders, RecordedHolders(config.paths));
  ASSIGN(const std::string worker, FindProgram("penstock-worker"));
  const api::NodeConfig here = WithDriverRoot(config, MigDialect());
  return DirectDivision(common, here, worker, request, interruption, progress, std::move(holders))
      .Run();
}

}  // namespace penstock::app
