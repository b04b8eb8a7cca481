// Records what happened to the devices' health, for metrics and Events: transitions, resets,
// notices.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "node/health/status.h"
#include "node/inventory/inventory.h"

namespace penstock::node::health {

/// On the control executor.
class HealthHistory {
 public:
  /// Compares with the previous snapshot. Returns the ids of devices that are no longer listed; a
  /// gone device is still listed.
  std::vector<std::string> Update(const inventory::Snapshot& snapshot);

  /// The part of a device's status that follows from the snapshots.
  HealthStatus Of(const std::string& device) const;

  void Notify(bool warning, const std::string& device, std::string reason, std::string message,
              base::WallTime now);
  void CountReset(const std::string& device, const std::string& result) {
    ++resets_[{device, result}];
  }

  std::vector<TransitionCount> Transitions() const;
  std::vector<ResetCount> Resets() const;
  std::vector<Notice> Notices() const { return {notices_.begin(), notices_.end()}; }
  std::uint64_t last_notice() const { return next_notice_ - 1; }  ///< its number; 0: none so far

 private:
  struct Seen {
    device::HealthState state = device::HealthState::kUnknown;
    bool known = false;  // its state was known before
    std::string reason, replaced;
    base::WallTime changed{};
    std::string changed_because;
  };
  void UpdateOne(const inventory::Entry& entry, Seen& seen);
  std::map<std::string, Seen> seen_;
  std::map<std::pair<std::string, device::HealthState>, std::uint64_t> transitions_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> resets_;
  std::deque<Notice> notices_;
  std::uint64_t next_notice_ = 1;
};

}  // namespace penstock::node::health
