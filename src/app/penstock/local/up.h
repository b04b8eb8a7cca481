// `penstock up` and `down`: start and stop an agent.
#pragma once

#include <string>

#include "app/penstock/common/verbs.h"

namespace penstock::app {

struct UpOptions {
  std::string simulate;  ///< machine; empty: this machine's hardware
  bool detach = false;
};

/// Starts an agent, prints what it found, and waits until it ends; with `detach` returns once the
/// agent is ready. Returns the exit status: the agent's own where it ended, else 0 or 1.
int Up(const Common& common, const UpOptions& options);

/// Stops the agent of the run directory, waits for it, and removes a simulated machine. Returns 0
/// also where no agent ran.
int Down(const Common& common);

}  // namespace penstock::app
