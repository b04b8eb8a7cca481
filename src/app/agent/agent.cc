// Starts the agent as an ordered list of steps; members are destroyed in the reverse order of their
// declaration.
//
// Two halves: observing (devices, pages) needs no lock, serving (ledger, allocators, cluster) needs
// the lock of the run directory. An agent that replaces another one observes first, and serves as
// soon as the other one releases the lock.
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

#include "adapter/cluster/pod_labels.h"
#include "adapter/pages/pages.h"
#include "api/compat/layout_programs.h"
#include "app/agent/adapters.h"
#include "app/agent/boot_follower.h"
#include "app/agent/changes.h"
#include "app/agent/client_pause.h"
#include "app/agent/cluster_connection.h"
#include "app/agent/configuration.h"
#include "app/agent/containers.h"
#include "app/agent/device_pipeline.h"
#include "app/agent/health_sockets.h"
#include "app/agent/heartbeat.h"
#include "app/agent/kubelet_start.h"
#include "app/agent/labeller.h"
#include "app/agent/layout_followers.h"
#include "app/agent/preview.h"
#include "app/agent/process_stats.h"
#include "app/agent/service_pause.h"
#include "app/agent/telemetry.h"
#include "app/agent/validation.h"
#include "app/agent/views.h"
#include "app/devices/paths.h"
#include "app/state_files.h"
#include "base/log.h"
#include "os/core/file.h"
#include "os/lock_file.h"
#include "os/process/process.h"
#include "os/trim.h"
#include "protocol/engine/machine_process.h"
#include "protocol/systemd/notify.h"

