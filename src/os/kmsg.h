// The kernel's log as records.
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
  int priority = 0;  ///< syslog's: facility * 8 + level
  std::uint64_t sequence = 0;
  std::uint64_t microseconds = 0;  ///< since boot
  std::string text;
};

/// Nothing where the line is no such record, or longer than the 8 KiB the kernel writes at most. Continuation lines (" KEY=value") are not
/// records.
std::optional<KernelRecord> ParseKernelRecord(std::string_view line);

/// Reads new records, from a real /dev/kmsg or a plain file of such lines. Not thread-safe.
class KernelLog {
 public:
  /// Starts at the end where `from_now`; else with what the kernel still has.
  static base::Result<KernelLog> Open(const std::string& path, bool from_now);

  /// The records that are there now, at most some thousands at once. Never blocks. Records that the kernel overwrote (EPIPE) are counted in
  /// lost(). Lines that are no records are passed over.
  std::vector<KernelRecord> Read();

  int fd() const { return fd_.get(); }
  bool pollable() const { return pollable_; }  ///< false for a plain file, which is read every so often
  std::uint64_t lost() const { return lost_; }

 private:
  void RestartWhereTruncated();
  void Take(std::string_view bytes, std::vector<KernelRecord>& records);
  void CountLost(const KernelRecord& next);

  UniqueFd fd_;
  bool pollable_ = false;
  std::uint64_t lost_ = 0;
  std::string partial_;    // a line whose end has not come yet
  bool overlong_ = false;  // the rest of the line is dropped
  bool overrun_ = false;   // the kernel said that records are gone
  std::optional<std::uint64_t> last_;
};

}  // namespace penstock::os
