// Explains the health of devices for reports, metrics and Events. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "device/dialect.h"

namespace penstock::node::health {

/// A fault, or a warning, that is known against a device now.
struct Concern {
  std::string kind;  ///< of the evidence
  std::int64_t code = 0;
  device::Severity severity = device::Severity::kWarn;  ///< by the site's policy; never kIgnore
  bool operator==(const Concern&) const = default;
};

/// Supplements device::Health, which holds the state and its reason.
struct HealthStatus {
  /// When the device is healthy again if it stays without faults until then; nothing: not on
  /// probation, or its faults come and go and the time is unknown.
  std::optional<base::WallTime> probation_until;
  int relapses = 0;  ///< how often it became unhealthy again soon after it recovered; 0 again after
                     ///< a long healthy time
  /// When its state changed last; the epoch: not since this agent started.
  base::WallTime changed{};
  /// The reason at that change, kept after it recovered; empty: no change.
  std::string changed_because;
  bool resetting = false;  ///< it is being reset now, alone or with others
  std::vector<Concern> concerns;
  /// What its readings warn of as long as it lasts, and which does not take it out of service.
  std::string warning;
  bool operator==(const HealthStatus&) const = default;
};
using HealthStatuses = std::map<std::string, HealthStatus>;  ///< by device id

/// How often one kind of evidence was seen on a device.
struct EvidenceCount {
  std::string device, kind;
  std::int64_t code = 0;  ///< -1: all codes beyond the number that is counted separately
  device::Severity severity = device::Severity::kIgnore;
  std::uint64_t count = 0;
  base::WallTime last{};  ///< when it was last seen
};

/// How often a device entered a state. The first reading is no transition.
struct TransitionCount {
  std::string device;
  device::HealthState to = device::HealthState::kUnknown;
  std::uint64_t count = 0;
};

/// How often a device was reset, or its reset refused or failed.
struct ResetCount {
  std::string device;
  std::string result;  ///< "done", "refused", "failed"
  std::uint64_t count = 0;
};

/// A single occurrence that changes no state by itself, to be published as an Event.
struct Notice {
  std::uint64_t number = 0;  ///< ascending; starts again when the agent restarts
  base::WallTime at{};
  bool warning = false;
  std::string device;   ///< id
  std::string reason;   ///< one word: "DeviceReplaced", "DeviceReset", "DeviceResetFailed"
  std::string message;  ///< "GPU at 0000:07:00.0 was replaced: serial 1, now 2"
};

}  // namespace penstock::node::health