namespace penstock::app {
namespace {

constexpr base::Duration kLockPoll = std::chrono::milliseconds(50);
/// By then the start is over, and so is the observation of a fresh kubelet, which takes half a
/// minute (adapter/kubelet/pod_tracker.h).
constexpr base::Duration kSettled = std::chrono::seconds(32);
/// The kubelet waits so long for devices that are divided again after a reboot.
constexpr base::Duration kRestored = std::chrono::minutes(2);

std::string NodeName(const api::NodeConfig& config) {
  if (!config.node_name.empty()) return config.node_name;
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// The signals that ask the agent to end or to reload its configuration.
sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

/// The time that `io` has to finish its work when the agent ends; a service manager kills after 20
/// s or more.
constexpr base::Duration kEndsWithin = std::chrono::seconds(5);

/// How a running agent ended.
struct Ended {
  int status = 0;
  bool all_threads = true;  ///< false: a thread hangs, and would use destroyed objects if it
                            ///< resumed: the process must end by _exit(2)
};

/// All parts of a running agent.
class Agent {
 public:
  Agent(const AgentOptions& options, std::optional<os::LockFile> lock, std::string boot_id)
      : options_(options),
        start_(options.start.config),
        node_(NodeName(start_)),
        boot_id_(std::move(boot_id)),
        open_(DecideAllocators(start_)),
        lock_(std::move(lock)),
        configuration_(control_, io_, options.settings, options.start),
        pipeline_(control_, io_, start_, options.worker, open_, boot_id_),
        telemetry_(control_, io_, pipeline_, start_, node_),
        labeller_(control_, io_, pipeline_.inventory, pipeline_.offers, start_.paths.sysfs_root,
                  {.pci_changed = [this] { pipeline_.Refresh(); },
                   .labelled = [this] { views_.ClusterChanged(); },
                   .machine_read = [this] { views_.Changed(); }}),
        validation_(control_, io_, pipeline_.inventory, start_, os::OwnFolder(),
                    [this] { views_.Changed(); }),
        boot_(control_, io_, [this] { views_.Changed(); }),
        pages_(control_, io_,
               {.metrics = [this](auto format,
                                  auto detail) { return views_.MetricsPage(format, detail); },
                .report = [this] { return views_.Report(); },
                .page_state = [this] { return views_.PageState(); },
                .page_history = [this] { return views_.PageHistory(); },
                .hangs = [this] { return heartbeat_.Hangs(); },
                .not_ready = [this] { return *not_ready_.Get(); }}) {}

  Ended Run() {
    io_.Start();
    pipeline_.OnTurn([this](const auto& now, const auto& before) { Follow(now, before); });
    FollowSamples();
    heartbeat_.NotifySystemd(control_);
    const std::array<std::pair<const char*, Status (Agent::*)()>, 7> steps = {
        {{"signals", &Agent::WatchSignals},
         {"health checkpoint", &Agent::RecallHealth},
         {"kernel log", &Agent::ListenToKernel},
         {"allocators", &Agent::ServeOrWait},
         {"pages", &Agent::OpenPages},
         {"devices", &Agent::DiscoverDevices},
         {"configuration", &Agent::FollowConfiguration}}};
    for (const auto& [name, step] : steps) {
      protocol::systemd::Notify(std::string("STATUS=starting: ") + name);
      if (const Status done = (this->*step)(); !done.ok()) {
        base::Log(base::kError, "cannot start", {{"step", name}, {"why", done.error().message()}});
        exit_status_ = 1;
        return End();
      }
    }
    control_.Run();
    protocol::systemd::Notify("STOPPING=1");
    return End();
  }

 private:
  Status WatchSignals() {
    const sigset_t wanted = HandledSignals();
    signals_.Reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return base::ErrnoError(errno, "signalfd");
    return control_.Watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { HandleSignal(); });
  }

  void HandleSignal() {
    signalfd_siginfo signal{};
    if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return;
    if (signal.ssi_signo == SIGHUP) {
      base::Log(base::kInfo, "configuration reload requested");
      pages_.Reload();
      return configuration_.Reload();
    }
    base::Log(base::kInfo, "stop requested by a signal");
    control_.Stop();
  }

  Status RecallHealth() { return pipeline_.Recall(); }

  Status ListenToKernel() {
    pipeline_.ListenToKernel();
    return {};
  }

  /// Serves if this agent holds the lock; otherwise polls for it: an agent that ends releases it at
  /// once.
  Status ServeOrWait() {
    if (lock_) return Serve();
    auto lock = os::LockFile::Take(LockPath(start_.paths.run_dir));
    if (lock.ok()) {
      lock_ = *std::move(lock);
      return Serve();
    }
    if (lock.error().code() != base::Code::kAlreadyExists) return lock.error();
    if (waiting_for_ != lock.error().message()) {
      waiting_for_ = lock.error().message();
      base::Log(base::kWarn, "another agent is running; waiting for it to exit",
                {{"why", waiting_for_}});
      protocol::systemd::Notify("STATUS=waiting: " + waiting_for_);
    }
    control_.PostAfter(kLockPoll, [this] {
      if (const Status served = ServeOrWait(); !served.ok()) GiveUp(served.error(), "allocators");
    });
    return {};
  }

  Ended End() {
    const Ended ended{exit_status_, io_.StopWithin(kEndsWithin)};
    if (!ended.all_threads)
      base::Log(base::kWarn, "exiting while a thread is blocked on a file that does not respond");
    base::Log(base::kInfo, "stopped");
    return ended;
  }

  void GiveUp(const base::Error& error, const char* step) {
    base::Log(base::kError, "cannot continue", {{"step", step}, {"why", error.message()}});
    exit_status_ = 1;
    control_.Stop();
  }

  Status Serve() {
    waiting_for_.clear();
    ASSIGN(auto remembered, Adapters::Remember(start_.paths.state_dir, boot_id_));
    ASSIGN(auto changes, Changes::Remember(start_.paths.state_dir, boot_id_));
    ASSIGN(auto kept, LoadKeptConfiguration(start_.paths.state_dir));
    ASSIGN(auto stopped, LoadStoppedServices(start_.paths.state_dir, boot_id_));
    const auto last = LastConfigs(options_.settings, kept);
    configuration_.Serve(std::move(kept), ClusterConnection::Wanted(start_.cluster)
                                              ? start_.cluster.config_map
                                              : api::ConfigMapConfig{});
    telemetry_.Serve(boot_id_);
    containers_.emplace(control_, io_, *Config(), pipeline_.inventory, pipeline_.ledger,
                        os::OwnFolder(), node::share::ServesPods(open_), [this] {
                          if (adapters_) adapters_->ContainersChanged();
                          views_.Changed();
                        });
    adapters_.emplace(
        Adapters::Node{control_, io_, pipeline_.inventory, pipeline_.ledger, pipeline_.offers,
                       *containers_},
        open_, start_, std::move(remembered), boot_id_,
        Adapters::Callbacks{
            .config = [this] { return Config(); },
            .report = [this] { return views_.Report(); },
            .samples = [this] { return telemetry_.Samples(views_.Report()); },
            .usage = [this](const auto& request, const auto& viewer,
                            auto done) { telemetry_.Usage(request, viewer, std::move(done)); },
            .end =
                [this] {
                  pipeline_.EndIdle();
                  control_.Stop();
                },
            .preview = [this](const auto& request,
                              auto done) { Preview(request, std::move(done)); },
            .move =
                [this](const auto& request, auto progress, auto done) {
                  changes_->moves().Set(request, std::move(progress), std::move(done));
                },
            .divide =
                [this](const auto& vendor, const auto& request, auto progress, auto done) {
                  changes_->Divide(vendor, request, std::move(progress), std::move(done));
                },
            .release =
                {.begin = [this](const std::string& vendor,
                                 auto done) { pipeline_.ReleaseDriver(vendor, done); },
                 .end = [this](const std::string& vendor) { pipeline_.TakeDriverBack(vendor); }},
            .on_demand = [this] { return changes_ ? &changes_->on_demand() : nullptr; },
            .kubelet_has =
                [this](const adapter::kubelet::KubeletAmounts& amounts) {
                  if (cluster_) cluster_->ShowKubeletHas(amounts);
                },
            .waiting =
                [this] {
                  return changes_ ? changes_->restoring() : std::map<std::string, std::string>();
                },
            .containers_differ = [this] { views_.Changed(); }});
    changes_.emplace(control_, io_, pipeline_, adapters_->kubelet(), open_, start_.paths.state_dir,
                     std::move(changes), boot_id_);
    changes_->on_demand().OnChange([this] { adapters_->TryQueue(); });
    layouts_.emplace(control_, io_, pipeline_.inventory, *changes_);
    layouts_->Configure(*Config());
    clients_.emplace(ClientPause::Node{control_, io_, pipeline_.inventory, pipeline_.ledger,
                                       [this] { return changes_->stops_clients_of(); }},
                     [this] { changes_->Wake(); });
    StopServices(std::move(stopped));
    for (const Changes::OfVendor& one : changes_->divided())
      one.divisions->OnState([this] { LayoutsChanged(); });
    ConfigureDevices(*Config());
    adapters_->Configure(*Config());
    pipeline_.Serve();
    labeller_.Serve(last.empty() ? "" : last.back().labels.features_file);
    validation_.Serve(last);
    TRY(adapters_->Listen());
    TRY(OpenPages());  // the previous agent may still have had the address
    pages_.Configure(Config()->http, Config()->page);
    JoinCluster();
    health_sockets_.emplace(control_, pipeline_.inventory, pipeline_.ledger);
    health_sockets_->Follow();
    if (discovered_) ServeDevices();
    return {};
  }

  /// Programs of the cluster first, which may use services of the host.
  void StopServices(StoppedServices stopped) {
    const std::string& proc = start_.paths.proc_root;
    const auto self = os::ReadProcess(proc, ::getpid());
    services_.emplace(
        ServicePause::Node{.control = control_,
                           .io = io_,
                           .devices = [this] { return changes_->stops_clients_of(); },
                           .wake = [this] { changes_->Wake(); },
                           .note =
                               [this](bool warning, const auto& reason, const auto& message) {
                                 pipeline_.monitor.Note(warning, reason, message);
                                 views_.ClusterChanged();
                               },
                           .users = [proc](const auto& files) { return GroupsWith(proc, files); },
                           .own_groups = self.ok() ? std::set<std::string>(self->cgroups.begin(),
                                                                           self->cgroups.end())
                                                   : std::set<std::string>()},
        protocol::engine::EnterMachine(proc), start_.paths.state_dir, std::move(stopped));
    services_->Configure(*Config());
    for (const Changes::OfVendor& one : changes_->divided())
      one.divisions->SetClients(
          [this, program = api::compat::FindLayoutProgram(one.dialect->part_terms()->program)](
              const device::Facts& device) {
            std::string waits = cluster_ ? clients_->Await(device) : "";
            return waits.empty() && program != nullptr ? services_->Await(device, *program) : waits;
          });
  }

  void LayoutsChanged() {
    clients_->ForgetEnded();
    services_->Follow();
    for (const LayoutEvent& event : layouts_->TakeEvents())
      pipeline_.monitor.Note(event.warning, event.reason, event.message);
    views_.Changed();
  }

  void Preview(const protocol::broker::PreviewRequest& request,
               adapter::local::AnswerQueue::Done done) {
    PreviewOn(io_, control_, request, configuration_, views_.ForPreview(), std::move(done));
  }

  void JoinCluster() {
    if (!ClusterConnection::Wanted(start_.cluster)) return layouts_->Take({});
    cluster_.emplace(
        control_, node_, *Config(),
        ClusterConnection::Callbacks{
            .update = [this] { return views_.MakeClusterUpdate(); },
            .remote = [this](const api::RemoteConfig& remote) { configuration_.SetRemote(remote); },
            .nfd = [this](bool labels_this_node) { labeller_.SetNfd(labels_this_node); },
            .counters =
                [this](const api::RemoteConfig& remote) {
                  configuration_.SetRemoteCounters(remote);
                },
            .requests =
                [this](const auto& labels) {
                  clients_->Take(labels);
                  changes_->Wake();
                  const auto services = api::compat::ServicesOf(labels);
                  layouts_->SetServices(services);
                  configuration_.SetServices(services);
                  labeller_.SetFeatureDiscovery(services.feature_discovery);
                  layouts_->Take(labels);
                  // What the Node's labels say of a layout depends on the label that asks for it.
                  views_.ClusterChanged();
                },
            .pods = [this](auto pods) { pod_labels_.Take(std::move(pods)); }});
    clients_->Configure(Config()->labels);
    views_.ClusterChanged();
  }

  Status OpenPages() {
    if (!pages_.where().empty()) return {};
    Status started = pages_.Start(start_.http);
    if (!started.ok() && !lock_ && started.error().code() == base::Code::kAlreadyExists)
      return {};  // opened again when this agent serves
    if (!started.ok()) return started;
    if (!pages_.where().empty()) base::Log(base::kInfo, "pages", {{"at", pages_.where()}});
    return {};
  }

  Status DiscoverDevices() {
    telemetry_.Configure(*Config());  // start_ does not contain the counters file
    pipeline_.Start([this] { DevicesDiscovered(); });
    process_stats_.emplace(control_, io_, [this] { return Processes(); });
    labeller_.Configure(*Config());
    boot_.Configure(Config()->paths);
    return {};
  }

  /// The configuration in force.
  std::shared_ptr<const api::NodeConfig> Config() const {
    auto current = configuration_.published().Get();
    return {current, &current->config};
  }

  /// The parts in the order of the data flow: what one changes causes another turn.
  void Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before) {
    if (changes_) changes_->Follow(now, before);
    // All others but changes follow what a reading says, not when it was.
    if (node::share::OnlyReadTimesDiffer(now, before)) return views_.ReadTimesChanged();
    if (adapters_) adapters_->Follow(now, before);
    if (health_sockets_) health_sockets_->Follow();
    if (now.inventory != before.inventory) {
      if (containers_) containers_->DevicesChanged();
      telemetry_.sampler.DevicesChanged();
      if (layouts_) layouts_->DevicesChanged();
    }
    if (now.ledger != before.ledger) {
      pod_labels_.LedgerChanged();
      if (containers_) containers_->LedgerChanged();
    }
    labeller_.Follow(now);
    validation_.DevicesChanged();
    views_.Changed();
  }

