// `penstock driver`: what is done on a node around a driver container.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "api/compat/nvidia/driver_manager.h"
#include "api/compat/nvidia/driver_names.h"
#include "app/penstock/cluster/cluster.h"
#include "app/penstock/driver/prepare.h"
#include "app/penstock/driver/safe_load.h"
#include "backend/all.h"
#include "base/core/json_text.h"
#include "base/core/printable.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

constexpr char kDriverExamples[] =
    R"(penstock driver prepare --dry-run    # which driver a node has, and who uses it
penstock driver prepare              # in the init container of a driver's pod)";

constexpr char kPrepareExamples[] =
    R"(penstock driver prepare                                   # in the init container of a driver's pod
penstock driver prepare --dry-run                         # on the node: what would be done
penstock driver prepare --dry-run -o json | jq .users     # who uses the driver
penstock driver prepare --timeout 10m --reinstall)";

constexpr char kPrepareDetails[] =
    R"(Keeps the driver if it is what the driver container installs (the digest in
/run/nvidia/nvidia-driver.state), else unloads it: as soon as no process but those of this node's agent
uses it, the agent releases it as long as this program runs, its modules are unloaded, all or none, what
the earlier driver container mounted is unmounted, and its files in /run/nvidia are removed. nouveau is
unloaded if nothing uses it. No process is ended and no pod is evicted: the operator does that before.

Reads the variables of NVIDIA's k8s-driver-manager, but for those by which it evicts pods, which are
named as without effect. A second run continues what a first one began.)";

constexpr char kTerminationLog[] = "/dev/termination-log";
constexpr std::size_t kLongestTermination = 2048;  // the kubelet keeps 4096

struct PrepareGiven {
  std::string digest, timeout = "5m", host_root, run_root = "/run";
  std::string termination_log = kTerminationLog;
  bool reinstall = false, safe_load = false, dry_run = false;
  bool network_driver = false, host_network_driver = false;
  ClusterOptions cluster;
};

/// What people see while it runs: lines on standard error, and the last one where the kubelet takes
/// the reason of a container's end from. The file is there if the kubelet made it.
class Progress {
 public:
  explicit Progress(std::string file) : file_(std::move(file)) {}

  void Say(const std::string& text) {
    if (text == said_) return;
    said_ = text;
    std::cerr << "penstock driver prepare: " << base::Printable(text) << std::endl;
    Note(text);
  }

