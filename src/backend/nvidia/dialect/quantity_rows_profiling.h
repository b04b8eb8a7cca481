// Rows of the table of quantities: GPM's metrics.
#pragma once

#include "backend/nvidia/dialect/quantity_row.h"

namespace penstock::backend::nvidia {

// Single engines have no family: a GPU has up to eighteen of them, and
// accelerator_engine_utilization_ratio is enough for most users.
inline constexpr device::Quantity kActivity{.unit = device::Unit::kPercent,
                                            .most = 100,
                                            .family = "accelerator_activity_ratio",
                                            .has = "Hopper and newer"};
inline constexpr device::Quantity kPercentOfTime{
    .unit = device::Unit::kPercent, .most = 100, .has = "Hopper and newer, if the engine exists"};
inline constexpr device::Quantity kActiveCycles{.counter = true,
                                                .most = kMaxCount,
                                                .family = "accelerator_active_cycles_total",
                                                .has = "Hopper and newer; driver 580 and newer"};

// clang-format off
inline constexpr QuantityRow kProfilingRows[] = {
    {{.key = "active.sm_occupancy", .unit = device::Unit::kPercent, .most = 100, .family = "accelerator_occupancy_ratio",
      .source = "NVML_GPM_METRIC_SM_OCCUPANCY", .has = "Hopper and newer"}, {NvmlCall::kGpm, 3}},
    Like(kActivity, "active.graphics", R"(part="graphics")", "NVML_GPM_METRIC_GRAPHICS_UTIL", {NvmlCall::kGpm, 1}),
    Like(kActivity, "active.sm", R"(part="sm")", "NVML_GPM_METRIC_SM_UTIL", {NvmlCall::kGpm, 2}),
    Like(kActivity, "active.integer", R"(part="integer")", "NVML_GPM_METRIC_INTEGER_UTIL", {NvmlCall::kGpm, 4}),
    Like(kActivity, "active.tensor", R"(part="tensor")", "NVML_GPM_METRIC_ANY_TENSOR_UTIL", {NvmlCall::kGpm, 5}),
    Like(kActivity, "active.tensor_dfma", R"(part="tensor_dfma")", "NVML_GPM_METRIC_DFMA_TENSOR_UTIL", {NvmlCall::kGpm, 6}),
    Like(kActivity, "active.tensor_hmma", R"(part="tensor_hmma")", "NVML_GPM_METRIC_HMMA_TENSOR_UTIL", {NvmlCall::kGpm, 7}),
    Like(kActivity, "active.tensor_imma", R"(part="tensor_imma")", "NVML_GPM_METRIC_IMMA_TENSOR_UTIL", {NvmlCall::kGpm, 9}),
    Like(kActivity, "active.dram", R"(part="memory")", "NVML_GPM_METRIC_DRAM_BW_UTIL", {NvmlCall::kGpm, 10}),
    Like(kActivity, "active.fp64", R"(part="fp64")", "NVML_GPM_METRIC_FP64_UTIL", {NvmlCall::kGpm, 11}),
    Like(kActivity, "active.fp32", R"(part="fp32")", "NVML_GPM_METRIC_FP32_UTIL", {NvmlCall::kGpm, 12}),
    Like(kActivity, "active.fp16", R"(part="fp16")", "NVML_GPM_METRIC_FP16_UTIL", {NvmlCall::kGpm, 13}),
    Like(kPercentOfTime, "active.decoder0", "", "NVML_GPM_METRIC_NVDEC_0_UTIL", {NvmlCall::kGpm, 30}, "Hopper and newer"),
    Like(kPercentOfTime, "active.decoder1", "", "NVML_GPM_METRIC_NVDEC_1_UTIL", {NvmlCall::kGpm, 31}),
    Like(kPercentOfTime, "active.decoder2", "", "NVML_GPM_METRIC_NVDEC_2_UTIL", {NvmlCall::kGpm, 32}),
    Like(kPercentOfTime, "active.decoder3", "", "NVML_GPM_METRIC_NVDEC_3_UTIL", {NvmlCall::kGpm, 33}),
    Like(kPercentOfTime, "active.decoder4", "", "NVML_GPM_METRIC_NVDEC_4_UTIL", {NvmlCall::kGpm, 34}),
    Like(kPercentOfTime, "active.decoder5", "", "NVML_GPM_METRIC_NVDEC_5_UTIL", {NvmlCall::kGpm, 35}),
    Like(kPercentOfTime, "active.decoder6", "", "NVML_GPM_METRIC_NVDEC_6_UTIL", {NvmlCall::kGpm, 36}),
    Like(kPercentOfTime, "active.decoder7", "", "NVML_GPM_METRIC_NVDEC_7_UTIL", {NvmlCall::kGpm, 37}),
    Like(kPercentOfTime, "active.jpeg0", "", "NVML_GPM_METRIC_NVJPG_0_UTIL", {NvmlCall::kGpm, 40}, "Hopper and newer"),
    Like(kPercentOfTime, "active.jpeg1", "", "NVML_GPM_METRIC_NVJPG_1_UTIL", {NvmlCall::kGpm, 41}),
    Like(kPercentOfTime, "active.jpeg2", "", "NVML_GPM_METRIC_NVJPG_2_UTIL", {NvmlCall::kGpm, 42}),
    Like(kPercentOfTime, "active.jpeg3", "", "NVML_GPM_METRIC_NVJPG_3_UTIL", {NvmlCall::kGpm, 43}),
    Like(kPercentOfTime, "active.jpeg4", "", "NVML_GPM_METRIC_NVJPG_4_UTIL", {NvmlCall::kGpm, 44}),
    Like(kPercentOfTime, "active.jpeg5", "", "NVML_GPM_METRIC_NVJPG_5_UTIL", {NvmlCall::kGpm, 45}),
    Like(kPercentOfTime, "active.jpeg6", "", "NVML_GPM_METRIC_NVJPG_6_UTIL", {NvmlCall::kGpm, 46}),
    Like(kPercentOfTime, "active.jpeg7", "", "NVML_GPM_METRIC_NVJPG_7_UTIL", {NvmlCall::kGpm, 47}),
    Like(kPercentOfTime, "active.optical_flow0", "", "NVML_GPM_METRIC_NVOFA_0_UTIL", {NvmlCall::kGpm, 50}, "Hopper and newer"),
    Like(kPercentOfTime, "active.optical_flow1", "", "NVML_GPM_METRIC_NVOFA_1_UTIL", {NvmlCall::kGpm, 51}),

    {{.key = "c2c.tx_rate", .unit = device::Unit::kBytesPerSecond, .most = kMaxBytesPerSecond, .family = "accelerator_c2c_transmit_bytes_per_second",
      .source = "NVML_GPM_METRIC_C2C_TOTAL_TX_PER_SEC", .has = "Grace Hopper, Grace Blackwell"}, {NvmlCall::kGpm, 100}},
    {{.key = "c2c.rx_rate", .unit = device::Unit::kBytesPerSecond, .most = kMaxBytesPerSecond, .family = "accelerator_c2c_receive_bytes_per_second",
      .source = "NVML_GPM_METRIC_C2C_TOTAL_RX_PER_SEC", .has = "Grace Hopper, Grace Blackwell"}, {NvmlCall::kGpm, 101}},
    {{.key = "c2c.tx_data_rate", .unit = device::Unit::kBytesPerSecond, .most = kMaxBytesPerSecond,
      .source = "NVML_GPM_METRIC_C2C_DATA_TX_PER_SEC", .has = "Grace Hopper, Grace Blackwell"}, {NvmlCall::kGpm, 102}},
    {{.key = "c2c.rx_data_rate", .unit = device::Unit::kBytesPerSecond, .most = kMaxBytesPerSecond,
      .source = "NVML_GPM_METRIC_C2C_DATA_RX_PER_SEC", .has = "Grace Hopper, Grace Blackwell"}, {NvmlCall::kGpm, 103}},
    Like(kPercentOfTime, "cache.host_hit", "", "NVML_GPM_METRIC_HOSTMEM_CACHE_HIT", {NvmlCall::kGpm, 160}, "Hopper and newer; driver 570 and newer"),
    Like(kPercentOfTime, "cache.host_miss", "", "NVML_GPM_METRIC_HOSTMEM_CACHE_MISS", {NvmlCall::kGpm, 161}, "Hopper and newer; driver 570 and newer"),
    Like(kPercentOfTime, "cache.peer_hit", "", "NVML_GPM_METRIC_PEERMEM_CACHE_HIT", {NvmlCall::kGpm, 162}, "Hopper and newer; driver 570 and newer"),
    Like(kPercentOfTime, "cache.peer_miss", "", "NVML_GPM_METRIC_PEERMEM_CACHE_MISS", {NvmlCall::kGpm, 163}, "Hopper and newer; driver 570 and newer"),

    {{.key = "cycles.elapsed", .counter = true, .most = kMaxCount, .family = "accelerator_cycles_total",
      .source = "NVML_GPM_METRIC_SM_CYCLES_ELAPSED", .has = "Hopper and newer; driver 580 and newer"}, {NvmlCall::kGpm, 248}},
    Like(kActiveCycles, "cycles.sm", R"(part="sm")", "NVML_GPM_METRIC_SM_CYCLES_ACTIVE", {NvmlCall::kGpm, 249}),
    Like(kActiveCycles, "cycles.tensor", R"(part="tensor")", "NVML_GPM_METRIC_MMA_CYCLES_ACTIVE", {NvmlCall::kGpm, 250}),
    Like(kActiveCycles, "cycles.tensor_dmma", R"(part="tensor_dmma")", "NVML_GPM_METRIC_DMMA_CYCLES_ACTIVE", {NvmlCall::kGpm, 251}),
    Like(kActiveCycles, "cycles.tensor_hmma", R"(part="tensor_hmma")", "NVML_GPM_METRIC_HMMA_CYCLES_ACTIVE", {NvmlCall::kGpm, 252}),
    Like(kActiveCycles, "cycles.tensor_imma", R"(part="tensor_imma")", "NVML_GPM_METRIC_IMMA_CYCLES_ACTIVE", {NvmlCall::kGpm, 253}),
    Like(kActiveCycles, "cycles.tensor_dfma", R"(part="tensor_dfma")", "NVML_GPM_METRIC_DFMA_CYCLES_ACTIVE", {NvmlCall::kGpm, 254}),
    Like(kActiveCycles, "cycles.integer", R"(part="integer")", "NVML_GPM_METRIC_INTEGER_CYCLES_ACTIVE", {NvmlCall::kGpm, 257}),
    Like(kActiveCycles, "cycles.fp64", R"(part="fp64")", "NVML_GPM_METRIC_FP64_CYCLES_ACTIVE", {NvmlCall::kGpm, 258}),
    Like(kActiveCycles, "cycles.fp32", R"(part="fp32")", "NVML_GPM_METRIC_FP32_CYCLES_ACTIVE", {NvmlCall::kGpm, 259}),
    Like(kActiveCycles, "cycles.fp16", R"(part="fp16")", "NVML_GPM_METRIC_FP16_CYCLES_ACTIVE", {NvmlCall::kGpm, 260}),
};
// clang-format on

}  // namespace penstock::backend::nvidia
