// Computes how long to wait before the next retry.
#pragma once

#include <algorithm>

#include "base/core/clock.h"

namespace penstock::base {

/// Doubles from `first` to `most`; call Reset after a success. Not thread-safe.
class Backoff {
 public:
  Backoff(Duration first, Duration most) : first_(first), most_(most), next_(first) {}
  Duration Next() {
    const Duration now = next_;
    next_ = std::min(most_, next_ * 2);
    return now;
  }
  void Reset() { next_ = first_; }

 private:
  Duration first_, most_, next_;
};

}  // namespace penstock::base
