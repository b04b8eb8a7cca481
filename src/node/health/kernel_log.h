// Finds evidence about devices in the kernel's log.
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

/// Follows the kernel's log and calls back with the evidence that the dialects find in it. On the
/// loop's thread.
class KernelLogFeed {
 public:
  /// Receives one piece of evidence with its vendor, and the age of the record; 0: just written.
  using Callback =
      std::function<void(std::string_view vendor, const device::Evidence&, base::Duration ago)>;

  struct Options {
    bool history = false;  ///< also read the records from before the start, except those about a
                           ///< driver that was loaded earlier
    /// Of these earlier records, only those with a greater number.
    std::optional<std::uint64_t> after;
  };

  /// Opens the log. Evidence from earlier records is reported before this function returns, and it
  /// blocks until then. Returns an error if the log cannot be read (no such file, no permission):
  /// Xids then come only from the driver's events.
  static base::Result<std::unique_ptr<KernelLogFeed>> Open(
      os::Loop& loop, const std::string& path, std::vector<const device::Dialect*> dialects,
      Callback on_evidence, Options options);
  ~KernelLogFeed();

  /// Number of the last record that existed at the start, or of a later one that held evidence: the
  /// next feed starts after it. Nothing if there was no record.
  std::optional<std::uint64_t> last() const;

 private:
  KernelLogFeed();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::node::health
