// Decides which pods an upgrade evicts: only those that hold devices. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/cluster/driver.h"
#include "operator/driver/node_upgrade.h"

namespace penstock::cluster {

struct Evictions {
  std::vector<UpgradeAction> actions;
  std::string blocked;   ///< why a pod may not be evicted; then none is
  std::string waiting;   ///< which pods are still there
  bool refused = false;  ///< the last eviction of one of these
  bool Done() const { return actions.empty() && blocked.empty() && waiting.empty(); }
};

/// `selector`: only pods with these labels may be evicted; empty: all.
Evictions EvictionsOf(const std::vector<HoldingPod>& pods, const api::UpgradeEviction& rules,
                      const std::string& selector);

}  // namespace penstock::cluster
