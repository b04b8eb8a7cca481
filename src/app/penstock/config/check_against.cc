// Discovers the devices of a simulated machine once.
#include "app/penstock/config/check_against.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "app/devices/backend_connection.h"
#include "app/devices/paths.h"
#include "app/penstock/common/programs.h"
#include "app/penstock/common/simulation.h"
#include "backend/all.h"
#include "base/log.h"
#include "node/health/monitor.h"
#include "node/sample/sampler.h"
#include "os/loop.h"

namespace penstock::app {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kPatience = 60s;
constexpr base::Duration kPatienceForSamples =
    10s;  // devices that do not respond are shown nevertheless

/// A folder with a simulated machine, both removed at destruction.
class SimulatedFolder {
 public:
  static base::Result<std::unique_ptr<SimulatedFolder>> Make(const std::string& machine) {
    std::error_code error;
    std::string path = std::filesystem::temp_directory_path(error).string() + "/penstock-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return base::ErrnoError(errno, "create a folder for the simulated machine");
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

/// Whether each device was sampled, successfully or not.
bool AllSampled(const node::inventory::Snapshot& inventory, const node::sample::Snapshot& samples) {
  return std::all_of(inventory.devices.begin(), inventory.devices.end(),
                     [&samples](const node::inventory::Entry& entry) {
                       if (entry.health.state == device::HealthState::kGone) return true;
                       const node::sample::DeviceSample* sample = samples.Find(entry.facts->id);
                       return sample != nullptr && sample->collections + sample->failures > 0;
                     });
}

/// Searches the devices of every vendor until each search has finished once, and samples every
/// value of each device.
base::Result<std::shared_ptr<const node::sample::Snapshot>> Discover(
    const api::NodeConfig& config, const std::string& worker,
    node::inventory::Inventory& inventory) {
  os::Loop loop("look");
  node::health::Monitor monitor(loop, inventory, backend::FindDialect, {});
  std::vector<std::unique_ptr<BackendConnection>> connections;
  for (const device::Dialect* dialect : backend::Dialects())
    connections.push_back(std::make_unique<BackendConnection>(loop, loop, config, worker, *dialect,
                                                              inventory, monitor));
  std::optional<node::sample::Sampler> sampler;
  base::Subscription on_samples;
  const auto stop_when_sampled = [&] {
    if (AllSampled(*inventory.published().Get(), *sampler->published().Get())) loop.Stop();
  };
  const auto sample = [&] {
    std::vector<node::sample::Sampler::Source> sources;
    for (const auto& connection : connections)
      sources.push_back({.dialect = &connection->dialect(),
                         .backend = &connection->backend(),
                         .session = [&connection = *connection] { return connection.session(); }});
    sampler.emplace(loop, inventory, std::move(sources));
    on_samples = sampler->published().Subscribe([&](const auto&) { loop.Post(stop_when_sampled); });
    sampler->Configure({.interval = 100ms, .processes = false, .left_out = {}});
    stop_when_sampled();
    loop.PostAfter(kPatienceForSamples, [&] { loop.Stop(); });
  };
  std::size_t left = connections.size();
  for (const auto& connection : connections)
    connection->Start([&] {
      if (--left == 0) sample();
    });
  loop.PostAfter(kPatience, [&] { loop.Stop(); });
  loop.Run();
  if (!sampler)
    return base::Error(base::Code::kDeadlineExceeded,
                       "the simulated machine's driver does not respond");
  return sampler->published().Get();
}

}  // namespace

base::Status Simulate(const std::string& machine,
                      const std::function<void(const view::PreviewNode&,
                                               const node::sample::Snapshot& samples)>& use) {
  base::StartLog("penstock", base::kError);
  ASSIGN(const std::string worker, FindProgram("penstock-worker"));
  ASSIGN(const auto folder, SimulatedFolder::Make(machine));
  const api::NodeConfig config = folder->Config();
  node::inventory::Inventory inventory;
  ASSIGN(const auto samples, Discover(config, worker, inventory));
  const auto snapshot = inventory.published().Get();
  const node::ledger::Snapshot no_leases;
  use({.inventory = *snapshot,
       .ledger = no_leases,
       .dialect_of = backend::FindDialect,
       .machine = os::ReadMachineFacts(MachinePathsOf(config)),
       .timestamp = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count(),
       .nfd = true},  // leaves out labels of host features, which would describe this machine
      *samples);
  return {};
}

}  // namespace penstock::app
