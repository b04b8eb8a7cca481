// Discovery of a simulated machine, once.
#include "app/penstock/against.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "app/agent/paths.h"
#include "app/agent/vendor_line.h"
#include "app/penstock/programs.h"
#include "app/penstock/simulation.h"
#include "base/log.h"
#include "node/health/health.h"
#include "os/loop.h"
#include "vendor/all.h"

namespace penstock::app {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kPatience = 60s;

/// A folder with a simulated machine in it, until the end.
class SimulatedFolder {
 public:
  static base::Result<std::unique_ptr<SimulatedFolder>> Make(const std::string& machine) {
    std::error_code error;
    std::string path = std::filesystem::temp_directory_path(error).string() + "/penstock-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return base::ErrnoError(errno, "make a folder for the simulated machine");
    auto folder = std::unique_ptr<SimulatedFolder>(new SimulatedFolder(path));
    TRY(StartSimulation(machine, path));
    return folder;
  }
  ~SimulatedFolder() {
    (void)StopSimulation(path_);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SimulatedFolder(const SimulatedFolder&) = delete;
  SimulatedFolder& operator=(const SimulatedFolder&) = delete;

  api::NodeConfig Config() const {
    api::NodeConfig config;
    config.paths.driver_root = config.paths.dev_root = SimulationRoot(path_);
    config.paths.sysfs_root = SimulationRoot(path_) + "/sys";
    return config;
  }

 private:
  explicit SimulatedFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

/// Looks for every vendor's devices until each was looked for once.
base::Status Discover(const api::NodeConfig& config, const std::string& worker, node::inventory::Inventory& inventory) {
  os::Loop loop("look");
  node::health::Monitor monitor(loop, inventory, vendor::FindDialect, {});
  std::vector<std::unique_ptr<VendorLine>> lines;
  std::size_t left = vendor::Dialects().size();
  for (const device::Dialect* dialect : vendor::Dialects())
    lines.push_back(std::make_unique<VendorLine>(loop, config, worker, *dialect, inventory, monitor));
  for (const auto& line : lines)
    line->Start([&] {
      if (--left == 0) loop.Stop();
    });
  loop.PostAfter(kPatience, [&] { loop.Stop(); });
  loop.Run();
  lines.clear();
  if (left > 0) return base::Error(base::Code::kDeadlineExceeded, "the simulated machine's driver does not answer");
  return {};
}

}  // namespace

base::Status LookAt(const std::string& machine, const std::function<void(const door::PreviewNode&)>& use) {
  base::StartLog("penstock", base::kError);
  ASSIGN(const std::string worker, FindProgram("penstock-worker"));
  ASSIGN(const auto folder, SimulatedFolder::Make(machine));
  const api::NodeConfig config = folder->Config();
  node::inventory::Inventory inventory;
  TRY(Discover(config, worker, inventory));
  const auto snapshot = inventory.published().Get();
  const node::ledger::Snapshot nobody;
  use({.inventory = *snapshot,
       .ledger = nobody,
       .dialect_of = vendor::FindDialect,
       .machine = os::ReadMachineFacts(MachinePathsOf(config)),
       .timestamp = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count(),
       .nfd = true});  // the host's own features would be this machine's
  return {};
}

}  // namespace penstock::app
