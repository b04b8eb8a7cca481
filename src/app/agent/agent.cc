// Start-up as an ordered list of steps; the members' order is the order of destruction, last first.
#include "app/agent/agent.h"

#include <array>
#include <climits>
#include <optional>

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/listen.h"
#include "app/agent/costs.h"
#include "app/agent/vendor_line.h"
#include "base/log.h"
#include "door/kubelet_plugin.h"
#include "door/local.h"
#include "door/pages.h"
#include "door/report.h"
#include "edge/systemd/notify.h"
#include "node/attribute/follow.h"
#include "node/health/kernel_log.h"
#include "node/ledger/keeper.h"
#include "node/share/assign.h"
#include "node/share/offers.h"
#include "os/file.h"
#include "os/lock_file.h"
#include "os/process.h"
#include "vendor/all.h"

namespace penstock::app {
namespace {

using base::Status;

std::string NodeName(const api::NodeConfig& config) {
  if (!config.node_name.empty()) return config.node_name;
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// Where a device file lies: the dev root is the folder that holds dev/, or is a /dev itself.
std::string HostPath(const std::string& dev_root, const std::string& path) {
  const std::string root = dev_root == "/" ? "" : dev_root;
  const bool holds_dev = os::Exists(root + "/dev");
  return root + (holds_dev ? path : path.substr(std::string("/dev").size()));
}

bool IsOpen(api::Switch setting, bool automatic) { return setting == api::Switch::kOn || (setting == api::Switch::kAuto && automatic); }

/// Everything of a running agent.
class Agent {
 public:
  Agent(const AgentOptions& options, std::vector<node::ledger::Lease> remembered, std::string boot_id)
      : options_(options),
        config_(options.config),
        node_(NodeName(config_)),
        kubelet_open_(IsOpen(config_.kubelet_door, os::Exists(config_.paths.kubelet_dir))),
        local_open_(IsOpen(config_.local_door, true)),
        door_of_(node::share::AssignDoors(config_, kubelet_open_, local_open_)),
        monitor_(control_, inventory_, vendor::FindDialect, {.probation = config_.probation}),
        offers_(inventory_, ledger_, door_of_, vendor::FindDialect),
        keeper_(control_, io_, ledger_, config_.paths.state_dir + "/ledger.json", std::move(boot_id)),
        follow_(control_, io_, config_.paths.proc_root, inventory_, ledger_),
        remembered_(std::move(remembered)),
        pages_(control_, {.metrics = [this] { return Metrics(); },
                          .report = [this] { return api::ToJson(Report()); },
                          .not_ready = [this] { return not_ready_; }}) {}

  int Run() {
    io_.Start();
    const std::array<std::pair<const char*, Status (Agent::*)()>, 5> steps = {{{"signals", &Agent::WatchSignals},
                                                                               {"kernel log", &Agent::ListenToKernel},
                                                                               {"local door", &Agent::OpenLocalDoor},
                                                                               {"pages", &Agent::OpenPages},
                                                                               {"devices", &Agent::LookForDevices}}};
    for (const auto& [name, step] : steps) {
      edge::systemd::Notify(std::string("STATUS=starting: ") + name);
      if (const Status done = (this->*step)(); !done.ok()) {
        base::Log(base::kError, "cannot start", {{"step", name}, {"why", done.error().message()}});
        io_.Stop();
        return 1;
      }
    }
    control_.Run();
    edge::systemd::Notify("STOPPING=1");
    io_.Stop();
    base::Log(base::kInfo, "ended");
    return 0;
  }

 private:
  Status WatchSignals() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&wanted, signal);
    signals_.Reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return base::ErrnoError(errno, "signalfd");
    return control_.Watch(signals_.get(), EPOLLIN, [this](std::uint32_t) {
      base::Log(base::kInfo, "asked to end by a signal");
      control_.Stop();
    });
  }

  Status ListenToKernel() {
    const std::string path = HostPath(PathsOf(config_).dev_root, "/dev/kmsg");
    auto feed = node::health::KernelLogFeed::Open(control_, path, vendor::Dialects(),
                                                  [this](std::string_view vendor, const device::Evidence& evidence) {
                                                    for (const auto& line : lines_)
                                                      if (line->vendor() == vendor) line->Hear(evidence);
                                                  });
    if (feed.ok()) {
      kernel_log_ = *std::move(feed);
    } else {
      base::Log(base::kWarn, "the kernel's log cannot be read; errors are heard of from the driver alone",
                {{"why", feed.error().message()}});
    }
    return {};
  }

  Status OpenLocalDoor() {
    const std::string& run_dir = config_.paths.run_dir;
    local_.emplace(control_, io_, door::LocalDoor::Node{inventory_, ledger_, offers_.published(), vendor::FindDialect},
                   door::LocalDoor::Options{
                       .run_dir = run_dir, .group = config_.local_group, .proc_root = config_.paths.proc_root, .enabled = local_open_},
                   door::LocalDoor::Callbacks{.report = [this] { return Report(); }, .end = [this] { control_.Stop(); }},
                   [this, group = door::CgroupNameFor(run_dir)] { return door::OpenCgroups(control_, group); });
    local_->Recover(remembered_);
    return local_->Open();
  }

  Status OpenPages() {
    TRY(pages_.Start(config_.listen));
    if (!pages_.where().empty()) base::Log(base::kInfo, "pages", {{"at", pages_.where()}});
    return {};
  }

