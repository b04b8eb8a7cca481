// Follows which kernel the node will boot next, so that what is missing for it is known before.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "base/lifetime.h"
#include "os/loop.h"
#include "os/watch/watch.h"

namespace penstock::app {

/// On the control loop; files below the driver root are read on `io`, when the agent starts and
/// some seconds after the boot loader's folders have changed. A driver root that is not the host's
/// root has no such files, and nothing is known.
class BootFollower {
 public:
  /// `changed` is called when next_kernel() is another.
  BootFollower(os::Loop& control, base::Executor& io, std::function<void()> changed);
  ~BootFollower();
  BootFollower(const BootFollower&) = delete;
  BootFollower& operator=(const BootFollower&) = delete;

  /// Call again for a changed configuration.
  void Configure(const api::PathsConfig& paths);

  /// Its release; empty: the running one, or not known.
  const std::string& next_kernel() const { return next_kernel_; }

 private:
  void ReadSoon();
  void Read();
  void Take(const std::string& root, std::string kernel);

  os::Loop& control_;
  base::Executor& io_;
  const std::function<void()> changed_;
  std::string root_;
  std::string next_kernel_;
  base::TimerId timer_ = 0;
  bool reading_ = false, again_ = false;
  std::vector<std::unique_ptr<os::PathWatch>> watches_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
