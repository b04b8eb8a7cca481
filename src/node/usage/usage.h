// What each holder has used of each device it holds, from hand to release: integrals of samples, and what its control group says.
#pragma once

#include <cstdint>
#include <map>
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
};

/// One lease on one device. Where a device has one holder, what the device uses is the holder's. Where it is shared, the holder's part is
/// told by its processes; energy is parted as compute is, and evenly while nobody computes.
struct HolderUsage {
  ledger::Lease holder;  ///< as it was last
  std::string device;    ///< id
  std::string slot;      ///< its first on the device
  int slots = 1;         ///< it may have several shares of one device
  bool shared = false;   ///< others may be on the device too
  base::WallTime since{};
  std::optional<base::WallTime> until;  ///< it has ended

  std::vector<ProcessUsage> processes;
  std::optional<base::Bytes> memory_used;  ///< of the device, now
  base::Bytes memory_peak;                 ///< of the device
  std::optional<double> utilization;       ///< 0 to 1, now
  double busy_seconds = 0;                 ///< integral of utilization
  double energy_joules = 0;                ///< integral of its part of the device's power
  double measured_seconds = 0;             ///< of the time from `since`, that samples told of
  std::optional<double> cpu_seconds;       ///< of its control group
  std::optional<base::Bytes> host_memory_peak;
  base::WallTime last_busy{};  ///< it used the device last then; `since`, if it never did
};

struct Snapshot {
  std::uint64_t generation = 0;
  std::vector<std::shared_ptr<const HolderUsage>> holders;  ///< by lease and device; those that ended stay for a set time
};

}  // namespace penstock::node::usage
