// Rows of the table of quantities: clocks, temperatures, power, utilization, memory, modes.
#pragma once

#include "backend/nvidia/dialect/quantity_row.h"

namespace penstock::backend::nvidia {

inline constexpr device::Quantity kTemperatureLimits{
    .unit = device::Unit::kCelsius,
    .pace = device::Pace::kOnce,
    .most = kMaxCelsius,
    .family = "accelerator_temperature_limit_celsius",
    .has = "before Ada and Hopper, which report margins"};
inline constexpr device::Quantity kLimitMargins{
    .unit = device::Unit::kCelsius,
    .pace = device::Pace::kOnce,
    .most = kMaxCelsius,
    .family = "accelerator_temperature_limit_margin_celsius",
    .has = "Ada, Hopper and newer"};
inline constexpr device::Quantity kEngineUtilization{
    .unit = device::Unit::kPercent,
    .most = 100,
    .family = "accelerator_engine_utilization_ratio",
    .has = "not while MIG is enabled"};

// clang-format off
inline constexpr QuantityRow kBoardRows[] = {
    {{.key = "clock.sm", .unit = device::Unit::kMegahertz, .most = kMaxMegahertz, .family = "accelerator_clock_hertz", .labels = R"(clock="sm")",
      .source = "nvmlDeviceGetClockInfo(NVML_CLOCK_SM)"}, {NvmlCall::kClock, 1}},
    {{.key = "clock.memory", .unit = device::Unit::kMegahertz, .most = kMaxMegahertz, .family = "accelerator_clock_hertz", .labels = R"(clock="memory")",
      .source = "nvmlDeviceGetClockInfo(NVML_CLOCK_MEM)"}, {NvmlCall::kClock, 2}},
    {{.key = "clock.video", .unit = device::Unit::kMegahertz, .most = kMaxMegahertz, .family = "accelerator_clock_hertz", .labels = R"(clock="video")",
      .source = "nvmlDeviceGetClockInfo(NVML_CLOCK_VIDEO)"}, {NvmlCall::kClock, 3}},
    {{.key = "clock.max.sm", .unit = device::Unit::kMegahertz, .pace = device::Pace::kOnce, .most = kMaxMegahertz, .family = "accelerator_clock_max_hertz", .labels = R"(clock="sm")",
      .source = "nvmlDeviceGetMaxClockInfo(NVML_CLOCK_SM)"}, {NvmlCall::kMaxClock, 1}},
    {{.key = "clock.max.memory", .unit = device::Unit::kMegahertz, .pace = device::Pace::kOnce, .most = kMaxMegahertz, .family = "accelerator_clock_max_hertz", .labels = R"(clock="memory")",
      .source = "nvmlDeviceGetMaxClockInfo(NVML_CLOCK_MEM)"}, {NvmlCall::kMaxClock, 2}},
    {{.key = "clock.max.video", .unit = device::Unit::kMegahertz, .pace = device::Pace::kOnce, .most = kMaxMegahertz, .family = "accelerator_clock_max_hertz", .labels = R"(clock="video")",
      .source = "nvmlDeviceGetMaxClockInfo(NVML_CLOCK_VIDEO)"}, {NvmlCall::kMaxClock, 3}},
    {{.key = "clock.application.sm", .unit = device::Unit::kMegahertz, .pace = device::Pace::kSlow, .most = kMaxMegahertz, .family = "accelerator_clock_application_hertz", .labels = R"(clock="sm")",
      .source = "nvmlDeviceGetClock(NVML_CLOCK_SM, NVML_CLOCK_ID_APP_CLOCK_TARGET)", .has = "data center GPUs"}, {NvmlCall::kApplicationClock, 1}},
    {{.key = "clock.application.memory", .unit = device::Unit::kMegahertz, .pace = device::Pace::kSlow, .most = kMaxMegahertz, .family = "accelerator_clock_application_hertz", .labels = R"(clock="memory")",
      .source = "nvmlDeviceGetClock(NVML_CLOCK_MEM, NVML_CLOCK_ID_APP_CLOCK_TARGET)", .has = "data center GPUs"}, {NvmlCall::kApplicationClock, 2}},

    {{.key = "temperature.gpu", .unit = device::Unit::kCelsius, .most = kMaxCelsius, .family = "accelerator_temperature_celsius",
      .source = "nvmlDeviceGetTemperature(NVML_TEMPERATURE_GPU)"}, {NvmlCall::kTemperature}},
    {{.key = "temperature.memory", .unit = device::Unit::kCelsius, .most = kMaxCelsius, .family = "accelerator_memory_temperature_celsius",
      .source = "NVML_FI_DEV_MEMORY_TEMP", .has = "GPUs with HBM"}, {NvmlCall::kField, 82}},
    {{.key = "temperature.margin", .unit = device::Unit::kCelsius, .most = kMaxCelsius, .family = "accelerator_temperature_margin_celsius",
      .source = "nvmlDeviceGetMarginTemperature", .has = "Ada, Hopper and newer; driver 570 and newer"}, {NvmlCall::kMargin}},
    Like(kTemperatureLimits, "temperature.limit.shutdown", R"(limit="shutdown")", "nvmlDeviceGetTemperatureThreshold(NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)", {NvmlCall::kThreshold, 0}),
    Like(kTemperatureLimits, "temperature.limit.slowdown", R"(limit="slowdown")", "nvmlDeviceGetTemperatureThreshold(NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)", {NvmlCall::kThreshold, 1}),
    Like(kTemperatureLimits, "temperature.limit.memory", R"(limit="memory_max")", "nvmlDeviceGetTemperatureThreshold(NVML_TEMPERATURE_THRESHOLD_MEM_MAX)", {NvmlCall::kThreshold, 2}, "GPUs with HBM before Ada and Hopper"),
    Like(kTemperatureLimits, "temperature.limit.gpu", R"(limit="max")", "nvmlDeviceGetTemperatureThreshold(NVML_TEMPERATURE_THRESHOLD_GPU_MAX)", {NvmlCall::kThreshold, 3}),
    Like(kLimitMargins, "temperature.limit_margin.shutdown", R"(limit="shutdown")", "NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT", {NvmlCall::kField, 193}),
    Like(kLimitMargins, "temperature.limit_margin.slowdown", R"(limit="slowdown")", "NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT", {NvmlCall::kField, 194}),
    Like(kLimitMargins, "temperature.limit_margin.memory", R"(limit="memory_max")", "NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT", {NvmlCall::kField, 195}),
    Like(kLimitMargins, "temperature.limit_margin.gpu", R"(limit="max")", "NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT", {NvmlCall::kField, 196}),

    {{.key = "power", .unit = device::Unit::kMilliwatts, .most = kMaxMilliwatts, .family = "accelerator_power_watts",
      .source = "nvmlDeviceGetPowerUsage", .has = "one-second average on Ampere (except GA100) and newer, otherwise instantaneous"}, {NvmlCall::kPower}},
    {{.key = "power.average", .unit = device::Unit::kMilliwatts, .most = kMaxMilliwatts, .family = "accelerator_power_average_watts",
      .source = "NVML_FI_DEV_POWER_AVERAGE", .has = "Ampere (except GA100) and newer"}, {NvmlCall::kField, 185}},
    {{.key = "power.instant", .unit = device::Unit::kMilliwatts, .most = kMaxMilliwatts, .family = "accelerator_power_instant_watts",
      .source = "NVML_FI_DEV_POWER_INSTANT", .has = "driver 525 and newer"}, {NvmlCall::kField, 186}},
    {{.key = "power.limit", .unit = device::Unit::kMilliwatts, .pace = device::Pace::kSlow, .most = kMaxMilliwatts, .family = "accelerator_power_limit_watts", .labels = R"(limit="set")",
      .source = "nvmlDeviceGetPowerManagementLimit"}, {NvmlCall::kPowerLimit, Number(PowerLimit::kManagement)}},
    {{.key = "power.limit.enforced", .unit = device::Unit::kMilliwatts, .pace = device::Pace::kSlow, .most = kMaxMilliwatts, .family = "accelerator_power_limit_watts", .labels = R"(limit="enforced")",
      .source = "nvmlDeviceGetEnforcedPowerLimit"}, {NvmlCall::kPowerLimit, Number(PowerLimit::kEnforced)}},
    {{.key = "power.limit.default", .unit = device::Unit::kMilliwatts, .pace = device::Pace::kOnce, .most = kMaxMilliwatts, .family = "accelerator_power_limit_watts", .labels = R"(limit="default")",
      .source = "nvmlDeviceGetPowerManagementDefaultLimit"}, {NvmlCall::kPowerLimit, Number(PowerLimit::kDefault)}},
    {{.key = "power.limit.min", .unit = device::Unit::kMilliwatts, .pace = device::Pace::kOnce, .most = kMaxMilliwatts, .family = "accelerator_power_limit_watts", .labels = R"(limit="min")",
      .source = "nvmlDeviceGetPowerManagementLimitConstraints"}, {NvmlCall::kPowerLimit, Number(PowerLimit::kMin)}},
    {{.key = "power.limit.max", .unit = device::Unit::kMilliwatts, .pace = device::Pace::kOnce, .most = kMaxMilliwatts, .family = "accelerator_power_limit_watts", .labels = R"(limit="max")",
      .source = "nvmlDeviceGetPowerManagementLimitConstraints"}, {NvmlCall::kPowerLimit, Number(PowerLimit::kMax)}},
    {{.key = "energy", .unit = device::Unit::kMillijoules, .counter = true, .most = kMaxCount, .family = "accelerator_energy_joules_total",
      .source = "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", .has = "Volta and newer"}, {NvmlCall::kField, 83}},

    {{.key = "utilization.gpu", .unit = device::Unit::kPercent, .most = 100, .family = "accelerator_utilization_ratio",
      .source = "nvmlDeviceGetUtilizationRates", .has = "not while MIG is enabled"}, {NvmlCall::kUtilization, 0}},
    {{.key = "utilization.memory", .unit = device::Unit::kPercent, .most = 100, .family = "accelerator_memory_copy_utilization_ratio",
      .source = "nvmlDeviceGetUtilizationRates", .has = "not while MIG is enabled"}, {NvmlCall::kUtilization, 1}},
    Like(kEngineUtilization, "utilization.encoder", R"(engine="encoder")", "nvmlDeviceGetEncoderUtilization", {NvmlCall::kEngine, Number(EngineKind::kEncoder)}),
    Like(kEngineUtilization, "utilization.decoder", R"(engine="decoder")", "nvmlDeviceGetDecoderUtilization", {NvmlCall::kEngine, Number(EngineKind::kDecoder)}),
    Like(kEngineUtilization, "utilization.jpeg", R"(engine="jpeg")", "nvmlDeviceGetJpgUtilization", {NvmlCall::kEngine, Number(EngineKind::kJpeg)}, "GPUs with JPEG engines; driver 530 and newer; not while MIG is enabled"),
    Like(kEngineUtilization, "utilization.optical_flow", R"(engine="optical_flow")", "nvmlDeviceGetOfaUtilization", {NvmlCall::kEngine, Number(EngineKind::kOpticalFlow)}, "Turing and newer; driver 530 and newer; not while MIG is enabled"),

    {{.key = "memory.total", .unit = device::Unit::kBytes, .pace = device::Pace::kOnce, .most = kMaxBytes,
      .source = "nvmlDeviceGetMemoryInfo"}, {NvmlCall::kMemory, Number(MemoryPart::kTotal)}},
    {{.key = "memory.used", .unit = device::Unit::kBytes, .most = kMaxBytes, .family = "accelerator_memory_used_bytes",
      .source = "nvmlDeviceGetMemoryInfo_v2", .has = "includes reserved memory before driver 510"}, {NvmlCall::kMemory, Number(MemoryPart::kUsed)}},
    {{.key = "memory.free", .unit = device::Unit::kBytes, .most = kMaxBytes, .family = "accelerator_memory_free_bytes",
      .source = "nvmlDeviceGetMemoryInfo_v2"}, {NvmlCall::kMemory, Number(MemoryPart::kFree)}},
    {{.key = "memory.reserved", .unit = device::Unit::kBytes, .pace = device::Pace::kSlow, .most = kMaxBytes, .family = "accelerator_memory_reserved_bytes",
      .source = "nvmlDeviceGetMemoryInfo_v2", .has = "driver 510 and newer"}, {NvmlCall::kMemory, Number(MemoryPart::kReserved)}},
    {{.key = "memory.used_ratio", .unit = device::Unit::kRatio, .most = 1,
      .source = "nvmlDeviceGetMemoryInfo_v2: used / (total - reserved)"}, {NvmlCall::kMemory, Number(MemoryPart::kUsedRatio)}},
    {{.key = "bar1.total", .unit = device::Unit::kBytes, .pace = device::Pace::kOnce, .most = kMaxBytes, .family = "accelerator_bar1_bytes",
      .source = "nvmlDeviceGetBAR1MemoryInfo"}, {NvmlCall::kBar1, Number(MemoryPart::kTotal)}},
    {{.key = "bar1.used", .unit = device::Unit::kBytes, .pace = device::Pace::kSlow, .most = kMaxBytes, .family = "accelerator_bar1_used_bytes",
      .source = "nvmlDeviceGetBAR1MemoryInfo"}, {NvmlCall::kBar1, Number(MemoryPart::kUsed)}},
    {{.key = "bar1.free", .unit = device::Unit::kBytes, .pace = device::Pace::kSlow, .most = kMaxBytes,
      .source = "nvmlDeviceGetBAR1MemoryInfo"}, {NvmlCall::kBar1, Number(MemoryPart::kFree)}},

    {{.key = "performance_state", .most = 15, .family = "accelerator_performance_state",
      .source = "nvmlDeviceGetPerformanceState"}, {NvmlCall::kPerformanceState}},
    {{.key = "fan", .unit = device::Unit::kPercent, .most = 150, .family = "accelerator_fan_speed_ratio",
      .source = "nvmlDeviceGetFanSpeed", .has = "boards with their own fan"}, {NvmlCall::kFan}},
    {{.key = "mode.compute", .pace = device::Pace::kSlow, .most = 3, .source = "nvmlDeviceGetComputeMode"}, {NvmlCall::kMode, Number(ModeOf::kCompute)}},
    {{.key = "mode.persistence", .pace = device::Pace::kSlow, .most = 1, .source = "nvmlDeviceGetPersistenceMode"}, {NvmlCall::kMode, Number(ModeOf::kPersistence)}},
    {{.key = "mode.mig", .pace = device::Pace::kSlow, .most = 1, .source = "nvmlDeviceGetMigMode", .has = "Ampere and newer data center GPUs"}, {NvmlCall::kMode, Number(ModeOf::kMig)}},
    {{.key = "license", .pace = device::Pace::kSlow, .most = 1, .family = "accelerator_virtual_licensed",
      .source = "nvmlDeviceGetGridLicensableFeatures", .has = "vGPU guests; 0 elsewhere"}, {NvmlCall::kLicense}},
};
// clang-format on

}  // namespace penstock::backend::nvidia
