// Hears of devices in the kernel's log. Judges nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "device/dialect.h"
#include "os/loop.h"

namespace penstock::node::health {

/// Reads the kernel's log from now on and calls back with what the dialects find in it. On the loop's thread.
class KernelLogFeed {
 public:
  /// Which vendor's evidence was found in a record.
  using Heard = std::function<void(std::string_view vendor, const device::Evidence&)>;

  /// Errors where the log cannot be read (no such file, no right): then XIDs come from the driver's events alone.
  static base::Result<std::unique_ptr<KernelLogFeed>> Open(os::Loop& loop, const std::string& path,
                                                           std::vector<const device::Dialect*> dialects, Heard heard);
  ~KernelLogFeed();

 private:
  KernelLogFeed();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::node::health
