// Reads the kernel's log as records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// One record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg): `prio,seq,usec,flags[,...];text`.
struct KernelRecord {
  int priority = 0;  ///< as in syslog: facility * 8 + level
  std::uint64_t sequence = 0;
  std::uint64_t microseconds = 0;  ///< since boot
  std::string text;
};

/// Nothing if the line is not such a record, or is longer than the 8 KiB that the kernel writes at
/// most. Continuation lines (" KEY=value") are not records.
std::optional<KernelRecord> ParseKernelRecord(std::string_view line);

/// Reads new records, from /dev/kmsg or a plain file with such lines. Not thread-safe.
class KernelLog {
 public:
  /// Starts at the end if `from_now`; otherwise with the oldest record that the kernel still has.
  static base::Result<KernelLog> Open(const std::string& path, bool from_now);

  /// The records available now, at most some thousands at once. Never blocks. Records that the
  /// kernel has overwritten (EPIPE) are counted in lost(). Lines that are not records are skipped.
  std::vector<KernelRecord> Read();

  int fd() const { return fd_.get(); }
  bool pollable() const { return pollable_; }  ///< false for a plain file, which has to be polled
  std::uint64_t lost() const { return lost_; }

 private:
  void RestartWhereTruncated();
  void Take(std::string_view bytes, std::vector<KernelRecord>& records);
  void CountLost(const KernelRecord& next);

  UniqueFd fd_;
  bool pollable_ = false;
  std::uint64_t lost_ = 0;
  std::string partial_;    // a line whose end has not been read yet
  bool overlong_ = false;  // the rest of the line is dropped
  bool overrun_ = false;   // the kernel reported overwritten records
  std::optional<std::uint64_t> last_;
};

}  // namespace penstock::os
