// Compares the simulated library's declarations with NVIDIA's nvml.h. Compiled once for each
// version of that header, never run.
#define NVML_NO_UNVERSIONED_FUNC_DEFS  // declares old spellings too, without renaming the new
#include <nvml.h>

extern "C" {
#include "sim/nvml/nvml_abi.h"
}

#include <string_view>

#include "abi.h"

#if NVML_API_VERSION < 13
// Declared by later headers only, which are compared, too.
extern "C" nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t, unsigned int,
                                                                 nvmlGpuInstanceProfileInfo_v2_t*);
#endif

namespace penstock::conformance {

// The fabric call takes the struct that its version word names. The GPM call takes a struct with as
// many metrics as the caller's header had. The header declares the newest struct of each.
constexpr bool TakesSeveralVersions(std::string_view name) {
  return name == "nvmlDeviceGetGpuFabricInfoV" || name == "nvmlGpmMetricsGet";
}

// Each exported function must have the signature that the header declares.
#define F(branch, name, parameters)                                                                \
  using Sim_##name = NvReturn parameters;                                                          \
  static_assert(SameSignature<Sim_##name, decltype(::name)>::value || TakesSeveralVersions(#name), \
                #name);
#define D F
#include "sim/nvml/functions.def"
#undef F
#undef D

SAME_VALUE(NV_SUCCESS, NVML_SUCCESS);
SAME_VALUE(NV_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME_VALUE(NV_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(NV_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(NV_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(NV_ALREADY_INITIALIZED, NVML_ERROR_ALREADY_INITIALIZED);
SAME_VALUE(NV_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME_VALUE(NV_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(NV_INSUFFICIENT_POWER, NVML_ERROR_INSUFFICIENT_POWER);
SAME_VALUE(NV_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(NV_TIMEOUT, NVML_ERROR_TIMEOUT);
SAME_VALUE(NV_IRQ_ISSUE, NVML_ERROR_IRQ_ISSUE);
SAME_VALUE(NV_LIBRARY_NOT_FOUND, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME_VALUE(NV_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(NV_CORRUPTED_INFOROM, NVML_ERROR_CORRUPTED_INFOROM);
SAME_VALUE(NV_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(NV_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME_VALUE(NV_OPERATING_SYSTEM, NVML_ERROR_OPERATING_SYSTEM);
SAME_VALUE(NV_LIB_RM_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_VALUE(NV_IN_USE, NVML_ERROR_IN_USE);
SAME_VALUE(NV_MEMORY, NVML_ERROR_MEMORY);
SAME_VALUE(NV_NO_DATA, NVML_ERROR_NO_DATA);
SAME_VALUE(NV_VGPU_ECC_NOT_SUPPORTED, NVML_ERROR_VGPU_ECC_NOT_SUPPORTED);
SAME_VALUE(NV_INSUFFICIENT_RESOURCES, NVML_ERROR_INSUFFICIENT_RESOURCES);
SAME_VALUE(NV_FREQ_NOT_SUPPORTED, NVML_ERROR_FREQ_NOT_SUPPORTED);
SAME_VALUE(NV_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_VALUE(NV_DEPRECATED, NVML_ERROR_DEPRECATED);
SAME_VALUE(NV_NOT_READY, NVML_ERROR_NOT_READY);
SAME_VALUE(NV_GPU_NOT_FOUND, NVML_ERROR_GPU_NOT_FOUND);
SAME_VALUE(NV_INVALID_STATE, NVML_ERROR_INVALID_STATE);
SAME_VALUE(NV_UNKNOWN, NVML_ERROR_UNKNOWN);
SAME_VALUE(NV_DISABLED, NVML_FEATURE_DISABLED);
SAME_VALUE(NV_ENABLED, NVML_FEATURE_ENABLED);
SAME_VALUE(NV_CLOCK_GRAPHICS, NVML_CLOCK_GRAPHICS);
SAME_VALUE(NV_CLOCK_SM, NVML_CLOCK_SM);
SAME_VALUE(NV_CLOCK_MEM, NVML_CLOCK_MEM);
SAME_VALUE(NV_CLOCK_VIDEO, NVML_CLOCK_VIDEO);
SAME_VALUE(NV_CLOCK_ID_CURRENT, NVML_CLOCK_ID_CURRENT);
SAME_VALUE(NV_CLOCK_ID_APP_TARGET, NVML_CLOCK_ID_APP_CLOCK_TARGET);
SAME_VALUE(NV_CLOCK_ID_APP_DEFAULT, NVML_CLOCK_ID_APP_CLOCK_DEFAULT);
SAME_VALUE(NV_CLOCK_ID_BOOST_MAX, NVML_CLOCK_ID_CUSTOMER_BOOST_MAX);
SAME_VALUE(NV_THRESHOLD_SHUTDOWN, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN);
SAME_VALUE(NV_THRESHOLD_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_VALUE(NV_THRESHOLD_MEM_MAX, NVML_TEMPERATURE_THRESHOLD_MEM_MAX);
SAME_VALUE(NV_THRESHOLD_GPU_MAX, NVML_TEMPERATURE_THRESHOLD_GPU_MAX);
SAME_VALUE(NV_ERRORS_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME_VALUE(NV_ERRORS_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_VALUE(NV_ECC_VOLATILE, NVML_VOLATILE_ECC);
SAME_VALUE(NV_ECC_AGGREGATE, NVML_AGGREGATE_ECC);
SAME_VALUE(NV_LOCATION_DRAM, NVML_MEMORY_LOCATION_DRAM);
SAME_VALUE(NV_LOCATION_SRAM, NVML_MEMORY_LOCATION_SRAM);
SAME_VALUE(NV_LOCATION_COUNT, NVML_MEMORY_LOCATION_COUNT);
SAME_VALUE(NV_INFOROM_OEM, NVML_INFOROM_OEM);
SAME_VALUE(NV_INFOROM_ECC, NVML_INFOROM_ECC);
SAME_VALUE(NV_INFOROM_POWER, NVML_INFOROM_POWER);
SAME_VALUE(NV_P2P_READ, NVML_P2P_CAPS_INDEX_READ);
SAME_VALUE(NV_P2P_WRITE, NVML_P2P_CAPS_INDEX_WRITE);
SAME_VALUE(NV_P2P_NVLINK, NVML_P2P_CAPS_INDEX_NVLINK);
SAME_VALUE(NV_P2P_ATOMICS, NVML_P2P_CAPS_INDEX_ATOMICS);
SAME_VALUE(NV_P2P_PCI, NVML_P2P_CAPS_INDEX_PCI);
SAME_VALUE(NV_P2P_OK, NVML_P2P_STATUS_OK);
SAME_VALUE(NV_P2P_CHIPSET_NOT_SUPPORTED, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
SAME_VALUE(NV_P2P_NOT_SUPPORTED, NVML_P2P_STATUS_NOT_SUPPORTED);
SAME_VALUE(NV_TOPOLOGY_INTERNAL, NVML_TOPOLOGY_INTERNAL);
SAME_VALUE(NV_TOPOLOGY_SINGLE, NVML_TOPOLOGY_SINGLE);
SAME_VALUE(NV_TOPOLOGY_MULTIPLE, NVML_TOPOLOGY_MULTIPLE);
SAME_VALUE(NV_TOPOLOGY_HOSTBRIDGE, NVML_TOPOLOGY_HOSTBRIDGE);
SAME_VALUE(NV_TOPOLOGY_NODE, NVML_TOPOLOGY_NODE);
SAME_VALUE(NV_TOPOLOGY_SYSTEM, NVML_TOPOLOGY_SYSTEM);
SAME_VALUE(NV_VALUE_DOUBLE, NVML_VALUE_TYPE_DOUBLE);
SAME_VALUE(NV_VALUE_UINT, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_VALUE(NV_VALUE_ULONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_VALUE(NV_VALUE_ULONGLONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_VALUE(NV_VALUE_LONGLONG, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME_VALUE(NV_VALUE_INT, NVML_VALUE_TYPE_SIGNED_INT);
SAME_VALUE(NV_LINK_TO_GPU, NVML_NVLINK_DEVICE_TYPE_GPU);
SAME_VALUE(NV_LINK_TO_SWITCH, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME_VALUE(NV_LINK_CAP_P2P, NVML_NVLINK_CAP_P2P_SUPPORTED);
SAME_VALUE(NV_LINK_CAP_SYSMEM, NVML_NVLINK_CAP_SYSMEM_ACCESS);
SAME_VALUE(NV_LINK_CAP_P2P_ATOMICS, NVML_NVLINK_CAP_P2P_ATOMICS);
SAME_VALUE(NV_LINK_CAP_SYSMEM_ATOMICS, NVML_NVLINK_CAP_SYSMEM_ATOMICS);
SAME_VALUE(NV_LINK_CAP_SLI, NVML_NVLINK_CAP_SLI_BRIDGE);
SAME_VALUE(NV_LINK_CAP_VALID, NVML_NVLINK_CAP_VALID);
SAME_VALUE(NV_ARCH_VOLTA, NVML_DEVICE_ARCH_VOLTA);
SAME_VALUE(NV_ARCH_TURING, NVML_DEVICE_ARCH_TURING);
SAME_VALUE(NV_ARCH_AMPERE, NVML_DEVICE_ARCH_AMPERE);
SAME_VALUE(NV_ARCH_ADA, NVML_DEVICE_ARCH_ADA);
SAME_VALUE(NV_ARCH_HOPPER, NVML_DEVICE_ARCH_HOPPER);
SAME_VALUE(NV_ARCH_BLACKWELL, NVML_DEVICE_ARCH_BLACKWELL);
SAME_VALUE(NV_BRAND_TESLA, NVML_BRAND_TESLA);
SAME_VALUE(NV_BRAND_GEFORCE, NVML_BRAND_GEFORCE);
SAME_VALUE(NV_BRAND_NVIDIA, NVML_BRAND_NVIDIA);
SAME_VALUE(NV_EVENT_SINGLE_BIT_ECC, nvmlEventTypeSingleBitEccError);
SAME_VALUE(NV_EVENT_DOUBLE_BIT_ECC, nvmlEventTypeDoubleBitEccError);
SAME_VALUE(NV_EVENT_PSTATE, nvmlEventTypePState);
SAME_VALUE(NV_EVENT_XID, nvmlEventTypeXidCriticalError);
SAME_VALUE(NV_EVENT_CLOCK, nvmlEventTypeClock);
SAME_VALUE(NV_EVENT_MIG_CONFIG, nvmlEventMigConfigChange);
SAME_VALUE(NV_EVENT_SINGLE_BIT_STORM, nvmlEventTypeSingleBitEccErrorStorm);
SAME_VALUE(NV_EVENT_REMAP, nvmlEventTypeDramRetirementEvent);
SAME_VALUE(NV_EVENT_REMAP_FAILURE, nvmlEventTypeDramRetirementFailure);
SAME_VALUE(NV_EVENT_NON_FATAL_POISON, nvmlEventTypeNonFatalPoisonError);
SAME_VALUE(NV_EVENT_FATAL_POISON, nvmlEventTypeFatalPoisonError);
SAME_VALUE(NV_EVENT_UNAVAILABLE, nvmlEventTypeGpuUnavailableError);
SAME_VALUE(NV_EVENT_RECOVERY_ACTION, nvmlEventTypeGpuRecoveryAction);
SAME_VALUE(NV_FI_ECC_CURRENT, NVML_FI_DEV_ECC_CURRENT);
SAME_VALUE(NV_FI_ECC_PENDING, NVML_FI_DEV_ECC_PENDING);
SAME_VALUE(NV_FI_ECC_SBE_VOL_TOTAL, NVML_FI_DEV_ECC_SBE_VOL_TOTAL);
SAME_VALUE(NV_FI_ECC_DBE_VOL_TOTAL, NVML_FI_DEV_ECC_DBE_VOL_TOTAL);
SAME_VALUE(NV_FI_ECC_SBE_AGG_TOTAL, NVML_FI_DEV_ECC_SBE_AGG_TOTAL);
SAME_VALUE(NV_FI_ECC_DBE_AGG_TOTAL, NVML_FI_DEV_ECC_DBE_AGG_TOTAL);
SAME_VALUE(NV_FI_RETIRED_SBE, NVML_FI_DEV_RETIRED_SBE);
SAME_VALUE(NV_FI_RETIRED_DBE, NVML_FI_DEV_RETIRED_DBE);
SAME_VALUE(NV_FI_RETIRED_PENDING, NVML_FI_DEV_RETIRED_PENDING);
SAME_VALUE(NV_FI_NVLINK_CRC_FLIT_TOTAL, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL);
SAME_VALUE(NV_FI_NVLINK_CRC_DATA_TOTAL, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL);
SAME_VALUE(NV_FI_NVLINK_REPLAY_TOTAL, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL);
SAME_VALUE(NV_FI_NVLINK_RECOVERY_TOTAL, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL);
SAME_VALUE(NV_FI_MEMORY_TEMP, NVML_FI_DEV_MEMORY_TEMP);
SAME_VALUE(NV_FI_TOTAL_ENERGY, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION);
SAME_VALUE(NV_FI_NVLINK_SPEED_L0, NVML_FI_DEV_NVLINK_SPEED_MBPS_L0);
SAME_VALUE(NV_FI_NVLINK_SPEED_L5, NVML_FI_DEV_NVLINK_SPEED_MBPS_L5);
SAME_VALUE(NV_FI_NVLINK_SPEED_COMMON, NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON);
SAME_VALUE(NV_FI_NVLINK_LINK_COUNT, NVML_FI_DEV_NVLINK_LINK_COUNT);
SAME_VALUE(NV_FI_PCIE_REPLAY, NVML_FI_DEV_PCIE_REPLAY_COUNTER);
SAME_VALUE(NV_FI_NVLINK_SPEED_L6, NVML_FI_DEV_NVLINK_SPEED_MBPS_L6);
SAME_VALUE(NV_FI_NVLINK_SPEED_L11, NVML_FI_DEV_NVLINK_SPEED_MBPS_L11);
SAME_VALUE(NV_FI_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME_VALUE(NV_FI_NVLINK_THROUGHPUT_RAW_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX);
SAME_VALUE(NV_FI_REMAPPED_COR, NVML_FI_DEV_REMAPPED_COR);
SAME_VALUE(NV_FI_REMAPPED_UNC, NVML_FI_DEV_REMAPPED_UNC);
SAME_VALUE(NV_FI_REMAPPED_PENDING, NVML_FI_DEV_REMAPPED_PENDING);
SAME_VALUE(NV_FI_REMAPPED_FAILURE, NVML_FI_DEV_REMAPPED_FAILURE);
SAME_VALUE(NV_FI_NVSWITCH_CONNECTED_LINK_COUNT, NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT);
SAME_VALUE(NV_FI_NVLINK_GET_SPEED, NVML_FI_DEV_NVLINK_GET_SPEED);
SAME_VALUE(NV_FI_NVLINK_GET_STATE, NVML_FI_DEV_NVLINK_GET_STATE);
SAME_VALUE(NV_FI_NVLINK_GET_VERSION, NVML_FI_DEV_NVLINK_GET_VERSION);
SAME_VALUE(NV_FI_POWER_AVERAGE, NVML_FI_DEV_POWER_AVERAGE);
SAME_VALUE(NV_FI_POWER_INSTANT, NVML_FI_DEV_POWER_INSTANT);
SAME_VALUE(NV_FI_POWER_MIN_LIMIT, NVML_FI_DEV_POWER_MIN_LIMIT);
SAME_VALUE(NV_FI_POWER_MAX_LIMIT, NVML_FI_DEV_POWER_MAX_LIMIT);
SAME_VALUE(NV_FI_POWER_DEFAULT_LIMIT, NVML_FI_DEV_POWER_DEFAULT_LIMIT);
SAME_VALUE(NV_FI_POWER_CURRENT_LIMIT, NVML_FI_DEV_POWER_CURRENT_LIMIT);
SAME_VALUE(NV_FI_ENERGY, NVML_FI_DEV_ENERGY);
SAME_VALUE(NV_FI_POWER_REQUESTED_LIMIT, NVML_FI_DEV_POWER_REQUESTED_LIMIT);
SAME_VALUE(NV_FI_TLIMIT_SHUTDOWN, NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT);
SAME_VALUE(NV_FI_TLIMIT_SLOWDOWN, NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT);
SAME_VALUE(NV_FI_TLIMIT_MEM_MAX, NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT);
SAME_VALUE(NV_FI_TLIMIT_GPU_MAX, NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT);
SAME_VALUE(NV_FI_RECOVERY_ACTION, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
SAME_VALUE(NV_FI_NVLINK_CRC_FLIT_L0, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0);
SAME_VALUE(NV_FI_NVLINK_CRC_DATA_L0, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0);
SAME_VALUE(NV_FI_NVLINK_REPLAY_L0, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0);
SAME_VALUE(NV_FI_NVLINK_RECOVERY_L0, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0);
SAME_VALUE(NV_FI_NVLINK_CRC_FLIT_L6, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6);
SAME_VALUE(NV_FI_NVLINK_CRC_DATA_L6, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L6);
SAME_VALUE(NV_FI_NVLINK_REPLAY_L6, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L6);
SAME_VALUE(NV_FI_NVLINK_RECOVERY_L6, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L6);
SAME_VALUE(NV_FI_PERF_POLICY_POWER, NVML_FI_DEV_PERF_POLICY_POWER);
SAME_VALUE(NV_FI_PERF_POLICY_BASE_CLOCKS, NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS);
SAME_VALUE(NV_FI_PCIE_REPLAY_ROLLOVER, NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER);
SAME_VALUE(NV_FI_NVLINK_DL_REPLAY, NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY);
SAME_VALUE(NV_FI_NVLINK_DL_RECOVERY, NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY);
SAME_VALUE(NV_FI_NVLINK_DL_CRC, NVML_FI_DEV_NVLINK_ERROR_DL_CRC);
SAME_VALUE(NV_FI_PCIE_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES);
SAME_VALUE(NV_FI_PCIE_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES);
SAME_VALUE(NV_FI_NVLINK_XMIT_BYTES, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES);
SAME_VALUE(NV_FI_NVLINK_RCV_BYTES, NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES);
SAME_VALUE(NV_FI_ECC_SBE_VOL_L1, NVML_FI_DEV_ECC_SBE_VOL_L1);
SAME_VALUE(NV_FI_ECC_DBE_AGG_CBU, NVML_FI_DEV_ECC_DBE_AGG_CBU);
SAME_VALUE(NV_FI_NVLINK_ECC_DATA_TOTAL, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL);
SAME_VALUE(NV_FI_PCIE_L0_TO_RECOVERY, NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER);
SAME_VALUE(NV_FI_PCIE_CORRECTABLE, NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS);
SAME_VALUE(NV_FI_PCIE_LANE, NVML_FI_DEV_PCIE_COUNT_LANE_ERROR);
SAME_VALUE(NV_FI_NVLINK_XMIT_PACKETS, NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS);
SAME_VALUE(NV_FI_NVLINK_RCV_PACKETS, NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS);
SAME_VALUE(NV_FI_NVLINK_MALFORMED, NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS);
SAME_VALUE(NV_FI_NVLINK_RCV_ERRORS, NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS);
SAME_VALUE(NV_FI_NVLINK_RECOVERIES_GOOD, NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS);
SAME_VALUE(NV_FI_NVLINK_RECOVERIES, NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS);
SAME_VALUE(NV_FI_NVLINK_SYMBOL_BER, NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER);
SAME_VALUE(NV_FI_NVLINK_FEC_HISTORY_0, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0);
SAME_VALUE(NV_FI_NVLINK_FEC_HISTORY_15, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_15);
#if NVML_API_VERSION >= 13
SAME_VALUE(NV_GPM_SM_CYCLES_ELAPSED, NVML_GPM_METRIC_SM_CYCLES_ELAPSED);
SAME_VALUE(NV_GPM_SM_CYCLES_ACTIVE, NVML_GPM_METRIC_SM_CYCLES_ACTIVE);
SAME_VALUE(NV_GPM_PCIE_TX_BYTES, NVML_GPM_METRIC_PCIE_TX);
SAME_VALUE(NV_GPM_PCIE_RX_BYTES, NVML_GPM_METRIC_PCIE_RX);
SAME_VALUE(NV_GPM_FP16_CYCLES_ACTIVE, NVML_GPM_METRIC_FP16_CYCLES_ACTIVE);
SAME_VALUE(NV_GPM_NVLINK_L0_RX_BYTES, NVML_GPM_METRIC_NVLINK_L0_RX);
SAME_VALUE(NV_GPM_NVLINK_L17_TX_BYTES, NVML_GPM_METRIC_NVLINK_L17_TX);
SAME_VALUE(NV_FI_REASON_SW_THERMAL, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN);
#else
SAME_VALUE(NV_FI_REASON_SW_THERMAL_575, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN);
#endif
SAME_VALUE(NV_POWER_SCOPE_GPU, NVML_POWER_SCOPE_GPU);
SAME_VALUE(NV_LICENSE_VGPU, NVML_GRID_LICENSE_FEATURE_CODE_VGPU);
SAME_VALUE(NV_LICENSE_PERMANENT, NVML_GRID_LICENSE_EXPIRY_PERMANENT);
SAME_VALUE(NV_GPM_GRAPHICS_UTIL, NVML_GPM_METRIC_GRAPHICS_UTIL);
SAME_VALUE(NV_GPM_FP16_UTIL, NVML_GPM_METRIC_FP16_UTIL);
SAME_VALUE(NV_GPM_PCIE_TX, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME_VALUE(NV_GPM_PCIE_RX, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
SAME_VALUE(NV_GPM_NVDEC_0, NVML_GPM_METRIC_NVDEC_0_UTIL);
SAME_VALUE(NV_GPM_NVDEC_7, NVML_GPM_METRIC_NVDEC_7_UTIL);
SAME_VALUE(NV_GPM_NVJPG_0, NVML_GPM_METRIC_NVJPG_0_UTIL);
SAME_VALUE(NV_GPM_NVJPG_7, NVML_GPM_METRIC_NVJPG_7_UTIL);
SAME_VALUE(NV_GPM_NVOFA_0, NVML_GPM_METRIC_NVOFA_0_UTIL);
SAME_VALUE(NV_GPM_NVOFA_1, NVML_GPM_METRIC_NVOFA_1_UTIL);
SAME_VALUE(NV_GPM_NVLINK_TOTAL_RX, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
SAME_VALUE(NV_GPM_NVLINK_TOTAL_TX, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
SAME_VALUE(NV_GPM_NVLINK_L0_RX, NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC);
SAME_VALUE(NV_GPM_NVLINK_L17_TX, NVML_GPM_METRIC_NVLINK_L17_TX_PER_SEC);

SAME_SIZE(NvPciInfo, nvmlPciInfo_t);
SAME_MEMBER(NvPciInfo, nvmlPciInfo_t, busIdLegacy, busIdLegacy);
SAME_MEMBER(NvPciInfo, nvmlPciInfo_t, domain, domain);
SAME_MEMBER(NvPciInfo, nvmlPciInfo_t, bus, bus);
SAME_MEMBER(NvPciInfo, nvmlPciInfo_t, device, device);
SAME_MEMBER(NvPciInfo, nvmlPciInfo_t, pciDeviceId, pciDeviceId);
SAME_MEMBER(NvPciInfo, nvmlPciInfo_t, pciSubSystemId, pciSubSystemId);
SAME_MEMBER(NvPciInfo, nvmlPciInfo_t, busId, busId);

SAME_SIZE(NvPciInfoExt, nvmlPciInfoExt_v1_t);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, version, version);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, domain, domain);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, bus, bus);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, device, device);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, pciDeviceId, pciDeviceId);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, pciSubSystemId, pciSubSystemId);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, baseClass, baseClass);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, subClass, subClass);
SAME_MEMBER(NvPciInfoExt, nvmlPciInfoExt_v1_t, busId, busId);

SAME_SIZE(NvMemory, nvmlMemory_t);
SAME_MEMBER(NvMemory, nvmlMemory_t, total, total);
SAME_MEMBER(NvMemory, nvmlMemory_t, free, free);
SAME_MEMBER(NvMemory, nvmlMemory_t, used, used);

SAME_SIZE(NvMemory2, nvmlMemory_v2_t);
SAME_MEMBER(NvMemory2, nvmlMemory_v2_t, version, version);
SAME_MEMBER(NvMemory2, nvmlMemory_v2_t, total, total);
SAME_MEMBER(NvMemory2, nvmlMemory_v2_t, reserved, reserved);
SAME_MEMBER(NvMemory2, nvmlMemory_v2_t, free, free);
SAME_MEMBER(NvMemory2, nvmlMemory_v2_t, used, used);

SAME_SIZE(NvBar1Memory, nvmlBAR1Memory_t);
SAME_MEMBER(NvBar1Memory, nvmlBAR1Memory_t, bar1Total, bar1Total);
SAME_MEMBER(NvBar1Memory, nvmlBAR1Memory_t, bar1Free, bar1Free);
SAME_MEMBER(NvBar1Memory, nvmlBAR1Memory_t, bar1Used, bar1Used);

SAME_SIZE(NvUtilization, nvmlUtilization_t);
SAME_MEMBER(NvUtilization, nvmlUtilization_t, gpu, gpu);
SAME_MEMBER(NvUtilization, nvmlUtilization_t, memory, memory);

SAME_SIZE(NvProcess1, nvmlProcessInfo_v1_t);
SAME_MEMBER(NvProcess1, nvmlProcessInfo_v1_t, pid, pid);
SAME_MEMBER(NvProcess1, nvmlProcessInfo_v1_t, usedGpuMemory, usedGpuMemory);

SAME_SIZE(NvProcess2, nvmlProcessInfo_v2_t);
SAME_MEMBER(NvProcess2, nvmlProcessInfo_v2_t, pid, pid);
SAME_MEMBER(NvProcess2, nvmlProcessInfo_v2_t, usedGpuMemory, usedGpuMemory);
SAME_MEMBER(NvProcess2, nvmlProcessInfo_v2_t, gpuInstanceId, gpuInstanceId);
SAME_MEMBER(NvProcess2, nvmlProcessInfo_v2_t, computeInstanceId, computeInstanceId);

SAME_SIZE(NvProcessUse, nvmlProcessUtilizationSample_t);
SAME_MEMBER(NvProcessUse, nvmlProcessUtilizationSample_t, pid, pid);
SAME_MEMBER(NvProcessUse, nvmlProcessUtilizationSample_t, timeStamp, timeStamp);
SAME_MEMBER(NvProcessUse, nvmlProcessUtilizationSample_t, smUtil, smUtil);
SAME_MEMBER(NvProcessUse, nvmlProcessUtilizationSample_t, memUtil, memUtil);
SAME_MEMBER(NvProcessUse, nvmlProcessUtilizationSample_t, encUtil, encUtil);
SAME_MEMBER(NvProcessUse, nvmlProcessUtilizationSample_t, decUtil, decUtil);

SAME_SIZE(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t);
SAME_MEMBER(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t, timeStamp, timeStamp);
SAME_MEMBER(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t, pid, pid);
SAME_MEMBER(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t, smUtil, smUtil);
SAME_MEMBER(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t, memUtil, memUtil);
SAME_MEMBER(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t, encUtil, encUtil);
SAME_MEMBER(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t, decUtil, decUtil);
SAME_MEMBER(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t, jpgUtil, jpgUtil);
SAME_MEMBER(NvProcessUse2, nvmlProcessUtilizationInfo_v1_t, ofaUtil, ofaUtil);

SAME_SIZE(NvProcessesUse, nvmlProcessesUtilizationInfo_v1_t);
SAME_MEMBER(NvProcessesUse, nvmlProcessesUtilizationInfo_v1_t, version, version);
SAME_MEMBER(NvProcessesUse, nvmlProcessesUtilizationInfo_v1_t, processSamplesCount,
            processSamplesCount);
SAME_MEMBER(NvProcessesUse, nvmlProcessesUtilizationInfo_v1_t, lastSeenTimeStamp,
            lastSeenTimeStamp);
SAME_MEMBER(NvProcessesUse, nvmlProcessesUtilizationInfo_v1_t, procUtilArray, procUtilArray);

SAME_SIZE(NvGpmMetric, nvmlGpmMetric_t);
SAME_MEMBER(NvGpmMetric, nvmlGpmMetric_t, metricId, metricId);
SAME_MEMBER(NvGpmMetric, nvmlGpmMetric_t, nvmlReturn, nvmlReturn);
SAME_MEMBER(NvGpmMetric, nvmlGpmMetric_t, value, value);
SAME_MEMBER(NvGpmMetric, nvmlGpmMetric_t, metricInfo, metricInfo);

SAME_MEMBER(NvGpmMetrics, nvmlGpmMetricsGet_t, version, version);
SAME_MEMBER(NvGpmMetrics, nvmlGpmMetricsGet_t, numMetrics, numMetrics);
SAME_MEMBER(NvGpmMetrics, nvmlGpmMetricsGet_t, sample1, sample1);
SAME_MEMBER(NvGpmMetrics, nvmlGpmMetricsGet_t, sample2, sample2);
static_assert(offsetof(NvGpmMetrics, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics));

SAME_SIZE(NvGpmSupport, nvmlGpmSupport_t);
SAME_MEMBER(NvGpmSupport, nvmlGpmSupport_t, version, version);
SAME_MEMBER(NvGpmSupport, nvmlGpmSupport_t, isSupportedDevice, isSupportedDevice);

SAME_SIZE(NvEccCounts, nvmlEccErrorCounts_t);
SAME_MEMBER(NvEccCounts, nvmlEccErrorCounts_t, l1Cache, l1Cache);
SAME_MEMBER(NvEccCounts, nvmlEccErrorCounts_t, l2Cache, l2Cache);
SAME_MEMBER(NvEccCounts, nvmlEccErrorCounts_t, deviceMemory, deviceMemory);
SAME_MEMBER(NvEccCounts, nvmlEccErrorCounts_t, registerFile, registerFile);

SAME_SIZE(NvSramEcc, nvmlEccSramErrorStatus_v1_t);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, version, version);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, aggregateUncParity, aggregateUncParity);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, aggregateUncSecDed, aggregateUncSecDed);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, aggregateCor, aggregateCor);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, volatileUncParity, volatileUncParity);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, volatileUncSecDed, volatileUncSecDed);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, volatileCor, volatileCor);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, aggregateUncBucketL2, aggregateUncBucketL2);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, aggregateUncBucketSm, aggregateUncBucketSm);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, aggregateUncBucketPcie, aggregateUncBucketPcie);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, aggregateUncBucketMcu, aggregateUncBucketMcu);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, aggregateUncBucketOther,
            aggregateUncBucketOther);
SAME_MEMBER(NvSramEcc, nvmlEccSramErrorStatus_v1_t, bThresholdExceeded, bThresholdExceeded);

SAME_SIZE(NvRemapHistogram, nvmlRowRemapperHistogramValues_t);
SAME_MEMBER(NvRemapHistogram, nvmlRowRemapperHistogramValues_t, max, max);
SAME_MEMBER(NvRemapHistogram, nvmlRowRemapperHistogramValues_t, high, high);
SAME_MEMBER(NvRemapHistogram, nvmlRowRemapperHistogramValues_t, partial, partial);
SAME_MEMBER(NvRemapHistogram, nvmlRowRemapperHistogramValues_t, low, low);
SAME_MEMBER(NvRemapHistogram, nvmlRowRemapperHistogramValues_t, none, none);

SAME_SIZE(NvAttributes, nvmlDeviceAttributes_t);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, multiprocessorCount, multiprocessorCount);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, sharedCopyEngineCount, sharedCopyEngineCount);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, sharedDecoderCount, sharedDecoderCount);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, sharedEncoderCount, sharedEncoderCount);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, sharedJpegCount, sharedJpegCount);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, sharedOfaCount, sharedOfaCount);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, gpuInstanceSliceCount, gpuInstanceSliceCount);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, computeInstanceSliceCount,
            computeInstanceSliceCount);
SAME_MEMBER(NvAttributes, nvmlDeviceAttributes_t, memorySizeMB, memorySizeMB);

SAME_SIZE(NvValue, nvmlValue_t);
SAME_MEMBER(NvValue, nvmlValue_t, dVal, dVal);
SAME_MEMBER(NvValue, nvmlValue_t, siVal, siVal);
SAME_MEMBER(NvValue, nvmlValue_t, uiVal, uiVal);
SAME_MEMBER(NvValue, nvmlValue_t, ulVal, ulVal);
SAME_MEMBER(NvValue, nvmlValue_t, ullVal, ullVal);
SAME_MEMBER(NvValue, nvmlValue_t, sllVal, sllVal);
SAME_MEMBER(NvValue, nvmlValue_t, usVal, usVal);

SAME_SIZE(NvFieldValue, nvmlFieldValue_t);
SAME_MEMBER(NvFieldValue, nvmlFieldValue_t, fieldId, fieldId);
SAME_MEMBER(NvFieldValue, nvmlFieldValue_t, scopeId, scopeId);
SAME_MEMBER(NvFieldValue, nvmlFieldValue_t, timestamp, timestamp);
SAME_MEMBER(NvFieldValue, nvmlFieldValue_t, latencyUsec, latencyUsec);
SAME_MEMBER(NvFieldValue, nvmlFieldValue_t, valueType, valueType);
SAME_MEMBER(NvFieldValue, nvmlFieldValue_t, nvmlReturn, nvmlReturn);
SAME_MEMBER(NvFieldValue, nvmlFieldValue_t, value, value);

SAME_SIZE(NvEventData, nvmlEventData_t);
SAME_MEMBER(NvEventData, nvmlEventData_t, device, device);
SAME_MEMBER(NvEventData, nvmlEventData_t, eventType, eventType);
SAME_MEMBER(NvEventData, nvmlEventData_t, eventData, eventData);
SAME_MEMBER(NvEventData, nvmlEventData_t, gpuInstanceId, gpuInstanceId);
SAME_MEMBER(NvEventData, nvmlEventData_t, computeInstanceId, computeInstanceId);

SAME_SIZE(NvFabric, nvmlGpuFabricInfo_t);
SAME_MEMBER(NvFabric, nvmlGpuFabricInfo_t, clusterUuid, clusterUuid);
SAME_MEMBER(NvFabric, nvmlGpuFabricInfo_t, status, status);
SAME_MEMBER(NvFabric, nvmlGpuFabricInfo_t, cliqueId, cliqueId);
SAME_MEMBER(NvFabric, nvmlGpuFabricInfo_t, state, state);

SAME_SIZE(NvFabric2, nvmlGpuFabricInfo_v2_t);
SAME_MEMBER(NvFabric2, nvmlGpuFabricInfo_v2_t, version, version);
SAME_MEMBER(NvFabric2, nvmlGpuFabricInfo_v2_t, clusterUuid, clusterUuid);
SAME_MEMBER(NvFabric2, nvmlGpuFabricInfo_v2_t, status, status);
SAME_MEMBER(NvFabric2, nvmlGpuFabricInfo_v2_t, cliqueId, cliqueId);
SAME_MEMBER(NvFabric2, nvmlGpuFabricInfo_v2_t, state, state);
SAME_MEMBER(NvFabric2, nvmlGpuFabricInfo_v2_t, healthMask, healthMask);

#if NVML_API_VERSION >= 13
SAME_SIZE(NvFabric3, nvmlGpuFabricInfo_v3_t);
SAME_MEMBER(NvFabric3, nvmlGpuFabricInfo_v3_t, version, version);
SAME_MEMBER(NvFabric3, nvmlGpuFabricInfo_v3_t, clusterUuid, clusterUuid);
SAME_MEMBER(NvFabric3, nvmlGpuFabricInfo_v3_t, status, status);
SAME_MEMBER(NvFabric3, nvmlGpuFabricInfo_v3_t, cliqueId, cliqueId);
SAME_MEMBER(NvFabric3, nvmlGpuFabricInfo_v3_t, state, state);
SAME_MEMBER(NvFabric3, nvmlGpuFabricInfo_v3_t, healthMask, healthMask);
SAME_MEMBER(NvFabric3, nvmlGpuFabricInfo_v3_t, healthSummary, healthSummary);
#endif

SAME_SIZE(NvTemperature, nvmlTemperature_v1_t);
SAME_MEMBER(NvTemperature, nvmlTemperature_v1_t, version, version);
SAME_MEMBER(NvTemperature, nvmlTemperature_v1_t, sensorType, sensorType);
SAME_MEMBER(NvTemperature, nvmlTemperature_v1_t, temperature, temperature);

SAME_SIZE(NvMarginTemperature, nvmlMarginTemperature_v1_t);
SAME_MEMBER(NvMarginTemperature, nvmlMarginTemperature_v1_t, version, version);
SAME_MEMBER(NvMarginTemperature, nvmlMarginTemperature_v1_t, marginTemperature, marginTemperature);

SAME_SIZE(NvLicenseExpiry, nvmlGridLicenseExpiry_t);
SAME_MEMBER(NvLicenseExpiry, nvmlGridLicenseExpiry_t, year, year);
SAME_MEMBER(NvLicenseExpiry, nvmlGridLicenseExpiry_t, month, month);
SAME_MEMBER(NvLicenseExpiry, nvmlGridLicenseExpiry_t, day, day);
SAME_MEMBER(NvLicenseExpiry, nvmlGridLicenseExpiry_t, hour, hour);
SAME_MEMBER(NvLicenseExpiry, nvmlGridLicenseExpiry_t, min, min);
SAME_MEMBER(NvLicenseExpiry, nvmlGridLicenseExpiry_t, sec, sec);
SAME_MEMBER(NvLicenseExpiry, nvmlGridLicenseExpiry_t, status, status);

SAME_SIZE(NvLicense, nvmlGridLicensableFeature_t);
SAME_MEMBER(NvLicense, nvmlGridLicensableFeature_t, featureCode, featureCode);
SAME_MEMBER(NvLicense, nvmlGridLicensableFeature_t, featureState, featureState);
SAME_MEMBER(NvLicense, nvmlGridLicensableFeature_t, licenseInfo, licenseInfo);
SAME_MEMBER(NvLicense, nvmlGridLicensableFeature_t, productName, productName);
SAME_MEMBER(NvLicense, nvmlGridLicensableFeature_t, featureEnabled, featureEnabled);
SAME_MEMBER(NvLicense, nvmlGridLicensableFeature_t, licenseExpiry, licenseExpiry);

SAME_SIZE(NvLicenses, nvmlGridLicensableFeatures_t);
SAME_MEMBER(NvLicenses, nvmlGridLicensableFeatures_t, isGridLicenseSupported,
            isGridLicenseSupported);
SAME_MEMBER(NvLicenses, nvmlGridLicensableFeatures_t, licensableFeaturesCount,
            licensableFeaturesCount);
SAME_MEMBER(NvLicenses, nvmlGridLicensableFeatures_t, gridLicensableFeatures,
            gridLicensableFeatures);

SAME_SIZE(NvAccounting, nvmlAccountingStats_t);
SAME_MEMBER(NvAccounting, nvmlAccountingStats_t, gpuUtilization, gpuUtilization);
SAME_MEMBER(NvAccounting, nvmlAccountingStats_t, memoryUtilization, memoryUtilization);
SAME_MEMBER(NvAccounting, nvmlAccountingStats_t, maxMemoryUsage, maxMemoryUsage);
SAME_MEMBER(NvAccounting, nvmlAccountingStats_t, time, time);
SAME_MEMBER(NvAccounting, nvmlAccountingStats_t, startTime, startTime);
SAME_MEMBER(NvAccounting, nvmlAccountingStats_t, isRunning, isRunning);
SAME_MEMBER(NvAccounting, nvmlAccountingStats_t, reserved, reserved);

SAME_SIZE(NvUuid, nvmlUUID_v1_t);
SAME_MEMBER(NvUuid, nvmlUUID_v1_t, version, version);
SAME_MEMBER(NvUuid, nvmlUUID_v1_t, type, type);
SAME_MEMBER(NvUuid, nvmlUUID_v1_t, value, value);

SAME_SIZE(NvViolation, nvmlViolationTime_t);
SAME_MEMBER(NvViolation, nvmlViolationTime_t, referenceTime, referenceTime);
SAME_MEMBER(NvViolation, nvmlViolationTime_t, violationTime, violationTime);

SAME_VALUE(NV_STRUCT_VERSION(NvMemory2, 2), nvmlMemory_v2);
SAME_VALUE(NV_STRUCT_VERSION(NvProcessesUse, 1), nvmlProcessesUtilizationInfo_v1);
SAME_VALUE(NV_STRUCT_VERSION(NvPciInfoExt, 1), nvmlPciInfoExt_v1);
SAME_VALUE(NV_STRUCT_VERSION(NvFabric2, 2), nvmlGpuFabricInfo_v2);

}  // namespace penstock::conformance
