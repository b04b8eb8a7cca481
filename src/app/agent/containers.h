// How containers of this node come by devices: the programs that engines execute, put where the host has them; the specifications; and what
// the kubelet's engine can do with them. Construction only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/node_config.h"
#include "api/report.h"
#include "door/engine_setup.h"
#include "edge/engine/cri/inquiry.h"
#include "node/cdi/keeper.h"
#include "node/inventory/inventory.h"
#include "os/loop.h"

namespace penstock::app {

/// Where specifications' things lie, by a configuration.
node::cdi::Places PlacesOf(const api::NodeConfig& config);

/// On the control loop.
class Containers {
 public:
  /// `own_folder` is where this program and its kin lie. The engine is asked only for the kubelet's door.
  Containers(os::Loop& control, base::Executor& io, const api::NodeConfig& config, node::inventory::Inventory& inventory,
             std::string own_folder, bool kubelet_door);

  /// This agent serves the node and all devices have been looked at: specifications are written from now on.
  void Begin(const api::NodeConfig& config);

  void Configure(const api::NodeConfig& config);

  /// Null where specifications are not written here.
  base::Published<node::cdi::Written>* written() { return keeper_ ? &keeper_->published() : nullptr; }

  /// Null where nobody needs to know.
  edge::engine::cri::Inquiry* engine() { return engine_ ? &*engine_ : nullptr; }

  /// Where specifications are written, as engines call it; empty where they are not.
  std::string folder() const { return keeper_ ? folder_ : ""; }

  api::CdiReport Report();

  /// Vendors whose driver programs cannot use, since its libraries are of another version than its kernel module, and why.
  std::map<std::string, std::string> MismatchedDrivers();

 private:
  void WriteSpecifications(os::Loop& control, base::Executor& io, const api::NodeConfig& config, node::inventory::Inventory& inventory);
  node::cdi::Options OptionsOf(const api::CdiConfig& config) const;
  std::string HostFolder() const;

  const std::string own_folder_, folder_;
  api::CdiConfig config_;
  std::string why_off_;      // empty: specifications are written
  std::string why_no_hook_;  // empty: there is one
  std::optional<node::cdi::Keeper> keeper_;
  std::optional<edge::engine::cri::Inquiry> engine_;
  std::optional<door::EngineSetup> engine_setup_;
};

}  // namespace penstock::app
