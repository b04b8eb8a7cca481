// DCGM's fields: the names of the exporter's first version, which its 1.x-compatibility-metrics.csv
// still uses. Names and units are the same in both namings.
#pragma once

#include "backend/nvidia/dialect/dcgm/dcgm_fields.h"

namespace penstock::backend::nvidia {

// clang-format off
inline constexpr device::ExporterField kDcgmLowerCaseFields[] = {
    {.name = "dcgm_sm_clock", .number = 100, .from = "clock.sm"},
    {.name = "dcgm_memory_clock", .number = 101, .from = "clock.memory"},
    {.name = "dcgm_memory_temp", .number = 140, .from = "temperature.memory"},
    {.name = "dcgm_gpu_temp", .number = 150, .from = "temperature.gpu"},
    {.name = "dcgm_power_usage", .number = 155, .from = "power", .divisor = 1000, .new_divisor = 1000, .real = true, .new_real = true},
    {.name = "dcgm_total_energy_consumption", .number = 156, .from = "energy"},
    {.name = "dcgm_pcie_tx_throughput", .number = 200, .from = "pcie.tx_rate", .divisor = 1024, .new_divisor = 1024},
    {.name = "dcgm_pcie_rx_throughput", .number = 201, .from = "pcie.rx_rate", .divisor = 1024, .new_divisor = 1024},
    {.name = "dcgm_pcie_replay_counter", .number = 202, .from = "pcie.replays"},
    {.name = "dcgm_gpu_utilization", .number = 203, .from = "utilization.gpu"},
    {.name = "dcgm_mem_copy_utilization", .number = 204, .from = "utilization.memory"},
    {.name = "dcgm_enc_utilization", .number = 206, .from = "utilization.encoder"},
    {.name = "dcgm_dec_utilization", .number = 207, .from = "utilization.decoder"},
    {.name = "dcgm_xid_errors", .number = 230, .source = device::FieldSource::kLastError, .from = "xid"},
    {.name = "dcgm_power_violation", .number = 240, .from = "limited.power"},
    {.name = "dcgm_thermal_violation", .number = 241, .from = "limited.thermal"},
    {.name = "dcgm_sync_boost_violation", .number = 242, .from = "limited.sync_boost"},
    {.name = "dcgm_board_limit_violation", .number = 243, .from = "limited.board_limit"},
    {.name = "dcgm_low_util_violation", .number = 244, .from = "limited.low_utilization"},
    {.name = "dcgm_reliability_violation", .number = 245, .from = "limited.reliability"},
    {.name = "dcgm_fb_free", .number = 251, .from = "memory.free", .divisor = kMebibyte, .new_divisor = kMebibyte},
    {.name = "dcgm_fb_used", .number = 252, .from = "memory.used", .divisor = kMebibyte, .new_divisor = kMebibyte},
    {.name = "dcgm_ecc_sbe_volatile_total", .number = 310, .from = "ecc.volatile.corrected"},
    {.name = "dcgm_ecc_dbe_volatile_total", .number = 311, .from = "ecc.volatile.uncorrected"},
    {.name = "dcgm_ecc_sbe_aggregate_total", .number = 312, .from = "ecc.aggregate.corrected"},
    {.name = "dcgm_ecc_dbe_aggregate_total", .number = 313, .from = "ecc.aggregate.uncorrected"},
    {.name = "dcgm_retired_pages_sbe", .number = 390, .from = "retired.corrected"},
    {.name = "dcgm_retired_pages_dbe", .number = 391, .from = "retired.uncorrected"},
    {.name = "dcgm_retired_pages_pending", .number = 392, .from = "retired.pending"},
    {.name = "dcgm_nvlink_flit_crc_error_count_total", .number = 409, .from = "nvlink.errors.crc_flit"},
    {.name = "dcgm_nvlink_data_crc_error_count_total", .number = 419, .from = "nvlink.errors.crc_data"},
    {.name = "dcgm_nvlink_replay_error_count_total", .number = 429, .from = "nvlink.errors.replay"},
    {.name = "dcgm_nvlink_recovery_error_count_total", .number = 439, .from = "nvlink.errors.recovery"},
    {.name = "dcgm_nvlink_bandwidth_total", .number = 449, .from = "nvlink.rate", .divisor = 1e6, .new_divisor = 1e6},
    {.name = "dcgm_fi_prof_gr_engine_active", .number = 1001, .from = "active.graphics", .divisor = 100, .new_divisor = 100, .real = true, .new_real = true},
    {.name = "dcgm_fi_prof_sm_active", .number = 1002, .from = "active.sm", .divisor = 100, .new_divisor = 100, .real = true, .new_real = true},
    {.name = "dcgm_fi_prof_sm_occupancy", .number = 1003, .from = "active.sm_occupancy", .divisor = 100, .new_divisor = 100, .real = true, .new_real = true},
    {.name = "dcgm_fi_prof_pipe_tensor_active", .number = 1004, .from = "active.tensor", .divisor = 100, .new_divisor = 100, .real = true, .new_real = true},
    {.name = "dcgm_fi_prof_dram_active", .number = 1005, .from = "active.dram", .divisor = 100, .new_divisor = 100, .real = true, .new_real = true},
    {.name = "dcgm_fi_prof_pcie_tx_bytes", .number = 1009, .from = "pcie.tx_rate"},
    {.name = "dcgm_fi_prof_pcie_rx_bytes", .number = 1010, .from = "pcie.rx_rate"},
};
// clang-format on

}  // namespace penstock::backend::nvidia
