// amdgpu's binary file gpu_metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::backend::amd {

/// What the file says; a value that it does not have, or that is not known now, is nothing.
struct GpuMetrics {
  using Value = std::optional<std::uint64_t>;
  using Values = std::vector<Value>;  ///< by number; empty: the version does not have them

  Value edge, hotspot, memory_temperature;                       ///< degrees Celsius
  Values hbm;                                                    ///< likewise
  Value power;                                                   ///< watts
  bool average_power = false;                                    ///< whether `power` is an average
  Value compute_activity, memory_activity, multimedia_activity;  ///< percent
  Values video_activity, jpeg_activity;                          ///< percent
  Value energy;                                                  ///< in 2^-16 J
  Value compute_clock, memory_clock;                             ///< MHz
  Values compute_clocks, soc_clocks, video_clocks, data_clocks;  ///< MHz
  Value soc_voltage, gfx_voltage, memory_voltage;                ///< millivolts
  Value pcie_width, pcie_speed;                                  ///< lanes, 0.1 GT/s
  Value pcie_bandwidth, pcie_bandwidth_total;                    ///< as the firmware counts them
  Value pcie_replays, pcie_recoveries, pcie_rollovers, pcie_naks_sent, pcie_naks_received;
  Values xgmi_received, xgmi_sent;  ///< KB, by link
  Value memory_bandwidth;           ///< GB/s
  /// Intervals that the firmware has looked at, and those in which it throttled, by reason.
  Value intervals, hot, over_power, socket_hot, regulators_hot, memory_hot;

  /// A partition; of an undivided GPU the first is the whole.
  struct Part {
    Values compute_busy, video_busy, jpeg_busy;           ///< percent
    Values slow_power, slow_heat, slow_idle, slow_total;  ///< intervals, by chiplet
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  bool operator==(const GpuMetrics&) const = default;
};

/// kUnimplemented: a version that is not known here, named in the message. kDataLoss: shorter than
/// it says. Never reads beyond the bytes.
base::Result<GpuMetrics> ParseGpuMetrics(std::string_view bytes);

}  // namespace penstock::backend::amd
