// ListAndWatch streams always carry the latest list, and requests are answered in time whatever the
// handler does. No gRPC call is made with a lock held, since its reactions may run at once on the
// same thread.
#include "protocol/kubelet/plugin_server.h"

#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "deviceplugin.grpc.pb.h"
#include "protocol/kubelet/messages.h"
#include "protocol/rpc/unix.h"

namespace penstock::protocol::kubelet {
namespace {

using Devices = std::shared_ptr<const std::vector<PluginDevice>>;

// The most calls in flight on one connection; the kubelet has one at a time.
constexpr int kMaxCalls = 256;

class Stream;

/// State that the streams and the server share. Outlives both.
struct Feed {
  std::mutex mutex;
  Devices devices;
  std::shared_ptr<const v1beta1::ListAndWatchResponse> message;  // null before the first list
  std::uint64_t generation = 0;
  bool closed = false;
  std::set<Stream*> streams;
  std::uint64_t opened = 0;
  std::function<void()> streams_changed;
};

/// One ListAndWatch call. Writes one message at a time; changes during a write are only noted, so
/// that the next write is the latest list.
class Stream final : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
 public:
  explicit Stream(std::shared_ptr<Feed> feed) : feed_(std::move(feed)) {}

  void Begin() {
    {
      std::lock_guard lock(feed_->mutex);
      feed_->streams.insert(this);
      ++feed_->opened;
      ending_ = feed_->closed;
    }
    feed_->streams_changed();
    Advance();
  }

  /// Decides under the feed's lock and acts without it. The object cannot be deleted meanwhile: it
  /// lives until Finish, and a write that was decided on delays Finish until OnWriteDone.
  void Advance() {
    std::shared_ptr<const v1beta1::ListAndWatchResponse> write;
    {
      std::lock_guard lock(feed_->mutex);
      if (!Decide(write)) return;
    }
    Act(write);
  }

  /// With the feed's lock held: whether there is something to do: a write, or (null) to finish.
  bool Decide(std::shared_ptr<const v1beta1::ListAndWatchResponse>& write) {
    if (finished_ || writing_ != nullptr) return false;
    if (ending_) {
      finished_ = true;
      return true;
    }
    if (feed_->message == nullptr || sent_ == feed_->generation) return false;
    sent_ = feed_->generation;
    write = writing_ = feed_->message;
    return true;
  }

  void Act(const std::shared_ptr<const v1beta1::ListAndWatchResponse>& write) {
    if (write != nullptr) {
      StartWrite(write.get());
    } else {
      Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the plugin is closing this stream"));
    }
  }

  /// With the feed's lock held.
  void End() { ending_ = true; }

  void OnWriteDone(bool ok) override {
    {
      std::lock_guard lock(feed_->mutex);
      writing_ = nullptr;
      if (!ok) ending_ = true;
    }
    Advance();
  }

  void OnCancel() override {
    {
      std::lock_guard lock(feed_->mutex);
      ending_ = true;
    }
    Advance();
  }

  void OnDone() override {
    const auto feed = feed_;
    {
      std::lock_guard lock(feed->mutex);
      feed->streams.erase(this);
    }
    delete this;
    feed->streams_changed();
  }

 private:
  const std::shared_ptr<Feed> feed_;
  // All guarded by the feed's lock.
  std::shared_ptr<const v1beta1::ListAndWatchResponse> writing_;
  std::uint64_t sent_ = 0;
  bool ending_ = false;
  bool finished_ = false;
};

/// Applies `change` to each stream under the lock, then makes each stream take its next step.
void Stir(Feed& feed, const std::function<void(Stream&)>& change) {
  std::vector<std::pair<Stream*, std::shared_ptr<const v1beta1::ListAndWatchResponse>>> actions;
  {
    std::lock_guard lock(feed.mutex);
    for (Stream* stream : feed.streams) {
      change(*stream);
      std::shared_ptr<const v1beta1::ListAndWatchResponse> write;
      if (stream->Decide(write)) actions.emplace_back(stream, std::move(write));
    }
  }
  for (const auto& [stream, write] : actions) stream->Act(write);
}

/// A request that waits for its answer.
struct Pending {
  explicit Pending(grpc::ServerUnaryReactor* its_reactor) : reactor(its_reactor) {}
  /// True if the caller must answer. Only then may reactor and response be used, and only by that
  /// caller.
  bool Claim() { return !answered.exchange(true); }

