// Decides when to register. Level-triggered: one function looks at the kubelet's socket, our
// streams and the timers, and takes the next step.
#include "protocol/kubelet/device_plugin.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "base/backoff.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "deviceplugin.grpc.pb.h"
#include "os/watch/watch.h"
#include "protocol/kubelet/list_audit.h"
#include "protocol/kubelet/messages.h"
#include "protocol/kubelet/other_plugin.h"
#include "protocol/kubelet/plugin_folder.h"
#include "protocol/kubelet/plugin_server.h"
#include "protocol/kubelet/pod_resources.h"
#include "protocol/rpc/calls.h"
#include "protocol/rpc/unix.h"

namespace penstock::protocol::kubelet {
namespace {

using Phase = PluginState::Phase;

// The kubelet dials back, for up to 10 s, before it answers (its plugin/v1beta1/client.go).
constexpr auto kRegisterWithin = std::chrono::seconds(15);
// A stream that lived this long was good: its end says nothing about the next one.
constexpr auto kGoodStream = std::chrono::seconds(10);
// A kubelet may still count the devices of a plugin of ours that just ended, beside plugins of
// other resources.
constexpr base::Duration kSecondCheck = std::chrono::seconds(1);
constexpr char kNotCounted[] =
    "the kubelet counts none of the agent's devices although it reads their list";

std::string Folder(const DevicePlugin::Options& options) {
  return options.kubelet_dir + "/device-plugins";
}

}  // namespace

std::string_view ToString(PluginState::Phase phase) {
  switch (phase) {
    case Phase::kWaitingForDevices: return "waiting for devices";
    case Phase::kWaitingForKubelet: return "waiting for the kubelet";
    case Phase::kRegistering: return "registering";
    case Phase::kServing: return "serving";
    case Phase::kRefused: return "refused";
    case Phase::kSteppedBack: return "stepped back";
  }
  return "?";
}

/// Everything is used on the loop's thread, except Update and what the lists' mutex guards.
class DevicePlugin::Impl : public std::enable_shared_from_this<DevicePlugin::Impl> {
 public:
  Impl(os::Loop& loop, Options options, PluginHandler& handler, StateChanged state_changed)
      : loop_(loop),
        options_(std::move(options)),
        handler_(handler),
        state_changed_(std::move(state_changed)),
        folder_(Folder(options_)),
        kubelet_socket_(folder_ + "/kubelet.sock"),
        backoff_(options_.retry_first, options_.retry_most),
        registration_(std::make_unique<rpc::Calls>(loop)),
        pod_resources_(loop, options_.kubelet_dir),
        others_(loop, {.kubelet_dir = options_.kubelet_dir,
                       .resource = options_.resource,
                       .own_prefix = options_.own_prefix.empty() ? options_.socket_prefix
                                                                 : options_.own_prefix,
                       .proc_root = options_.proc_root,
                       .answer_within = options_.others_within}),
        audit_(loop, options_.audit,
               {.list = [this] { return Devices(); },
                .query = [this](auto done) { QueryCounted(std::move(done)); },
                .lost = [this] { Lost(); }}) {}

  ~Impl() {
    loop_.Cancel(retry_);
    RetireServer();
    if (retiring_.joinable()) retiring_.join();
  }

  void Start() {
    // At once: after a reboot, a kubelet that has opened its socket admits pods some 40 ms later,
    // and rejects those of a resource that is not registered by then.
    watch_ = std::make_unique<os::PathWatch>(
        loop_, folder_, base::IfAlive(this, &Impl::FolderChanged), base::Duration::zero());
    Soon();
  }

  void Update(std::vector<PluginDevice> devices);
  const PluginState& state() const { return state_; }

 private:
  enum class Step { kIdle, kFindingOthers, kRegistering, kAwaitingStream };

  /// Returns a function that runs a member on the loop's thread, unless the plugin is gone by then.
  std::function<void()> Later(void (Impl::*what)()) { return base::IfAlive(this, what); }
  void Soon() { loop_.Post(Later(&Impl::Reconcile)); }
  void RetryAfter(base::Duration delay);
  void RetryNow();

  void Reconcile();
  bool CheckKubelet(const std::optional<FileIdentity>& kubelet);
  void FindOthers();
  void Register(const FileIdentity& kubelet);
  void Registered(const base::Status& answer);
  void StreamsChanged();
  void FolderChanged();
  void QueryCounted(std::function<void(ListAudit::Counted)> done);
  void Lost();

