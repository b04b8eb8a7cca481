// Serves the methods of CRI that are used with gRPC's synchronous server.
#include "protocol/engine/cri/fake/fake_engine.h"

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <utility>

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "protocol/rpc/unix.h"
#include "runtime.grpc.pb.h"

namespace penstock::protocol::engine::cri {
namespace {

namespace v1 = ::runtime::v1;

constexpr char kOwner[] = "penstock.io/proof";
constexpr char kSandboxImage[] = "registry.k8s.io/pause:3.8";

/// What is kept while the engine restarts, as by a real one.
struct Kept {
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  FakeEngine::Says says;
  std::map<std::string, v1::PodSandbox> sandboxes;
  std::map<std::string, v1::PodSandboxConfig> configs;
  std::map<std::string, std::string> handlers;    // by sandbox
  std::vector<FakeEngine::Container> containers;  // the id of each is its place
};

class ImagesService final : public v1::ImageService::Service {
 public:
  explicit ImagesService(Kept& kept) : kept_(kept) {}

  grpc::Status ListImages(grpc::ServerContext*, const v1::ListImagesRequest*,
                          v1::ListImagesResponse* response) override {
    const std::lock_guard lock(kept_.mutex);
    v1::Image& users = *response->add_images();
    users.set_id("sha256:users");
    users.add_repo_tags("example.com/pause:3.8");
    users.set_size(1);
    v1::Image& image = *response->add_images();
    image.set_id("sha256:pause");
    image.add_repo_tags(kSandboxImage);
    image.add_repo_digests("registry.k8s.io/pause@sha256:p");
    image.set_size(2);
    image.set_pinned(kept_.says.pinned);
    return grpc::Status::OK;
  }

 private:
  Kept& kept_;
};

class Service final : public v1::RuntimeService::Service {
 public:
  Service(Kept& kept, std::atomic<int>& asked) : kept_(kept), asked_(asked) {}

  /// Ends the calls that wait for an answer without giving one.
  void End() { ended_.set_value(); }

  grpc::Status Version(grpc::ServerContext*, const v1::VersionRequest*,
                       v1::VersionResponse* response) override {
    const FakeEngine::Says says = Now();
    if (auto refused = Refusal(says); !refused.ok()) return refused;
    response->set_version("0.1.0");
    response->set_runtime_name(says.name);
    response->set_runtime_version(says.version);
    response->set_runtime_api_version("v1");
    return grpc::Status::OK;
  }

  grpc::Status Status(grpc::ServerContext*, const v1::StatusRequest* request,
                      v1::StatusResponse* response) override {
    const FakeEngine::Says says = Now();
    if (auto refused = Refusal(says); !refused.ok()) return refused;
    ++asked_;
    if (request->verbose() && !says.config.empty())
      (*response->mutable_info())["config"] = says.config;
    return grpc::Status::OK;
  }

  grpc::Status RunPodSandbox(grpc::ServerContext*, const v1::RunPodSandboxRequest* request,
                             v1::RunPodSandboxResponse* response) override {
    const std::lock_guard lock(kept_.mutex);
    if (!request->runtime_handler().empty() && !kept_.says.refuses_handler.empty())
      return {grpc::StatusCode::UNKNOWN, kept_.says.refuses_handler};
    const std::string id = "sandbox-" + request->config().metadata().uid();
    v1::PodSandbox& sandbox = kept_.sandboxes[id];
    sandbox.set_id(id);
    *sandbox.mutable_metadata() = request->config().metadata();
    *sandbox.mutable_labels() = request->config().labels();
    kept_.configs[id] = request->config();
    kept_.handlers[id] = request->runtime_handler();
    response->set_pod_sandbox_id(id);
    return grpc::Status::OK;
  }

  grpc::Status ListPodSandbox(grpc::ServerContext*, const v1::ListPodSandboxRequest* request,
                              v1::ListPodSandboxResponse* response) override {
    const std::lock_guard lock(kept_.mutex);
    for (const auto& [id, sandbox] : kept_.sandboxes) {
      const bool by_id = request->filter().id().empty() || request->filter().id() == id;
      const auto& wanted = request->filter().label_selector();
      const auto owner = wanted.find(kOwner);
      if (by_id && (owner == wanted.end() || sandbox.labels().at(kOwner) == owner->second))
        *response->add_items() = sandbox;
    }
    return grpc::Status::OK;
  }

