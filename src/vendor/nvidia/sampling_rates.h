// Between which two looks something may be measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/core/clock.h"

namespace penstock::vendor::nvidia {

/// Less than GPM's own period says nothing (DCGM 310: it misbehaves below 100 ms).
inline constexpr std::chrono::milliseconds kLeastWindow{100};
/// From so long a window on, the next begins where it ends. A little below a second, at which collections may come.
inline constexpr std::chrono::milliseconds kGoodWindow{900};
/// After so long nobody knows what an average is of.
inline constexpr std::chrono::minutes kMostWindow{10};

/// How fast a counter grows.
class Rate {
 public:
  /// Per second since a look before; nothing where there was none, or where the counter began anew.
  std::optional<double> Add(base::TimePoint now, std::uint64_t count);

 private:
  std::optional<std::pair<base::TimePoint, std::uint64_t>> before_;
};

}  // namespace penstock::vendor::nvidia
