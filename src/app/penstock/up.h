// `penstock up` and `down`: an agent's life as its user sees it. Decides nothing about devices.
#pragma once

#include <string>

#include "app/penstock/verbs.h"

namespace penstock::app {

struct UpOptions {
  std::string simulate;  ///< machine; empty: the hardware that is here
  bool detach = false;
};

/// Starts an agent, shows what it found, and stays with it until it ends; with `detach` returns once it is ready. Returns the exit status:
/// the agent's own where it ended, else 0 or 1.
int Up(const Common& common, const UpOptions& options);

/// Ends the agent of the run directory, waits for it, removes a simulated machine. 0 also where none ran.
int Down(const Common& common);

}  // namespace penstock::app
