// What of devices' health outlives the agent, as text. Knows no disk.
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
#include "node/inventory/slots.h"

namespace penstock::node::health {

/// Something that happened and holds a device back.
struct RememberedTrouble {
  std::string kind;
  std::int64_t code = 0;
  device::Verdict verdict;  ///< by the vendor's documentation: the site's policy is asked anew
  base::WallTime at{};
  bool proven_over = false;
};

/// Counters that only a reset sets back, by name.
using Counters = std::map<std::string, std::int64_t>;

struct RememberedDevice {
  std::vector<RememberedTrouble> troubles;
  Recovery::Past recovery;
  std::string reason;  ///< why it is unwell; empty where it is well
  std::vector<base::WallTime> resets;
  Counters before;  ///< as they were when something happened last, or soon after
};

/// A driver as it was opened.
struct LoadedDriver {
  std::string version;
  std::string instance;  ///< another one each time that its kernel module is loaded within a boot; empty: not known
  bool operator==(const LoadedDriver&) const = default;
};

struct Memory {
  std::map<std::string, RememberedDevice> devices;  ///< by id; those of which there is something to remember
  std::map<std::string, LoadedDriver> drivers;      ///< by vendor
  inventory::Slots slots;
  bool this_boot = false;                   ///< it was written in this boot
  std::optional<std::uint64_t> kernel_log;  ///< after which record of the kernel's log nothing was read; nothing: not known
};

/// The part of it that 0.1.0 does not know.
struct Marks {
  std::map<std::string, Counters> counters;      ///< by device
  std::map<std::string, std::string> instances;  ///< of drivers, by vendor
  std::optional<std::uint64_t> kernel_log;
};

/// JSON with a version and the boot it belongs to. health.json, as 0.1.0 reads it: all but the counters, drivers' instances and the place
/// in the kernel's log.
std::string EncodeMemory(const Memory& memory, std::string_view boot_id, base::WallTime now);

/// The Marks of a memory, likewise.
std::string EncodeMarks(const Memory& memory, std::string_view boot_id);

/// What was written. Of another boot: who sat where, when devices were reset, and relapses; troubles ended with the boot.
/// kFailedPrecondition where a newer version wrote it, kDataLoss where it is damaged.
base::Result<Memory> DecodeMemory(std::string_view text, std::string_view boot_id, std::string_view file, base::WallTime now);

/// What EncodeMarks wrote; nothing of another boot. Errors as above.
base::Result<Marks> DecodeMarks(std::string_view text, std::string_view boot_id, std::string_view file);

void Add(Marks marks, Memory& memory);

}  // namespace penstock::node::health
