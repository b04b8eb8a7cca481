// Defines the usage of each holder of a device, from allocation to release: integrals of samples,
// and values of its control group.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "device/model.h"
#include "node/ledger/ledger.h"

namespace penstock::node::usage {

/// A process of a holder that is on a device now.
struct ProcessUsage {
  pid_t pid = 0;
  std::string user, command;
  std::optional<base::Bytes> memory;
  std::optional<double> compute, memory_copy, encoder, decoder;  ///< 0 to 1
  bool operator==(const ProcessUsage&) const = default;
};

/// One lease on one device. If the device has one holder, all use of the device is the holder's. On
/// a shared device the holder's part follows from its processes; energy is divided in proportion to
/// compute, and evenly while nothing computes.
struct HolderUsage {
  /// The lease in its last state, with only the selected labels; never null.
  std::shared_ptr<const ledger::Lease> holder;
  std::string device;   ///< id
  std::string model;    ///< the device's; empty: unknown
  std::string slot;     ///< its first slot on the device
  int slots = 1;        ///< of the device: a lease may have several shares of it
  device::Shape shape;  ///< how the device is shared
  bool shared = false;  ///< others may use the device too
  base::WallTime since{};
  std::optional<base::WallTime> until;  ///< when it ended
  double seconds = 0;                   ///< how long it has had the device, by the steady clock

  std::vector<ProcessUsage> processes;
  std::optional<base::Bytes> memory_used;  ///< on the device, now
  base::Bytes memory_peak;                 ///< on the device
  std::optional<double> utilization;       ///< 0 to 1, now
  double busy_seconds = 0;                 ///< integral of utilization
  double energy_joules = 0;                ///< its part of the device's energy
  double measured_seconds = 0;  ///< the part of `seconds` for which samples have the utilization
  /// From its control group: of the whole lease, whatever devices it has.
  std::optional<double> cpu_seconds;
  std::optional<base::Bytes> host_memory_peak;  ///< of the whole lease
  base::WallTime last_busy{};                   ///< when it last used the device; `since` if never
  /// It has not used the device for usage.idleAfter.
  bool idle = false;
};

/// State of the usage records since the agent started.
struct RecordCounts {
  std::uint64_t written = 0, lost = 0, failures = 0;  ///< lines, lines, attempts
  std::uint64_t pending = 0;                          ///< lines that wait to be written
  std::string problem;  ///< why the last attempt failed; empty: it succeeded
  bool operator==(const RecordCounts&) const = default;
};

struct Snapshot {
  /// By lease and device; ended ones stay for a set time.
  std::vector<std::shared_ptr<const HolderUsage>> holders;
  /// Ended holders that were not shown for that time, because too many ended.
  std::uint64_t forgotten = 0;
  RecordCounts records;
};

}  // namespace penstock::node::usage
