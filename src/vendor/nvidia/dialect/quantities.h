// What NVIDIA's GPUs can be asked for. A quantity's place in the list is its id; ids travel between programs of one build only.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "device/telemetry.h"

namespace penstock::vendor::nvidia {

/// Which of NVML's calls gives a quantity. What Way::number is with each of them stands beside it.
enum class Call : unsigned char {
  kField,              ///< nvmlDeviceGetFieldValues: NVML_FI_*
  kFieldOfAllLinks,    ///< likewise, with the scope that means all links together
  kFieldOfEachLink,    ///< likewise, once for each link, which is the scope
  kGpm,                ///< nvmlGpmMetricsGet: NVML_GPM_METRIC_*
  kClock,              ///< nvmlDeviceGetClockInfo: nvmlClockType_t
  kMaxClock,           ///< nvmlDeviceGetMaxClockInfo: nvmlClockType_t
  kApplicationClock,   ///< nvmlDeviceGetClock with the application's target: nvmlClockType_t
  kTemperature,        ///< nvmlDeviceGetTemperature
  kThreshold,          ///< nvmlDeviceGetTemperatureThreshold: nvmlTemperatureThresholds_t
  kMargin,             ///< nvmlDeviceGetMarginTemperature
  kPower,              ///< nvmlDeviceGetPowerUsage
  kPowerLimit,         ///< calls about limits: PowerLimit
  kUtilization,        ///< nvmlDeviceGetUtilizationRates: 0 the GPU's, 1 its memory's
  kEngine,             ///< utilization of one kind of engine: Engine
  kMemory,             ///< nvmlDeviceGetMemoryInfo: MemoryPart
  kBar1,               ///< nvmlDeviceGetBAR1MemoryInfo: MemoryPart
  kPcieLink,           ///< calls about the PCIe link: PcieLink
  kPcieTraffic,        ///< a counter of bytes: 0 sent, 1 received. The driver may have it in either of two places
  kPcieRate,           ///< bytes per second: 0 sent, 1 received; GPM's, else from the counter
  kFabricTraffic,      ///< a counter of KiB over all links: 0 sent, 1 received. Summed over the links where the driver does not
  kFabricRate,         ///< bytes per second over all links: 0 sent, 1 received, 2 both
  kFabricLinkTraffic,  ///< a counter of KiB for each link: 0 sent, 1 received
  kFabricLinkRate,     ///< bytes per second for each link: 0 sent, 1 received, 2 both
  kFabricLinkErrors,   ///< nvmlDeviceGetNvLinkErrorCounter for each link: nvmlNvLinkErrorCounter_t
  kFabricLinkState,    ///< nvmlDeviceGetNvLinkState for each link
  kFabric,             ///< nvmlDeviceGetGpuFabricInfoV: FabricPart
  kEccLocation,        ///< nvmlDeviceGetMemoryErrorCounter: EccCounter
  kRemappedBanks,      ///< nvmlDeviceGetRowRemapperHistogram: 0 max, 1 high, 2 partial, 3 low, 4 none
  kReasons,            ///< nvmlDeviceGetCurrentClocksEventReasons: a bit; 0: all of them
  kPerformanceState,   ///< nvmlDeviceGetPerformanceState
  kFan,                ///< nvmlDeviceGetFanSpeed
  kLicense,            ///< nvmlDeviceGetGridLicensableFeatures
  kMode,               ///< calls about modes: Mode
};

enum class PowerLimit : unsigned { kEnforced, kManagement, kDefault, kLeast, kMost };
enum class Engine : unsigned { kEncoder, kDecoder, kJpeg, kOpticalFlow };
enum class MemoryPart : unsigned { kTotal, kFree, kUsed, kReserved, kUsedRatio };
enum class PcieLink : unsigned { kGeneration, kMaxGeneration, kWidth, kMaxWidth };
enum class FabricPart : unsigned { kState, kStatus, kClique, kHealthMask, kHealthSummary };
enum class ModeOf : unsigned { kCompute, kPersistence, kMig };

/// nvmlMemoryErrorType_t, nvmlEccCounterType_t and nvmlMemoryLocation_t in one number.
constexpr unsigned EccCounter(unsigned error, unsigned counter, unsigned location) { return error | counter << 1 | location << 2; }

/// How a quantity is asked for.
struct Way {
  Call call = Call::kField;
  unsigned number = 0;
};

std::span<const device::Quantity> TheQuantities();

/// `id` is one of TheQuantities.
Way WayOf(device::QuantityId id);

/// Nothing where no quantity has this key.
std::optional<device::QuantityId> FindQuantity(std::string_view key);

}  // namespace penstock::vendor::nvidia
