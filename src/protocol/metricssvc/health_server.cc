#include "protocol/metricssvc/health_server.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "metricssvc.grpc.pb.h"
#include "os/trusted_path.h"
#include "protocol/rpc/peer.h"
#include "protocol/rpc/unix.h"

namespace penstock::protocol::metricssvc {
namespace {

namespace wire = ::metricssvc;
using Devices = std::shared_ptr<const std::vector<DeviceHealth>>;

constexpr int kMostCalls = 16;
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

void Write(const DeviceHealth& device, wire::GPUStateResponse& response) {
  wire::GPUState& state = *response.add_gpustate();
  state.set_id(device.number);
  state.set_uuid(device.id);
  state.set_health(device.healthy ? "healthy" : "unhealthy");
  state.set_device(device.pci);
  for (const std::string& holder : device.holders) state.add_associatedworkload(holder);
}

class Service final : public wire::MetricsService::CallbackService {
 public:
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const wire::Empty*,
                                 wire::GPUStateResponse* response) override {
    for (const DeviceHealth& device : *Get()) Write(device, *response);
    return Finished(context);
  }

  grpc::ServerUnaryReactor* GetGPUState(grpc::CallbackServerContext* context,
                                        const wire::GPUGetRequest* request,
                                        wire::GPUStateResponse* response) override {
    const Devices devices = Get();
    for (const DeviceHealth& device : *devices)
      if (std::ranges::find(request->id(), device.number) != request->id().end())
        Write(device, *response);
    return Finished(context);
  }

  void Set(std::vector<DeviceHealth> devices) {
    auto next = std::make_shared<const std::vector<DeviceHealth>>(std::move(devices));
    std::lock_guard lock(mutex_);
    devices_.swap(next);
  }

 private:
  static grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext* context) {
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  Devices Get() const {
    std::lock_guard lock(mutex_);
    return devices_;
  }

  mutable std::mutex mutex_;
  Devices devices_ = std::make_shared<const std::vector<DeviceHealth>>();
};

}  // namespace

struct HealthServer::Impl {
  std::string socket, folder;
  struct stat made {};
  Service service;
  std::unique_ptr<grpc::Server> server;
};

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

base::Result<std::unique_ptr<HealthServer>> HealthServer::Start(const std::string& socket) {
  TRY(os::OpenTrusted("/", base::FolderOf(socket)));
  struct stat before {};
  if (::lstat(socket.c_str(), &before) == 0) {
    if (!S_ISSOCK(before.st_mode))
      return base::Error(base::Code::kAlreadyExists, socket + " is not a socket: remove it");
    if (rpc::PeerOf(socket).alive)
      return base::Error(base::Code::kAlreadyExists, "another process serves " + socket);
  }
  // Made where no other user can connect before its mode is set. gRPC removes the path on which it
  // listened when it ends, whatever is there by then.
  const std::string folder = base::FolderOf(socket) + "/.penstock", own = folder + "/health.sock";
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return base::ErrnoError(errno, "create " + folder);
  TRY(os::OpenTrusted("/", folder));
  rpc::StartGrpc();
  auto impl = std::make_unique<Impl>();
  impl->socket = socket;
  impl->folder = folder;
  grpc::ServerBuilder builder;
  int bound = 0;
  builder.AddListeningPort(rpc::UnixTarget(own), grpc::InsecureServerCredentials(), &bound);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCalls);
  builder.RegisterService(&impl->service);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || bound == 0 || ::chmod(own.c_str(), kOwnerOnly) != 0 ||
      ::lstat(own.c_str(), &impl->made) != 0 || ::rename(own.c_str(), socket.c_str()) != 0)
    return base::Error(base::Code::kUnavailable, "cannot listen on " + socket);
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

HealthServer::~HealthServer() {
  if (IsServed()) ::unlink(impl_->socket.c_str());
  impl_->server->Shutdown(std::chrono::system_clock::now());
  ::rmdir(impl_->folder.c_str());
}

void HealthServer::Publish(std::vector<DeviceHealth> devices) {
  impl_->service.Set(std::move(devices));
}

bool HealthServer::IsServed() const {
  struct stat now {};
  return ::lstat(impl_->socket.c_str(), &now) == 0 && now.st_dev == impl_->made.st_dev &&
         now.st_ino == impl_->made.st_ino && now.st_mtime == impl_->made.st_mtime;
}

}  // namespace penstock::protocol::metricssvc
