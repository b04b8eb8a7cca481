// The table of quantities. Sources: NVIDIA's nvml.h; which call gives which of DCGM's fields: DCGM, dcgmlib/src/DcgmCacheManager.cpp.
#include "vendor/nvidia/dialect/quantities.h"

#include <array>

namespace penstock::vendor::nvidia {
namespace {

using device::Pace;
using device::Quantity;
using device::Unit;

// clang-format off
constexpr std::array<Quantity, kQuantities> kTable{{
    {.key = "utilization.gpu", .unit = Unit::kPercent, .most = 100, .family = "accelerator_utilization_ratio",
     .source = "nvmlDeviceGetUtilizationRates", .has = "not while MIG is on"},
    {.key = "utilization.memory", .unit = Unit::kPercent, .most = 100, .family = "accelerator_memory_copy_utilization_ratio",
     .source = "nvmlDeviceGetUtilizationRates", .has = "not while MIG is on"},
    {.key = "memory.used", .unit = Unit::kBytes, .family = "accelerator_memory_used_bytes", .source = "nvmlDeviceGetMemoryInfo_v2"},
    {.key = "memory.free", .unit = Unit::kBytes, .family = "accelerator_memory_free_bytes", .source = "nvmlDeviceGetMemoryInfo_v2"},
    {.key = "memory.reserved", .unit = Unit::kBytes, .family = "accelerator_memory_reserved_bytes", .source = "nvmlDeviceGetMemoryInfo_v2",
     .has = "driver 510 and newer"},
    {.key = "temperature.gpu", .unit = Unit::kCelsius, .most = 200, .family = "accelerator_temperature_celsius",
     .source = "nvmlDeviceGetTemperature(NVML_TEMPERATURE_GPU)"},
    {.key = "power", .unit = Unit::kMilliwatts, .most = 5e6, .family = "accelerator_power_watts", .source = "nvmlDeviceGetPowerUsage"},
    {.key = "clock.sm", .unit = Unit::kMegahertz, .most = 1e5, .family = "accelerator_clock_hertz", .labels = R"(clock="sm")",
     .source = "nvmlDeviceGetClockInfo(NVML_CLOCK_SM)"},
    {.key = "clock.memory", .unit = Unit::kMegahertz, .most = 1e5, .family = "accelerator_clock_hertz", .labels = R"(clock="memory")",
     .source = "nvmlDeviceGetClockInfo(NVML_CLOCK_MEM)"},
}};
// clang-format on

}  // namespace

std::span<const Quantity> TheQuantities() { return kTable; }

}  // namespace penstock::vendor::nvidia
