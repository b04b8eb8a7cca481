// Decides which devices are reset, and says why others are not. Pure; resets nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "base/core/clock.h"

namespace penstock::node::health {

/// A device as far as its reset is concerned.
struct ResetCandidate {
  bool asks = false;                   ///< it is unhealthy for something that a reset ends
  bool free = true;                    ///< nobody holds it and nobody is on it
  bool there = true;                   ///< not gone
  std::vector<base::WallTime> before;  ///< its resets within the last day, oldest first
  std::vector<std::string> together;   ///< ids that have to be reset in one go, itself among them
};

struct ResetPlan {
  /// To be reset now in one go; empty: nothing.
  std::vector<std::string> devices;
  /// Why a device that asks is not reset now: one sentence that does not change while the cause is the same. Not for those in `devices`.
  std::map<std::string, std::string> why_not;
};

/// One group at a time, the first by id. No device more than three times a day (whether the reset worked or not), two resets of one device
/// at least ten minutes apart; those that are reset together must all be there and free. Under kNever nothing is planned nor said.
ResetPlan PlanResets(const std::map<std::string, ResetCandidate>& devices, api::ResetPolicy policy, base::WallTime now);

}  // namespace penstock::node::health