  /// Samples go to the pages; only their problems go to the node's object.
  void FollowSamples() {
    on_samples_ = telemetry_.sampler.published().Subscribe([this](const auto& samples) {
      telemetry_.meter.SamplesChanged();
      views_.AddSamples(*samples);
      if (std::exchange(problems_, node::sample::ProblemsOf(*samples)) != problems_)
        views_.Changed();
    });
    on_usage_ = telemetry_.meter.OnChange([this] { views_.PagesChanged(); });
    on_jobs_ =
        telemetry_.jobs.published().Subscribe([this](const auto&) { views_.PagesChanged(); });
  }

  /// Settings that can change at run time follow the configuration in force.
  Status FollowConfiguration() {
    on_config_ = configuration_.published().Subscribe([this](const auto& current) {
      if (containers_) containers_->Configure(current->config);
      ConfigureDevices(current->config);
      if (layouts_) layouts_->Configure(current->config);
      if (clients_) clients_->Configure(current->config.labels);
      if (services_) services_->Configure(current->config);
      if (adapters_) adapters_->Configure(current->config);
      telemetry_.Configure(current->config);
      labeller_.Configure(current->config);
      validation_.Configure(current->config);
      boot_.Configure(current->config.paths);
      pages_.Configure(current->config.http, current->config.page);
      if (kubelet_start_) kubelet_start_->ConfigurationChanged();
      if (cluster_) cluster_->Reconfigure(current->config);
      views_.Changed();
    });
    configuration_.Follow();
    return {};
  }

