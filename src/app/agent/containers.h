// Prepares how containers of this node get devices: installs the programs that engines execute,
// writes the CDI specifications, and watches and configures the kubelet's engine.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapter/kubelet/engine_reconciler.h"
#include "api/config/node_config.h"
#include "api/report.h"
#include "app/agent/container_check.h"
#include "app/agent/left_specifications.h"
#include "node/cdi/spec_writer.h"
#include "node/inventory/inventory.h"
#include "node/validate/validate.h"
#include "os/loop.h"
#include "protocol/engine/cri/engine_watcher.h"

namespace penstock::app {

/// The names under which engines are to know the runtime: those of the vendors whose driver is
/// there, or was looked for in vain. A vendor whose driver shows on the machine (Dialect's sign) is
/// only looked for with that.
std::vector<std::string> RuntimeHandlersOf(const node::inventory::Snapshot& inventory);

/// Which specifications say the groups of device files, by cdi.additionalGids and by what the
/// kubelet's engine reads; nothing: it has not been asked, or does not answer.
node::cdi::Groups GroupsFor(api::Switch configured,
                            const std::optional<protocol::engine::cri::EngineAbilities>& engine);

/// On the control loop.
class Containers {
 public:
  /// `own_folder` is the folder of this program and of the other Penstock programs. Only if
  /// `for_pods` the engine is watched, and the kubelet's specifications are this agent's.
  /// `changed` is called when the engine or the written specifications have changed, when those of
  /// an earlier agent were removed, and when the engine could not be configured.
  Containers(os::Loop& control, base::Executor& io, const api::NodeConfig& config,
             node::inventory::Inventory& inventory, const node::ledger::Ledger& ledger,
             std::string own_folder, bool for_pods, const std::function<void()>& changed);

  /// Call when this agent serves the node and all devices were read once: starts to write
  /// specifications.
  void Begin(const api::NodeConfig& config);

  void Configure(const api::NodeConfig& config);

  /// The inventory has changed.
  void DevicesChanged();

  /// Call once it is known who held devices before this agent; then LedgerChanged when the ledger
  /// has changed.
  void HoldersKnown();
  void LedgerChanged();

  /// Null if this agent writes no specifications.
  base::Published<node::cdi::Written>* written() {
    return writer_ ? &writer_->published() : nullptr;
  }

  /// Null if it is not needed.
  protocol::engine::cri::EngineWatcher* engine() { return engine_ ? &*engine_ : nullptr; }

  /// Where specifications are written, as engines name it; empty if none are written.
  std::string folder() const { return writer_ ? folder_ : ""; }

  /// `setup_known`: containers.configureEngine is what the configuration says, not held back until
  /// more is known (Configuration::SetServices).
  api::CdiReport Report(bool setup_known);

  /// What the validation judges. Refers to a snapshot that lives until the next call.
  node::validate::Toolkit Toolkit();

  /// How the kubelet's containers are started; nothing: no engine answers, or no specifications are
  /// written.
  std::optional<ContainerStart> StartedBy();

  /// Vendors whose driver programs cannot use, because its libraries and its kernel module have
  /// different versions; with the reason.
  std::map<std::string, std::string> MismatchedDrivers();

 private:
  void WriteSpecifications(os::Loop& control, base::Executor& io, const api::NodeConfig& config,
                           node::inventory::Inventory& inventory, bool for_pods);
  node::cdi::Options OptionsOf(const api::CdiConfig& config) const;
  node::cdi::Groups ChooseGroups();
  void Regroup();
  void SetUpEngine();
  void BeginToWrite();
  std::string HostFolder() const;
  std::string WhyEngineUnknown();
  bool IsNothingToBeWritten() const;
  void LookAtEngines();

  os::Loop& control_;
  base::Executor& io_;
  node::inventory::Inventory& inventory_;
  const std::string own_folder_, folder_, state_dir_;
  api::CdiConfig config_;
  std::string why_off_;       // empty: specifications are written
  std::string why_no_hook_;   // empty: the hook exists
  node::cdi::Groups groups_;  // as the writer has them
  bool begun_ = false, writing_ = false;
  api::EngineSetup engine_wanted_ = api::EngineSetup::kOff;
  std::set<std::string> handlers_;  // of all vendors seen so far
  std::optional<node::cdi::CdiSpecWriter> writer_;
  std::optional<LeftSpecifications> left_;  // where they are switched off
  std::optional<protocol::engine::cri::EngineWatcher> engine_;
  std::optional<adapter::kubelet::EngineReconciler> engine_setup_;
  std::vector<std::string> in_engines_;  // remarks, as of the last look
  std::shared_ptr<const node::cdi::Written> judged_;
  base::Subscription on_engine_, on_written_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
