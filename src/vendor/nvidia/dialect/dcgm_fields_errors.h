// DCGM's fields: errors, violations, retired memory, and the exporter's own.
#pragma once

#include "vendor/nvidia/dialect/dcgm_fields.h"

namespace penstock::vendor::nvidia {

inline constexpr std::string_view kNoCbuCorrected = "no counter of NVML: a CBU corrects nothing";
inline constexpr std::string_view kXidTotals = "accelerator_evidence_total{kind=\"xid\"} counts them";
inline constexpr std::string_view kEventTotals =
    "accelerator_clocks_limited_seconds_total tells how long, which does not depend on when it was looked at";

// clang-format off
inline constexpr device::ExporterField kDcgmErrorFields[] = {
    {.name = "DCGM_FI_DEV_XID_ERRORS", .new_name = "DCGM_FI_DEV_XID_ERROR", .number = 230, .source = device::FieldSource::kLastError, .from = "xid"},
    {.name = "DCGM_FI_DEV_POWER_VIOLATION", .number = 240, .from = "limited.power"},
    {.name = "DCGM_FI_DEV_THERMAL_VIOLATION", .number = 241, .from = "limited.thermal"},
    {.name = "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", .number = 242, .from = "limited.sync_boost"},
    {.name = "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", .number = 243, .from = "limited.board_limit"},
    {.name = "DCGM_FI_DEV_LOW_UTIL_VIOLATION", .number = 244, .from = "limited.low_utilization"},
    {.name = "DCGM_FI_DEV_RELIABILITY_VIOLATION", .number = 245, .from = "limited.reliability"},
    {.name = "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", .number = 246, .from = "limited.application_clocks"},
    {.name = "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", .number = 247, .from = "limited.base_clocks"},
    {.name = "DCGM_FI_DEV_ECC_CURRENT", .new_name = "DCGM_FI_DEV_ECC_MODE", .number = 300, .from = "ecc.mode"},
    {.name = "DCGM_FI_DEV_ECC_PENDING", .number = 301, .from = "ecc.mode.pending"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", .number = 310, .from = "ecc.volatile.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", .number = 311, .from = "ecc.volatile.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", .number = 312, .from = "ecc.aggregate.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", .number = 313, .from = "ecc.aggregate.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_L1", .number = 314, .from = "ecc.volatile.l1.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_L1", .number = 315, .from = "ecc.volatile.l1.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_L2", .number = 316, .from = "ecc.volatile.l2.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_L2", .number = 317, .from = "ecc.volatile.l2.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_DEV", .number = 318, .from = "ecc.volatile.device.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_DEV", .number = 319, .from = "ecc.volatile.device.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_REG", .number = 320, .from = "ecc.volatile.register.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_REG", .number = 321, .from = "ecc.volatile.register.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_TEX", .number = 322, .from = "ecc.volatile.texture.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_TEX", .number = 323, .from = "ecc.volatile.texture.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_L1", .number = 324, .from = "ecc.aggregate.l1.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_L1", .number = 325, .from = "ecc.aggregate.l1.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_L2", .number = 326, .from = "ecc.aggregate.l2.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_L2", .number = 327, .from = "ecc.aggregate.l2.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_DEV", .number = 328, .from = "ecc.aggregate.device.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_DEV", .number = 329, .from = "ecc.aggregate.device.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_REG", .number = 330, .from = "ecc.aggregate.register.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_REG", .number = 331, .from = "ecc.aggregate.register.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_TEX", .number = 332, .from = "ecc.aggregate.texture.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_TEX", .number = 333, .from = "ecc.aggregate.texture.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_SHM", .number = 334, .from = "ecc.volatile.shared.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_SHM", .number = 335, .from = "ecc.volatile.shared.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_CBU", .number = 336, .source = device::FieldSource::kNotToBeHad, .from = kNoCbuCorrected},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_CBU", .number = 337, .from = "ecc.volatile.cbu.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_SHM", .number = 338, .from = "ecc.aggregate.shared.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_SHM", .number = 339, .from = "ecc.aggregate.shared.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_CBU", .number = 340, .source = device::FieldSource::kNotToBeHad, .from = kNoCbuCorrected},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_CBU", .number = 341, .from = "ecc.aggregate.cbu.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_VOL_SRM", .number = 342, .from = "ecc.volatile.sram.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_VOL_SRM", .number = 343, .from = "ecc.volatile.sram.uncorrected"},
    {.name = "DCGM_FI_DEV_ECC_SBE_AGG_SRM", .number = 344, .from = "ecc.aggregate.sram.corrected"},
    {.name = "DCGM_FI_DEV_ECC_DBE_AGG_SRM", .number = 345, .from = "ecc.aggregate.sram.uncorrected"},
    {.name = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", .new_name = "DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX", .number = 385, .from = "remapped.banks.max"},
    {.name = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH", .new_name = "DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH", .number = 386, .from = "remapped.banks.high"},
    {.name = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL", .new_name = "DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL", .number = 387, .from = "remapped.banks.partial"},
    {.name = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", .new_name = "DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW", .number = 388, .from = "remapped.banks.low"},
    {.name = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", .new_name = "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE", .number = 389, .from = "remapped.banks.none"},
    {.name = "DCGM_FI_DEV_RETIRED_SBE", .new_name = "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL", .number = 390, .from = "retired.corrected"},
    {.name = "DCGM_FI_DEV_RETIRED_DBE", .new_name = "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL", .number = 391, .from = "retired.uncorrected"},
    {.name = "DCGM_FI_DEV_RETIRED_PENDING", .new_name = "DCGM_FI_DEV_PAGE_RETIRED_PENDING", .number = 392, .from = "retired.pending"},
    {.name = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", .new_name = "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", .number = 393, .from = "remapped.uncorrected"},
    {.name = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", .new_name = "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", .number = 394, .from = "remapped.corrected"},
    {.name = "DCGM_FI_DEV_ROW_REMAP_FAILURE", .new_name = "DCGM_FI_DEV_ROW_REMAP_FAILED", .number = 395, .from = "remapped.failure"},
    {.name = "DCGM_FI_DEV_ROW_REMAP_PENDING", .number = 396, .from = "remapped.pending"},
    {.name = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", .number = 1420, .from = "limited.power"},
    {.name = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS", .number = 1421, .from = "limited.sync_boost"},
    {.name = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", .number = 1422, .from = "limited.software_thermal"},
    {.name = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", .number = 1423, .from = "limited.hardware_thermal"},
    {.name = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", .number = 1424, .from = "limited.power_brake"},
    {.name = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", .new_name = "DCGM_FI_DEV_GPU_RECOVERY_ACTION", .number = 1523, .from = "recovery_action"},
    {.name = "DCGM_EXP_XID_ERRORS_COUNT", .number = 9001, .source = device::FieldSource::kErrorsInWindow, .from = "xid"},
    {.name = "DCGM_EXP_CLOCK_EVENTS_COUNT", .number = 9002, .source = device::FieldSource::kReasonsInWindow, .from = "clocks.reasons"},
    {.name = "DCGM_EXP_GPU_HEALTH_STATUS", .number = 9003, .source = device::FieldSource::kHealth},
    {.name = "DCGM_EXP_P2P_STATUS", .number = 9004, .source = device::FieldSource::kPeers},
    {.name = "DCGM_EXP_XID_ERRORS_TOTAL", .number = 9005, .source = device::FieldSource::kNotToBeHad, .from = kXidTotals},
    {.name = "DCGM_EXP_CLOCK_EVENTS_TOTAL", .number = 9006, .source = device::FieldSource::kNotToBeHad, .from = kEventTotals},
};
// clang-format on

}  // namespace penstock::vendor::nvidia
