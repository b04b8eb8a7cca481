// What NVIDIA's GPUs can be asked for. The order of the list is the ids' order; they travel between programs of one build only.
#pragma once

#include <span>

#include "device/telemetry.h"

namespace penstock::vendor::nvidia {

enum QuantityIndex : device::QuantityId {
  kGpuUtilization,
  kMemoryUtilization,
  kMemoryUsed,
  kMemoryFree,
  kMemoryReserved,
  kGpuTemperature,
  kPowerUsage,
  kSmClock,
  kMemoryClock,
  kQuantities  // how many there are
};

std::span<const device::Quantity> TheQuantities();

}  // namespace penstock::vendor::nvidia
