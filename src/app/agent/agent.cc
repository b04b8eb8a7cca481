// Start-up as an ordered list of steps; the members' order is the order of destruction, last first.
//
// Two halves: looking (devices, pages) needs nobody's leave, serving (ledger, doors, cluster) needs the run directory's lock. An agent that
// is to replace another one looks first and is ready to serve the moment the other one lets go.
#include "app/agent/agent.h"

#include <algorithm>
#include <array>
#include <climits>
#include <optional>

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app/agent/cluster_line.h"
#include "app/agent/configuration.h"
#include "app/agent/containers.h"
#include "app/agent/costs.h"
#include "app/agent/doors.h"
#include "app/agent/heartbeat.h"
#include "app/agent/kubelet_start.h"
#include "app/agent/labeller.h"
#include "app/agent/paths.h"
#include "app/agent/plan.h"
#include "app/agent/spine.h"
#include "app/agent/telemetry.h"
#include "app/agent/views.h"
#include "base/log.h"
#include "door/pages.h"
#include "door/pod_labels.h"
#include "edge/systemd/notify.h"
#include "os/core/file.h"
#include "os/lock_file.h"
#include "os/process.h"
#include "os/trim.h"
#include "vendor/all.h"

namespace penstock::app {
namespace {

using base::Status;

constexpr base::Duration kLookAtLock = std::chrono::milliseconds(50);
/// The start and the looks at a fresh kubelet, which last half a minute (door/kubelet_pods.h), are over then.
constexpr base::Duration kSettled = std::chrono::seconds(32);

std::string NodeName(const api::NodeConfig& config) {
  if (!config.node_name.empty()) return config.node_name;
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// Those that ask for something: to end, or to read the configuration again.
sigset_t OurSignals() {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ours, signal);
  return ours;
}

/// For what `io` does when the agent ends; a service manager kills after 20 s or more.
constexpr base::Duration kEndsWithin = std::chrono::seconds(5);

/// How a running agent ended.
struct Ended {
  int status = 0;
  bool all_threads = true;  ///< false: one hangs, and may use what is gone as soon as it comes back: the process ends by _exit(2)
};

/// Everything of a running agent.
class Agent {
 public:
  Agent(const AgentOptions& options, std::optional<os::LockFile> lock, std::string boot_id)
      : options_(options),
        start_(options.start.config),
        node_(NodeName(start_)),
        boot_id_(std::move(boot_id)),
        open_(DecideDoors(start_)),
        lock_(std::move(lock)),
        configuration_(control_, io_, options.settings, options.start),
        spine_(control_, io_, start_, options.worker, open_, boot_id_),
        telemetry_(control_, io_, spine_, start_, node_),
        labeller_(control_, io_, spine_.inventory, spine_.offers, start_.paths.sysfs_root, [this] { spine_.LookNow(); }),
        pages_(control_, io_,
               {.metrics = [this](auto format, auto detail) { return views_.MetricsPage(format, detail); },
                .report = [this] { return views_.Report(); },
                .hangs = [this] { return heartbeat_.Hangs(); },
                .not_ready = [this] { return *not_ready_.Get(); }}) {}

  Ended Run() {
    io_.Start();
    heartbeat_.TellSystemd(control_);
    const std::array<std::pair<const char*, Status (Agent::*)()>, 7> steps = {{{"signals", &Agent::WatchSignals},
                                                                               {"health memory", &Agent::RecallHealth},
                                                                               {"kernel log", &Agent::ListenToKernel},
                                                                               {"doors", &Agent::ServeOrWait},
                                                                               {"pages", &Agent::OpenPages},
                                                                               {"devices", &Agent::LookForDevices},
                                                                               {"configuration", &Agent::FollowConfiguration}}};
    for (const auto& [name, step] : steps) {
      edge::systemd::Notify(std::string("STATUS=starting: ") + name);
      if (const Status done = (this->*step)(); !done.ok()) {
        base::Log(base::kError, "cannot start", {{"step", name}, {"why", done.error().message()}});
        exit_status_ = 1;
        return End();
      }
    }
    control_.Run();
    edge::systemd::Notify("STOPPING=1");
    return End();
  }

 private:
  Status WatchSignals() {
    const sigset_t wanted = OurSignals();
    signals_.Reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return base::ErrnoError(errno, "signalfd");
    return control_.Watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { HandleSignal(); });
  }

  void HandleSignal() {
    signalfd_siginfo signal{};
    if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return;
    if (signal.ssi_signo == SIGHUP) {
      base::Log(base::kInfo, "asked to read the configuration again");
      pages_.Reload();
      return configuration_.Reload();
    }
    base::Log(base::kInfo, "asked to end by a signal");
    control_.Stop();
  }

  Status RecallHealth() { return spine_.Recall(); }

  Status ListenToKernel() {
    spine_.ListenToKernel();
    return {};
  }

  std::string LockPath() const { return start_.paths.run_dir + "/agent.lock"; }

