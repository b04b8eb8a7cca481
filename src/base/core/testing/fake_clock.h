// A clock for tests.
#pragma once

#include <mutex>

#include "base/core/clock.h"

namespace penstock::base {

/// A clock that moves only when a test advances it.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime Wall() const override;
  void Advance(Duration by);

 private:
  mutable std::mutex mutex_;
  Duration elapsed_{};
};

inline TimePoint FakeClock::Now() const {
  std::lock_guard lock(mutex_);
  return TimePoint(std::chrono::duration_cast<TimePoint::duration>(elapsed_));
}

inline WallTime FakeClock::Wall() const {
  std::lock_guard lock(mutex_);
  return WallTime(std::chrono::seconds(1'700'000'000)) +
         std::chrono::duration_cast<WallTime::duration>(elapsed_);
}

inline void FakeClock::Advance(Duration by) {
  std::lock_guard lock(mutex_);
  elapsed_ += by;
}

}  // namespace penstock::base
