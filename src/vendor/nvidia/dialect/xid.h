// What NVIDIA's error codes mean: XIDs and recovery actions. Tables from NVIDIA's documentation, no policy of a site.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "device/dialect.h"

namespace penstock::vendor::nvidia {

/// One XID, or several that mean the same.
struct Xid {
  int first = 0, last = 0;
  std::string_view name;
  device::Severity severity = device::Severity::kWarn;
  std::string_view source;  ///< where the severity comes from
};

/// Sources: NVIDIA's "Xid Catalog" (to 172) and "Xid Errors" archive, the open kernel modules (to 595), release notes; "inferred" where
/// none of them says it. The row of an XID; an unnamed one for a number that nobody documents.
const Xid& FindXid(std::int64_t number);

/// All rows, in the order of their numbers.
std::span<const Xid> Xids();

/// By number and, for those whose text decides (144 to 150, 154), by what the kernel log says after the number.
device::Verdict JudgeXid(std::int64_t number, std::string_view text);

/// Values of NVML_FI_DEV_GET_GPU_RECOVERY_ACTION (nvml.h, from driver 565).
std::string_view RecoveryActionName(std::int64_t action);
device::Verdict JudgeRecoveryAction(std::int64_t action);

}  // namespace penstock::vendor::nvidia
