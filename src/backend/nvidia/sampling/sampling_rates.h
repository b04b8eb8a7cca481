// Computes rates, and limits the window between the two readings of a rate.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/core/clock.h"

namespace penstock::backend::nvidia {

/// A shorter window than GPM's own period has no meaning (DCGM 310: GPM misbehaves below 100 ms).
inline constexpr std::chrono::milliseconds kMinWindow{100};
/// A window of at least this length ends, and the next one begins where it ends. Slightly less than
/// a second, the interval at which collections may come.
inline constexpr std::chrono::milliseconds kGoodWindow{900};
/// An average over a longer window has no meaning.
inline constexpr std::chrono::minutes kMaxWindow{10};

/// The rate of increase of a counter.
class Rate {
 public:
  /// The rate per second since an earlier reading; nothing if there was none, or if the counter
  /// restarted.
  std::optional<double> Add(base::TimePoint now, std::uint64_t count);

 private:
  std::optional<std::pair<base::TimePoint, std::uint64_t>> before_;
};

}  // namespace penstock::backend::nvidia
