// What our own processes cost, looked at every ten seconds; memory that the agent no longer needs is given back then. Reads /proc on the
// I/O loop.
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
class Costs {
 public:
  /// `processes` names our processes and their pids, 0 for one that does not run now.
  Costs(base::Executor& control, base::Executor& io, std::function<std::map<std::string, pid_t>()> processes);
  ~Costs();

  const std::vector<node::metrics::ProcessCost>& Get() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::app
