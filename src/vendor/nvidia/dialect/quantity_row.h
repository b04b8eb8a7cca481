// A row of the table of quantities: what it is and how it is asked for. For the files of the table alone.
#pragma once

#include "vendor/nvidia/dialect/quantities.h"

namespace penstock::vendor::nvidia {

struct QuantityRow {
  device::Quantity quantity;
  Way way;
};

// The largest value that can be; beyond it lie the marks by which drivers say "not available".
inline constexpr double kMostMegahertz = 50e3;
inline constexpr double kMostCelsius = 200;
inline constexpr double kMostMilliwatts = 5e6;
inline constexpr double kMostBytes = 1e14;
inline constexpr double kMostBytesPerSecond = 1e13;
inline constexpr double kMostCount = 9e18;   ///< of a counter of 64 bits
inline constexpr double kMostFew = 4.294e9;  ///< of one of 32 bits

template <typename E>
constexpr unsigned Number(E value) {
  return static_cast<unsigned>(value);
}

}  // namespace penstock::vendor::nvidia