  grpc::Status RemovePodSandbox(grpc::ServerContext*, const v1::RemovePodSandboxRequest* request,
                                v1::RemovePodSandboxResponse*) override {
    const std::lock_guard lock(kept_.mutex);
    if (kept_.says.keeps_sandboxes) return {grpc::StatusCode::DEADLINE_EXCEEDED, "a process hangs"};
    kept_.sandboxes.erase(request->pod_sandbox_id());
    return grpc::Status::OK;
  }

  grpc::Status CreateContainer(grpc::ServerContext*, const v1::CreateContainerRequest* request,
                               v1::CreateContainerResponse* response) override {
    const std::lock_guard lock(kept_.mutex);
    FakeEngine::Says& says = kept_.says;
    FakeEngine::Container container = ContainerOf(*request);
    container.at = std::chrono::steady_clock::now();
    const bool with_devices = !container.devices.empty() || !container.annotations.empty();
    response->set_container_id(std::to_string(kept_.containers.size()));
    kept_.containers.push_back(std::move(container));
    if (says.ends_sandboxes) {
      kept_.sandboxes.at(request->pod_sandbox_id()).set_state(v1::SANDBOX_NOTREADY);
      return {grpc::StatusCode::UNKNOWN, "sandbox container is not running"};
    }
    if (!says.refuses_all.empty()) return {grpc::StatusCode::UNKNOWN, says.refuses_all};
    if (with_devices && !says.refuses_once.empty())
      return {grpc::StatusCode::UNKNOWN, std::exchange(says.refuses_once, "")};
    if (with_devices && !says.refuses.empty()) return {grpc::StatusCode::UNKNOWN, says.refuses};
    return grpc::Status::OK;
  }

