// What happened to devices' health, for metrics and Events: counts, last changes, notices. Changes nothing.
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
class Chronicle {
 public:
  /// Compares with what was seen last. Returns the ids of devices that are not there any more, gone ones excepted.
  std::vector<std::string> See(const inventory::Snapshot& snapshot);

  /// What is known of a device, as far as it is told from snapshots.
  Status Of(const std::string& device) const;

  void Tell(bool warning, const std::string& device, std::string reason, std::string message, base::WallTime now);
  void CountReset(const std::string& device, const std::string& result) { ++resets_[{device, result}]; }

  std::vector<TransitionCount> Transitions() const;
  std::vector<ResetCount> Resets() const;
  std::vector<Notice> Notices() const { return {notices_.begin(), notices_.end()}; }

 private:
  struct Seen {
    device::HealthState state = device::HealthState::kUnknown;
    bool looked = false;  // was known once
    std::string reason, replaced;
    base::WallTime changed{};
    std::string changed_because;
  };
  void SeeOne(const inventory::Entry& entry, Seen& seen);
  std::map<std::string, Seen> seen_;
  std::map<std::pair<std::string, device::HealthState>, std::uint64_t> transitions_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> resets_;
  std::deque<Notice> notices_;
  std::uint64_t next_notice_ = 1;
};

}  // namespace penstock::node::health
