// What a hook could not do although the container can start without it.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::hook {

/// Warnings of one call, said when it ends.
class Warnings {
 public:
  void Add(std::string message) { messages_.push_back(std::move(message)); }

  /// A read-only file system, missing rights and other people's mounts are no reason to keep a container from starting: such an error
  /// becomes a warning. Any other one is passed on.
  base::Status Tolerate(base::Status status) {
    if (status.ok()) return status;
    if (status.error().code() != base::Code::kPermissionDenied && status.error().code() != base::Code::kFailedPrecondition) return status;
    Add(status.error().message());
    return {};
  }

  const std::vector<std::string>& messages() const { return messages_; }

 private:
  std::vector<std::string> messages_;
};

}  // namespace penstock::hook
