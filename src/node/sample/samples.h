// Defines the published snapshot of the values measured on this node's devices: the newest values
// with their times, and the rejected ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "device/telemetry.h"

namespace penstock::node::sample {

/// The newest accepted value of a quantity.
struct Latest {
  device::SampleValue value;
  base::WallTime at{};  ///< when it was requested
};

/// The last collections of one headline metric (headline_metrics.h), oldest first.
struct History {
  std::string name;  ///< "utilization"
  /// One value per collection since the first value, in the base unit; NaN for a missing one.
  std::vector<float> values;
};

/// The samples of one device. A device that does not answer keeps its values with their times; they
/// are dropped when the device is gone. A value that a device no longer returns is dropped after
/// three requests.
struct DeviceSample {
  std::string device, vendor;  ///< ids
  base::WallTime at{};         ///< of the last successful collection; the epoch: none
  std::uint64_t collections = 0, failures = 0;
  base::Duration took{};       ///< the last collection, successful or not
  std::string problem;         ///< why the last collection failed; empty: it succeeded
  std::vector<Latest> values;  ///< by quantity, then link
  std::vector<device::ProcessSample> processes;
  base::WallTime processes_at{};
  std::vector<device::QuantityId> unsupported;  ///< requested, but not supported by the device
  std::vector<History> history;                 ///< of the headline metrics that have one

  const Latest* Find(device::QuantityId quantity, int link = -1) const;
};

/// Why a device's samples are missing or late: one sentence that stays the same while the cause
/// does; empty: they are on time.
std::string ProblemOf(const DeviceSample& sample);

/// Impossible values that were rejected, counted since the agent started.
struct Rejected {
  std::string device, key;
  std::string why;  ///< "too-large", "went-back"
  std::uint64_t count = 0;
};

/// The rounds over one vendor's devices.
struct Round {
  std::uint64_t count = 0;  ///< of completed rounds
  base::WallTime at{};      ///< when the last completed round started
  base::Duration took{};    ///< that round
};

struct Snapshot {
  std::uint64_t generation = 0;
  base::Duration interval{};  ///< between two collections, as it is now
  /// By id; the same object as before if nothing changed.
  std::map<std::string, std::shared_ptr<const DeviceSample>, std::less<>> devices;
  std::map<std::string, Round, std::less<>> rounds;  ///< by vendor
  std::vector<Rejected> rejected;

  const DeviceSample* Find(std::string_view device) const;
};

/// Maps the id of each device with a problem to ProblemOf.
std::map<std::string, std::string> ProblemsOf(const Snapshot& samples);

}  // namespace penstock::node::sample