  void ConfigureDevices(const api::NodeConfig& config) {
    pipeline_.Configure(config, changes_ ? changes_->Configure(config) : node::share::Moves());
  }

  void DevicesDiscovered() {
    discovered_ = true;
    not_ready_.Set(std::string());
    labeller_.Begin();
    validation_.Begin();
    base::Log(base::kInfo, "initial device discovery complete", {{"devices", pipeline_.devices()}});
    if (adapters_) ServeDevices();
  }

  /// This agent holds the lock, and all devices were read once.
  void ServeDevices() {
    changes_->Start();
    services_->Begin();
    layouts_->Begin();
    containers_->Begin(*Config());
    changes_->WhenRestored(kRestored, [this] { Restored(); });
    StartKubelet();
    base::Log(base::kInfo, "ready", {{"node", node_}, {"devices", pipeline_.devices()}});
    protocol::systemd::Notify("READY=1\nSTATUS=" + std::to_string(pipeline_.devices()) +
                              " devices");
    control_.PostAfter(kSettled, [this] {
      containers_->HoldersKnown();
      // A third of the code that is mapped by then was only needed for the start.
      os::TrimLoaded([](std::string_view) { return true; });
    });
  }

  /// The kubelet does not get devices that a reboot made whole before they are divided again: it
  /// would admit pods to what they did not ask for. Other vendors' devices do not wait for that.
  void Restored() {
    adapters_->ContainersChanged();
    views_.Changed();
  }

