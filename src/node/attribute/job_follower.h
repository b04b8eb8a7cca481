// Keeps the jobs of devices current while the files of a workload manager change.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "base/lifetime.h"
#include "base/published.h"
#include "node/attribute/job_files.h"
#include "os/loop.h"

namespace penstock::node::attribute {

/// On the control executor; the folder is watched and read on the loop `io`, which a user who
/// writes into the folder without end then occupies at most five times a second. Without a folder,
/// and while nothing changes in it, this costs nothing.
class JobFollower {
 public:
  JobFollower(base::Executor& control, os::Loop& io);
  ~JobFollower();  ///< after `io` has stopped
  JobFollower(const JobFollower&) = delete;
  JobFollower& operator=(const JobFollower&) = delete;

  /// Follows this folder, which need not exist yet, and no other; empty: none.
  void Configure(const std::string& folder);

  /// Changes only if jobs change.
  base::Published<DeviceJobs>& published() { return published_; }

 private:
  struct State;
  os::Loop& io_;
  base::Published<DeviceJobs> published_;
  std::string folder_;
  base::Lifetime lifetime_;
  std::shared_ptr<State> state_;  // used on `io`
};

}  // namespace penstock::node::attribute
