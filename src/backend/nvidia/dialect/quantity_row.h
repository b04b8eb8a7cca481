// A row of the table of quantities: the quantity and the call that reads it. Only for the files of
// the table.
#pragma once

#include "backend/nvidia/dialect/quantities.h"

namespace penstock::backend::nvidia {

struct QuantityRow {
  device::Quantity quantity;
  NvmlQuery query;
};

// The largest possible values; drivers mark "not available" by values above them.
inline constexpr double kMaxMegahertz = 50e3;
inline constexpr double kMaxCelsius = 200;
inline constexpr double kMaxMilliwatts = 5e6;
inline constexpr double kMaxBytes = 1e14;
inline constexpr double kMaxBytesPerSecond = 1e13;
inline constexpr double kMaxCount = 9e18;       ///< of a 64-bit counter
inline constexpr double kMaxCount32 = 4.294e9;  ///< of a 32-bit counter

/// A row of a group: a quantity like `common`. `has`: the devices that have it, where these are
/// others than those that have the rest of the group.
constexpr QuantityRow Like(device::Quantity common, std::string_view key, std::string_view labels,
                           std::string_view source, NvmlQuery query, std::string_view has = {}) {
  common.key = key;
  common.labels = labels;
  common.source = source;
  if (!has.empty()) common.has = has;
  return {common, query};
}

template <typename E>
constexpr unsigned Number(E value) {
  return static_cast<unsigned>(value);
}

}  // namespace penstock::backend::nvidia