  std::shared_ptr<const std::vector<PluginDevice>> Devices() const;
  void SetYielding(bool yielding);
  base::Status EnsureServer();
  void RetireServer();
  void SetState(Phase phase, std::string reason);

  os::Loop& loop_;
  const Options options_;
  PluginHandler& handler_;
  const StateChanged state_changed_;
  const std::string folder_, kubelet_socket_;
  PluginState state_;

  // Guards the next three members; the latter two are replaced only on the loop's thread.
  mutable std::mutex lists_mutex_;
  std::shared_ptr<const std::vector<PluginDevice>> devices_;
  std::unique_ptr<PluginServer> server_;
  bool yielding_ = false;  // to another plugin, by the last check
  std::thread retiring_;   // shuts an old server down

  Step step_ = Step::kIdle;
  base::Backoff backoff_;
  base::TimerId retry_ = 0;
  std::optional<FileIdentity> seen_;             // the kubelet's socket at the last check
  std::optional<FileIdentity> registered_with_;  // the socket of the kubelet that accepted us
  std::optional<FileIdentity> registering_with_;
  bool suspicious_ = false;           // the last check found another plugin
  bool not_counted_ = false;          // our devices, although our list is read: register again
  std::vector<std::string> sockets_;  // in the folder at the last check
  std::size_t streams_ = 0;           // open
  std::uint64_t opened_ = 0;          // in total, at the current server
  bool dropped_ = false;              // a stream ended since the registration began
  base::TimePoint stream_since_{};

