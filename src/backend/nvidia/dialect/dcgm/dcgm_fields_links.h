// DCGM's fields: PCIe, NVLink, the fabric, C2C.
#pragma once

#include "backend/nvidia/dialect/dcgm/dcgm_fields.h"

namespace penstock::backend::nvidia {

inline constexpr std::string_view kRawOnly =
    "exported only in the driver's own format (exponent in the lowest byte, mantissa above it), by "
    "the preceding field";

// clang-format off
inline constexpr device::ExporterField kDcgmLinkFields[] = {
    {.name = "DCGM_FI_DEV_FABRIC_MANAGER_STATUS", .number = 170, .from = "fabric.state"},
    {.name = "DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", .new_name = "DCGM_FI_DEV_FABRIC_MANAGER_ERROR", .number = 171, .from = "fabric.status"},
    {.name = "DCGM_FI_DEV_FABRIC_CLIQUE_ID", .number = 173, .from = "fabric.clique"},
    {.name = "DCGM_FI_DEV_FABRIC_HEALTH_MASK", .number = 174, .from = "fabric.health_mask"},
    {.name = "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", .number = 175, .from = "fabric.health"},
    {.name = "DCGM_FI_DEV_PCIE_TX_THROUGHPUT", .number = 200, .from = "pcie.tx_rate", .divisor = 1024, .new_divisor = 1024},
    {.name = "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", .number = 201, .from = "pcie.rx_rate", .divisor = 1024, .new_divisor = 1024},
    {.name = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", .new_name = "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", .number = 202, .from = "pcie.replays"},
    {.name = "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", .number = 235, .from = "pcie.generation.max"},
    {.name = "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", .number = 236, .from = "pcie.width.max"},
    {.name = "DCGM_FI_DEV_PCIE_LINK_GEN", .number = 237, .from = "pcie.generation"},
    {.name = "DCGM_FI_DEV_PCIE_LINK_WIDTH", .number = 238, .from = "pcie.width"},
    {.name = "DCGM_FI_DEV_C2C_LINK_COUNT", .new_name = "DCGM_FI_DEV_C2C_LINK_QUANTITY", .number = 285, .from = "c2c.links"},
    {.name = "DCGM_FI_DEV_C2C_LINK_STATUS", .number = 286, .from = "c2c.status"},
    {.name = "DCGM_FI_DEV_C2C_MAX_BANDWIDTH", .number = 287, .from = "c2c.bandwidth_max"},
    {.name = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", .new_name = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", .number = 409, .from = "nvlink.errors.crc_flit"},
    {.name = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", .new_name = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL", .number = 419, .from = "nvlink.errors.crc_data"},
    {.name = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", .new_name = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL", .number = 429, .from = "nvlink.errors.replay"},
    {.name = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", .new_name = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL", .number = 439, .from = "nvlink.errors.recovery"},
    {.name = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", .new_name = "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES", .number = 449, .from = "nvlink.rate", .divisor = 1e6},
    {.name = "DCGM_FI_DEV_NVLINK_ERROR_DL_CRC", .new_name = "DCGM_FI_DEV_NVLINK_CRC_ERROR_TOTAL", .number = 497, .from = "nvlink.link.errors.crc_flit", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_ERROR_DL_RECOVERY", .new_name = "DCGM_FI_DEV_NVLINK_RECOVERY_TOTAL", .number = 498, .from = "nvlink.link.errors.recovery", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_ERROR_DL_REPLAY", .new_name = "DCGM_FI_DEV_NVLINK_REPLAY_TOTAL", .number = 499, .from = "nvlink.link.errors.replay", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_TOTAL", .new_name = "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_TOTAL", .number = 843, .from = "nvlink.tx_rate", .divisor = 1e6, .new_divisor = 1e6},
    {.name = "DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_TOTAL", .new_name = "DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_TOTAL", .number = 897, .from = "nvlink.rx_rate", .divisor = 1e6, .new_divisor = 1e6},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_TX_PACKETS", .new_name = "DCGM_FI_DEV_NVLINK_TX_PACKET_TOTAL", .number = 1200, .from = "nvlink.link.tx_packets", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES", .new_name = "DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL", .number = 1201, .from = "nvlink.link.tx", .divisor = 1.0 / 1024, .new_divisor = 1.0 / 1024, .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_RX_PACKETS", .new_name = "DCGM_FI_DEV_NVLINK_RX_PACKET_TOTAL", .number = 1202, .from = "nvlink.link.rx_packets", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES", .new_name = "DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL", .number = 1203, .from = "nvlink.link.rx", .divisor = 1.0 / 1024, .new_divisor = 1.0 / 1024, .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS", .new_name = "DCGM_FI_DEV_NVLINK_RX_PACKET_MALFORMED_TOTAL", .number = 1204, .from = "nvlink.link.errors.malformed_packet", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS", .new_name = "DCGM_FI_DEV_NVLINK_RX_PACKET_DROPPED_TOTAL", .number = 1205, .from = "nvlink.link.errors.buffer_overrun", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS", .new_name = "DCGM_FI_DEV_NVLINK_RX_ERROR_TOTAL", .number = 1206, .from = "nvlink.link.errors.receive", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_RX_REMOTE_ERRORS", .new_name = "DCGM_FI_DEV_NVLINK_RX_REMOTE_ERROR_TOTAL", .number = 1207, .from = "nvlink.link.errors.receive_remote", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_RX_GENERAL_ERRORS", .new_name = "DCGM_FI_DEV_NVLINK_RX_GENERAL_ERROR_TOTAL", .number = 1208, .from = "nvlink.link.errors.receive_general", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", .new_name = "DCGM_FI_DEV_NVLINK_INTEGRITY_ERROR_TOTAL", .number = 1209, .from = "nvlink.link.errors.link_integrity", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS", .new_name = "DCGM_FI_DEV_NVLINK_TX_DISCARD_TOTAL", .number = 1210, .from = "nvlink.link.errors.transmit_discard", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", .new_name = "DCGM_FI_DEV_NVLINK_RECOVERY_SUCCESSFUL_TOTAL", .number = 1211, .from = "nvlink.link.errors.recovery_successful", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", .new_name = "DCGM_FI_DEV_NVLINK_RECOVERY_FAILED_TOTAL", .number = 1212, .from = "nvlink.link.errors.recovery_failed", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS", .new_name = "DCGM_FI_DEV_NVLINK_RECOVERY_EVENT_TOTAL", .number = 1213, .from = "nvlink.link.errors.recovery_event", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS", .new_name = "DCGM_FI_DEV_NVLINK_RX_SYMBOL_ERROR_TOTAL", .number = 1214, .from = "nvlink.link.errors.symbol", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER", .new_name = "DCGM_FI_DEV_NVLINK_SYMBOL_BER_RAW", .number = 1215, .from = "nvlink.link.error_rate.symbol", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT", .new_name = "DCGM_FI_DEV_NVLINK_SYMBOL_BER_RATIO", .number = 1216, .source = device::FieldSource::kUnavailable, .from = kRawOnly},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER", .new_name = "DCGM_FI_DEV_NVLINK_EFFECTIVE_BER_RAW", .number = 1217, .from = "nvlink.link.error_rate.effective", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT", .new_name = "DCGM_FI_DEV_NVLINK_EFFECTIVE_BER_RATIO", .number = 1218, .source = device::FieldSource::kUnavailable, .from = kRawOnly},
    {.name = "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS", .new_name = "DCGM_FI_DEV_NVLINK_EFFECTIVE_ERROR_TOTAL", .number = 1219, .from = "nvlink.link.errors.effective", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL", .new_name = "DCGM_FI_DEV_NVLINK_ECC_ERROR_TOTAL", .number = 1220, .from = "nvlink.errors.ecc_data"},
    {.name = "DCGM_FI_DEV_C2C_LINK_ERROR_INTR", .new_name = "DCGM_FI_DEV_C2C_LINK_ERROR_TOTAL", .number = 1400, .from = "c2c.errors.interrupt"},
    {.name = "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY", .new_name = "DCGM_FI_DEV_C2C_LINK_REPLAY_ERROR_TOTAL", .number = 1401, .from = "c2c.errors.replay"},
    {.name = "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B", .new_name = "DCGM_FI_DEV_C2C_LINK_REPLAY_ERROR_B2B_TOTAL", .number = 1402, .from = "c2c.errors.replay_b2b"},
    {.name = "DCGM_FI_DEV_C2C_LINK_POWER_STATE", .new_name = "DCGM_FI_DEV_C2C_LINK_POWER_STATUS", .number = 1403, .from = "c2c.power_state"},
    {.name = "DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS", .new_name = "DCGM_FI_DEV_PCIE_CORRECTABLE_ERROR_TOTAL", .number = 1501, .from = "pcie.errors.correctable"},
    {.name = "DCGM_FI_DEV_NVLINK_GET_STATE", .new_name = "DCGM_FI_DEV_NVLINK_LINK_STATUS", .number = 1508, .from = "nvlink.link.state", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL", .number = 1525, .from = "nvlink.link.errors.crc_flit", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_PER_LINK_TOTAL", .number = 1526, .from = "nvlink.link.errors.crc_data", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_PER_LINK_TOTAL", .number = 1527, .from = "nvlink.link.errors.replay", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_PER_LINK_TOTAL", .number = 1528, .from = "nvlink.link.errors.recovery", .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_THROUGHPUT_PER_LINK", .number = 1529, .from = "nvlink.link.rate", .divisor = 1e6, .new_divisor = 1e6, .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_PER_LINK", .number = 1530, .from = "nvlink.link.tx_rate", .divisor = 1e6, .new_divisor = 1e6, .link = true},
    {.name = "DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_PER_LINK", .number = 1531, .from = "nvlink.link.rx_rate", .divisor = 1e6, .new_divisor = 1e6, .link = true},
};
// clang-format on

}  // namespace penstock::backend::nvidia