  std::atomic<bool> answered = false;
  grpc::ServerUnaryReactor* reactor;
  std::function<void(base::Error)> fail;  // to be called by the one that claimed it
};

/// Fails requests that stay unanswered. One alarm serves all: they have the same timeout, so they
/// expire in the order of their arrival.
class Watchdog : public std::enable_shared_from_this<Watchdog> {
 public:
  explicit Watchdog(base::Duration within) : within_(within) {}

  /// False if it is closed.
  bool Add(const std::shared_ptr<Pending>& pending) {
    std::lock_guard lock(mutex_);
    if (closed_) return false;
    DropAnswered();
    waiting_.emplace_back(std::chrono::system_clock::now() + within_, pending);
    Arm();
    return true;
  }

  /// Fails everything that waits; later requests are refused.
  void Close(const base::Error& error) {
    std::deque<Entry> waiting;
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      waiting.swap(waiting_);
      alarm_.reset();
    }
    for (const auto& [deadline, weak] : waiting) Fail(weak, error);
  }

 private:
  using Entry = std::pair<std::chrono::system_clock::time_point, std::weak_ptr<Pending>>;

  static void Fail(const std::weak_ptr<Pending>& weak, const base::Error& error) {
    if (const auto pending = weak.lock(); pending && pending->Claim()) pending->fail(error);
  }

  void DropAnswered() {
    while (!waiting_.empty()) {
      const auto pending = waiting_.front().second.lock();
      if (pending && !pending->answered) return;
      waiting_.pop_front();
    }
  }

  void Arm() {
    if (armed_ || closed_ || waiting_.empty()) return;
    armed_ = true;
    // A new alarm each time: the old one may be ringing.
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(waiting_.front().first, [self = shared_from_this()](bool) { self->Ring(); });
  }

  void Ring() {
    std::vector<std::weak_ptr<Pending>> late;
    {
      std::lock_guard lock(mutex_);
      armed_ = false;
      const auto now = std::chrono::system_clock::now();
      for (; !waiting_.empty() && waiting_.front().first <= now; waiting_.pop_front())
        late.push_back(waiting_.front().second);
      DropAnswered();
      Arm();
    }
    for (const auto& weak : late) {
      Fail(weak, {base::Code::kDeadlineExceeded,
                  "the agent did not decide within " + base::FormatDuration(within_) +
                      "; check `penstock status` on the node, then recreate the pod"});
    }
  }

  const base::Duration within_;
  std::mutex mutex_;
  std::deque<Entry> waiting_;
  bool armed_ = false;
  bool closed_ = false;
  std::unique_ptr<grpc::Alarm> alarm_;
};

class Service final : public v1beta1::DevicePlugin::CallbackService {
 public:
  explicit Service(const PluginServer::Config& config)
      : feed(std::make_shared<Feed>()),
        watchdog(std::make_shared<Watchdog>(config.answer_within)),
        config_(config) {
    feed->streams_changed = config.streams_changed;
  }

