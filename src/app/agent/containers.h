// How containers of this node come by devices: the programs that engines execute, put where the host has them, and the specifications.
// Construction only.
#pragma once

#include <optional>
#include <string>

#include "api/node_config.h"
#include "api/report.h"
#include "node/cdi/keeper.h"
#include "node/inventory/inventory.h"
#include "os/loop.h"

namespace penstock::app {

/// Where specifications' things lie, by a configuration.
node::cdi::Places PlacesOf(const api::NodeConfig& config);

/// On the control loop.
class Containers {
 public:
  /// `own_folder` is where this program and its kin lie.
  Containers(os::Loop& control, base::Executor& io, const api::NodeConfig& config, node::inventory::Inventory& inventory,
             std::string own_folder);

  /// This agent serves the node and all devices have been looked at: specifications are written from now on.
  void Begin();

  void Configure(const api::NodeConfig& config);

  /// Null where specifications are not written here.
  base::Published<node::cdi::Written>* written() { return keeper_ ? &keeper_->published() : nullptr; }

  api::CdiReport Report();

 private:
  node::cdi::Options OptionsOf(const api::CdiConfig& config) const;

  os::Loop& control_;
  base::Executor& io_;
  const std::string own_folder_, folder_;
  api::CdiConfig config_;
  std::string why_off_;      // empty: specifications are written
  std::string why_no_hook_;  // empty: there is one
  std::optional<node::cdi::Keeper> keeper_;
};

}  // namespace penstock::app