  void Note(const std::string& text) const {
    const os::UniqueFd log(
        ::open(file_.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (log)
      (void)os::WriteAll(log.get(), base::Printable(text.substr(0, kLongestTermination)), file_);
  }

 private:
  const std::string file_;
  std::string said_;
};

/// The vendor whose driver containers there are.
Result<const device::Dialect*> FindDriverDialect() {
  for (const device::Dialect* dialect : backend::Dialects())
    if (dialect->kernel_driver() != nullptr) return dialect;
  return Error(Code::kUnimplemented, "this program knows no driver that containers install");
}

Result<DriverPreparation> ReadOrder(const PrepareGiven& given, const api::NodeConfig& config) {
  DriverPreparation order;
  constexpr char kHostInPod[] = "/host";
  order.machine.host_root = !given.host_root.empty() ? given.host_root
                            : os::Exists(kHostInPod) ? kHostInPod
                                                     : "/";
  order.machine.run_root = given.run_root;
  order.machine.sysfs_root = config.paths.sysfs_root;
  order.machine.proc_root = config.paths.proc_root;
  order.machine.agent_dir =
      (order.machine.host_root == "/" ? "" : order.machine.host_root) + config.paths.run_dir;
  order.wanted = {given.digest, given.reinstall};
  ASSIGN(order.timeout, base::ParseDuration(given.timeout));
  order.await_network_driver = given.network_driver;
  order.host_network_driver = given.host_network_driver;
  return order;
}

void NameWithoutEffect(Progress& progress) {
  std::vector<std::string> names;
  for (const auto& [name, usual] : api::compat::kDriverManagerEvictions)
    if (const char* value = std::getenv(name.data()); value != nullptr && value != usual)
      names.emplace_back(name);
  if (!names.empty())
    progress.Say("without effect: " + base::Join(names, ", ") +
                 ": the operator evicts pods, as the driver's upgradePolicy says");
}

nlohmann::json JsonOf(const node::driver::Preparation& preparation) {
  return {{"action", node::driver::ToString(preparation.kind)},
          {"reason", preparation.reason},
          {"unmount", preparation.unmount}};
}

/// What would be done, and who is in the way.
Shown ShowPlan(const Common& common, const device::KernelDriver& driver,
               const DriverPreparation& order) {
  const auto state = ReadDriverState(order.machine, driver);
  const auto preparation = node::driver::Prepare(driver, state, order.wanted);
  const auto plan = node::driver::PlanUnload(driver, state.modules);
  const auto users = FindDriverUsers(order.machine, driver);
  const bool replace = preparation.kind == node::driver::PreparationKind::kReplace;
  std::vector<std::string> unload = replace ? plan.order : std::vector<std::string>();
  unload.insert(unload.end(), preparation.rivals.begin(), preparation.rivals.end());
  if (common.json()) {
    nlohmann::json json = JsonOf(preparation);
    json["unload"] = unload;
    json["otherModules"] = plan.foreign;
    json["users"] = nlohmann::json::array();
    for (const DriverUser& user : users)
      json["users"].push_back({{"pid", user.pid},
                               {"program", user.program},
                               {"user", user.user},
                               {"pod", user.pod},
                               {"file", user.file}});
    return Shown(base::JsonText(json));
  }
  std::string text =
      std::string(node::driver::ToString(preparation.kind)) + ": " + preparation.reason + "\n";
  if (!unload.empty()) text += "would unload: " + base::Join(unload, ", ") + "\n";
  if (preparation.unmount)
    text += "would unmount: " + ContainerRootOf(order.machine, driver) + "\n";
  if (const std::string why = WhyInUse(order.machine, driver, plan); replace && !why.empty())
    text += "in the way: " + base::Printable(why) + "\n";
  return Shown(text);
}

Result<DriverActions> ActionsOf(const PrepareGiven& given, const Common& common,
                                const api::NodeConfig& config, const DriverPreparation& order,
                                Progress& progress) {
  const auto sleep = [](base::Duration time) { std::this_thread::sleep_for(time); };
  const auto say = [&progress](const std::string& text) { progress.Say(text); };
  DriverActions actions{
      .unload =
          [most = order.timeout](const std::string& module) { return UnloadWithin(module, most); },
      .now = [] { return std::chrono::steady_clock::now(); },
      .sleep = sleep,
      .say = say,
      .await_safe_load = nullptr};
  if (!given.safe_load) return actions;
  const char* of_pod = std::getenv("NODE_NAME");
  const std::string node =
      config.node_name.empty() && of_pod != nullptr ? of_pod : config.node_name;
  if (node.empty())
    return Error(Code::kInvalidArgument,
                 "--safe-load needs the Node's name: pass --node-name, or set NODE_NAME");
  ASSIGN(const Cluster cluster, FindCluster(Completed(given.cluster, common)));
  actions.await_safe_load = [=, server = cluster.server] {
    return AwaitSafeLoad(server, node, say, sleep);
  };
  return actions;
}

Result<Shown> PrepareNow(const PrepareGiven& given, const Common& common, Progress& progress) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  ASSIGN(const device::Dialect* dialect, FindDriverDialect());
  ASSIGN(const DriverPreparation order, ReadOrder(given, config));
  if (given.dry_run) return ShowPlan(common, *dialect->kernel_driver(), order);
  NameWithoutEffect(progress);
  ASSIGN(const DriverActions actions, ActionsOf(given, common, config, order, progress));
  ASSIGN(const DriverPrepared done, PrepareDriver(*dialect, order, actions));
  if (!common.json())
    return Shown(done.preparation.kind == node::driver::PreparationKind::kKeep
                     ? "The driver stays.\n"
                     : "The node is ready for another driver.\n");
  nlohmann::json json = JsonOf(done.preparation);
  json["unloaded"] = done.unloaded;
  json["unmounted"] = done.unmounted;
  return Shown(base::JsonText(json));
}

Result<Shown> PrepareAndNote(const PrepareGiven& given, const Common& common) {
  Progress progress(given.dry_run ? "" : given.termination_log);
  auto shown = PrepareNow(given, common, progress);
  progress.Note(shown.ok() ? "" : shown.error().message());
  return shown;
}

Verb PrepareVerb(const Common& common) {
  const auto given = std::make_shared<PrepareGiven>();
  Verb verb{
      .name = "prepare",
      .summary =
          "Take away the driver that the node has, before a driver container installs its own",
      .examples = kPrepareExamples,
      .details = kPrepareDetails,
      .exit_status =
          "0 the container can install its driver, or nothing had to be done; 1 not yet, "
          "or not at all: a message says why; 2 usage error",
      .options =
          {Value("--digest", &given->digest, "DIGEST",
                 "of what the driver container installs [none: another driver than is loaded]")
               .Environment(std::string(api::compat::kConfigDigest)),
           Flag("--reinstall", &given->reinstall, "unload the driver even if it has this digest")
               .Environment(api::compat::kForceReinstall),
           Value("--timeout", &given->timeout, "DURATION",
                 "how long to wait until no process uses the driver [5m]")
               .Environment("DRIVER_UNLOAD_TIMEOUT")
               .Checked([](const std::string& text) {
                 const auto read = base::ParseDuration(text);
                 return read.ok() ? "" : read.error().message();
               }),
           Flag("--safe-load", &given->safe_load,
                "annotate the Node, and wait until the operator has emptied it")
               .Environment(std::string(api::compat::kSafeLoadVariable)),
           Flag("--await-network-driver", &given->network_driver,
                "wait for the driver of network cards that do RDMA, if the node has such cards")
               .Environment(api::compat::kPeerMemoryEnabled),
           Flag("--host-network-driver", &given->host_network_driver,
                "that driver is installed on the node [it is a driver container's]")
               .Environment(api::compat::kUseHostNetworkDriver),
           Value("--host-root", &given->host_root, "DIR",
                 "where the node's root is mounted [/host, or / if that is not there]"),
           Value("--run-root", &given->run_root, "DIR", "the node's /run [/run]"),
           Value("--termination-log", &given->termination_log, "FILE",
                 "gets the reason of a failure, or what is waited for, if it exists "
                 "[/dev/termination-log]"),
           Flag("--dry-run", &given->dry_run, "only print what would be done")},
      .shares = {"--node-name", "--run-dir", "--sysfs-root", "--proc-root"},
      .formats = command::PlainFormats(),
      .show = [given, &common] { return PrepareAndNote(*given, common); }};
  AddClusterOptions(verb, given->cluster);
  return verb;
}

}  // namespace

Verb DriverVerb(const Common& common) {
  return {.name = "driver",
          .summary = "Prepare a node for a driver container",
          .examples = kDriverExamples,
          .exit_status = "0 done, 1 failed (a message says why), 2 usage error",
          .verbs = {PrepareVerb(common)}};
}

}  // namespace penstock::app
