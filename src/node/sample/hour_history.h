// Keeps the last hour of a few headline metrics of each device, in steps of half a minute. Samples
// nothing itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "node/sample/headline_metrics.h"
#include "node/sample/samples.h"

namespace penstock::node::sample {

/// Use on one thread. Takes 0.5 KB for each metric that a device has, of at most kMaxDevices. Steps
/// are those of the steady clock, so that a change of the wall clock does not move them.
class HourHistory {
 public:
  static constexpr base::Duration kStep = std::chrono::seconds(30);
  static constexpr std::size_t kSteps = 120;
  static constexpr std::size_t kMaxDevices = 256;
  static constexpr std::array kMetrics{HeadlineMetric::kUtilization, HeadlineMetric::kMemoryUsed,
                                       HeadlineMetric::kPower};

  /// Adds what was collected since the last call. A device that has no samples any more is dropped
  /// after an hour.
  void Add(const Snapshot& samples, base::TimePoint now);

  /// The number of steps that were complete at this time: changes when Values does.
  static std::int64_t CompleteSteps(base::TimePoint now);

  /// The means over the complete steps, oldest first, in the base unit; NaN for a step without a
  /// value. Where collections are further apart than a step, the steps between two of them have the
  /// first one's value. Empty for an unknown device, or a metric that it never had.
  std::vector<float> Values(std::string_view device, HeadlineMetric metric,
                            base::TimePoint now) const;

  std::size_t devices() const { return devices_.size(); }

 private:
  struct Line {
    std::vector<float> means;  // by step modulo kSteps; empty: there never was a value
    float last = 0;            // the last value; NaN: the device did not report one
    std::uint32_t count = 0;   // of values in the newest step
  };
  struct Device {
    std::array<Line, kMetrics.size()> lines;
    std::int64_t step = 0;  // the newest one
    std::uint64_t collections = 0;
    base::TimePoint at{};  // of the last collection
  };
  static void Advance(Device& device, std::int64_t step, bool hold);
  Device* Find(const std::string& id, std::int64_t step);

  std::map<std::string, Device, std::less<>> devices_;
};

}  // namespace penstock::node::sample
