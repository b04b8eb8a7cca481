// Time as an injected dependency: production reads the system's clocks, tests use a FakeClock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace penstock::base {

using Duration = std::chrono::nanoseconds;
using TimePoint =
    std::chrono::steady_clock::time_point;               ///< monotonic; for deadlines and intervals
using WallTime = std::chrono::system_clock::time_point;  ///< for display; may jump

/// A length of time as a number of seconds.
template <typename Rep, typename Period>
double Seconds(std::chrono::duration<Rep, Period> duration) {
  return std::chrono::duration<double>(duration).count();
}

/// One moment by both clocks.
struct Timestamp {
  TimePoint steady{};
  WallTime wall{};
};

/// A source of time. Any thread may call it.
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

/// RFC 3339 in UTC with milliseconds: "2026-11-21T03:42:00.123Z".
std::string FormatTime(WallTime time);

/// The inverse of FormatTime; the epoch if the text is not such a time, or is outside 1970 to 2199.
WallTime ParseTime(const std::string& text);

/// The time `seconds` after 1970, clamped to the range from 1970 to 2200: nanoseconds since 1970
/// overflow 63 bits in 2262, and callers subtract times.
WallTime NearestTime(std::int64_t seconds);

/// For display: "320ms", "12s", "4m10s", "3h2m", "5d4h".
std::string FormatDuration(Duration duration);

}  // namespace penstock::base
