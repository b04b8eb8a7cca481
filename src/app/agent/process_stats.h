// Measures every ten seconds what the agent's own processes cost, and then returns memory that the
// agent no longer needs to the system. Reads /proc on the I/O loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "node/metrics/metrics.h"

namespace penstock::app {

/// On the control executor.
class ProcessStats {
 public:
  /// `processes` returns the names and pids of the agent's processes; 0 for one that is not
  /// running.
  ProcessStats(base::Executor& control, base::Executor& io,
               std::function<std::map<std::string, pid_t>()> processes);
  ~ProcessStats();

  const std::vector<node::metrics::ProcessCost>& Get() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::app
