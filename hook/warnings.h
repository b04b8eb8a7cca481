// Collects failures of a hook that do not prevent the container from starting.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::hook {

/// Warnings of one call, printed when it ends.
class Warnings {
 public:
  void Add(std::string message) { messages_.push_back(std::move(message)); }

  /// Turns an error into a warning if its cause must not keep a container from starting: a
  /// read-only file system, missing permissions, or foreign mounts. Any other error is returned.
  base::Status Tolerate(base::Status status) {
    if (status.ok()) return status;
    if (status.error().code() != base::Code::kPermissionDenied &&
        status.error().code() != base::Code::kFailedPrecondition)
      return status;
    Add(status.error().message());
    return {};
  }

  const std::vector<std::string>& messages() const { return messages_; }

 private:
  std::vector<std::string> messages_;
};

}  // namespace penstock::hook
