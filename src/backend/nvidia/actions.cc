// Runs nvidia-smi -i UUID,... -r: its exit status is the result, its output the reason.
#include "backend/nvidia/actions.h"

#include <algorithm>
#include <set>

#include "backend/nvidia/programs.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/process/command.h"

namespace penstock::backend::nvidia {
namespace {

using device::Facts;

constexpr base::Duration kProgress = std::chrono::minutes(1);
constexpr int kNoPermission = 4;  // nvidia-smi(1), "RETURN VALUE"

bool IsBeforeAmpere(const Facts& device) {
  const auto major = base::ParseInt(base::Split(device.architecture_version, '.').front());
  return !major || *major < 8;
}

/// All devices linked with this one by NVLink, directly or over others, including itself.
std::vector<std::string> Linked(const Facts& device, const std::vector<const Facts*>& all) {
  std::set<std::string> found{device.id};
  std::vector<const Facts*> pending{&device};
  while (!pending.empty()) {
    const Facts* const one = pending.back();
    pending.pop_back();
    for (const device::Link& link : one->links) {
      if (link.fabric_lanes == 0 || !found.insert(link.peer).second) continue;
      const auto peer =
          std::ranges::find_if(all, [&](const Facts* other) { return other->id == link.peer; });
      if (peer != all.end()) pending.push_back(*peer);
    }
  }
  return {found.begin(), found.end()};
}

base::Status StatusOf(const base::Result<os::Command::Outcome>& outcome) {
  if (!outcome.ok()) return outcome.error().Within("nvidia-smi");
  if (outcome->status == 0) return {};
  const std::string words = os::LastLines(outcome->output);
  const std::string message = words.empty()
                                  ? "it exited with status " + std::to_string(outcome->status)
                                  : words + " (status " + std::to_string(outcome->status) + ")";
  return Error(
      outcome->status == kNoPermission ? Code::kPermissionDenied : Code::kFailedPrecondition,
      "nvidia-smi: " + message);
}

class NvidiaActions final : public device::Actions {
 public:
  NvidiaActions(os::Loop& control, device::Paths paths)
      : control_(control), paths_(std::move(paths)) {}
  ~NvidiaActions() override {
    alive_.reset();
    control_.Cancel(progress_);
  }

  // nvidia-smi(1), --gpu-reset: from Ampere on, each GPU can be reset alone; before, all GPUs that
  // are connected by NVLink must be reset in one command. This also holds on Ampere's NVSwitch
  // systems without a running Fabric Manager; nvidia-smi then refuses and says so.
  std::vector<std::string> ResetTogether(const Facts& device,
                                         const std::vector<const Facts*>& all) const override {
    return IsBeforeAmpere(device) ? Linked(device, all) : std::vector<std::string>{device.id};
  }

  void SetPaths(const device::Paths& paths) override { paths_ = paths; }

  void Reset(const std::vector<Facts>& devices, std::function<void(base::Status)> done) override {
    if (command_)
      return Later(std::move(done),
                   Error(Code::kFailedPrecondition, "another reset is in progress"));
    auto program = FindProgram(paths_.driver_root, "nvidia-smi");
    if (!program.ok()) return Later(std::move(done), program.error());
    std::vector<std::string> ids;
    for (const Facts& device : devices) ids.push_back(device.id);
    os::Command::Options options;
    options.spawn.arguments = program->command;
    options.spawn.arguments.insert(options.spawn.arguments.end(),
                                   {"-i", base::Join(ids, ","), "-r"});
    options.spawn.environment = program->environment;
    options.spawn.new_session = true;  // what ^C ends at a terminal is the caller alone
    options.deadline = device::kLongestReset;
    begun_ = control_.clock().Now();
    LogProgress(base::Join(ids, ","));
    command_ = std::make_unique<os::Command>(
        control_, std::move(options),
        [this, done = std::move(done)](const base::Result<os::Command::Outcome>& outcome) {
          Ended(outcome, done);
        });
  }

 private:
  void Later(std::function<void(base::Status)> done, const Error& error) {
    control_.Post([alive = std::weak_ptr(alive_), done = std::move(done), error] {
      if (!alive.expired()) done(error);
    });
  }

  void LogProgress(const std::string& ids) {
    progress_ = control_.PostAfter(kProgress, [this, ids] {
      base::Log(base::kInfo, "device reset still in progress",
                {{"devices", ids}, {"for", control_.clock().Now() - begun_}});
      LogProgress(ids);
    });
  }

  void Ended(const base::Result<os::Command::Outcome>& outcome,
             const std::function<void(base::Status)>& done) {
    control_.Cancel(progress_);
    const base::Status status = StatusOf(outcome);
    // command_ is still running this function: the command, which owns `done`, must outlive the
    // call.
    control_.Post([alive = std::weak_ptr(alive_), this, done, status] {
      if (alive.expired()) return;
      command_.reset();
      done(status);
    });
  }

  os::Loop& control_;
  device::Paths paths_;
  std::unique_ptr<os::Command> command_;
  base::TimePoint begun_{};
  base::TimerId progress_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<device::Actions> MakeActions(os::Loop& control, const device::Paths& paths) {
  return std::make_unique<NvidiaActions>(control, paths);
}

}  // namespace penstock::backend::nvidia
