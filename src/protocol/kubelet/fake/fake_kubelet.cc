// Implements the device manager of pkg/kubelet/cm/devicemanager as far as a plugin can observe it,
// on gRPC's synchronous API.
#include "protocol/kubelet/fake/fake_kubelet.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "deviceplugin.grpc.pb.h"
#include "podresources.grpc.pb.h"
#include "protocol/rpc/unix.h"

namespace penstock::protocol::kubelet {
namespace {

constexpr auto kCallWithin = std::chrono::seconds(60);

/// A registered plugin: its connection and the stream that is read from it.
struct Client {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  grpc::ClientContext stream;
};

std::size_t HealthyOf(const std::map<std::string, SeenDevice>& devices) {
  return static_cast<std::size_t>(std::count_if(
      devices.begin(), devices.end(), [](const auto& one) { return one.second.healthy; }));
}

/// Excludes Kubernetes' own names and those of quotas, and requires both parts of the name
/// (pkg/apis/core/v1/helper).
bool IsExtendedResourceName(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash != std::string::npos && slash != 0 && slash + 1 != name.size() &&
         name.find("kubernetes.io/") == std::string::npos && !name.starts_with("requests.");
}

}  // namespace

struct FakeKubelet::Impl : std::enable_shared_from_this<FakeKubelet::Impl> {
  /// State of one resource.
  struct Resource {
    std::shared_ptr<Client> client;  // the newest; null when closed
    std::map<std::string, SeenDevice> devices;
    // The latest list, which does not count yet.
    std::optional<std::map<std::string, SeenDevice>> late;
    std::size_t fewest = SIZE_MAX;
    std::set<std::string> reported;               // those that were in any message
    std::optional<std::set<std::string>> steady;  // those that were healthy in each message
    bool to_be_dropped = false;
    int registrations = 0;
    int messages = 0;
    std::vector<std::string> endpoints;
  };

  class Registration final : public v1beta1::Registration::Service {
   public:
    explicit Registration(Impl& impl) : impl_(impl) {}
    grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                          v1beta1::Empty*) override {
      return impl_.Register(*request);
    }

   private:
    Impl& impl_;
  };

  class PodResourcesServer final : public v1::PodResourcesLister::Service {
   public:
    explicit PodResourcesServer(Impl& impl) : impl_(impl) {}
    grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest*,
                      v1::ListPodResourcesResponse* response) override;
    grpc::Status GetAllocatableResources(grpc::ServerContext* context,
                                         const v1::AllocatableResourcesRequest*,
                                         v1::AllocatableResourcesResponse* response) override;

   private:
    void Wait(grpc::ServerContext& context);
    Impl& impl_;
  };

  explicit Impl(std::string folder)
      : dir(std::move(folder)), registration(*this), pod_resources(*this) {}

  grpc::Status Register(const v1beta1::RegisterRequest& request);
  void Read(const std::string& name, const std::shared_ptr<Client>& client);
  void Count(Resource& resource, std::map<std::string, SeenDevice> devices);
  void Disconnect(Resource& resource);
  void Drop(Resource& resource);
  std::shared_ptr<Client> ClientOf(const std::string& name) const;
  template <typename Predicate>
  bool Await(std::chrono::milliseconds within, Predicate predicate) const {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, within, predicate);
  }
  const Resource& Of(const std::string& name) const {
    static const Resource kNone;
    const auto found = resources.find(name);
    return found == resources.end() ? kNone : found->second;
  }

  const std::string dir;
  Registration registration;
  PodResourcesServer pod_resources;
  std::unique_ptr<grpc::Server> registration_server, pod_resources_server;

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::map<std::string, Resource> resources;
  std::vector<std::pair<std::shared_ptr<Client>, std::thread>> readers;
  std::string refusal;
  std::vector<FakePod> pods;
  int lists = 0;
  std::chrono::milliseconds delay{};
  int questions = 0;  // GetAllocatableResources
  bool counts_late = false, drops_late = false;
  bool dead = true;
};

void FakeKubelet::Impl::PodResourcesServer::Wait(grpc::ServerContext& context) {
  std::unique_lock lock(impl_.mutex);
  const auto until = std::chrono::steady_clock::now() + impl_.delay;
  while (std::chrono::steady_clock::now() < until && !context.IsCancelled() && !impl_.dead) {
    impl_.changed.wait_for(lock, std::chrono::milliseconds(5));
  }
}

