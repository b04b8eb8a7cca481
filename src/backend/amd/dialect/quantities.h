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
  // Those that only AMD's exporter has.
  kDeferred,
  kMemoryTotal,
  kMemoryFree,
  kVisibleTotal,
  kVisibleUsed,
  kVisibleFree,
  kGttTotal,
  kGttUsed,
  kGttFree,
  kMemoryBandwidth,
  kPowerNow,
  kAveragePower,
  kMicrojoules,
  kEdgeTemperature,
  kHbmTemperatures,
  kMultimedia,
  kVideoUse,
  kJpegUse,
  kComputeBusy,
  kVideoBusy,
  kJpegBusy,
  kSocVoltage,
  kGfxVoltage,
  kMemoryVoltage,
  kPcieSpeed,
  kPcieMaxSpeed,
  kPcieBandwidth,
  kPcieBandwidthTotal,
  kPcieReplays,
  kPcieRecoveries,
  kPcieRollovers,
  kPcieNaksSent,
  kPcieNaksReceived,
  kClocks,
  kLowestClocks,
  kHighestClocks,
  kXgmiReceived,
  kXgmiSent,
  kThrottleCount,
  kThrottleHot,
  kThrottlePower,
  kThrottleSocket,
  kThrottleRegulators,
  kThrottleMemory,
  kSlowPower,
  kSlowHeat,
  kSlowIdle,
  kSlowTotal,
  kCorrectableOfBlocks,
  kUncorrectableOfBlocks,
  kDeferredOfBlocks,
};

std::span<const device::Quantity> TheQuantities();

/// Those of the blocks of the chip have the place of the block in kBlocks as their link, those of
/// clocks the number of ClockType, others the number of the engine, sensor or link of xGMI.
/// Nothing for an id that is not in the table.
std::optional<GpuQuantity> GpuQuantityOf(device::QuantityId id);

}  // namespace penstock::backend::amd
