// Time, injected: production reads the system's clocks, tests turn a hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace penstock::base {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;  ///< monotonic; for deadlines and intervals
using WallTime = std::chrono::system_clock::time_point;   ///< for people; may jump

/// Source of time. Any thread may ask.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  virtual WallTime Wall() const = 0;
};

/// The machine's own clocks.
class SystemClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  WallTime Wall() const override { return std::chrono::system_clock::now(); }
};

/// A clock that moves when told to; for tests.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime Wall() const override;
  void Advance(Duration by);

 private:
  mutable std::mutex mutex_;
  Duration elapsed_{};
};

/// RFC 3339 in UTC with milliseconds: "2026-11-21T03:42:00.123Z".
std::string FormatTime(WallTime time);

/// The inverse of FormatTime; the epoch where the text is not such a time, or not one from 1970 to 2199.
WallTime ParseTime(const std::string& text);

/// The time so many seconds after 1970, or the nearest between 1970 and 2200: nanoseconds since then fill 63 bits in 2262, and differences
/// are taken.
WallTime NearestTime(std::int64_t seconds);

/// For people: "320ms", "12s", "4m10s", "3h2m", "5d4h".
std::string FormatDuration(Duration duration);

}  // namespace penstock::base
