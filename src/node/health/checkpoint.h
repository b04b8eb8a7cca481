// Encodes and decodes the part of the devices' health that must survive a restart of the agent.
// Does no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "device/dialect.h"
#include "node/health/recovery.h"
#include "node/inventory/pci_occupancy.h"

namespace penstock::node::health {

/// A latched error that keeps a device unhealthy.
struct RememberedFault {
  std::string kind;
  std::int64_t code = 0;
  device::Verdict verdict;  ///< by the vendor's documentation, before the site's policy is applied
  base::WallTime at{};
  bool proven_over = false;
};

/// Counters that only a reset clears, by name.
using ResetCounters = std::map<std::string, std::int64_t>;

struct RememberedDevice {
  std::vector<RememberedFault> faults;
  Recovery::Past recovery;
  std::string reason;  ///< why it is unhealthy; empty: it is healthy
  std::vector<base::WallTime> resets;
  ResetCounters before;  ///< as they were at the last error, or soon after it
};

/// The loaded driver, as found when it was opened.
struct LoadedDriver {
  std::string version;
  std::string instance;  ///< changes each time that the kernel module is loaded within one boot;
                         ///< empty: unknown
  bool operator==(const LoadedDriver&) const = default;
};

struct HealthCheckpoint {
  /// By device id; only devices with something to remember.
  std::map<std::string, RememberedDevice> devices;
  std::map<std::string, LoadedDriver> drivers;  ///< by vendor
  inventory::PciOccupancy occupancy;
  bool this_boot = false;  ///< the checkpoint was written in this boot
  /// Number of the last record of the kernel's log that was read; nothing: unknown.
  std::optional<std::uint64_t> kernel_log;
};

/// The part of the checkpoint that version 0.1.0 cannot read.
struct HealthMarks {
  std::map<std::string, ResetCounters> counters;  ///< by device
  std::map<std::string, std::string> instances;   ///< of drivers, by vendor
  std::optional<std::uint64_t> kernel_log;
};

/// Returns the contents of health.json: JSON with a version and the id of the boot that it belongs
/// to. Its format is the one that 0.1.0 reads; it omits the reset counters, the drivers' instances
/// and the position in the kernel's log.
std::string EncodeHealthCheckpoint(const HealthCheckpoint& checkpoint, std::string_view boot_id,
                                   base::WallTime now);

/// Returns the HealthMarks of a checkpoint as JSON with a version and the boot id.
std::string EncodeMarks(const HealthCheckpoint& checkpoint, std::string_view boot_id);

/// Decodes the output of EncodeHealthCheckpoint. From an earlier boot only the PCI occupancy, the
/// times of resets and the relapses are returned, because a boot ends all faults. Returns
/// kFailedPrecondition if a newer version wrote the text, kDataLoss if it is damaged.
base::Result<HealthCheckpoint> DecodeHealthCheckpoint(std::string_view text,
                                                      std::string_view boot_id,
                                                      std::string_view file, base::WallTime now);

/// Decodes the output of EncodeMarks; empty if it is from an earlier boot. Same errors as
/// DecodeHealthCheckpoint.
base::Result<HealthMarks> DecodeMarks(std::string_view text, std::string_view boot_id,
                                      std::string_view file);

void AddMarks(HealthMarks marks, HealthCheckpoint& checkpoint);

}  // namespace penstock::node::health
