#include "app/penstock/driver/prepare.h"

#include <algorithm>
#include <future>
#include <thread>

#include "api/compat/nvidia/driver_names.h"
#include "app/penstock/driver/agent_release.h"
#include "backend/all.h"
#include "base/backoff.h"
#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/kernel_modules.h"
#include "os/machine_facts.h"
#include "os/mounts.h"
#include "os/process/process.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using node::driver::PreparationKind;
using node::driver::UnloadPlan;

constexpr base::Duration kFirstPause = std::chrono::milliseconds(200);
constexpr base::Duration kLongestPause = std::chrono::seconds(5);
constexpr std::uint16_t kNetworkVendor = 0x15b3;  // of the cards that the driver does RDMA with
constexpr char kNetworkModule[] = "mlx5_core";
constexpr char kNetworkReady[] = "/mellanox/drivers/.driver-ready";

/// One preparation.
class Preparing {
 public:
  Preparing(const device::Dialect& dialect, const DriverPreparation& order,
            const DriverActions& actions)
      : driver_(*dialect.kernel_driver()),
        machine_(order.machine),
        order_(order),
        actions_(actions),
        agent_(order.machine.agent_dir, std::string(dialect.vendor()), actions.say),
        late_(actions.now() + order.timeout) {}

  Result<DriverPrepared> Run() {
    done_.preparation =
        node::driver::Prepare(driver_, ReadDriverState(machine_, driver_), order_.wanted);
    const auto& preparation = done_.preparation;
    actions_.say(std::string(ToString(preparation.kind)) + ": " + preparation.reason);
    switch (preparation.kind) {
      case PreparationKind::kRefuse: return Refusal();
      case PreparationKind::kKeep: TRY(Clean({driver_.pid_file})); break;
      case PreparationKind::kClean:
      case PreparationKind::kReplace: TRY(TakeAway()); break;
    }
    TRY(AwaitNetworkDriver());
    return std::move(done_);
  }

 private:
  Error Refusal() const {
    return {Code::kFailedPrecondition,
            done_.preparation.reason +
                ", and a driver container cannot install a second one: uninstall it, or keep the "
                "container off this node (nvidia.com/gpu.deploy.driver=pre-installed)"};
  }

  Status TakeAway() {
    if (actions_.await_safe_load) TRY(actions_.await_safe_load());
    late_ = actions_.now() + order_.timeout;
    if (done_.preparation.kind == PreparationKind::kReplace) TRY(Unload());
    TRY(UnloadRivals());
    std::vector<std::string> files = driver_.ready_files;
    files.push_back(driver_.pid_file);
    files.push_back(driver_.digest_file);
    return Clean(files);
  }

  UnloadPlan Plan() const {
    return node::driver::PlanUnload(driver_, ReadDriverModules(machine_, driver_));
  }

  /// For the agent.
  base::Duration Patience() const {
    return std::max<base::Duration>(
        std::min<base::Duration>(std::chrono::seconds(10), late_ - actions_.now()), {});
  }

  /// Unloads either all modules or none: as long as processes use the driver, it stays whole. The
  /// agent serves its devices until no other process uses them, which may take days.
  Status Unload() {
    base::Backoff pause(kFirstPause, kLongestPause);
    for (bool asked = false;;) {
      UnloadPlan plan = Plan();
      asked = asked || !IsInUseByOthers(plan);
      if (asked) {
        agent_.Ensure(Patience());
        plan = Plan();
      }
      if (plan.order.empty()) return {};
      if (!plan.Blocked()) {
        TRY(UnloadAll(plan));
        if (Plan().order.empty()) return {};
      }
      const std::string why = WhyInUse(machine_, driver_, plan);
      actions_.say("waiting: " + why);
      if (actions_.now() >= late_) return Error(Code::kDeadlineExceeded, InUse(plan, why));
      actions_.sleep(std::min<base::Duration>(pause.Next(), late_ - actions_.now()));
    }
  }

  /// Whether the modules stay in use, whatever the agent does.
  bool IsInUseByOthers(const UnloadPlan& plan) {
    if (!plan.Blocked()) return false;
    if (!plan.foreign.empty()) return true;
    const std::vector<DriverUser> users = FindDriverUsers(machine_, driver_);
    if (users.empty()) return false;
    const auto agent = os::ReadProcess(machine_.proc_root, agent_.Pid(Patience()));
    return std::ranges::any_of(users,
                               [&](const DriverUser& user) { return !IsOfAgent(user, agent); });
  }

  /// Its workers, sharing servers, and in its pod also those that an agent before it has left.
  bool IsOfAgent(const DriverUser& user, const Result<os::ProcessInfo>& agent) const {
    auto process = os::ReadProcess(machine_.proc_root, user.pid);
    if (!process.ok() || backend::IsServer(machine_.proc_root, *process)) return true;
    if (!agent.ok()) return false;
    if (!user.pod.empty() && process->cgroups == agent->cgroups) return true;
    while (process.ok() && process->pid > 1 && process->pid != agent->pid)
      process = os::ReadProcess(machine_.proc_root, process->parent);
    return process.ok() && process->pid == agent->pid;
  }

