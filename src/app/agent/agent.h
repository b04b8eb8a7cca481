// Runs the agent of one node: constructs its parts in order and connects them through snapshots.
#pragma once

#include <string>

#include "app/options.h"
#include "base/core/result.h"

namespace penstock::app {

/// The command line and the configuration of the agent at its start.
struct AgentOptions {
  Settings settings;
  Resolved start;             ///< the configuration that results from the settings now
  std::string worker;         ///< path of penstock-worker
  bool wait_for_lock = true;  ///< false: a running agent is an error
};

/// Runs an agent on the calling thread until SIGTERM or SIGINT, or until an authorized user asks it
/// to end. Returns its exit status: 0 it ended on request, 1 it could not start (the log says why).
int RunAgent(const AgentOptions& options);

}  // namespace penstock::app
