#include "app/penstock/common/simulation.h"

#include <filesystem>

#include "app/penstock/common/programs.h"
#include "backend/config_terms.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

// These folders are beside the machine's, because penstock-sim removes only what it created.
/// The folder of the MPS servers.
std::string MpsRoot(const std::string& run_dir) { return run_dir + "/mps"; }
/// The folder of CDI specifications, apart from the real ones, so that this machine's engines do
/// not use them.
std::string CdiRoot(const std::string& run_dir) { return run_dir + "/cdi"; }

}  // namespace

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
  settings.flags.try_emplace("--cdi-root", CdiRoot(run_dir));
  const std::string servers = api::OfVendor(config.sharing.server_roots, "nvidia");
  if (servers.empty() || servers == api::OfVendor(backend::ConfigTerms().server_roots, "nvidia"))
    settings.plugin_flags.push_back({"--mps-root", MpsRoot(run_dir), "--mps-root"});
}

base::Result<bool> StopSimulation(const std::string& run_dir) {
  const std::string root = SimulationRoot(run_dir);
  std::error_code ignored;
  for (const std::string& folder : {MpsRoot(run_dir), CdiRoot(run_dir)})
    std::filesystem::remove_all(folder, ignored);
  if (!os::Exists(root)) return false;
  ASSIGN(const std::string program, FindProgram("penstock-sim"));
  auto stopped = RunToEnd({program, "stop", "--root", root});
  // `up` and `down` may both stop it at the same time.
  if (!stopped.ok() && os::Exists(root)) return stopped.error();
  return true;
}

}  // namespace penstock::app
