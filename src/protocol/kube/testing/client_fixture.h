// Test helpers: a client on a loop of its own, and its streams, for tests that wait for answers.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "os/testing/run_on.h"
#include "protocol/kube/client.h"

namespace penstock::protocol::kube {

inline constexpr auto kPatience = std::chrono::seconds(60);

inline ApiCall GetOf(const std::string& path, base::Duration deadline = std::chrono::seconds(50)) {
  ApiCall call;
  call.path = path;
  call.deadline = deadline;
  return call;
}

class ClientUnderTest {
 public:
  explicit ClientUnderTest(ClusterAccess access, Client::Options options = {})
      : own_("kube test"), loop_(*own_) {
    loop_.Start();
    Make(std::move(access), std::move(options));
  }
  /// Uses a loop that already runs and continues to run afterwards.
  ClientUnderTest(os::Loop& loop, ClusterAccess access) : loop_(loop) {
    Make(std::move(access), {});
  }
  ~ClientUnderTest() {
    Run([&] { client_.reset(); });
    if (own_) own_->Stop();
  }

  /// Runs a function on the loop and waits for it.
  void Run(const std::function<void()>& function) { os::RunOn(loop_, function); }

  std::future<base::Result<ApiResponse>> Start(ApiCall call) {
    const auto promise = std::make_shared<std::promise<base::Result<ApiResponse>>>();
    Run([&] {
      client_->Do(std::move(call), [promise](base::Result<ApiResponse> answer) {
        promise->set_value(std::move(answer));
      });
    });
    return promise->get_future();
  }

  base::Result<ApiResponse> Do(ApiCall call) {
    auto future = Start(std::move(call));
    if (future.wait_for(kPatience) != std::future_status::ready)
      return base::Error(base::Code::kInternal, "the test timed out");
    return future.get();
  }

  os::Loop& loop() { return loop_; }
  std::unique_ptr<Client>& client() { return client_; }

 private:
  void Make(ClusterAccess access, Client::Options options) {
    Run([&] { client_ = std::make_unique<Client>(loop_, std::move(access), std::move(options)); });
  }

  std::optional<os::Loop> own_;
  os::Loop& loop_;
  std::unique_ptr<Client> client_;
};

/// A stream whose lines are collected until it ends.
class StreamUnderTest {
 public:
  StreamUnderTest(ClientUnderTest& client, ApiCall call) : client_(client) {
    client.Run([&] {
      stream_ = client.client()->Open(
          std::move(call), [this](std::string_view line) { lines_.emplace_back(line); },
          [this](base::Status status) { ended_.set_value(std::move(status)); });
    });
  }
  ~StreamUnderTest() {
    client_.Run([&] { stream_.reset(); });
  }

  base::Status WaitForEnd() {
    auto future = ended_.get_future();
    if (future.wait_for(kPatience) != std::future_status::ready)
      return base::Error(base::Code::kInternal, "the test timed out");
    return future.get();
  }
  /// Call after the end, or on the loop.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  ClientUnderTest& client_;
  std::unique_ptr<WatchStream> stream_;
  std::vector<std::string> lines_;
  std::promise<base::Status> ended_;
};

inline ClusterAccess AccessTo(const std::string& url) {
  ClusterAccess access;
  access.server = url;
  return access;
}

}  // namespace penstock::protocol::kube
