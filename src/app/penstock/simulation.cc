// The simulated machine under a run directory. Executes penstock-sim and knows nothing of what it makes.
#include "app/penstock/simulation.h"

#include "app/penstock/programs.h"
#include "os/file.h"

namespace penstock::app {

std::string SimulationRoot(const std::string& run_dir) { return run_dir + "/sim"; }

base::Status StartSimulation(const std::string& machine, const std::string& run_dir) {
  ASSIGN(const std::string program, FindProgram("penstock-sim"));
  TRY(StopSimulation(run_dir));
  return RunToEnd({program, "start", machine, "--root", SimulationRoot(run_dir)});
}

void UseSimulation(const std::string& run_dir, const api::NodeConfig& config, Settings& settings) {
  const std::string root = SimulationRoot(run_dir);
  settings.flags.try_emplace("--driver-root", root);
  settings.flags.try_emplace("--dev-root", root);
  settings.flags.try_emplace("--sysfs-root", root + "/sys");
  const std::string& mps_root = config.sharing.mps_root;
  if (mps_root == api::SharingConfig{}.mps_root) settings.plugin_flags.push_back({"--mps-root", root + mps_root, "--mps-root"});
}

base::Result<bool> StopSimulation(const std::string& run_dir) {
  const std::string root = SimulationRoot(run_dir);
  if (!os::Exists(root)) return false;
  ASSIGN(const std::string program, FindProgram("penstock-sim"));
  auto stopped = RunToEnd({program, "stop", "--root", root});
  // `up` and `down` may both be at it.
  if (!stopped.ok() && os::Exists(root)) return stopped.error();
  return true;
}

}  // namespace penstock::app
