// Finds a vendor's quantities for the few headline metrics of a device, by their vendor-neutral
// families. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/telemetry.h"
#include "node/sample/samples.h"

namespace penstock::node::sample {

enum class HeadlineMetric { kUtilization, kMemoryUsed, kTemperature, kPower, kPowerLimit, kClock };
inline constexpr std::size_t kHeadlineMetrics = 6;

/// "utilization", "memoryUsed", "temperature", "power", "powerLimit", "clock".
std::string_view NameOf(HeadlineMetric metric);

/// The metrics whose last values are kept (DeviceSample::history).
std::span<const HeadlineMetric> WithHistory();

/// A vendor's quantities for the metric, the best one first: a device may lack that one.
std::vector<device::QuantityId> QuantitiesOf(HeadlineMetric metric,
                                             std::span<const device::Quantity> quantities);

/// The newest value, in the base unit (ratio, bytes, celsius, watts, hertz).
std::optional<double> ValueOf(HeadlineMetric metric, const DeviceSample& sample,
                              std::span<const device::Quantity> quantities);

}  // namespace penstock::node::sample