grpc::Status FakeKubelet::Impl::PodResourcesServer::List(grpc::ServerContext* context,
                                                         const v1::ListPodResourcesRequest*,
                                                         v1::ListPodResourcesResponse* response) {
  Wait(*context);
  std::lock_guard lock(impl_.mutex);
  ++impl_.lists;
  for (const auto& pod : impl_.pods) {
    auto* message = response->add_pod_resources();
    message->set_namespace_(pod.namespace_name);
    message->set_name(pod.pod);
    auto* container = message->add_containers();
    container->set_name(pod.container);
    for (const auto& id : pod.ids) {
      auto* devices = container->add_devices();
      devices->set_resource_name(pod.resource);
      devices->add_device_ids(id);
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeKubelet::Impl::PodResourcesServer::GetAllocatableResources(
    grpc::ServerContext* context, const v1::AllocatableResourcesRequest*,
    v1::AllocatableResourcesResponse* response) {
  Wait(*context);
  std::lock_guard lock(impl_.mutex);
  for (const auto& [name, resource] : impl_.resources) {
    for (const auto& [id, device] : resource.devices) {
      if (!device.healthy) continue;
      auto* devices = response->add_devices();
      devices->set_resource_name(name);
      devices->add_device_ids(id);
    }
  }
  ++impl_.questions;
  impl_.changed.notify_all();
  return grpc::Status::OK;
}

grpc::Status FakeKubelet::Impl::Register(const v1beta1::RegisterRequest& request) {
  {
    std::lock_guard lock(mutex);
    auto& resource = resources[request.resource_name()];
    ++resource.registrations;
    resource.endpoints.push_back(request.endpoint());
    changed.notify_all();
    if (!refusal.empty()) return {grpc::StatusCode::UNKNOWN, refusal};
  }
  if (request.version() != "v1beta1") {
    return {grpc::StatusCode::UNKNOWN,
            "requested API version \"" + request.version() +
                "\" is not supported by kubelet. Supported version is [\"v1beta1\"]"};
  }
  if (!IsExtendedResourceName(request.resource_name()))
    return {grpc::StatusCode::UNKNOWN,
            "the ResourceName \"" + request.resource_name() + "\" is invalid"};
  auto client = std::make_shared<Client>();
  client->channel = rpc::OpenChannel(dir + "/device-plugins/" + request.endpoint());
  client->stub = v1beta1::DevicePlugin::NewStub(client->channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallWithin);
  v1beta1::DevicePluginOptions options;
  if (const auto status =
          client->stub->GetDevicePluginOptions(&context, v1beta1::Empty(), &options);
      !status.ok()) {
    return {grpc::StatusCode::UNKNOWN, "failed to dial device plugin: " + status.error_message()};
  }
  std::lock_guard lock(mutex);
  if (dead) return {grpc::StatusCode::UNAVAILABLE, "the kubelet was killed"};
  resources[request.resource_name()].client = client;
  readers.emplace_back(
      client, std::thread([this, name = request.resource_name(), client] { Read(name, client); }));
  return grpc::Status::OK;
}

void FakeKubelet::Impl::Read(const std::string& name, const std::shared_ptr<Client>& client) {
  const auto reader = client->stub->ListAndWatch(&client->stream, v1beta1::Empty());
  v1beta1::ListAndWatchResponse message;
  while (reader->Read(&message)) {
    std::lock_guard lock(mutex);
    auto& resource = resources[name];
    std::map<std::string, SeenDevice> devices;
    for (const auto& device : message.devices()) {
      auto& seen = devices[device.id()];
      seen.healthy = device.health() == "Healthy";
      for (const auto& node : device.topology().nodes())
        seen.numa_nodes.push_back(static_cast<int>(node.id()));
    }
    if (counts_late) {
      resource.late = std::move(devices);
    } else {
      Count(resource, std::move(devices));
    }
    ++resource.messages;
    changed.notify_all();
  }
  (void)reader->Finish();
  std::lock_guard lock(mutex);
  Disconnect(resources[name]);
}

void FakeKubelet::Impl::Count(Resource& resource, std::map<std::string, SeenDevice> devices) {
  for (const auto& [id, device] : devices) resource.reported.insert(id);
  if (resource.steady)
    std::erase_if(*resource.steady, [&](const std::string& id) {
      return !devices.contains(id) || !devices.at(id).healthy;
    });
  resource.devices = std::move(devices);
  resource.late.reset();
  resource.fewest = std::min(resource.fewest, HealthyOf(resource.devices));
  changed.notify_all();
}

/// Whichever stream ended, the newest client is closed (server.runClient looks up the client by
/// name).
void FakeKubelet::Impl::Disconnect(Resource& resource) {
  if (resource.client) resource.client->stream.TryCancel();
  resource.client = nullptr;
  resource.late.reset();
  if (drops_late) {
    resource.to_be_dropped = true;
  } else {
    Drop(resource);
  }
}

void FakeKubelet::Impl::Drop(Resource& resource) {
  for (auto& [id, device] : resource.devices) device.healthy = false;
  if (resource.steady) resource.steady->clear();
  resource.fewest = 0;
  resource.to_be_dropped = false;
  changed.notify_all();
}

std::shared_ptr<Client> FakeKubelet::Impl::ClientOf(const std::string& name) const {
  std::lock_guard lock(mutex);
  return Of(name).client;
}

FakeKubelet::FakeKubelet(std::string kubelet_dir)
    : impl_(std::make_shared<Impl>(std::move(kubelet_dir))) {}

FakeKubelet::~FakeKubelet() { Kill(); }

std::string FakeKubelet::kubelet_dir() const { return impl_->dir; }

namespace {

std::unique_ptr<grpc::Server> Serve(grpc::Service& service, const std::string& path) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(rpc::UnixTarget(path), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
  return builder.BuildAndStart();
}

/// Leaves a socket file without a listener, as a killed process does.
void LeaveDeadSocket(const std::string& path) {
  std::filesystem::remove(path + ".dead");
  std::filesystem::rename(path, path + ".dead");
}

}  // namespace

void FakeKubelet::Start() {
  namespace fs = std::filesystem;
  rpc::StartGrpc();
  const fs::path plugins = impl_->dir + "/device-plugins";
  fs::create_directories(plugins);
  fs::create_directories(impl_->dir + "/pod-resources");
  for (const auto& entry : fs::directory_iterator(plugins)) {
    if (entry.is_socket()) fs::remove(entry.path());
  }
  {
    std::lock_guard lock(impl_->mutex);
    impl_->dead = false;
    for (auto& [name, resource] : impl_->resources) resource.devices.clear();
  }
  impl_->pod_resources_server =
      Serve(impl_->pod_resources, impl_->dir + "/pod-resources/kubelet.sock");
  impl_->registration_server = Serve(impl_->registration, plugins / "kubelet.sock");
}

void FakeKubelet::Kill() {
  if (impl_->registration_server == nullptr) return;
  // gRPC removes its socket when it ends; a killed process does not.
  const std::string socket = impl_->dir + "/device-plugins/kubelet.sock";
  if (std::filesystem::exists(socket)) LeaveDeadSocket(socket);
  decltype(impl_->readers) readers;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->dead = true;
    readers.swap(impl_->readers);
    impl_->changed.notify_all();
  }
  for (auto& [client, thread] : readers) client->stream.TryCancel();
  for (auto& [client, thread] : readers) thread.join();
  impl_->registration_server->Shutdown(std::chrono::system_clock::now());
  impl_->registration_server.reset();
  impl_->pod_resources_server->Shutdown(std::chrono::system_clock::now());
  impl_->pod_resources_server.reset();
  if (std::filesystem::exists(socket + ".dead")) std::filesystem::rename(socket + ".dead", socket);
}

bool FakeKubelet::WaitForDevices(const std::string& resource,
                                 const std::function<bool(const Devices&)>& predicate,
                                 std::chrono::milliseconds within) const {
  return impl_->Await(within, [&] { return predicate(impl_->Of(resource).devices); });
}

bool FakeKubelet::WaitForHealthy(const std::string& resource, std::size_t count,
                                 std::chrono::milliseconds within) const {
  return WaitForDevices(
      resource, [count](const Devices& devices) { return HealthyOf(devices) == count; }, within);
}

int FakeKubelet::Registrations(const std::string& resource) const {
  std::lock_guard lock(impl_->mutex);
  return impl_->Of(resource).registrations;
}

bool FakeKubelet::WaitForRegistrations(const std::string& resource, int count,
                                       std::chrono::milliseconds within) const {
  return impl_->Await(within, [&] { return impl_->Of(resource).registrations >= count; });
}

std::vector<std::string> FakeKubelet::Endpoints(const std::string& resource) const {
  std::lock_guard lock(impl_->mutex);
  return impl_->Of(resource).endpoints;
}

std::size_t FakeKubelet::FewestHealthy(const std::string& resource) {
  std::lock_guard lock(impl_->mutex);
  auto& asked = impl_->resources[resource];
  return std::exchange(asked.fewest, HealthyOf(asked.devices));
}

std::vector<std::string> FakeKubelet::TakeReported(const std::string& resource) {
  std::lock_guard lock(impl_->mutex);
  const auto reported = std::exchange(impl_->resources[resource].reported, {});
  return {reported.begin(), reported.end()};
}

std::vector<std::string> FakeKubelet::TakeSteady(const std::string& name) {
  std::lock_guard lock(impl_->mutex);
  auto& resource = impl_->resources[name];
  std::set<std::string> now;
  for (const auto& [id, device] : resource.devices)
    if (device.healthy) now.insert(id);
  const auto steady = std::exchange(resource.steady, now).value_or(now);
  return {steady.begin(), steady.end()};
}

void FakeKubelet::CountLate(bool late) {
  std::lock_guard lock(impl_->mutex);
  impl_->counts_late = late;
  if (late) return;
  for (auto& [name, resource] : impl_->resources)
    if (resource.late) impl_->Count(resource, *std::move(resource.late));
}

void FakeKubelet::DropLate(bool late) {
  std::lock_guard lock(impl_->mutex);
  impl_->drops_late = late;
  if (late) return;
  for (auto& [name, resource] : impl_->resources)
    if (resource.to_be_dropped) impl_->Drop(resource);
}

int FakeKubelet::Requests() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->questions;
}

bool FakeKubelet::WaitForRequests(int count, std::chrono::milliseconds within) const {
  return impl_->Await(within, [&] { return impl_->questions >= count; });
}

int FakeKubelet::Messages(const std::string& resource) const {
  std::lock_guard lock(impl_->mutex);
  return impl_->Of(resource).messages;
}

bool FakeKubelet::WaitForMessages(const std::string& resource, int count,
                                  std::chrono::milliseconds within) const {
  return impl_->Await(within, [&] { return impl_->Of(resource).messages >= count; });
}

base::Result<SeenAllocation> FakeKubelet::Allocate(const std::string& resource,
                                                   const std::vector<std::string>& ids) const {
  const auto client = impl_->ClientOf(resource);
  if (!client) return base::Error(base::Code::kUnavailable, "no plugin serves " + resource);
  v1beta1::AllocateRequest request;
  auto* container = request.add_container_requests();
  for (const auto& id : ids) container->add_devices_ids(id);
  v1beta1::AllocateResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallWithin);
  if (const auto status = client->stub->Allocate(&context, request, &response); !status.ok())
    return rpc::FromGrpc(status);
  if (response.container_responses_size() != 1)
    return base::Error(base::Code::kInternal, "expected one answer for one container");
  const auto& answer = response.container_responses(0);
  SeenAllocation seen;
  seen.environment = {answer.envs().begin(), answer.envs().end()};
  for (const auto& file : answer.devices())
    seen.files.push_back(file.container_path() + ":" + file.host_path() + ":" + file.permissions());
  for (const auto& mount : answer.mounts())
    seen.mounts.push_back(mount.container_path() + ":" + mount.host_path());
  for (const auto& device : answer.cdi_devices()) seen.cdi_devices.push_back(device.name());
  seen.annotations = {answer.annotations().begin(), answer.annotations().end()};
  return seen;
}

