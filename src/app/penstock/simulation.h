// The simulated machine under a run directory, made and removed by penstock-sim, which is executed and never linked.
#pragma once

#include <string>

#include "app/options.h"
#include "base/core/result.h"

namespace penstock::app {

/// "<run_dir>/sim".
std::string SimulationRoot(const std::string& run_dir);

/// Makes the machine; a tree that was left there is replaced. Blocks. The error is what penstock-sim said.
base::Status StartSimulation(const std::string& machine, const std::string& run_dir);

/// Points the driver, device and sysfs roots at the simulated machine, but for those that the user gave, and the folder of MPS where it is
/// the usual one in `config`: its servers are not this machine's.
void UseSimulation(const std::string& run_dir, const api::NodeConfig& config, Settings& settings);

/// Removes the tree where there is one. True where there was. Blocks.
base::Result<bool> StopSimulation(const std::string& run_dir);

}  // namespace penstock::app