  grpc::ServerUnaryReactor* GetDevicePluginOptions(
      grpc::CallbackServerContext* context, const v1beta1::Empty*,
      v1beta1::DevicePluginOptions* response) override {
    response->set_get_preferred_allocation_available(true);
    return Finished(context, grpc::Status::OK);
  }

  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(
      grpc::CallbackServerContext*, const v1beta1::Empty*) override {
    auto* stream = new Stream(feed);  // deletes itself when gRPC is done with it
    stream->Begin();
    return stream;
  }

  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext* context,
                                              const v1beta1::PreStartContainerRequest*,
                                              v1beta1::PreStartContainerResponse*) override {
    return Finished(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context,
                                     const v1beta1::AllocateRequest* message,
                                     v1beta1::AllocateResponse* response) override {
    auto request = ReadRequest(*message, *CurrentDevices(), config_.resource);
    if (!request.ok()) return Finished(context, rpc::ToGrpc(request.error()));
    const std::size_t containers = request->containers.size();
    if (containers == 0) return Finished(context, grpc::Status::OK);

    auto* reactor = context->DefaultReactor();
    auto pending = std::make_shared<Pending>(reactor);
    pending->fail = [reactor](const base::Error& error) { reactor->Finish(rpc::ToGrpc(error)); };
    config_.handler->Allocate(
        config_.resource, *std::move(request),
        Reply<std::vector<ContainerEdits>>([pending, response, containers](
                                               base::Result<std::vector<ContainerEdits>> edits) {
          if (!pending->Claim()) return;
          const auto written =
              edits.ok() ? WriteEdits(*edits, containers, *response) : base::Status(edits.error());
          pending->reactor->Finish(written.ok() ? grpc::Status::OK : rpc::ToGrpc(written.error()));
        }));
    Supervise(pending);
    return reactor;
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(
      grpc::CallbackServerContext* context, const v1beta1::PreferredAllocationRequest* message,
      v1beta1::PreferredAllocationResponse* response) override {
    auto request = ReadRequest(*message);
    const std::size_t containers = request.containers.size();
    // An error would fail the pod; no preference lets the kubelet choose.
    const auto abstain = [response, containers](grpc::ServerUnaryReactor* reactor) {
      WritePreference({}, containers, *response);
      reactor->Finish(grpc::Status::OK);
    };
    auto* reactor = context->DefaultReactor();
    if (containers == 0) {
      abstain(reactor);
      return reactor;
    }
    auto pending = std::make_shared<Pending>(reactor);
    pending->fail = [reactor, abstain](const base::Error&) { abstain(reactor); };
    config_.handler->Prefer(config_.resource, request,
                            Reply<std::vector<std::vector<std::string>>>(
                                [pending, response, containers](
                                    base::Result<std::vector<std::vector<std::string>>> preferred) {
                                  if (!pending->Claim()) return;
                                  WritePreference(preferred.value_or({}), containers, *response);
                                  pending->reactor->Finish(grpc::Status::OK);
                                }));
    Supervise(pending);
    return reactor;
  }

  const std::shared_ptr<Feed> feed;
  const std::shared_ptr<Watchdog> watchdog;

 private:
  static grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext* context,
                                            const grpc::Status& status) {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  Devices CurrentDevices() const {
    std::lock_guard lock(feed->mutex);
    return feed->devices ? feed->devices : std::make_shared<const std::vector<PluginDevice>>();
  }

  void Supervise(const std::shared_ptr<Pending>& pending) {
    if (pending->answered || watchdog->Add(pending)) return;
    if (pending->Claim())
      pending->fail(
          {base::Code::kUnavailable, "the agent is stopping; recreate the pod when it is back"});
  }

  const PluginServer::Config config_;
};

}  // namespace

struct PluginServer::Impl {
  explicit Impl(const Config& config) : socket(config.socket), service(config) {}

  const std::string socket;
  Service service;
  std::unique_ptr<grpc::Server> server;
};

PluginServer::PluginServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

base::Result<std::unique_ptr<PluginServer>> PluginServer::Start(Config config) {
  rpc::StartGrpc();
  auto impl = std::make_unique<Impl>(config);
  grpc::ServerBuilder builder;
  int bound = 0;
  builder.AddListeningPort(rpc::UnixTarget(impl->socket), grpc::InsecureServerCredentials(),
                           &bound);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCalls);
  builder.RegisterService(&impl->service);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || bound == 0) {
    if (::access(base::FolderOf(impl->socket).c_str(), W_OK) != 0)
      return base::ErrnoError(errno, "listen on " + impl->socket);
    return base::Error(base::Code::kUnavailable, "cannot listen on " + impl->socket);
  }
  return std::unique_ptr<PluginServer>(new PluginServer(std::move(impl)));
}

PluginServer::~PluginServer() {
  ::unlink(impl_->socket.c_str());
  {
    std::lock_guard lock(impl_->service.feed->mutex);
    impl_->service.feed->closed = true;
  }
  Stir(*impl_->service.feed, [](Stream& stream) { stream.End(); });
  impl_->service.watchdog->Close(
      {base::Code::kUnavailable, "the agent is stopping; recreate the pod when it is back"});
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server.reset();
}

void PluginServer::Publish(std::shared_ptr<const std::vector<PluginDevice>> devices) {
  auto message = std::make_shared<v1beta1::ListAndWatchResponse>();
  WriteDevices(*devices, *message);
  Feed& feed = *impl_->service.feed;
  {
    std::lock_guard lock(feed.mutex);
    feed.devices = std::move(devices);
    feed.message = std::move(message);
    ++feed.generation;
  }
  Stir(feed, [](Stream&) {});
}

PluginServer::Streams PluginServer::streams() const {
  const Feed& feed = *impl_->service.feed;
  std::lock_guard lock(impl_->service.feed->mutex);
  return {feed.streams.size(), feed.opened};
}

const std::string& PluginServer::socket() const { return impl_->socket; }

}  // namespace penstock::protocol::kubelet
