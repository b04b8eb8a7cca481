// What each holder has used of each device it holds, from hand to release: integrals of samples, and what its control group says.
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

/// A process of a holder on a device now.
struct ProcessUsage {
  pid_t pid = 0;
  std::string user, command;
  std::optional<base::Bytes> memory;
  std::optional<double> compute, memory_copy, encoder, decoder;  ///< 0 to 1
  bool operator==(const ProcessUsage&) const = default;
};

/// One lease on one device. Where a device has one holder, what the device uses is the holder's. Where it is shared, the holder's part is
/// told by its processes; energy is parted as compute is, and evenly while nobody computes.
struct HolderUsage {
  std::shared_ptr<const ledger::Lease> holder;  ///< as it was last, with those labels alone that are wanted; never null
  std::string device;                           ///< id
  std::string model;                            ///< the device's; empty: not known
  std::string slot;                             ///< its first on the device
  int slots = 1;                                ///< it may have several shares of one device
  device::Shape shape;                          ///< what the device is cut into
  bool shared = false;                          ///< others may be on the device too
  base::WallTime since{};
  std::optional<base::WallTime> until;  ///< it has ended
  double seconds = 0;                   ///< it has had the device for so long, by a clock that nobody sets

  std::vector<ProcessUsage> processes;
  std::optional<base::Bytes> memory_used;       ///< of the device, now
  base::Bytes memory_peak;                      ///< of the device
  std::optional<double> utilization;            ///< 0 to 1, now
  double busy_seconds = 0;                      ///< integral of utilization
  double energy_joules = 0;                     ///< its part of what the device took
  double measured_seconds = 0;                  ///< of `seconds`, that samples told the utilization of
  std::optional<double> cpu_seconds;            ///< of its control group: of the lease, whatever devices it has
  std::optional<base::Bytes> host_memory_peak;  ///< likewise
  base::WallTime last_busy{};                   ///< it used the device last then; `since`, if it never did
  bool idle = false;                            ///< it holds the device and has not used it for as long as usage.idleAfter says
};

/// How the records of usage do, since the agent started.
struct RecordCounts {
  std::uint64_t written = 0, lost = 0, failures = 0;  ///< lines, lines, attempts
  std::uint64_t pending = 0;                          ///< lines that wait to be written
  std::string problem;                                ///< why the last attempt failed; empty: it did not
  bool operator==(const RecordCounts&) const = default;
};

struct Snapshot {
  std::uint64_t generation = 0;
  std::vector<std::shared_ptr<const HolderUsage>> holders;  ///< by lease and device; those that ended stay for a set time
  std::uint64_t forgotten = 0;                              ///< holders that ended and were not shown for that time, because too many ended
  RecordCounts records;
};

}  // namespace penstock::node::usage
