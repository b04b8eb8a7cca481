// amdgpu's binary file gpu_metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/core/result.h"

namespace penstock::backend::amd {

/// What the file says; a value that it does not have, or that is not known now, is nothing.
struct GpuMetrics {
  std::optional<std::uint64_t> hotspot, memory_temperature;        ///< degrees Celsius
  std::optional<std::uint64_t> power;                              ///< watts
  std::optional<std::uint64_t> compute_activity, memory_activity;  ///< percent
  std::optional<std::uint64_t> energy;                             ///< in 2^-16 J
  std::optional<std::uint64_t> compute_clock, memory_clock;        ///< MHz
  std::optional<std::uint64_t> pcie_width, pcie_speed;             ///< lanes, 0.1 GT/s
};

/// kUnimplemented: a version that is not known here, named in the message. kDataLoss: shorter than
/// it says. Never reads beyond the bytes.
base::Result<GpuMetrics> ParseGpuMetrics(std::string_view bytes);

}  // namespace penstock::backend::amd
