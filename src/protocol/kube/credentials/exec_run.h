// Runs an exec plugin asynchronously and collects its output.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "os/loop.h"
#include "protocol/kube/credentials/access.h"

namespace penstock::protocol::kube {

/// One run. Use on the loop's thread; the destructor kills the plugin's process group and calls
/// nothing. The plugin's standard error goes to ours, since it may say where the user can sign in.
class ExecRun {
 public:
  using Done = std::function<void(base::Result<std::string>)>;

  static constexpr base::Duration kDeadline = std::chrono::minutes(2);
  static constexpr std::size_t kMaxOutput = 1u << 20;

  /// Calls `done` once, later, with all of standard output, or with an error: kNotFound if there is
  /// no such program (with the install hint), kUnauthenticated if it failed, kDeadlineExceeded.
  /// `done` may destroy this object.
  ExecRun(os::Loop& loop, const ExecPlugin& plugin, std::vector<std::string> environment, Done done,
          base::Duration deadline = kDeadline);
  ~ExecRun();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube
