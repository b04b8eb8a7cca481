// The meaning of NVIDIA's error codes: XIDs and recovery actions. Tables from NVIDIA's
// documentation, without site policy.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "device/dialect.h"

namespace penstock::backend::nvidia {

/// One XID, or several with the same meaning.
struct Xid {
  int first = 0, last = 0;
  std::string_view name;
  device::Severity severity = device::Severity::kWarn;
  std::string_view source;  ///< where the severity comes from
};

/// The row of an XID; an unnamed row for an undocumented number. Sources: NVIDIA's "Xid Catalog"
/// (to 172) and "Xid Errors" archive, the open kernel modules (to 595), release notes; "inferred"
/// if none of them says it.
const Xid& FindXid(std::int64_t number);

/// All rows, ordered by number.
std::span<const Xid> Xids();

/// Judges by number and, for XIDs whose text decides (144 to 150, 154), by the text after the
/// number in the kernel log.
device::Verdict JudgeXid(std::int64_t number, std::string_view text);

/// The values of NVML_FI_DEV_GET_GPU_RECOVERY_ACTION (nvml.h, from driver 565).
std::string_view RecoveryActionName(std::int64_t action);
device::Verdict JudgeRecoveryAction(std::int64_t action);

}  // namespace penstock::backend::nvidia