  /// Serves where the lock is held, else looks for it again and again: an agent that ends lets go of it at once.
  Status ServeOrWait() {
    if (lock_) return Serve();
    auto lock = os::LockFile::Take(LockPath());
    if (lock.ok()) {
      lock_ = *std::move(lock);
      return Serve();
    }
    if (lock.error().code() != base::Code::kAlreadyExists) return lock.error();
    if (waiting_for_ != lock.error().message()) {
      waiting_for_ = lock.error().message();
      base::Log(base::kWarn, "another agent runs; waiting for it to end", {{"why", waiting_for_}});
      edge::systemd::Notify("STATUS=waiting: " + waiting_for_);
    }
    control_.PostAfter(kLookAtLock, [this] {
      if (const Status served = ServeOrWait(); !served.ok()) GiveUp(served.error(), "doors");
    });
    return {};
  }

  Ended End() {
    const Ended ended{exit_status_, io_.StopWithin(kEndsWithin)};
    if (!ended.all_threads) base::Log(base::kWarn, "ending beside a thread that waits for a file which does not answer");
    base::Log(base::kInfo, "ended");
    return ended;
  }

  void GiveUp(const base::Error& error, const char* step) {
    base::Log(base::kError, "cannot go on", {{"step", step}, {"why", error.message()}});
    exit_status_ = 1;
    control_.Stop();
  }

  Status Serve() {
    waiting_for_.clear();
    ASSIGN(auto remembered, Doors::Remember(start_.paths.state_dir, boot_id_));
    ASSIGN(auto kept, LoadKeptConfiguration(start_.paths.state_dir));
    configuration_.Serve(std::move(kept), ClusterLine::Wanted(start_.cluster) ? start_.cluster.config_map : api::ConfigMapConfig{});
    telemetry_.Serve(boot_id_);
    containers_.emplace(control_, io_, *Config(), spine_.inventory, os::OwnFolder(), open_.kubelet);
    doors_.emplace(Doors::Node{control_, io_, spine_.inventory, spine_.ledger, spine_.offers, *containers_}, open_, start_,
                   std::move(remembered), boot_id_,
                   Doors::Callbacks{.config = [this] { return Config(); },
                                    .report = [this] { return views_.Report(); },
                                    .samples = [this] { return telemetry_.Samples(views_.Report()); },
                                    .usage = [this](const auto& request, const auto& viewer,
                                                    auto done) { telemetry_.Usage(request, viewer, std::move(done)); },
                                    .end =
                                        [this] {
                                          spine_.EndIdle();
                                          control_.Stop();
                                        },
                                    .plan = [this](const auto& request, auto done) { Plan(request, std::move(done)); },
                                    .kubelet_has =
                                        [this](const door::KubeletAmounts& amounts) {
                                          if (cluster_) cluster_->ShowKubeletHas(amounts);
                                        },
                                    .containers_differ =
                                        [this] {
                                          if (cluster_) cluster_->TellSoon();
                                        }});
    doors_->Configure(*Config());
    spine_.Configure(*Config());
    spine_.Serve();
    labeller_.Serve();
    TRY(doors_->Listen());
    TRY(OpenPages());  // the one before us may have had the address
    pages_.Configure(Config()->http);
    JoinCluster();
    if (looked_) ServeDevices();
    return {};
  }

  void Plan(const edge::broker::PlanRequest& request, door::Turns::Done done) {
    PlanOn(io_, control_, request, configuration_, views_.ForPreview(), std::move(done));
  }

  void JoinCluster() {
    if (!ClusterLine::Wanted(start_.cluster)) return;
    cluster_.emplace(control_, node_, *Config(),
                     ClusterLine::Callbacks{.news = [this] { return views_.News(); },
                                            .wished = [this](const door::WishedConfig& wish) { configuration_.Wish(wish); },
                                            .nfd = [this](bool labels_this_node) { labeller_.SetNfd(labels_this_node); },
                                            .counters = [this](const door::WishedConfig& wish) { configuration_.WishCounters(wish); },
                                            .pods = [this](auto pods) { pod_labels_.Take(std::move(pods)); }});
    on_inventory_ = spine_.inventory.published().Subscribe([this](const auto&) { cluster_->TellSoon(); });
    on_ledger_ = spine_.ledger.published().Subscribe([this](const auto&) { cluster_->TellSoon(); });
    on_offers_ = spine_.offers.published().Subscribe([this](const auto&) { cluster_->TellSoon(); });
    on_servers_ = spine_.offers.servers().Subscribe([this](const auto&) { cluster_->TellSoon(); });
    on_labels_ = labeller_.labels().published().Subscribe([this](const auto&) { cluster_->TellSoon(); });
    // Values are for the pages; that there are none is for the node's object.
    on_samples_ = telemetry_.sampler.published().Subscribe([this](const auto& samples) {
      if (std::exchange(problems_, node::sample::ProblemsOf(*samples)) != problems_) cluster_->TellSoon();
    });
    cluster_->TellSoon();
  }

