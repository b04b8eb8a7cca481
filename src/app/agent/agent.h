// The agent of one node, put together: rooms constructed in order, joined by snapshots. Decides nothing itself.
#pragma once

#include <memory>
#include <string>

#include "app/options.h"
#include "base/core/result.h"

namespace penstock::app {

/// What the agent was told, and its configuration to begin with.
struct AgentOptions {
  Settings settings;
  Resolved start;             ///< what the settings make now
  std::string worker;         ///< path of penstock-worker
  bool wait_for_lock = true;  ///< false: another agent is an error
};

/// Runs an agent on the calling thread until SIGTERM or SIGINT, or until somebody entitled asks it to end. Returns its exit status: 0 ended
/// as asked, 1 could not start (the log says why).
int RunAgent(const AgentOptions& options);

}  // namespace penstock::app
