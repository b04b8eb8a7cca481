// Parses and formats sizes and times as users write them.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::base {

/// A number of bytes.
struct Bytes {
  std::uint64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
  std::uint64_t mebibytes() const { return count >> 20; }
};

constexpr Bytes Mebibytes(std::uint64_t n) { return {n << 20}; }

/// "10Gi", "512Mi", "1.5G", "4096": Kubernetes quantities without the milli forms. Errors list the
/// accepted forms.
Result<Bytes> ParseBytes(std::string_view text);

/// For display: in the largest binary unit that gives at least 1, rounded to a tenth: "40 GiB",
/// "39.5 GiB", "512 MiB".
std::string FormatBytes(Bytes bytes);

/// Go's durations: "10m", "1h30m", "500ms", "2.5s". A bare number is an error that proposes a unit.
Result<Duration> ParseDuration(std::string_view text);

}  // namespace penstock::base
