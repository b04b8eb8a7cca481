// Hears of devices in the kernel's log. Judges nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "device/dialect.h"
#include "os/loop.h"

namespace penstock::node::health {

/// Reads the kernel's log and calls back with what the dialects find in it. On the loop's thread.
class KernelLogFeed {
 public:
  /// Which vendor's evidence was found in a record, and how long ago that was written; 0: just now.
  using Heard = std::function<void(std::string_view vendor, const device::Evidence&, base::Duration ago)>;

  struct Options {
    bool history = false;                ///< what the kernel has from before counts too, but not what was said of an earlier loaded driver
    std::optional<std::uint64_t> after;  ///< of that, the records with a greater number than this one
  };

  /// What is told of the past comes before this returns; it blocks that long. Errors where the log cannot be read (no such file, no right):
  /// then XIDs come from the driver's events alone.
  static base::Result<std::unique_ptr<KernelLogFeed>> Open(os::Loop& loop, const std::string& path,
                                                           std::vector<const device::Dialect*> dialects, Heard heard, Options options);
  ~KernelLogFeed();

  /// Number of the last record that was there in the beginning, or told of a device since: a later feed begins after it. Nothing where
  /// there was no record.
  std::optional<std::uint64_t> last() const;

 private:
  KernelLogFeed();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::node::health
