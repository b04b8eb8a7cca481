// Decides which devices to reset now, and why the others that need a reset must wait. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "base/core/clock.h"

namespace penstock::node::change {

/// The facts about a device that matter for its reset.
struct ResetCandidate {
  bool needs_reset = false;            ///< it is unhealthy because of a fault that a reset ends
  bool free = true;                    ///< it has no holder and no process
  bool present = true;                 ///< not gone
  std::vector<base::WallTime> before;  ///< its resets within the last day, oldest first
  std::optional<base::WallTime> not_before;  ///< its last reset could not begin
  std::vector<std::string> together;  ///< ids that must be reset in one operation, itself included
};

struct ResetPlan {
  /// The devices to reset now, in one operation; empty: none.
  std::vector<std::string> devices;
  /// Why a device that needs a reset is not reset now: one sentence that stays the same while the
  /// cause does. Does not contain the devices in `devices`.
  std::map<std::string, std::string> why_not;
};

/// Plans one group at a time, the first by id. A device is reset at most three times a day (failed
/// resets count), and two resets of one device are at least ten minutes apart. All devices of a
/// group must be present and free. Under kNever the plan is empty.
ResetPlan PlanResets(const std::map<std::string, ResetCandidate>& devices, api::ResetPolicy policy,
                     base::WallTime now);

}  // namespace penstock::node::change
