// Makes unary gRPC calls to a server on a unix socket, each on a connection of its own. Includes
// gRPC, so for .cc files only.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "base/core/result.h"
#include "base/executor.h"
#include "os/core/file.h"
#include "protocol/rpc/unix.h"

namespace penstock::protocol::rpc {

/// Unary calls that end with their owner. Connecting to a unix socket takes well under a
/// millisecond, so no connection is kept: nothing idles, and the next call reaches a restarted
/// server. Created, used and destroyed on the executor's thread.
class Calls {
 public:
  explicit Calls(base::Executor& executor) : state_(std::make_shared<State>()) {
    StartGrpc();
    state_->executor = &executor;
  }

  /// Cancels the calls under way and waits until gRPC has released them (milliseconds). No callback
  /// runs afterwards.
  ~Calls() {
    decltype(State::calls) calls;
    {
      std::lock_guard lock(state_->mutex);
      state_->executor = nullptr;
      calls = state_->calls;
    }
    for (const auto& [key, call] : calls) call->context.TryCancel();
    std::unique_lock lock(state_->mutex);
    state_->ended.wait(lock, [this] { return state_->running == 0; });
    state_->calls.clear();
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// Starts a method of `Service::Stub::async` by `start(async, context, request, response, done)`;
  /// calls back on the executor.
  template <typename Service, typename Response, typename Request, typename Start>
  void Call(const std::string& socket, Request request, base::Duration within, Start start,
            std::function<void(base::Result<Response>)> done) {
    if (!os::Exists(socket)) {
      return state_->Later([weak = std::weak_ptr(state_), done = std::move(done), socket] {
        if (const auto alive = weak.lock(); alive && alive->executor != nullptr) {
          done(base::Error(base::Code::kUnavailable, socket + " does not exist"));
        }
      });
    }
    struct TypedCall : InFlight {
      std::shared_ptr<grpc::Channel> channel;
      std::unique_ptr<typename Service::Stub> stub;
      Request request;
      Response response;
    };
    auto owned = std::make_shared<TypedCall>();
    auto* const call = owned.get();
    call->channel = OpenChannel(socket);
    call->stub = Service::NewStub(call->channel);
    call->request = std::move(request);
    call->context.set_deadline(std::chrono::system_clock::now() + within);
    {
      std::lock_guard lock(state_->mutex);
      state_->calls.emplace(call, std::move(owned));
      ++state_->running;
    }
    start(call->stub->async(), &call->context, &call->request, &call->response,
          [call, state = state_, done = std::move(done)](const grpc::Status& status) mutable {
            auto result = status.ok() ? base::Result<Response>(std::move(call->response))
                                      : base::Result<Response>(FromGrpc(status));
            state->Later([weak = std::weak_ptr(state), call, done = std::move(done),
                          result = std::move(result)]() mutable {
              if (const auto alive = weak.lock(); alive && alive->Drop(call))
                done(std::move(result));
            });
            state->Ended();
          });
  }

 private:
  struct InFlight {
    virtual ~InFlight() = default;
    grpc::ClientContext context;
  };

  /// Owns the calls, so that their channels end on the executor's thread: gRPC 1.51 joins its
  /// callback threads when the last channel ends, and must not do so on one of them.
  struct State {
    /// Posts the function unless the owner is gone.
    void Later(std::function<void()> function) {
      std::lock_guard lock(mutex);
      if (executor != nullptr) executor->Post(std::move(function));
    }
    /// Removes a call. Returns false if the call and its owner are already gone.
    bool Drop(const void* key) {
      std::unique_lock lock(mutex);
      const auto node = calls.extract(key);
      lock.unlock();
      return !node.empty();
    }
    void Ended() {
      std::lock_guard lock(mutex);
      --running;
      ended.notify_all();
    }

    std::mutex mutex;
    std::condition_variable ended;
    base::Executor* executor = nullptr;  // null once the owner is gone
    std::map<const void*, std::shared_ptr<InFlight>> calls;
    int running = 0;
  };
  const std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::rpc