base::Result<std::vector<std::string>> FakeKubelet::Prefer(
    const std::string& resource, const std::vector<std::string>& available,
    const std::vector<std::string>& must_include, int size) const {
  const auto client = impl_->ClientOf(resource);
  if (!client) return base::Error(base::Code::kUnavailable, "no plugin serves " + resource);
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const auto& id : available) container->add_available_deviceids(id);
  for (const auto& id : must_include) container->add_must_include_deviceids(id);
  container->set_allocation_size(size);
  v1beta1::PreferredAllocationResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallWithin);
  if (const auto status = client->stub->GetPreferredAllocation(&context, request, &response);
      !status.ok())
    return rpc::FromGrpc(status);
  if (response.container_responses_size() != 1)
    return base::Error(base::Code::kInternal, "expected one answer for one container");
  const auto& ids = response.container_responses(0).deviceids();
  return std::vector<std::string>(ids.begin(), ids.end());
}

base::Status FakeKubelet::SendBytes(const std::string& resource, const std::string& method,
                                    const std::string& bytes) const {
  const auto client = impl_->ClientOf(resource);
  if (!client) return base::Error(base::Code::kUnavailable, "no plugin serves " + resource);
  grpc::GenericStub stub(client->channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallWithin);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  stub.UnaryCall(&context, method, {}, &request, &response, [&](const grpc::Status& answer) {
    std::lock_guard lock(mutex);
    status = answer;
    done = true;
    ended.notify_all();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return done; });
  if (status.ok()) return {};
  return rpc::FromGrpc(status);
}

void FakeKubelet::EndStream(const std::string& resource) {
  if (const auto client = impl_->ClientOf(resource)) client->stream.TryCancel();
}

void FakeKubelet::Refuse(const std::string& message) {
  std::lock_guard lock(impl_->mutex);
  impl_->refusal = message;
}

int FakeKubelet::Lists() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->lists;
}

void FakeKubelet::SetPods(std::vector<FakePod> pods) {
  std::lock_guard lock(impl_->mutex);
  impl_->pods = std::move(pods);
}

void FakeKubelet::SetPodResourcesDelay(std::chrono::milliseconds delay) {
  std::lock_guard lock(impl_->mutex);
  impl_->delay = delay;
  impl_->changed.notify_all();
}

}  // namespace penstock::protocol::kubelet
