// What the devices of this node measure, as one published snapshot: the newest values with their ages, and what was kept out.
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

/// The newest value of a quantity that made sense.
struct Latest {
  device::Value value;
  base::WallTime at{};  ///< when it was asked for
};

/// What people look at first (glance.h), over the last collections, oldest first.
struct History {
  std::string name;           ///< "utilization"
  std::vector<float> values;  ///< a value for each collection, in the base unit; not a number where there was none
};

/// One device. Values of a device that does not answer stay, with their ages; they are dropped when the device is gone. What a device that
/// answers has no value of any more, asked three times, is dropped too.
struct DeviceSample {
  std::string device, vendor;  ///< ids
  base::WallTime at{};         ///< of the last collection that was answered; the epoch: none
  std::uint64_t collections = 0, failures = 0;
  base::Duration took{};       ///< the last one, answered or not
  std::string problem;         ///< why the last one failed; empty: it did not
  std::vector<Latest> values;  ///< by quantity, then link
  std::vector<device::ProcessSample> processes;
  base::WallTime processes_at{};
  std::vector<device::QuantityId> unsupported;  ///< that were asked for
  std::vector<History> history;                 ///< of few quantities

  const Latest* Find(device::QuantityId quantity, int link = -1) const;
};

/// Why a device's measurements are missing or come late, one sentence that stays the same while it is so; empty: they come.
std::string ProblemOf(const DeviceSample& sample);

/// Values that were nonsense and are not shown, counted since the agent started.
struct Rejected {
  std::string device, key;
  std::string why;  ///< "too-large", "went-back"
  std::uint64_t count = 0;
};

/// The collections of one vendor's devices, one after the other.
struct Round {
  std::uint64_t count = 0;  ///< that have ended
  base::WallTime at{};      ///< when the last one of these began
  base::Duration took{};    ///< it
};

struct Snapshot {
  std::uint64_t generation = 0;
  base::Duration interval{};                                                        ///< between two collections, as it is now
  std::map<std::string, std::shared_ptr<const DeviceSample>, std::less<>> devices;  ///< by id; the same object where nothing came
  std::map<std::string, Round, std::less<>> rounds;                                 ///< by vendor
  std::vector<Rejected> rejected;

  const DeviceSample* Find(std::string_view device) const;
};

/// ProblemOf each device that has one, by id.
std::map<std::string, std::string> ProblemsOf(const Snapshot& samples);

}  // namespace penstock::node::sample
