// An in-process API server whose responses are the input of a fuzz target.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/testing/manual_executor.h"
#include "protocol/kube/api.h"

namespace penstock::fuzz {

using protocol::kube::Api;
using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::WatchStream;

/// An API server that returns the input in response to every call.
class ScriptedApi final : public Api {
 public:
  explicit ScriptedApi(std::string_view input) : input_(input) {}

  base::ManualExecutor& executor() override { return executor_; }

  void Do(ApiCall, Done done) override {
    executor_.Post([this, done = std::move(done)] { done(ApiResponse{200, std::string(input_)}); });
  }

  std::unique_ptr<WatchStream> Open(ApiCall call, std::function<void(std::string_view)> line,
                                    std::function<void(base::Status)>) override {
    auto& of_path = lines_[call.path];
    of_path = std::make_shared<Line>(std::move(line));
    return std::make_unique<Opened>(of_path);
  }

  /// Sends a line on the stream of this path that was opened last; does nothing while the client
  /// backs off.
  void Send(const std::string& path, std::string_view text) {
    const auto found = lines_.find(path);
    if (found == lines_.end()) return;
    if (const auto line = found->second; *line) (*line)(text);
  }

 private:
  using Line = std::function<void(std::string_view)>;

  struct Opened final : WatchStream {
    explicit Opened(std::shared_ptr<Line> its) : line(std::move(its)) {}
    ~Opened() override { *line = nullptr; }
    std::shared_ptr<Line> line;
  };

  std::string_view input_;
  base::ManualExecutor executor_;
  std::map<std::string, std::shared_ptr<Line>> lines_;
};

}  // namespace penstock::fuzz
