// Rows of the table of quantities: errors, retired memory, reasons for reduced clocks.
#pragma once

#include "backend/nvidia/dialect/quantity_row.h"

namespace penstock::backend::nvidia {

inline constexpr device::Quantity kEccErrors{
    .counter = true,
    .pace = device::Pace::kSlow,
    .most = kMaxCount32,
    .family = "accelerator_ecc_location_errors_total",
    .has = "most locations before Ampere; device memory also later"};
inline constexpr device::Quantity kLifetimeEccErrors{
    .counter = true,
    .pace = device::Pace::kSlow,
    .most = kMaxCount32,
    .family = "accelerator_ecc_location_lifetime_errors_total",
    .has = "most locations before Ampere; device memory also later"};
inline constexpr device::Quantity kLimitedTime{
    .unit = device::Unit::kNanoseconds,
    .counter = true,
    .pace = device::Pace::kSlow,
    .most = kMaxCount,
    .family = "accelerator_clocks_limited_seconds_total"};
inline constexpr device::Quantity kLimited{.most = 1, .family = "accelerator_clocks_limited"};

inline constexpr device::Quantity kRowRemapBanks{.pace = device::Pace::kSlow,
                                                 .most = kMaxCount32,
                                                 .family = "accelerator_row_remap_banks",
                                                 .has = "Ampere and newer data center GPUs"};

// clang-format off
inline constexpr QuantityRow kErrorRows[] = {
    {{.key = "ecc.volatile.corrected", .counter = true, .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_ecc_errors_total", .labels = R"(error="corrected")",
      .source = "NVML_FI_DEV_ECC_SBE_VOL_TOTAL", .has = "GPUs with ECC enabled"}, {NvmlCall::kField, 3}},
    {{.key = "ecc.volatile.uncorrected", .counter = true, .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_ecc_errors_total", .labels = R"(error="uncorrected")",
      .source = "NVML_FI_DEV_ECC_DBE_VOL_TOTAL", .has = "GPUs with ECC enabled"}, {NvmlCall::kField, 4}},
    {{.key = "ecc.aggregate.corrected", .counter = true, .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_ecc_lifetime_errors_total", .labels = R"(error="corrected")",
      .source = "NVML_FI_DEV_ECC_SBE_AGG_TOTAL", .has = "GPUs with ECC enabled"}, {NvmlCall::kField, 5}},
    {{.key = "ecc.aggregate.uncorrected", .counter = true, .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_ecc_lifetime_errors_total", .labels = R"(error="uncorrected")",
      .source = "NVML_FI_DEV_ECC_DBE_AGG_TOTAL", .has = "GPUs with ECC enabled"}, {NvmlCall::kField, 6}},

    Like(kEccErrors, "ecc.volatile.l1.corrected", R"(error="corrected",location="l1")", "NVML_FI_DEV_ECC_SBE_VOL_L1", {NvmlCall::kField, 7}),
    Like(kEccErrors, "ecc.volatile.l1.uncorrected", R"(error="uncorrected",location="l1")", "NVML_FI_DEV_ECC_DBE_VOL_L1", {NvmlCall::kField, 8}),
    Like(kEccErrors, "ecc.volatile.l2.corrected", R"(error="corrected",location="l2")", "NVML_FI_DEV_ECC_SBE_VOL_L2", {NvmlCall::kField, 9}),
    Like(kEccErrors, "ecc.volatile.l2.uncorrected", R"(error="uncorrected",location="l2")", "NVML_FI_DEV_ECC_DBE_VOL_L2", {NvmlCall::kField, 10}),
    Like(kEccErrors, "ecc.volatile.device.corrected", R"(error="corrected",location="device")", "NVML_FI_DEV_ECC_SBE_VOL_DEV", {NvmlCall::kField, 11}),
    Like(kEccErrors, "ecc.volatile.device.uncorrected", R"(error="uncorrected",location="device")", "NVML_FI_DEV_ECC_DBE_VOL_DEV", {NvmlCall::kField, 12}),
    Like(kEccErrors, "ecc.volatile.register.corrected", R"(error="corrected",location="register")", "NVML_FI_DEV_ECC_SBE_VOL_REG", {NvmlCall::kField, 13}),
    Like(kEccErrors, "ecc.volatile.register.uncorrected", R"(error="uncorrected",location="register")", "NVML_FI_DEV_ECC_DBE_VOL_REG", {NvmlCall::kField, 14}),
    Like(kEccErrors, "ecc.volatile.texture.corrected", R"(error="corrected",location="texture")", "NVML_FI_DEV_ECC_SBE_VOL_TEX", {NvmlCall::kField, 15}),
    Like(kEccErrors, "ecc.volatile.texture.uncorrected", R"(error="uncorrected",location="texture")", "NVML_FI_DEV_ECC_DBE_VOL_TEX", {NvmlCall::kField, 16}),
    Like(kEccErrors, "ecc.volatile.cbu.uncorrected", R"(error="uncorrected",location="cbu")", "NVML_FI_DEV_ECC_DBE_VOL_CBU", {NvmlCall::kField, 17}, "Volta"),
    Like(kEccErrors, "ecc.volatile.shared.corrected", R"(error="corrected",location="shared")", "nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, NVML_MEMORY_LOCATION_TEXTURE_SHM)", {NvmlCall::kEccLocation, EccCounter(0, 0, 5)}, "before Ampere"),
    Like(kEccErrors, "ecc.volatile.shared.uncorrected", R"(error="uncorrected",location="shared")", "nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, NVML_MEMORY_LOCATION_TEXTURE_SHM)", {NvmlCall::kEccLocation, EccCounter(1, 0, 5)}, "before Ampere"),
    Like(kEccErrors, "ecc.volatile.sram.corrected", R"(error="corrected",location="sram")", "nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, NVML_MEMORY_LOCATION_SRAM)", {NvmlCall::kEccLocation, EccCounter(0, 0, 7)}, "Ampere and newer"),
    Like(kEccErrors, "ecc.volatile.sram.uncorrected", R"(error="uncorrected",location="sram")", "nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, NVML_MEMORY_LOCATION_SRAM)", {NvmlCall::kEccLocation, EccCounter(1, 0, 7)}, "Ampere and newer"),
    Like(kLifetimeEccErrors, "ecc.aggregate.l1.corrected", R"(error="corrected",location="l1")", "NVML_FI_DEV_ECC_SBE_AGG_L1", {NvmlCall::kField, 18}),
    Like(kLifetimeEccErrors, "ecc.aggregate.l1.uncorrected", R"(error="uncorrected",location="l1")", "NVML_FI_DEV_ECC_DBE_AGG_L1", {NvmlCall::kField, 19}),
    Like(kLifetimeEccErrors, "ecc.aggregate.l2.corrected", R"(error="corrected",location="l2")", "NVML_FI_DEV_ECC_SBE_AGG_L2", {NvmlCall::kField, 20}),
    Like(kLifetimeEccErrors, "ecc.aggregate.l2.uncorrected", R"(error="uncorrected",location="l2")", "NVML_FI_DEV_ECC_DBE_AGG_L2", {NvmlCall::kField, 21}),
    Like(kLifetimeEccErrors, "ecc.aggregate.device.corrected", R"(error="corrected",location="device")", "NVML_FI_DEV_ECC_SBE_AGG_DEV", {NvmlCall::kField, 22}),
    Like(kLifetimeEccErrors, "ecc.aggregate.device.uncorrected", R"(error="uncorrected",location="device")", "NVML_FI_DEV_ECC_DBE_AGG_DEV", {NvmlCall::kField, 23}),
    Like(kLifetimeEccErrors, "ecc.aggregate.register.corrected", R"(error="corrected",location="register")", "NVML_FI_DEV_ECC_SBE_AGG_REG", {NvmlCall::kField, 24}),
    Like(kLifetimeEccErrors, "ecc.aggregate.register.uncorrected", R"(error="uncorrected",location="register")", "NVML_FI_DEV_ECC_DBE_AGG_REG", {NvmlCall::kField, 25}),
    Like(kLifetimeEccErrors, "ecc.aggregate.texture.corrected", R"(error="corrected",location="texture")", "NVML_FI_DEV_ECC_SBE_AGG_TEX", {NvmlCall::kField, 26}),
    Like(kLifetimeEccErrors, "ecc.aggregate.texture.uncorrected", R"(error="uncorrected",location="texture")", "NVML_FI_DEV_ECC_DBE_AGG_TEX", {NvmlCall::kField, 27}),
    Like(kLifetimeEccErrors, "ecc.aggregate.cbu.uncorrected", R"(error="uncorrected",location="cbu")", "NVML_FI_DEV_ECC_DBE_AGG_CBU", {NvmlCall::kField, 28}, "Volta"),
    Like(kLifetimeEccErrors, "ecc.aggregate.shared.corrected", R"(error="corrected",location="shared")", "nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_AGGREGATE_ECC, NVML_MEMORY_LOCATION_TEXTURE_SHM)", {NvmlCall::kEccLocation, EccCounter(0, 1, 5)}, "before Ampere"),
    Like(kLifetimeEccErrors, "ecc.aggregate.shared.uncorrected", R"(error="uncorrected",location="shared")", "nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC, NVML_MEMORY_LOCATION_TEXTURE_SHM)", {NvmlCall::kEccLocation, EccCounter(1, 1, 5)}, "before Ampere"),
    Like(kLifetimeEccErrors, "ecc.aggregate.sram.corrected", R"(error="corrected",location="sram")", "nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_AGGREGATE_ECC, NVML_MEMORY_LOCATION_SRAM)", {NvmlCall::kEccLocation, EccCounter(0, 1, 7)}, "Ampere and newer"),
    Like(kLifetimeEccErrors, "ecc.aggregate.sram.uncorrected", R"(error="uncorrected",location="sram")", "nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC, NVML_MEMORY_LOCATION_SRAM)", {NvmlCall::kEccLocation, EccCounter(1, 1, 7)}, "Ampere and newer"),
    {{.key = "ecc.mode", .pace = device::Pace::kSlow, .most = 1, .family = "accelerator_ecc_enabled",
      .source = "NVML_FI_DEV_ECC_CURRENT", .has = "GPUs with ECC"}, {NvmlCall::kField, 1}},
    {{.key = "ecc.mode.pending", .pace = device::Pace::kSlow, .most = 1,
      .source = "NVML_FI_DEV_ECC_PENDING", .has = "GPUs with ECC"}, {NvmlCall::kField, 2}},

    {{.key = "retired.corrected", .counter = true, .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_retired_pages_total", .labels = R"(cause="corrected")",
      .source = "NVML_FI_DEV_RETIRED_SBE", .has = "before Ampere"}, {NvmlCall::kField, 29}},
    {{.key = "retired.uncorrected", .counter = true, .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_retired_pages_total", .labels = R"(cause="uncorrected")",
      .source = "NVML_FI_DEV_RETIRED_DBE", .has = "before Ampere"}, {NvmlCall::kField, 30}},
    {{.key = "retired.pending", .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_retired_pages_pending",
      .source = "NVML_FI_DEV_RETIRED_PENDING", .has = "before Ampere"}, {NvmlCall::kField, 31}},
    {{.key = "remapped.corrected", .counter = true, .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_remapped_rows_total", .labels = R"(cause="corrected")",
      .source = "NVML_FI_DEV_REMAPPED_COR", .has = "Ampere and newer data center GPUs"}, {NvmlCall::kField, 142}},
    {{.key = "remapped.uncorrected", .counter = true, .pace = device::Pace::kSlow, .most = kMaxCount32, .family = "accelerator_remapped_rows_total", .labels = R"(cause="uncorrected")",
      .source = "NVML_FI_DEV_REMAPPED_UNC", .has = "Ampere and newer data center GPUs"}, {NvmlCall::kField, 143}},
    {{.key = "remapped.pending", .pace = device::Pace::kSlow, .most = 1, .family = "accelerator_row_remap_pending",
      .source = "NVML_FI_DEV_REMAPPED_PENDING", .has = "Ampere and newer data center GPUs"}, {NvmlCall::kField, 144}},
    {{.key = "remapped.failure", .pace = device::Pace::kSlow, .most = 1, .family = "accelerator_row_remap_failed",
      .source = "NVML_FI_DEV_REMAPPED_FAILURE", .has = "Ampere and newer data center GPUs"}, {NvmlCall::kField, 145}},
    Like(kRowRemapBanks, "remapped.banks.max", R"(spare="max")", "nvmlDeviceGetRowRemapperHistogram", {NvmlCall::kRemappedBanks, 0}),
    Like(kRowRemapBanks, "remapped.banks.high", R"(spare="high")", "nvmlDeviceGetRowRemapperHistogram", {NvmlCall::kRemappedBanks, 1}),
    Like(kRowRemapBanks, "remapped.banks.partial", R"(spare="partial")", "nvmlDeviceGetRowRemapperHistogram", {NvmlCall::kRemappedBanks, 2}),
    Like(kRowRemapBanks, "remapped.banks.low", R"(spare="low")", "nvmlDeviceGetRowRemapperHistogram", {NvmlCall::kRemappedBanks, 3}),
    Like(kRowRemapBanks, "remapped.banks.none", R"(spare="none")", "nvmlDeviceGetRowRemapperHistogram", {NvmlCall::kRemappedBanks, 4}),

    Like(kLimitedTime, "limited.power", R"(reason="power")", "NVML_FI_DEV_PERF_POLICY_POWER", {NvmlCall::kField, 74}),
    Like(kLimitedTime, "limited.thermal", R"(reason="thermal")", "NVML_FI_DEV_PERF_POLICY_THERMAL", {NvmlCall::kField, 75}),
    Like(kLimitedTime, "limited.sync_boost", R"(reason="sync_boost")", "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST", {NvmlCall::kField, 76}),
    Like(kLimitedTime, "limited.board_limit", R"(reason="board_limit")", "NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT", {NvmlCall::kField, 77}),
    Like(kLimitedTime, "limited.low_utilization", R"(reason="low_utilization")", "NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION", {NvmlCall::kField, 78}),
    Like(kLimitedTime, "limited.reliability", R"(reason="reliability")", "NVML_FI_DEV_PERF_POLICY_RELIABILITY", {NvmlCall::kField, 79}),
    Like(kLimitedTime, "limited.application_clocks", R"(reason="application_clocks")", "NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS", {NvmlCall::kField, 80}),
    Like(kLimitedTime, "limited.base_clocks", R"(reason="base_clocks")", "NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS", {NvmlCall::kField, 81}),
    Like(kLimitedTime, "limited.software_thermal", R"(reason="software_thermal")", "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", {NvmlCall::kField, 269}, "driver 575 and newer"),
    Like(kLimitedTime, "limited.hardware_thermal", R"(reason="hardware_thermal")", "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", {NvmlCall::kField, 270}, "driver 575 and newer"),
    Like(kLimitedTime, "limited.power_brake", R"(reason="power_brake")", "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", {NvmlCall::kField, 271}, "driver 575 and newer"),
    {{.key = "clocks.reasons", .most = kMaxCount32,
      .source = "nvmlDeviceGetCurrentClocksEventReasons"}, {NvmlCall::kReasons, 0}},
    Like(kLimited, "clocks.reason.idle", R"(reason="idle")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonGpuIdle", {NvmlCall::kReasons, 0x1}),
    Like(kLimited, "clocks.reason.application_clocks", R"(reason="application_clocks")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonApplicationsClocksSetting", {NvmlCall::kReasons, 0x2}),
    Like(kLimited, "clocks.reason.power", R"(reason="power")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonSwPowerCap", {NvmlCall::kReasons, 0x4}),
    Like(kLimited, "clocks.reason.hardware_slowdown", R"(reason="hardware_slowdown")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonHwSlowdown", {NvmlCall::kReasons, 0x8}),
    Like(kLimited, "clocks.reason.sync_boost", R"(reason="sync_boost")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonSyncBoost", {NvmlCall::kReasons, 0x10}),
    Like(kLimited, "clocks.reason.software_thermal", R"(reason="software_thermal")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonSwThermalSlowdown", {NvmlCall::kReasons, 0x20}),
    Like(kLimited, "clocks.reason.hardware_thermal", R"(reason="hardware_thermal")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonHwThermalSlowdown", {NvmlCall::kReasons, 0x40}),
    Like(kLimited, "clocks.reason.power_brake", R"(reason="power_brake")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonHwPowerBrakeSlowdown", {NvmlCall::kReasons, 0x80}),
    Like(kLimited, "clocks.reason.display", R"(reason="display")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonDisplayClockSetting", {NvmlCall::kReasons, 0x100}),
    Like(kLimited, "clocks.reason.board_limit", R"(reason="board_limit")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonBoardLimit", {NvmlCall::kReasons, 0x200}, "driver 580 and newer"),
    Like(kLimited, "clocks.reason.reliability", R"(reason="reliability")", "nvmlDeviceGetCurrentClocksEventReasons: nvmlClocksEventReasonReliability", {NvmlCall::kReasons, 0x400}, "driver 580 and newer"),
    {{.key = "recovery_action", .pace = device::Pace::kSlow, .most = 15, .family = "accelerator_recovery_action",
      .source = "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", .has = "driver 565 and newer"}, {NvmlCall::kField, 230}},
};
// clang-format on

}  // namespace penstock::backend::nvidia
