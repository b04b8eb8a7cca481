// Chooses which nodes may begin the upgrade of their driver. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/driver/node_upgrade.h"

namespace penstock::cluster {

struct UpgradeCounts {
  std::size_t nodes = 0, done = 0, required = 0, underway = 0, failed = 0;
  /// Underway, or cordoned or not ready and not failed: a node that failed is lost for now, and
  /// does not hold up the others.
  std::size_t unavailable = 0;
  std::size_t available = 0;  ///< as many nodes as may begin by the limits; 0 behind a closed gate
};

struct FleetPlan {
  std::map<std::string, NodeStep> steps;  ///< by node; with why a node waits
  UpgradeCounts counts;                   ///< before the steps
  std::string gate, gate_message;  ///< why no further node begins: "Paused", "TooManyFailures",
                                   ///< "CanaryFailed", "CanariesFirst"; empty: it is open
  std::optional<base::WallTime> look_again;  ///< when time alone changes something
};

/// All nodes of one driver. Nodes that others cordoned begin without regard to the limit of
/// unavailable nodes, and come first after the canaries; the others by name. A node that a user
/// asked for does not wait for canaries and failures. A canary counts as upgraded while it works;
/// a node on which the driver worked after its upgrade and fails validation now is a failure.
FleetPlan PlanUpgrades(const std::vector<UpgradeNode>& nodes, const api::UpgradePolicy& policy,
                       base::WallTime now);

/// "25%" of `total`, rounded up, or a number; nothing for an empty text.
std::optional<std::size_t> ScaledTo(const std::string& text, std::size_t total);

}  // namespace penstock::cluster
