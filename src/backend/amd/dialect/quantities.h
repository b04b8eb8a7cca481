// What AMD's GPUs measure, as far as amdgpu's files in sysfs say it.
#pragma once

#include <optional>
#include <span>

#include "device/telemetry.h"

namespace penstock::backend::amd {

enum class GpuQuantity {
  kMemoryUsed,
  kUtilization,
  kMemoryUtilization,
  kTemperature,
  kMemoryTemperature,
  kPower,
  kEnergy,
  kComputeClock,
  kMemoryClock,
  kPcieWidth,
  kCorrectable,
  kUncorrectable,
};

std::span<const device::Quantity> TheQuantities();

/// Nothing for an id that is not in the table.
std::optional<GpuQuantity> GpuQuantityOf(device::QuantityId id);

}  // namespace penstock::backend::amd
