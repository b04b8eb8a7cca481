// The kernel's log as records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace penstock::os {

/// One record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg): `prio,seq,usec,flags[,...];text`.
struct KernelRecord {
  int priority = 0;
  std::uint64_t sequence = 0;
  std::uint64_t microseconds = 0;  ///< since boot
  std::string text;
};

/// Nothing where the line is no such record. Continuation lines (" KEY=value") are not records.
std::optional<KernelRecord> ParseKernelRecord(std::string_view line);

/// Reads new records, from a real /dev/kmsg or a plain file of such lines. Not thread-safe.
class KernelLog {
 public:
  /// Starts at the end where `from_now`; else with what the kernel still has.
  static base::Result<KernelLog> Open(const std::string& path, bool from_now);

  /// All records that are there now. Never blocks. Records that the kernel overwrote (EPIPE) are counted in lost().
  std::vector<KernelRecord> Read();

  int fd() const { return fd_.get(); }
  bool pollable() const { return pollable_; }  ///< false for a plain file, which is read every so often
  std::uint64_t lost() const { return lost_; }

 private:
  UniqueFd fd_;
  bool pollable_ = false;
  std::uint64_t lost_ = 0;
  std::string partial_;
};

}  // namespace penstock::os