  Status OpenPages() {
    if (!pages_.where().empty()) return {};
    const Status started = pages_.Start(start_.http);
    if (!started.ok() && !lock_ && started.error().code() == base::Code::kAlreadyExists) return {};  // until we serve
    if (!started.ok()) return started;
    if (!pages_.where().empty()) base::Log(base::kInfo, "pages", {{"at", pages_.where()}});
    return {};
  }

  Status LookForDevices() {
    telemetry_.Configure(*Config());  // start_ lacks what the file of counters says
    spine_.Start([this] { FirstLookDone(); });
    costs_.emplace(control_, io_, [this] { return Processes(); });
    labeller_.Configure(*Config());
    return {};
  }

  /// The one in force.
  std::shared_ptr<const api::NodeConfig> Config() const {
    auto current = configuration_.published().Get();
    return {current, &current->config};
  }

  /// What a running agent can change follows the configuration that is in force.
  Status FollowConfiguration() {
    on_config_ = configuration_.published().Subscribe([this](const auto& current) {
      if (containers_) containers_->Configure(current->config);
      if (doors_) doors_->Configure(current->config);
      spine_.Configure(current->config);
      telemetry_.Configure(current->config);
      labeller_.Configure(current->config);
      pages_.Configure(current->config.http);
      if (!cluster_) return;
      cluster_->Reconfigure(current->config);
      cluster_->TellSoon();
    });
    configuration_.Follow();
    return {};
  }

  void FirstLookDone() {
    looked_ = true;
    not_ready_.Set(std::string());
    labeller_.Begin();
    base::Log(base::kInfo, "looked", {{"devices", spine_.devices()}});
    if (doors_) ServeDevices();
  }

  /// The lock is ours and all devices have been looked at.
  void ServeDevices() {
    containers_->Begin(*Config());
    kubelet_start_.emplace(KubeletStart::Node{control_, io_, configuration_, spine_.inventory, spine_.ledger, start_.paths.kubelet_dir},
                           open_.kubelet, [this] {
                             doors_->OpenKubelet();
                             if (cluster_) cluster_->TellSoon();  // labels, which had to wait too
                           });
    base::Log(base::kInfo, "ready", {{"node", node_}, {"devices", spine_.devices()}});
    edge::systemd::Notify("READY=1\nSTATUS=" + std::to_string(spine_.devices()) + " devices");
    // A third of the code that is mapped by then was needed for the start alone.
    control_.PostAfter(kSettled, [] { os::TrimLoaded([](std::string_view) { return true; }); });
  }

  std::map<std::string, pid_t> Processes() const {
    std::map<std::string, pid_t> processes = spine_.Workers();
    processes["agent"] = ::getpid();
    return processes;
  }

  const AgentOptions& options_;
  const api::NodeConfig& start_;  // what only a restart changes is read here
  const std::string node_, boot_id_;
  const node::share::OpenDoors open_;
  std::optional<os::LockFile> lock_;
  int exit_status_ = 0;
  os::Loop control_{"control"};
  os::Loop io_{"io"};
  Configuration configuration_;
  Spine spine_;
  Telemetry telemetry_;
  door::PodLabels pod_labels_{control_, spine_.ledger};
  Labeller labeller_;
  base::Published<std::string> not_ready_{"looking at the devices for the first time"};
  const Heartbeat heartbeat_{{&control_, &io_}};
  std::string waiting_for_;  // the other agent, while one has the lock
  bool looked_ = false;
  os::UniqueFd signals_;
  std::optional<Containers> containers_;
  std::optional<Doors> doors_;
  std::optional<KubeletStart> kubelet_start_;
  std::optional<ClusterLine> cluster_;
  std::optional<Costs> costs_;
  Views views_{{control_, node_, open_, spine_, telemetry_, configuration_, labeller_, containers_, doors_, kubelet_start_, cluster_,
                costs_, waiting_for_, pages_}};
  base::Subscription on_config_, on_inventory_, on_ledger_, on_offers_, on_servers_, on_labels_, on_samples_;
  std::map<std::string, std::string> problems_;  // of measuring, by device, as the cluster was told last
  door::Pages pages_;
};

void BlockSignals() {
  const sigset_t wanted = OurSignals();
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

/// Each client, each page's reader and each lease has a descriptor, and shells and containers give a process 1024. As the unit file has it.
void RaiseFileLimit() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

base::Result<int> Start(const AgentOptions& options) {
  RaiseFileLimit();
  const api::PathsConfig& paths = options.start.config.paths;
  TRY(os::MakeDirectories(paths.run_dir));
  TRY(os::MakeDirectories(paths.state_dir));
  std::optional<os::LockFile> lock;
  if (!options.wait_for_lock) { ASSIGN(lock, os::LockFile::Take(paths.run_dir + "/agent.lock")); }
  BlockSignals();
  ASSIGN(const std::string boot_id, os::ReadBootId("/proc"));
  Ended ended;
  {
    Agent agent(options, std::move(lock), boot_id);
    ended = agent.Run();
  }
  if (!ended.all_threads) ::_exit(ended.status);
  return ended.status;
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