  Status LookForDevices() {
    if (kubelet_open_)
      kubelet_.emplace(control_, io_,
                       door::KubeletDoor::Options{
                           .kubelet_dir = config_.paths.kubelet_dir,
                           .proc_root = config_.paths.proc_root,
                           .host_path = [root = PathsOf(config_).dev_root](const std::string& path) { return HostPath(root, path); }},
                       inventory_, ledger_, offers_, vendor::FindDialect);
    if (kubelet_) kubelet_->Recover(remembered_);
    const auto& dialects = vendor::Dialects();
    lines_to_look_ = dialects.size();
    for (const device::Dialect* dialect : dialects)
      lines_.push_back(std::make_unique<VendorLine>(control_, config_, options_.worker, *dialect, inventory_, monitor_));
    for (const auto& line : lines_)
      line->Start([this] {
        if (--lines_to_look_ == 0) FirstLookDone();
      });
    costs_.emplace(control_, io_, [this] { return Processes(); });
    return {};
  }

  /// Doors open once all devices have been looked at, so that nobody is shown a device as unhealthy only because it was not looked at yet.
  void FirstLookDone() {
    if (kubelet_) kubelet_->Open();
    not_ready_.clear();
    const auto count = inventory_.published().Get()->devices.size();
    base::Log(base::kInfo, "ready", {{"node", node_}, {"devices", count}});
    edge::systemd::Notify("READY=1\nSTATUS=" + std::to_string(count) + " devices");
  }

  api::Report Report() const {
    return door::MakeReport(*inventory_.published().Get(), *ledger_.Get(),
                            {.node = node_, .doors = [this] { return Doors(); }, .door_of = door_of_});
  }

  std::vector<api::DoorReport> Doors() const {
    std::vector<api::DoorReport> doors;
    if (kubelet_) {
      doors.push_back(kubelet_->Report());
    } else {
      doors.push_back({.name = "kubelet",
                       .state = "closed",
                       .reason = config_.kubelet_door == api::Switch::kOff
                                     ? "switched off"
                                     : "there is no kubelet: no folder " + config_.paths.kubelet_dir});
    }
    if (local_) doors.push_back(local_->Report());
    return doors;
  }

  std::string Metrics() const {
    return node::metrics::Render(*inventory_.published().Get(), *ledger_.Get(),
                                 {.version = PENSTOCK_VERSION,
                                  .queue_length = local_ ? local_->waiting() : 0,
                                  .processes = costs_ ? costs_->Get() : std::vector<node::metrics::ProcessCost>{},
                                  .evidence = monitor_.Counts()});
  }

  std::map<std::string, pid_t> Processes() const {
    std::map<std::string, pid_t> processes{{"agent", ::getpid()}};
    for (const auto& line : lines_) processes["worker-" + line->vendor()] = line->worker_pid();
    return processes;
  }

  const AgentOptions& options_;
  const api::NodeConfig& config_;
  const std::string node_;
  const bool kubelet_open_, local_open_;
  const node::share::DoorOf door_of_;
  os::Loop control_{"control"};
  os::Loop io_{"io"};
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
  node::health::Monitor monitor_;
  node::share::Offers offers_;
  node::ledger::Keeper keeper_;
  node::attribute::Follow follow_;
  const std::vector<node::ledger::Lease> remembered_;
  std::string not_ready_ = "looking at the devices for the first time";
  os::UniqueFd signals_;
  std::vector<std::unique_ptr<VendorLine>> lines_;
  std::size_t lines_to_look_ = 0;
  std::unique_ptr<node::health::KernelLogFeed> kernel_log_;
  std::optional<door::LocalDoor> local_;
  std::optional<door::KubeletDoor> kubelet_;
  std::optional<Costs> costs_;
  door::Pages pages_;
};

base::Result<os::LockFile> TakeLock(const AgentOptions& options) {
  const std::string path = options.config.paths.run_dir + "/agent.lock";
  auto lock = os::LockFile::Take(path);
  if (lock.ok() || lock.error().code() != base::Code::kAlreadyExists || !options.wait_for_lock) return lock;
  base::Log(base::kWarn, "another agent runs; waiting for it to end", {{"why", lock.error().message()}});
  edge::systemd::Notify("STATUS=waiting: " + lock.error().message());
  return os::LockFile::Wait(path);
}

void BlockSignals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&wanted, signal);
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

base::Result<int> Start(const AgentOptions& options) {
  const api::PathsConfig& paths = options.config.paths;
  TRY(os::MakeDirectories(paths.run_dir));
  TRY(os::MakeDirectories(paths.state_dir));
  ASSIGN(const os::LockFile lock, TakeLock(options));
  BlockSignals();
  ASSIGN(const std::string boot_id, os::ReadBootId("/proc"));
  ASSIGN(auto remembered, node::ledger::Keeper::Load(paths.state_dir + "/ledger.json", boot_id));
  Agent agent(options, std::move(remembered), boot_id);
  return agent.Run();
}

}  // namespace

int RunAgent(const AgentOptions& options) {
  const auto status = Start(options);
  if (status.ok()) return *status;
  base::Log(base::kError, "cannot start", {{"why", status.error().message()}});
  edge::systemd::Notify("STATUS=failed: " + status.error().message());
  return 1;
}

}  // namespace penstock::app
