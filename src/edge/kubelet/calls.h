// Unary calls to a server on a unix socket, each on a connection of its own. Private to this room: includes gRPC, so for .cc files only.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "base/executor.h"
#include "base/result.h"
#include "edge/kubelet/grpc_unix.h"

namespace penstock::edge::kubelet {

/// Calls that end with their owner. Connecting to a unix socket takes well under a millisecond, so no connection is kept: nothing idles,
/// and a server that was restarted is simply found.
class Calls {
 public:
  explicit Calls(base::Executor& executor) : state_(std::make_shared<State>()) { state_->executor = &executor; }

  /// Cancels what is under way and waits for gRPC to let go of it (milliseconds). No callback runs afterwards.
  ~Calls() {
    std::set<std::shared_ptr<grpc::ClientContext>> contexts;
    {
      std::lock_guard lock(state_->mutex);
      state_->executor = nullptr;
      contexts = state_->contexts;
    }
    for (const auto& context : contexts) context->TryCancel();
    std::unique_lock lock(state_->mutex);
    state_->ended.wait(lock, [this] { return state_->contexts.empty(); });
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// Starts `Service::Stub::async`'s method by `start(async, context, request, response, done)`; calls back on the executor. Executor's
  /// thread.
  template <typename Service, typename Response, typename Request, typename Start>
  void Call(const std::string& socket, Request request, base::Duration within, Start start,
            std::function<void(base::Result<Response>)> done) {
    struct InFlight {
      std::shared_ptr<grpc::Channel> channel;
      std::unique_ptr<typename Service::Stub> stub;
      grpc::ClientContext context;
      Request request;
      Response response;
    };
    auto call = std::make_shared<InFlight>();
    call->channel = OpenChannel(socket);
    call->stub = Service::NewStub(call->channel);
    call->request = std::move(request);
    const std::shared_ptr<grpc::ClientContext> context(call, &call->context);
    context->set_deadline(std::chrono::system_clock::now() + within);
    {
      std::lock_guard lock(state_->mutex);
      state_->contexts.insert(context);
    }
    start(call->stub->async(), context.get(), &call->request, &call->response,
          [call, context, state = state_, done = std::move(done)](const grpc::Status& status) mutable {
            auto result = status.ok() ? base::Result<Response>(std::move(call->response)) : base::Result<Response>(FromGrpc(status));
            std::lock_guard lock(state->mutex);
            state->contexts.erase(context);
            if (state->executor != nullptr) {
              state->executor->Post([state_weak = std::weak_ptr(state), done = std::move(done), result = std::move(result)]() mutable {
                if (const auto alive = state_weak.lock(); alive && alive->executor != nullptr) done(std::move(result));
              });
            }
            state->ended.notify_all();
          });
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable ended;
    base::Executor* executor = nullptr;  // null once the owner is gone; written on its thread
    std::set<std::shared_ptr<grpc::ClientContext>> contexts;
  };
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kubelet
