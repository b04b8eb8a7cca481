// Whether the agent's threads come back from what they do: for probes, and for systemd's watchdog.
#pragma once

#include <string>
#include <vector>

#include "os/loop.h"

namespace penstock::app {

/// Looks at how long the loops have been busy with one thing. Nothing runs for it while they are idle.
class Heartbeat {
 public:
  /// The loops outlive it.
  explicit Heartbeat(std::vector<const os::Loop*> loops) : loops_(std::move(loops)) {}

  /// Tells systemd, at half of the time within which it wants to know, that nothing hangs; it ends the agent otherwise. Runs on `control`,
  /// which is told by its silence where it hangs itself. Nothing where no watchdog is set.
  void TellSystemd(os::Loop& control) const;

  /// What has been going on for so long that the agent is better started again: one sentence; empty where there is nothing. Any thread.
  std::string Hangs() const;

 private:
  const std::vector<const os::Loop*> loops_;
};

}  // namespace penstock::app
