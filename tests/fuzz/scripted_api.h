// An API server in this process that answers what a fuzz target gives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/executor.h"
#include "edge/kube/api.h"

namespace penstock::fuzz {

using edge::kube::Answer;
using edge::kube::Api;
using edge::kube::Call;
using edge::kube::Stream;

/// An API server whose answer to every call is the input.
class ScriptedApi final : public Api {
 public:
  explicit ScriptedApi(std::string_view input) : input_(input) {}

  base::ManualExecutor& executor() override { return executor_; }

  void Do(Call, Done done) override {
    executor_.Post([this, done = std::move(done)] { done(Answer{200, std::string(input_)}); });
  }

  std::unique_ptr<Stream> Open(Call call, std::function<void(std::string_view)> line, std::function<void(base::Status)>) override {
    auto& of_path = lines_[call.path];
    of_path = std::make_shared<Line>(std::move(line));
    return std::make_unique<Opened>(of_path);
  }

  /// A line on the stream of this path that was opened last; on none where the client waits.
  void Send(const std::string& path, std::string_view text) {
    const auto found = lines_.find(path);
    if (found == lines_.end()) return;
    if (const auto line = found->second; *line) (*line)(text);
  }

 private:
  using Line = std::function<void(std::string_view)>;

  struct Opened final : Stream {
    explicit Opened(std::shared_ptr<Line> its) : line(std::move(its)) {}
    ~Opened() override { *line = nullptr; }
    std::shared_ptr<Line> line;
  };

  std::string_view input_;
  base::ManualExecutor executor_;
  std::map<std::string, std::shared_ptr<Line>> lines_;
};

}  // namespace penstock::fuzz
