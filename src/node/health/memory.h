// What of devices' health outlives the agent, as text. Knows no disk.
#pragma once

#include <cstdint>
#include <map>
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

struct RememberedDevice {
  std::vector<RememberedTrouble> troubles;
  Recovery::Past recovery;
  std::string reason;  ///< why it is unwell; empty where it is well
  std::vector<base::WallTime> resets;
};

struct Memory {
  std::map<std::string, RememberedDevice> devices;  ///< by id; those of which there is something to remember
  std::map<std::string, std::string> drivers;       ///< vendor → version
  inventory::Slots slots;
};

/// JSON with a version and the boot it belongs to.
std::string EncodeMemory(const Memory& memory, std::string_view boot_id, base::WallTime now);

/// What was written. Of another boot: who sat where, when devices were reset, and relapses; troubles ended with the boot.
/// kFailedPrecondition where a newer version wrote it (then it must be left alone), kDataLoss where it is damaged (then it is started
/// without).
base::Result<Memory> DecodeMemory(std::string_view text, std::string_view boot_id, std::string_view file, base::WallTime now);

}  // namespace penstock::node::health