  std::unique_ptr<os::PathWatch> watch_;
  std::unique_ptr<rpc::Calls> registration_;
  PodResources pod_resources_;
  OtherPlugins others_;
  ListAudit audit_;
};

base::Result<std::unique_ptr<DevicePlugin>> DevicePlugin::Create(os::Loop& loop, Options options,
                                                                 PluginHandler& handler,
                                                                 StateChanged state_changed) {
  if (!options.kubelet_dir.starts_with('/')) {
    return base::Error(
        base::Code::kInvalidArgument,
        "the kubelet's folder must be an absolute path, not \"" + options.kubelet_dir + "\"");
  }
  const std::string example =
      Folder(options) + "/" + options.socket_prefix + "-4194304-01234567.sock";
  if (example.size() > rpc::kMaxSocketPath) {
    return base::Error(base::Code::kInvalidArgument,
                       "sockets in " + Folder(options) + " would have paths of " +
                           std::to_string(example.size()) + " bytes where unix allows " +
                           std::to_string(rpc::kMaxSocketPath) +
                           "; mount the kubelet's folder under a shorter path");
  }
  auto impl = std::make_shared<Impl>(loop, std::move(options), handler, std::move(state_changed));
  impl->Start();
  return std::unique_ptr<DevicePlugin>(new DevicePlugin(std::move(impl)));
}

DevicePlugin::DevicePlugin(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
DevicePlugin::~DevicePlugin() = default;
void DevicePlugin::Update(std::vector<PluginDevice> devices) { impl_->Update(std::move(devices)); }
const PluginState& DevicePlugin::state() const { return impl_->state(); }

void DevicePlugin::Impl::Update(std::vector<PluginDevice> devices) {
  auto list = std::make_shared<const std::vector<PluginDevice>>(Normalize(std::move(devices)));
  std::lock_guard lock(lists_mutex_);
  if (devices_ != nullptr && *devices_ == *list) return;
  const bool first = devices_ == nullptr;
  devices_ = std::move(list);
  if (server_ != nullptr && !yielding_) server_->Publish(devices_);
  if (first) Soon();
}

/// Null before the first list.
std::shared_ptr<const std::vector<PluginDevice>> DevicePlugin::Impl::Devices() const {
  std::lock_guard lock(lists_mutex_);
  return devices_;
}

/// A kubelet that accepted another plugin still reads the stream that we had before, and would take
/// a list on it for the other plugin's.
void DevicePlugin::Impl::SetYielding(bool yielding) {
  std::lock_guard lock(lists_mutex_);
  if (std::exchange(yielding_, yielding) && !yielding && server_ != nullptr)
    server_->Publish(devices_);
}

void DevicePlugin::Impl::RetryAfter(base::Duration delay) {
  loop_.Cancel(retry_);
  retry_ = loop_.PostAfter(delay, base::IfAlive(this, [](Impl& self) {
                             self.retry_ = 0;
                             // The awaited stream did not come.
                             if (self.step_ == Step::kAwaitingStream) self.step_ = Step::kIdle;
                             self.Reconcile();
                           }));
}

void DevicePlugin::Impl::RetryNow() {
  loop_.Cancel(retry_);
  retry_ = 0;
  if (step_ == Step::kAwaitingStream) step_ = Step::kIdle;
}

void DevicePlugin::Impl::Reconcile() {
  if (Devices() == nullptr) return SetState(Phase::kWaitingForDevices, "no devices are known yet");
  const auto kubelet = SocketAt(kubelet_socket_);
  if (!CheckKubelet(kubelet)) return;
  // A kubelet that starts removes all sockets: it would wait for ours in vain.
  if (step_ == Step::kRegistering &&
      (kubelet != registering_with_ || !SocketAt(server_->socket()))) {
    registration_ = std::make_unique<rpc::Calls>(loop_);
    step_ = Step::kIdle;
  }
  if (step_ != Step::kIdle || retry_ != 0) return;
  FindOthers();
}

/// Whether there is a kubelet to register with, now or when the timers say so.
bool DevicePlugin::Impl::CheckKubelet(const std::optional<FileIdentity>& kubelet) {
  const bool fresh = kubelet && kubelet != seen_;
  seen_ = kubelet;
  const bool serving = streams_ > 0 && (!kubelet || kubelet == registered_with_) && !not_counted_;
  if (serving) {
    SetState(Phase::kServing, "");
    return false;
  }
  if (!kubelet) {
    RetryNow();
    SetState(Phase::kWaitingForKubelet, kubelet_socket_ +
                                            " does not exist: no kubelet runs on this machine, or "
                                            "its folder is different (--kubelet-dir)");
    return false;
  }
  if (fresh) {
    backoff_.Reset();
    RetryNow();
    // The old kubelet's streams are about to end, and the plugin that we stepped back for may
    // register first, as before.
    if (yielding_) {
      SetState(Phase::kSteppedBack,
               "the kubelet was restarted; waiting for the plugin that served " +
                   options_.resource + " to come back");
      RetryAfter(options_.recheck);
    } else if (streams_ > 0) {
      RetryAfter(options_.retry_first);
    }
  }
  return true;
}

void DevicePlugin::Impl::FindOthers() {
  step_ = Step::kFindingOthers;
  others_.Detect([this](const std::optional<OtherPlugin>& other) {
    step_ = Step::kIdle;
    // The state may have changed meanwhile.
    const auto kubelet = SocketAt(kubelet_socket_);
    if (!CheckKubelet(kubelet) || retry_ != 0) return;
    if (!std::exchange(suspicious_, other.has_value()) && other && !other->named)
      return RetryAfter(std::min(kSecondCheck, options_.recheck));
    SetYielding(other.has_value());
    if (!other) return Register(*kubelet);
    SetState(Phase::kSteppedBack,
             options_.resource + " is already served by " + other->Describe() +
                 "; remove that plugin, or disable Penstock's (allocators.kubelet.enabled: off)");
    RetryAfter(options_.recheck);
  });
}

void DevicePlugin::Impl::Register(const FileIdentity& kubelet) {
  if (const auto ready = EnsureServer(); !ready.ok()) {
    SetState(Phase::kRefused, ready.error().message());
    return RetryAfter(backoff_.Next());
  }
  step_ = Step::kRegistering;
  registering_with_ = kubelet;
  dropped_ = false;
  // Reported once: a kubelet that keeps refusing is not a new state each time.
  if (state_.phase != Phase::kRefused && state_.phase != Phase::kWaitingForKubelet)
    SetState(Phase::kRegistering, not_counted_ ? kNotCounted : "");
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(server_->socket().substr(folder_.size() + 1));
  request.set_resource_name(options_.resource);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  registration_->Call<v1beta1::Registration, v1beta1::Empty>(
      kubelet_socket_, std::move(request), kRegisterWithin,
      [](auto* stub, auto* context, const auto* message, auto* response, auto finished) {
        stub->Register(context, message, response,
                       std::function<void(grpc::Status)>(std::move(finished)));
      },
      [this](const base::Result<v1beta1::Empty>& answer) {
        Registered(answer.ok() ? base::Status() : base::Status(answer.error()));
      });
}

void DevicePlugin::Impl::Registered(const base::Status& answer) {
  step_ = Step::kIdle;
  if (answer.ok()) {
    registered_with_ = registering_with_;
    not_counted_ = false;
    if (streams_ > 0) audit_.Changed();
    if (streams_ == 0 && SocketAt(kubelet_socket_) == registered_with_) {
      step_ = Step::kAwaitingStream;
      RetryAfter(dropped_ ? backoff_.Next() : options_.stream_within);
    }
    return Reconcile();
  }
  const auto& error = answer.error();
  if (error.code() == base::Code::kUnavailable) {
    SetState(Phase::kWaitingForKubelet,
             "no kubelet answers at " + kubelet_socket_ + " (" + error.message() + ")");
  } else {
    SetState(Phase::kRefused, "the kubelet refused " + options_.resource + ": " + error.message());
  }
  RetryAfter(backoff_.Next());
  Reconcile();
}

void DevicePlugin::Impl::StreamsChanged() {
  const auto [open, opened] = server_ != nullptr ? server_->streams() : PluginServer::Streams();
  const std::size_t before = std::exchange(streams_, open);
  const bool came = std::exchange(opened_, opened) != opened;
  const auto now = loop_.clock().Now();
  if (streams_ > 0) {
    if (before == 0) stream_since_ = now;
    RetryNow();
    if (came) audit_.Changed();
    if (streams_ < before) audit_.Hint();  // it may have been the kubelet's stream
  } else if (before > 0 || came) {
    dropped_ = true;
    not_counted_ = false;
    audit_.Stop();
    if (before > 0 && now - stream_since_ >= kGoodStream) backoff_.Reset();
    if (step_ == Step::kIdle || step_ == Step::kAwaitingStream) RetryAfter(backoff_.Next());
    if (state_.phase == Phase::kServing)
      SetState(Phase::kRegistering, "the kubelet closed the stream of the device list");
  }
  Reconcile();
}

void DevicePlugin::Impl::FolderChanged() {
  if (auto sockets = SocketNames(folder_); sockets != sockets_) {
    const bool some_left =
        !std::includes(sockets.begin(), sockets.end(), sockets_.begin(), sockets_.end());
    sockets_ = std::move(sockets);
    if (some_left && state_.phase == Phase::kSteppedBack && seen_ == SocketAt(kubelet_socket_))
      RetryNow();
    audit_.Hint();
  }
  Reconcile();
}

void DevicePlugin::Impl::QueryCounted(std::function<void(ListAudit::Counted)> done) {
  pod_resources_.GetAllocatable(
      [resource = options_.resource, done = std::move(done)](const auto& allocatable) {
        if (!allocatable.ok()) return done(allocatable.error());
        const auto found = allocatable->find(resource);
        done(found == allocatable->end() ? std::vector<std::string>() : found->second);
      });
}

/// Registers over the existing stream. Ending that stream would take devices away if the kubelet is
/// only slow to count them. It also stays open afterwards, because at its end the kubelet would
/// close the new one (server.runClient looks up the client by the resource's name).
void DevicePlugin::Impl::Lost() {
  base::Log(base::kWarn,
            "the kubelet counts none of the agent's devices although it reads their list; "
            "registering again",
            {{"resource", options_.resource}});
  not_counted_ = true;
  Reconcile();
}

base::Status DevicePlugin::Impl::EnsureServer() {
  if (server_ != nullptr && SocketAt(server_->socket())) return {};
  RetireServer();
  RemoveLeftovers(folder_, options_.socket_prefix + "-", options_.proc_root);
  PluginServer::Config config;
  config.socket = folder_ + "/" + UniqueSocketName(options_.socket_prefix);
  config.resource = options_.resource;
  config.answer_within = options_.answer_within;
  config.handler = &handler_;
  config.streams_changed = [&loop = loop_, changed = Later(&Impl::StreamsChanged)] {
    loop.Post(changed);
  };
  ASSIGN(auto server, PluginServer::Start(std::move(config)));
  std::lock_guard lock(lists_mutex_);
  server_ = std::move(server);
  server_->Publish(devices_);
  return {};
}

/// A shutdown waits for gRPC, so it runs in a thread beside the loop; the next one waits for it.
void DevicePlugin::Impl::RetireServer() {
  std::unique_ptr<PluginServer> old;
  {
    std::lock_guard lock(lists_mutex_);
    old = std::move(server_);
  }
  if (retiring_.joinable()) retiring_.join();
  if (old != nullptr) retiring_ = std::thread([server = std::move(old)] {});
  streams_ = 0;
  opened_ = 0;
  audit_.Stop();
}

void DevicePlugin::Impl::SetState(Phase phase, std::string reason) {
  PluginState next{phase, std::move(reason)};
  if (next == state_) return;
  state_ = std::move(next);
  if (state_changed_) state_changed_(state_);
}

}  // namespace penstock::protocol::kubelet