  grpc::Status StartContainer(grpc::ServerContext*, const v1::StartContainerRequest* request,
                              v1::StartContainerResponse*) override {
    const std::lock_guard lock(kept_.mutex);
    if (kept_.says.collects) return {grpc::StatusCode::NOT_FOUND, "an error occurred: not found"};
    const FakeEngine::Container& container =
        kept_.containers.at(std::stoul(request->container_id()));
    const bool hangs =
        kept_.says.hangs_all ||
        (kept_.says.hangs && (!container.devices.empty() || !container.annotations.empty()));
    // What a call says whose deadline has passed, without the wait.
    if (hangs) return {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"};
    return grpc::Status::OK;
  }

  grpc::Status ExecSync(grpc::ServerContext*, const v1::ExecSyncRequest* request,
                        v1::ExecSyncResponse* response) override {
    std::unique_lock lock(kept_.mutex);
    if (!kept_.says.no_exec.empty()) return {grpc::StatusCode::UNKNOWN, kept_.says.no_exec};
    for (int i = 1; i < request->cmd_size(); ++i) {
      const std::string& file = request->cmd(i);
      if (file == "--last") continue;
      kept_.containers.at(std::stoul(request->container_id())).files.push_back(file);
      const auto error = kept_.says.errors.find(file);
      const int number = error == kept_.says.errors.end() ? 0 : error->second;
      response->mutable_stdout()->append(std::to_string(number) + " " + file + "\n");
    }
    ++kept_.waiting;
    kept_.changed.wait(lock, [this] { return !kept_.says.slow; });
    --kept_.waiting;
    response->set_exit_code(kept_.says.exit_code);
    return grpc::Status::OK;
  }

 private:
  FakeEngine::Says Now() {
    const std::lock_guard lock(kept_.mutex);
    return kept_.says;
  }

  grpc::Status Refusal(const FakeEngine::Says& says) {
    if (says.no_such_service)
      return {grpc::StatusCode::UNIMPLEMENTED, "unknown service runtime.v1.RuntimeService"};
    if (says.silent) {
      end_.wait();
      return grpc::Status::CANCELLED;
    }
    return grpc::Status::OK;
  }

  FakeEngine::Container ContainerOf(const v1::CreateContainerRequest& request) const {
    const v1::ContainerConfig& config = request.config();
    const v1::PodSandboxConfig& sandbox = kept_.configs.at(request.pod_sandbox_id());
    FakeEngine::Container container{.image = config.image().image(),
                                    .program = config.mounts(0).host_path()};
    container.command.assign(config.command().begin(), config.command().end());
    for (const v1::CDIDevice& device : config.cdi_devices())
      container.devices.push_back(device.name());
    for (const auto& [key, value] : config.annotations())
      container.annotations += key + "=" + value;
    for (const v1::Device& device : config.devices())
      container.files_given +=
          device.host_path() + ":" + device.container_path() + ":" + device.permissions() + " ";
    for (const v1::KeyValue& one : config.envs())
      container.environment += one.key() + "=" + one.value() + " ";
    container.handler = kept_.handlers.at(request.pod_sandbox_id());
    container.cgroup_parent = sandbox.linux().cgroup_parent();
    for (const auto& [label, value] : config.labels()) container.labels[label] = value;
    container.uid = sandbox.metadata().uid();
    container.log = sandbox.log_directory() + "/" + config.log_path();
    container.owner = sandbox.labels().at(kOwner);
    const auto& security = config.linux().security_context();
    container.confined = security.capabilities().drop_capabilities_size() == 1 &&
                         security.capabilities().drop_capabilities(0) == "ALL" &&
                         security.capabilities().add_capabilities_size() == 1 &&
                         security.capabilities().add_capabilities(0) == "DAC_OVERRIDE" &&
                         security.readonly_rootfs() && security.no_new_privs() &&
                         security.has_run_as_user() && config.mounts(0).readonly() &&
                         security.namespace_options().network() == v1::NODE;
    return container;
  }

  Kept& kept_;
  std::atomic<int>& asked_;
  std::promise<void> ended_;
  const std::shared_future<void> end_ = ended_.get_future().share();
};

}  // namespace

struct FakeEngine::State {
  std::string socket;
  std::atomic<int> asked = 0;
  Kept kept;
  ImagesService images{kept};
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::Server> server;
};

FakeEngine::FakeEngine(std::string socket) : state_(std::make_unique<State>()) {
  state_->socket = std::move(socket);
}

FakeEngine::~FakeEngine() { Stop(); }

void FakeEngine::Start(Says says) {
  rpc::StartGrpc();
  std::filesystem::create_directories(std::filesystem::path(state_->socket).parent_path());
  state_->kept.says = std::move(says);
  state_->service = std::make_unique<Service>(state_->kept, state_->asked);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(rpc::UnixTarget(state_->socket), grpc::InsecureServerCredentials());
  builder.RegisterService(state_->service.get());
  builder.RegisterService(&state_->images);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
  state_->server = builder.BuildAndStart();
}

void FakeEngine::Stop() {
  if (!state_->server) return;
  Change([](Says& says) { says.slow = false; });
  state_->service->End();
  state_->server->Shutdown(std::chrono::system_clock::now());
  state_->server.reset();
  std::filesystem::remove(state_->socket);
}

void FakeEngine::Change(const std::function<void(Says&)>& change) {
  const std::lock_guard lock(state_->kept.mutex);
  change(state_->kept.says);
  state_->kept.changed.notify_all();
}

int FakeEngine::asked() const { return state_->asked; }

std::vector<FakeEngine::Container> FakeEngine::containers() const {
  const std::lock_guard lock(state_->kept.mutex);
  return state_->kept.containers;
}

int FakeEngine::waiting() const {
  const std::lock_guard lock(state_->kept.mutex);
  return state_->kept.waiting;
}

std::size_t FakeEngine::sandboxes() const {
  const std::lock_guard lock(state_->kept.mutex);
  return state_->kept.sandboxes.size();
}

void FakeEngine::Leave(const std::string& owner, const std::string& uid) {
  const std::lock_guard lock(state_->kept.mutex);
  const std::string id = "left-" + owner + "-" + uid;
  v1::PodSandbox& sandbox = state_->kept.sandboxes[id];
  sandbox.set_id(id);
  sandbox.mutable_metadata()->set_uid(uid);
  (*sandbox.mutable_labels())[kOwner] = owner;
}

}  // namespace penstock::protocol::engine::cri