  void StartKubelet() {
    kubelet_start_.emplace(KubeletStart::Node{control_, io_, configuration_, pipeline_.inventory,
                                              pipeline_.ledger, start_.paths.kubelet_dir},
                           open_.contains(api::kKubeletAllocator), [this] {
                             adapters_->OpenKubelet();
                             views_.Changed();  // labels had to wait for this, too
                           });
  }

  std::map<std::string, pid_t> Processes() const {
    std::map<std::string, pid_t> processes = pipeline_.Workers();
    processes["agent"] = ::getpid();
    return processes;
  }

  const AgentOptions& options_;
  const api::NodeConfig& start_;  // for settings that need a restart
  const std::string node_, boot_id_;
  const node::share::EnabledAllocators open_;
  std::optional<os::LockFile> lock_;
  int exit_status_ = 0;
  os::Loop control_{"control"};
  os::Loop io_{"io"};
  Configuration configuration_;
  DevicePipeline pipeline_;
  Telemetry telemetry_;
  adapter::cluster::PodLabels pod_labels_{control_, pipeline_.ledger};
  Labeller labeller_;
  Validation validation_;
  BootFollower boot_;
  base::Published<std::string> not_ready_{"initial device discovery is not complete"};
  const Heartbeat heartbeat_{{&control_, &io_}};
  std::string waiting_for_;  // the other agent, while that holds the lock
  bool discovered_ = false;
  os::UniqueFd signals_;
  std::optional<Containers> containers_;
  std::optional<Adapters> adapters_;
  std::optional<Changes> changes_;
  std::optional<LayoutFollowers> layouts_;
  std::optional<ClientPause> clients_;
  std::optional<ServicePause> services_;
  std::optional<KubeletStart> kubelet_start_;
  std::optional<ClusterConnection> cluster_;
  std::optional<HealthSockets> health_sockets_;
  std::optional<ProcessStats> process_stats_;
  Views views_{{control_, node_, open_, pipeline_, telemetry_, configuration_, labeller_,
                validation_, boot_, containers_, adapters_, changes_, layouts_, clients_,
                kubelet_start_, cluster_, process_stats_, waiting_for_, pages_}};
  base::Subscription on_config_, on_samples_, on_usage_, on_jobs_;
  // Problems of sampling, by device, as last sent to the cluster.
  std::map<std::string, std::string> problems_;
  adapter::pages::Pages pages_;
};

void BlockSignals() {
  const sigset_t wanted = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

/// Each client, page reader and lease needs a descriptor, but shells and containers limit a process
/// to 1024. The unit file sets the same limit.
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
  if (!options.wait_for_lock) { ASSIGN(lock, os::LockFile::Take(LockPath(paths.run_dir))); }
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
  protocol::systemd::Notify("STATUS=failed: " + status.error().message());
  return 1;
}

}  // namespace penstock::app
