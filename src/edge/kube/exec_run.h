// Runs an exec plugin and takes what it prints. Does not wait for it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "edge/kube/access.h"
#include "os/loop.h"

namespace penstock::edge::kube {

/// One run. On the loop's thread; destroying it kills the plugin's process group and calls nothing. What the plugin says on standard error
/// goes to ours: it may tell the user where to sign in.
class ExecRun {
 public:
  using Done = std::function<void(base::Result<std::string>)>;

  static constexpr base::Duration kDeadline = std::chrono::minutes(2);
  static constexpr std::size_t kMostOutput = 1u << 20;

  /// `done` is called once, with all of standard output, later: kNotFound where there is no such program (with the install hint),
  /// kUnauthenticated where it failed, kDeadlineExceeded. It may destroy this.
  ExecRun(os::Loop& loop, const ExecPlugin& plugin, std::vector<std::string> environment, Done done, base::Duration deadline = kDeadline);
  ~ExecRun();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kube
