// DCGM's fields that exist once for each link, lane or part of an answer.
#pragma once

#include <array>

#include "backend/nvidia/dialect/dcgm/dcgm_fields_absent.h"

namespace penstock::backend::nvidia {

/// The fields `number`, `number` + 1, ... are those of `first`, `first` + 1, ...
struct NumberedRun {
  int number = 0, first = 0, count = 0;
};

struct NumberedFields {
  /// With * for what is counted, in its names and in `from`. one_link 0: each shows one link.
  device::ExporterField field;
  std::array<NumberedRun, 4> runs;
};

// clang-format off
inline constexpr NumberedFields kDcgmNumberedFields[] = {
    {{.name = "DCGM_FI_DEV_CPU_AFFINITY_*", .source = device::FieldSource::kUnavailable, .from = kNotCollected}, {{{70, 0, 4}}}},
    {{.name = "DCGM_FI_DEV_MEM_AFFINITY_*", .new_name = "DCGM_FI_DEV_MEMORY_AFFINITY_*", .source = device::FieldSource::kUnavailable, .from = kNotCollected}, {{{86, 0, 4}}}},
    {{.name = "DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_LOW_VC*", .source = device::FieldSource::kUnavailable, .from = kSwitches}, {{{789, 0, 4}}}},
    {{.name = "DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_MEDIUM_VC*", .source = device::FieldSource::kUnavailable, .from = kSwitches}, {{{793, 0, 4}}}},
    {{.name = "DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_HIGH_VC*", .source = device::FieldSource::kUnavailable, .from = kSwitches}, {{{797, 0, 4}}}},
    {{.name = "DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_PANIC_VC*", .source = device::FieldSource::kUnavailable, .from = kSwitches}, {{{801, 0, 4}}}},
    {{.name = "DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_COUNT_VC*", .new_name = "DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_SAMPLE_VC*_TOTAL", .source = device::FieldSource::kUnavailable, .from = kSwitches}, {{{805, 0, 4}}}},
    {{.name = "DCGM_FI_DEV_NVSWITCH_LINK_CRC_ERRORS_LANE*", .new_name = "DCGM_FI_DEV_NVSWITCH_LINK_CRC_ERROR_L*_TOTAL", .source = device::FieldSource::kUnavailable, .from = kSwitches}, {{{809, 0, 4}, {817, 4, 4}}}},
    {{.name = "DCGM_FI_DEV_NVSWITCH_LINK_ECC_ERRORS_LANE*", .new_name = "DCGM_FI_DEV_NVSWITCH_LINK_ECC_ERROR_L*_TOTAL", .source = device::FieldSource::kUnavailable, .from = kSwitches}, {{{813, 0, 4}, {821, 4, 4}}}},
    {{.name = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L*", .new_name = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_L*_TOTAL", .from = "nvlink.link.errors.crc_flit", .one_link = 0}, {{{400, 0, 6}, {406, 12, 3}, {451, 6, 6}, {481, 15, 3}}}},
    {{.name = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L*", .new_name = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_L*_TOTAL", .from = "nvlink.link.errors.crc_data", .one_link = 0}, {{{410, 0, 6}, {416, 12, 3}, {457, 6, 6}, {484, 15, 3}}}},
    {{.name = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L*", .new_name = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_L*_TOTAL", .from = "nvlink.link.errors.replay", .one_link = 0}, {{{420, 0, 6}, {426, 12, 3}, {463, 6, 6}, {487, 15, 3}}}},
    {{.name = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L*", .new_name = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_L*_TOTAL", .from = "nvlink.link.errors.recovery", .one_link = 0}, {{{430, 0, 6}, {436, 12, 3}, {469, 6, 6}, {491, 15, 3}}}},
    {{.name = "DCGM_FI_DEV_NVLINK_BANDWIDTH_L*", .new_name = "DCGM_FI_DEV_NVLINK_THROUGHPUT_L*", .from = "nvlink.link.rate", .divisor = 1e6, .new_divisor = 1e6, .one_link = 0}, {{{440, 0, 6}, {446, 12, 3}, {475, 6, 6}, {494, 15, 3}}}},
    {{.name = "DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_L*", .new_name = "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_L*", .from = "nvlink.link.tx_rate", .divisor = 1e6, .new_divisor = 1e6, .one_link = 0}, {{{825, 0, 18}}}},
    {{.name = "DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_L*", .new_name = "DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_L*", .from = "nvlink.link.rx_rate", .divisor = 1e6, .new_divisor = 1e6, .one_link = 0}, {{{879, 0, 18}}}},
    {{.name = "DCGM_FI_DEV_NVLINK_COUNT_FEC_HISTORY_*", .new_name = "DCGM_FI_DEV_NVLINK_FEC_HISTORY_*_TOTAL", .from = "nvlink.link.fec.*", .link = true}, {{{1404, 0, 16}}}},
};
// clang-format on

}  // namespace penstock::backend::nvidia
