// The quantities that NVIDIA's GPUs can measure. A quantity's index in the list is its id; ids are
// only exchanged between programs of one build.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "device/telemetry.h"

namespace penstock::backend::nvidia {

/// The NVML call that returns a quantity. The comment of each call gives the meaning of
/// Way::number.
enum class NvmlCall : unsigned char {
  kField,             ///< nvmlDeviceGetFieldValues: NVML_FI_*
  kFieldOfEachLink,   ///< the same, once per link, with the link as the scope
  kGpm,               ///< nvmlGpmMetricsGet: NVML_GPM_METRIC_*
  kClock,             ///< nvmlDeviceGetClockInfo: nvmlClockType_t
  kMaxClock,          ///< nvmlDeviceGetMaxClockInfo: nvmlClockType_t
  kApplicationClock,  ///< nvmlDeviceGetClock with the application clock's target: nvmlClockType_t
  kTemperature,       ///< nvmlDeviceGetTemperature
  kThreshold,         ///< nvmlDeviceGetTemperatureThreshold: nvmlTemperatureThresholds_t
  kMargin,            ///< nvmlDeviceGetMarginTemperature
  kPower,             ///< nvmlDeviceGetPowerUsage
  kPowerLimit,        ///< calls for limits: PowerLimit
  kUtilization,       ///< nvmlDeviceGetUtilizationRates: 0 the GPU's, 1 its memory's
  kEngine,            ///< utilization of one kind of engine: EngineKind
  kMemory,            ///< nvmlDeviceGetMemoryInfo: MemoryPart
  kBar1,              ///< nvmlDeviceGetBAR1MemoryInfo: MemoryPart
  kPcieLink,          ///< calls for the PCIe link: PcieLink
  kPcieTraffic,  ///< a counter of bytes: 0 sent, 1 received. The driver has it in one of two places
  kPcieRate,     ///< bytes per second: 0 sent, 1 received; from GPM, otherwise from the counter
  kFabricTraffic,  ///< a counter of KiB over all links: 0 sent, 1 received. Summed over the links
                   ///< if the driver does not sum them
  kFabricRate,     ///< bytes per second over all links: 0 sent, 1 received, 2 both
  kFabricLinkTraffic,  ///< a counter of KiB per link: 0 sent, 1 received
  kFabricLinkRate,     ///< bytes per second per link: 0 sent, 1 received, 2 both
  kFabricLinkErrors,   ///< nvmlDeviceGetNvLinkErrorCounter per link: nvmlNvLinkErrorCounter_t
  kFabricLinkState,    ///< nvmlDeviceGetNvLinkState per link
  kFabric,             ///< nvmlDeviceGetGpuFabricInfoV: FabricPart
  kEccLocation,        ///< nvmlDeviceGetMemoryErrorCounter: EccCounter
  kRemappedBanks,  ///< nvmlDeviceGetRowRemapperHistogram: 0 max, 1 high, 2 partial, 3 low, 4 none
  kReasons,        ///< nvmlDeviceGetCurrentClocksEventReasons: a bit; 0: all of them
  kPerformanceState,  ///< nvmlDeviceGetPerformanceState
  kFan,               ///< nvmlDeviceGetFanSpeed
  kLicense,           ///< nvmlDeviceGetGridLicensableFeatures
  kMode,              ///< calls for modes: ModeOf
};

enum class PowerLimit : unsigned { kEnforced, kManagement, kDefault, kMin, kMax };
enum class EngineKind : unsigned { kEncoder, kDecoder, kJpeg, kOpticalFlow };
enum class MemoryPart : unsigned { kTotal, kFree, kUsed, kReserved, kUsedRatio };
enum class PcieLink : unsigned { kGeneration, kMaxGeneration, kWidth, kMaxWidth };
enum class FabricPart : unsigned { kState, kStatus, kClique, kHealthMask, kHealthSummary };
enum class ModeOf : unsigned { kCompute, kPersistence, kMig };

/// nvmlMemoryErrorType_t, nvmlEccCounterType_t and nvmlMemoryLocation_t in one number.
constexpr unsigned EccCounter(unsigned error, unsigned counter, unsigned location) {
  return error | counter << 1 | location << 2;
}

/// The call that reads a quantity.
struct NvmlQuery {
  NvmlCall call = NvmlCall::kField;
  unsigned number = 0;
};

std::span<const device::Quantity> TheQuantities();

/// `id` is an id of TheQuantities.
NvmlQuery QueryOf(device::QuantityId id);

/// Nothing if no quantity has this key.
std::optional<device::QuantityId> FindQuantity(std::string_view key);

}  // namespace penstock::backend::nvidia
