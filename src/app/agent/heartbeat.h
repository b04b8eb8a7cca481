// Detects a hanging thread of the agent, for probes and for systemd's watchdog.
#pragma once

#include <string>
#include <vector>

#include "os/loop.h"

namespace penstock::app {

/// Checks how long the loops have been busy with one task. Costs nothing while they are idle.
class Heartbeat {
 public:
  /// The loops must outlive this object.
  explicit Heartbeat(std::vector<const os::Loop*> loops) : loops_(std::move(loops)) {}

  /// Notifies systemd's watchdog, at half of its interval, while no loop hangs; without
  /// notifications systemd ends the agent. Runs on `control`, so a hang of that loop also stops the
  /// notifications. Does nothing if no watchdog is set.
  void NotifySystemd(os::Loop& control) const;

  /// Describes in one sentence a task that has taken so long that the agent should be restarted;
  /// empty if there is none. Any thread.
  std::string Hangs() const;

 private:
  const std::vector<const os::Loop*> loops_;
};

}  // namespace penstock::app
