// How a device's health came to be what it is: for reports, metrics and Events. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "device/dialect.h"

namespace penstock::node::health {

/// What speaks against a device now.
struct Concern {
  std::string kind;  ///< of the evidence
  std::int64_t code = 0;
  device::Severity severity = device::Severity::kWarn;  ///< by the site's policy; never kIgnore
  bool operator==(const Concern&) const = default;
};

/// Beside device::Health, which says whether and why.
struct Status {
  /// Used again then if it looks well until then; nothing: not on probation, or it comes and goes and nobody knows.
  std::optional<base::WallTime> probation_until;
  int relapses = 0;             ///< how often it became unwell again soon after it was well; 0 again once it was well for long
  base::WallTime changed{};     ///< when its state changed last; the epoch: not since this agent began
  std::string changed_because;  ///< why: the reason that it had then, also after it recovered; empty: it did not change
  bool resetting = false;       ///< it is being reset now, alone or with others
  std::vector<Concern> concerns;
  bool operator==(const Status&) const = default;
};
using Statuses = std::map<std::string, Status>;  ///< by device id

/// How often something was heard of a device.
struct EvidenceCount {
  std::string device, kind;
  std::int64_t code = 0;  ///< -1: all beyond the number of codes that are told apart
  device::Severity severity = device::Severity::kIgnore;
  std::uint64_t count = 0;
  base::WallTime last{};  ///< when it was heard last
};

/// How often a device came into a state. The first look at it is no transition.
struct TransitionCount {
  std::string device;
  device::HealthState to = device::HealthState::kUnknown;
  std::uint64_t count = 0;
};

/// How often a device was reset, or should have been.
struct ResetCount {
  std::string device;
  std::string result;  ///< "done", "refused", "failed"
  std::uint64_t count = 0;
};

/// Something that happened once and changes no state by itself, to be told as an Event.
struct Notice {
  std::uint64_t number = 0;  ///< ascending; not over restarts
  base::WallTime at{};
  bool warning = false;
  std::string device;   ///< id
  std::string reason;   ///< one word: "DeviceReplaced", "DeviceReset", "DeviceResetFailed"
  std::string message;  ///< "GPU at 0000:07:00.0 was replaced: serial 1, now 2"
};

}  // namespace penstock::node::health