  /// The remedies come first: the operator shows the beginning.
  std::string InUse(const UnloadPlan& plan, const std::string& why) const {
    const bool by_pods =
        plan.foreign.empty() &&
        std::ranges::any_of(FindDriverUsers(machine_, driver_),
                            [](const DriverUser& user) { return !user.pod.empty(); });
    const std::string evict = by_pods ? "annotate the node " +
                                            std::string(api::compat::kUpgradeRequested) +
                                            "=true to have its pods with devices evicted, or "
                                      : "";
    return "the driver cannot be unloaded after " + base::FormatDuration(order_.timeout) + " (" +
           evict + "end what uses it, or reboot): " + why;
  }

  /// Ends early if a module is used again.
  Status UnloadAll(const UnloadPlan& plan) {
    for (const std::string& module : plan.order) {
      actions_.say("unloading module " + module);
      const Status unloaded = actions_.unload(module);
      if (!unloaded.ok() && unloaded.error().code() == Code::kUnavailable) return {};
      TRY(unloaded);
      done_.unloaded.push_back(module);
    }
    return {};
  }

  /// One that is in use shows a console, perhaps: the driver's own messages say what comes of it.
  Status UnloadRivals() {
    for (const std::string& rival : done_.preparation.rivals) {
      actions_.say("unloading module " + rival);
      const Status unloaded = actions_.unload(rival);
      if (unloaded.ok())
        done_.unloaded.push_back(rival);
      else if (unloaded.error().code() != Code::kUnavailable)
        return unloaded;
      else
        actions_.say("module " + rival +
                     " is in use and stays: the driver may not get its devices; "
                     "blacklist the module and reboot the node");
    }
    return {};
  }

  Status Clean(const std::vector<std::string>& files) {
    if (done_.preparation.unmount) {
      const std::string root = ContainerRootOf(machine_, driver_);
      actions_.say("unmounting " + root);
      ASSIGN(const os::Unmounted unmounted, os::UnmountBelow(root));
      done_.unmounted = unmounted.mounts;
      if (!unmounted.lazily.empty())
        actions_.say(
            std::to_string(unmounted.lazily.size()) +
            " mounts are in use and end with their last user: " + unmounted.lazily.front());
    } else if (done_.preparation.kind == PreparationKind::kKeep) {
      return {};
    }
    return RemoveDriverFiles(machine_, files);
  }

  bool HasNetworkDriver() const {
    if (order_.host_network_driver)
      return os::Exists(machine_.sysfs_root + "/module/" + kNetworkModule);
    return os::Exists(machine_.run_root + kNetworkReady);
  }

  Status AwaitNetworkDriver() {
    if (!order_.await_network_driver ||
        std::ranges::none_of(
            os::ReadPciFunctions(machine_.sysfs_root),
            [](const os::PciFunction& one) { return one.vendor == kNetworkVendor; }))
      return {};
    late_ = actions_.now() + order_.timeout;
    while (!HasNetworkDriver()) {
      const std::string what = order_.host_network_driver ? std::string("module ") + kNetworkModule
                                                          : machine_.run_root + kNetworkReady;
      actions_.say("waiting: the network cards' driver is not there yet (" + what + ")");
      if (actions_.now() >= late_)
        return Error(Code::kDeadlineExceeded,
                     "the network cards' driver did not come (" + what +
                         "): install it, or switch off RDMA for this driver");
      actions_.sleep(kLongestPause);
    }
    return {};
  }

  const device::KernelDriver& driver_;
  const DriverMachine& machine_;
  const DriverPreparation& order_;
  const DriverActions& actions_;
  AgentRelease agent_;
  base::TimePoint late_;
  DriverPrepared done_;
};

}  // namespace

std::string WhyInUse(const DriverMachine& machine, const device::KernelDriver& driver,
                     const UnloadPlan& plan) {
  if (!plan.foreign.empty())
    return "modules of other programs use it, and are not unloaded: " +
           base::Join(plan.foreign, ", ");
  const auto users = FindDriverUsers(machine, driver);
  if (!users.empty()) return "it is in use by " + InWords(users);
  if (plan.in_use.empty()) return "";
  return "the kernel counts users of " + base::Join(plan.in_use, ", ") +
         ", but no process has a device file open: a console, or a module that failed";
}

Result<DriverPrepared> PrepareDriver(const device::Dialect& dialect, const DriverPreparation& order,
                                     const DriverActions& actions) {
  return Preparing(dialect, order, actions).Run();
}

Status UnloadWithin(const std::string& module, base::Duration most) {
  const auto result = std::make_shared<std::promise<Status>>();
  auto done = result->get_future();
  std::thread([result, module] { result->set_value(os::UnloadKernelModule(module)); }).detach();
  if (done.wait_for(most) == std::future_status::ready) return done.get();
  return Error(Code::kDeadlineExceeded, "module " + module + " is not unloaded after " +
                                            base::FormatDuration(most) +
                                            ": its own code hangs in the kernel; reboot the node");
}

}  // namespace penstock::app
