// Creates and removes the simulated machine under a run directory. Executes penstock-sim; does not
// link it.
#pragma once

#include <string>

#include "app/options.h"
#include "base/core/result.h"

namespace penstock::app {

/// Returns "<run_dir>/sim".
std::string SimulationRoot(const std::string& run_dir);

/// Creates the machine and replaces one that was left there. Blocks. The error is the output of
/// penstock-sim.
base::Status StartSimulation(const std::string& machine, const std::string& run_dir);

/// Sets the driver, device and sysfs roots to the simulated machine, except those that the user
/// gave. Also sets the folder of MPS where `config` has the default: the simulated machine's MPS
/// servers are not this machine's.
void UseSimulation(const std::string& run_dir, const api::NodeConfig& config, Settings& settings);

/// Removes the simulated machine. Returns whether there was one. Blocks.
base::Result<bool> StopSimulation(const std::string& run_dir);

}  // namespace penstock::app
