// The few things that people look at first, whatever a vendor's quantities are: found by their families on the vendor-neutral page. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/telemetry.h"
#include "node/sample/samples.h"

namespace penstock::node::sample {

enum class Glance { kUtilization, kMemoryUsed, kTemperature, kPower, kPowerLimit, kClock };
inline constexpr std::size_t kGlances = 6;

/// "utilization", "memoryUsed", "temperature", "power", "powerLimit", "clock".
std::string_view NameOf(Glance glance);

/// Those of which the last values are kept (DeviceSample::history).
std::span<const Glance> WithHistory();

/// The quantities of a vendor that tell it, the best one first: a device may lack that one.
std::vector<device::QuantityId> QuantitiesOf(Glance glance, std::span<const device::Quantity> quantities);

/// Its newest value in the base unit (ratio, bytes, celsius, watts, hertz).
std::optional<double> ValueOf(Glance glance, const DeviceSample& sample, std::span<const device::Quantity> quantities);

}  // namespace penstock::node::sample
