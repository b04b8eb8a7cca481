// Serves two methods of CRI with gRPC's synchronous server.
#include "protocol/engine/cri/fake/fake_engine.h"

#include <atomic>
#include <filesystem>
#include <future>
#include <utility>

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "protocol/rpc/unix.h"
#include "runtime.grpc.pb.h"

namespace penstock::protocol::engine::cri {
namespace {

namespace v1 = ::runtime::v1;

class Service final : public v1::RuntimeService::Service {
 public:
  Service(FakeEngine::Says says, std::atomic<int>& asked) : says_(std::move(says)), asked_(asked) {}

  /// Ends the calls that wait for an answer without giving one.
  void End() { ended_.set_value(); }

  grpc::Status Version(grpc::ServerContext*, const v1::VersionRequest*,
                       v1::VersionResponse* response) override {
    if (auto refused = Refusal(); !refused.ok()) return refused;
    response->set_version("0.1.0");
    response->set_runtime_name(says_.name);
    response->set_runtime_version(says_.version);
    response->set_runtime_api_version("v1");
    return grpc::Status::OK;
  }

  grpc::Status Status(grpc::ServerContext*, const v1::StatusRequest* request,
                      v1::StatusResponse* response) override {
    if (auto refused = Refusal(); !refused.ok()) return refused;
    ++asked_;
    if (request->verbose() && !says_.config.empty())
      (*response->mutable_info())["config"] = says_.config;
    return grpc::Status::OK;
  }

 private:
  grpc::Status Refusal() {
    if (says_.no_such_service)
      return {grpc::StatusCode::UNIMPLEMENTED, "unknown service runtime.v1.RuntimeService"};
    if (says_.silent) {
      end_.wait();
      return grpc::Status::CANCELLED;
    }
    return grpc::Status::OK;
  }

  const FakeEngine::Says says_;
  std::atomic<int>& asked_;
  std::promise<void> ended_;
  const std::shared_future<void> end_ = ended_.get_future().share();
};

}  // namespace

struct FakeEngine::State {
  std::string socket;
  std::atomic<int> asked = 0;
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
  state_->service = std::make_unique<Service>(std::move(says), state_->asked);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(rpc::UnixTarget(state_->socket), grpc::InsecureServerCredentials());
  builder.RegisterService(state_->service.get());
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
  state_->server = builder.BuildAndStart();
}

void FakeEngine::Stop() {
  if (!state_->server) return;
  state_->service->End();
  state_->server->Shutdown(std::chrono::system_clock::now());
  state_->server.reset();
  std::filesystem::remove(state_->socket);
}

int FakeEngine::asked() const { return state_->asked; }

}  // namespace penstock::protocol::engine::cri
