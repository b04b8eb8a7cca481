// Compares the declarations through which the agent calls NVML with NVIDIA's nvml.h. Compiled once
// for each version of that header, never run.
#define NVML_NO_UNVERSIONED_FUNC_DEFS  // declares old spellings too, without renaming the new
#include <nvml.h>

#include "abi.h"
#include "backend/nvidia/nvml.h"

namespace penstock::conformance {

namespace abi = backend::nvidia::abi;
using backend::nvidia::Function;
using backend::nvidia::Functions;

template <typename T>
struct SignatureOf;
template <typename... Parameters>
struct SignatureOf<Function<Parameters...>> {
  using Type = abi::Return(Parameters...);
};

#define SAME_FUNCTION(member, name)                                                           \
  static_assert(                                                                              \
      SameSignature<SignatureOf<decltype(Functions::member)>::Type, decltype(::name)>::value, \
      #name)

SAME_FUNCTION(init, nvmlInit_v2);
SAME_FUNCTION(shutdown, nvmlShutdown);
SAME_FUNCTION(driver_version, nvmlSystemGetDriverVersion);
SAME_FUNCTION(cuda_version, nvmlSystemGetCudaDriverVersion_v2);
SAME_FUNCTION(count, nvmlDeviceGetCount_v2);
SAME_FUNCTION(handle_by_index, nvmlDeviceGetHandleByIndex_v2);
SAME_FUNCTION(uuid, nvmlDeviceGetUUID);
SAME_FUNCTION(name, nvmlDeviceGetName);
SAME_FUNCTION(serial, nvmlDeviceGetSerial);
SAME_FUNCTION(vbios, nvmlDeviceGetVbiosVersion);
SAME_FUNCTION(part_number, nvmlDeviceGetBoardPartNumber);
SAME_FUNCTION(inforom, nvmlDeviceGetInforomVersion);
SAME_FUNCTION(inforom_image, nvmlDeviceGetInforomImageVersion);
SAME_VALUE(abi::kInforomOem, NVML_INFOROM_OEM);
SAME_VALUE(abi::kInforomEcc, NVML_INFOROM_ECC);
SAME_VALUE(abi::kInforomPower, NVML_INFOROM_POWER);
SAME_FUNCTION(minor, nvmlDeviceGetMinorNumber);
SAME_FUNCTION(brand, nvmlDeviceGetBrand);
SAME_FUNCTION(max_pcie_generation, nvmlDeviceGetMaxPcieLinkGeneration);
SAME_FUNCTION(max_pcie_width, nvmlDeviceGetMaxPcieLinkWidth);
SAME_FUNCTION(pci, nvmlDeviceGetPciInfo_v3);
SAME_FUNCTION(compute_capability, nvmlDeviceGetCudaComputeCapability);
SAME_FUNCTION(mig_mode, nvmlDeviceGetMigMode);
SAME_FUNCTION(compute_instance_placements, nvmlGpuInstanceGetComputeInstancePossiblePlacements);
SAME_FUNCTION(compute_instance_info, nvmlComputeInstanceGetInfo_v2);
SAME_FUNCTION(create_compute_instance_at, nvmlGpuInstanceCreateComputeInstanceWithPlacement);
SAME_FUNCTION(memory, nvmlDeviceGetMemoryInfo);
SAME_FUNCTION(memory_v2, nvmlDeviceGetMemoryInfo_v2);
SAME_FUNCTION(common_ancestor, nvmlDeviceGetTopologyCommonAncestor);
SAME_FUNCTION(nvlink_state, nvmlDeviceGetNvLinkState);
SAME_FUNCTION(nvlink_remote_type, nvmlDeviceGetNvLinkRemoteDeviceType);
SAME_FUNCTION(nvlink_remote_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2);
SAME_FUNCTION(utilization, nvmlDeviceGetUtilizationRates);
SAME_FUNCTION(temperature, nvmlDeviceGetTemperature);
SAME_FUNCTION(threshold, nvmlDeviceGetTemperatureThreshold);
SAME_FUNCTION(margin, nvmlDeviceGetMarginTemperature);
SAME_FUNCTION(clock_info, nvmlDeviceGetClockInfo);
SAME_FUNCTION(max_clock_info, nvmlDeviceGetMaxClockInfo);
SAME_FUNCTION(application_clock, nvmlDeviceGetApplicationsClock);
SAME_FUNCTION(clock, nvmlDeviceGetClock);
SAME_FUNCTION(power, nvmlDeviceGetPowerUsage);
SAME_FUNCTION(power_limit, nvmlDeviceGetPowerManagementLimit);
SAME_FUNCTION(enforced_power_limit, nvmlDeviceGetEnforcedPowerLimit);
SAME_FUNCTION(default_power_limit, nvmlDeviceGetPowerManagementDefaultLimit);
SAME_FUNCTION(power_limits, nvmlDeviceGetPowerManagementLimitConstraints);
SAME_FUNCTION(energy, nvmlDeviceGetTotalEnergyConsumption);
SAME_FUNCTION(encoder, nvmlDeviceGetEncoderUtilization);
SAME_FUNCTION(decoder, nvmlDeviceGetDecoderUtilization);
SAME_FUNCTION(jpeg, nvmlDeviceGetJpgUtilization);
SAME_FUNCTION(optical_flow, nvmlDeviceGetOfaUtilization);
SAME_FUNCTION(bar1, nvmlDeviceGetBAR1MemoryInfo);
SAME_FUNCTION(pcie_generation, nvmlDeviceGetCurrPcieLinkGeneration);
SAME_FUNCTION(pcie_width, nvmlDeviceGetCurrPcieLinkWidth);
SAME_FUNCTION(pcie_replays, nvmlDeviceGetPcieReplayCounter);
SAME_FUNCTION(pcie_throughput, nvmlDeviceGetPcieThroughput);
SAME_FUNCTION(performance_state, nvmlDeviceGetPerformanceState);
SAME_FUNCTION(fan, nvmlDeviceGetFanSpeed);
SAME_FUNCTION(compute_mode, nvmlDeviceGetComputeMode);
SAME_FUNCTION(persistence_mode, nvmlDeviceGetPersistenceMode);
SAME_FUNCTION(clocks_reasons, nvmlDeviceGetCurrentClocksEventReasons);
SAME_FUNCTION(clocks_reasons, nvmlDeviceGetCurrentClocksThrottleReasons);
SAME_FUNCTION(known_clocks_reasons, nvmlDeviceGetSupportedClocksEventReasons);
SAME_FUNCTION(known_clocks_reasons, nvmlDeviceGetSupportedClocksThrottleReasons);
SAME_FUNCTION(licensable_features, nvmlDeviceGetGridLicensableFeatures_v4);
SAME_FUNCTION(remapped_banks, nvmlDeviceGetRowRemapperHistogram);
SAME_FUNCTION(ecc_errors_by_location, nvmlDeviceGetMemoryErrorCounter);
SAME_FUNCTION(nvlink_errors, nvmlDeviceGetNvLinkErrorCounter);
SAME_FUNCTION(process_utilization, nvmlDeviceGetProcessUtilization);
SAME_FUNCTION(gpm_support, nvmlGpmQueryDeviceSupport);
SAME_FUNCTION(gpm_allocate, nvmlGpmSampleAlloc);
SAME_FUNCTION(gpm_free, nvmlGpmSampleFree);
SAME_FUNCTION(gpm_sample, nvmlGpmSampleGet);
SAME_FUNCTION(field_values, nvmlDeviceGetFieldValues);
SAME_FUNCTION(remapped_rows, nvmlDeviceGetRemappedRows);
SAME_FUNCTION(ecc_errors, nvmlDeviceGetTotalEccErrors);
// The lists of processes are passed as void*, with records of either version.
template <typename Record>
using ProcessList = abi::Return(abi::Device, unsigned*, Record*);
static_assert(SameSignature<ProcessList<abi::ProcessInfo>,
                            decltype(::nvmlDeviceGetComputeRunningProcesses_v3)>::value);
static_assert(SameSignature<ProcessList<abi::ProcessInfo>,
                            decltype(::nvmlDeviceGetComputeRunningProcesses_v2)>::value);
static_assert(SameSignature<ProcessList<abi::ProcessInfoV1>,
                            decltype(::nvmlDeviceGetComputeRunningProcesses)>::value);
static_assert(SameSignature<ProcessList<abi::ProcessInfo>,
                            decltype(::nvmlDeviceGetGraphicsRunningProcesses_v3)>::value);
static_assert(SameSignature<ProcessList<abi::ProcessInfo>,
                            decltype(::nvmlDeviceGetMPSComputeRunningProcesses_v3)>::value);

SAME_FUNCTION(event_set_create, nvmlEventSetCreate);
SAME_FUNCTION(event_set_free, nvmlEventSetFree);
SAME_FUNCTION(supported_events, nvmlDeviceGetSupportedEventTypes);
SAME_FUNCTION(register_events, nvmlDeviceRegisterEvents);
SAME_FUNCTION(event_wait, nvmlEventSetWait_v2);

SAME_SIZE(abi::PciInfo, nvmlPciInfo_t);
SAME_MEMBER(abi::PciInfo, nvmlPciInfo_t, bus_id_legacy, busIdLegacy);
SAME_MEMBER(abi::PciInfo, nvmlPciInfo_t, domain, domain);
SAME_MEMBER(abi::PciInfo, nvmlPciInfo_t, bus, bus);
SAME_MEMBER(abi::PciInfo, nvmlPciInfo_t, device, device);
SAME_MEMBER(abi::PciInfo, nvmlPciInfo_t, device_id, pciDeviceId);
SAME_MEMBER(abi::PciInfo, nvmlPciInfo_t, subsystem_id, pciSubSystemId);
SAME_MEMBER(abi::PciInfo, nvmlPciInfo_t, bus_id, busId);

SAME_SIZE(abi::Memory, nvmlMemory_t);
SAME_MEMBER(abi::Memory, nvmlMemory_t, total, total);
SAME_MEMBER(abi::Memory, nvmlMemory_t, free, free);
SAME_MEMBER(abi::Memory, nvmlMemory_t, used, used);

SAME_SIZE(abi::MemoryV2, nvmlMemory_v2_t);
SAME_MEMBER(abi::MemoryV2, nvmlMemory_v2_t, version, version);
SAME_MEMBER(abi::MemoryV2, nvmlMemory_v2_t, total, total);
SAME_MEMBER(abi::MemoryV2, nvmlMemory_v2_t, reserved, reserved);
SAME_MEMBER(abi::MemoryV2, nvmlMemory_v2_t, free, free);
SAME_MEMBER(abi::MemoryV2, nvmlMemory_v2_t, used, used);
SAME_VALUE(abi::kMemoryV2, nvmlMemory_v2);

SAME_SIZE(abi::Placement, nvmlComputeInstancePlacement_t);
SAME_MEMBER(abi::Placement, nvmlComputeInstancePlacement_t, start, start);
SAME_MEMBER(abi::Placement, nvmlComputeInstancePlacement_t, size, size);

SAME_SIZE(abi::ComputeInstanceInfo, nvmlComputeInstanceInfo_t);
SAME_MEMBER(abi::ComputeInstanceInfo, nvmlComputeInstanceInfo_t, device, device);
SAME_MEMBER(abi::ComputeInstanceInfo, nvmlComputeInstanceInfo_t, instance, gpuInstance);
SAME_MEMBER(abi::ComputeInstanceInfo, nvmlComputeInstanceInfo_t, id, id);
SAME_MEMBER(abi::ComputeInstanceInfo, nvmlComputeInstanceInfo_t, profile, profileId);
SAME_MEMBER(abi::ComputeInstanceInfo, nvmlComputeInstanceInfo_t, placement, placement);

SAME_SIZE(abi::Utilization, nvmlUtilization_t);
SAME_MEMBER(abi::Utilization, nvmlUtilization_t, gpu, gpu);
SAME_MEMBER(abi::Utilization, nvmlUtilization_t, memory, memory);

SAME_SIZE(abi::Bar1Memory, nvmlBAR1Memory_t);
SAME_MEMBER(abi::Bar1Memory, nvmlBAR1Memory_t, total, bar1Total);
SAME_MEMBER(abi::Bar1Memory, nvmlBAR1Memory_t, free, bar1Free);
SAME_MEMBER(abi::Bar1Memory, nvmlBAR1Memory_t, used, bar1Used);

SAME_SIZE(abi::MarginTemperature, nvmlMarginTemperature_t);
SAME_MEMBER(abi::MarginTemperature, nvmlMarginTemperature_t, version, version);
SAME_MEMBER(abi::MarginTemperature, nvmlMarginTemperature_t, margin, marginTemperature);
SAME_VALUE(abi::kMarginTemperature, nvmlMarginTemperature_v1);

SAME_SIZE(abi::RemappedBanks, nvmlRowRemapperHistogramValues_t);
SAME_MEMBER(abi::RemappedBanks, nvmlRowRemapperHistogramValues_t, most, max);
SAME_MEMBER(abi::RemappedBanks, nvmlRowRemapperHistogramValues_t, high, high);
SAME_MEMBER(abi::RemappedBanks, nvmlRowRemapperHistogramValues_t, partial, partial);
SAME_MEMBER(abi::RemappedBanks, nvmlRowRemapperHistogramValues_t, low, low);
SAME_MEMBER(abi::RemappedBanks, nvmlRowRemapperHistogramValues_t, none, none);

SAME_SIZE(abi::ProcessUtilization, nvmlProcessUtilizationSample_t);
SAME_MEMBER(abi::ProcessUtilization, nvmlProcessUtilizationSample_t, pid, pid);
SAME_MEMBER(abi::ProcessUtilization, nvmlProcessUtilizationSample_t, time, timeStamp);
SAME_MEMBER(abi::ProcessUtilization, nvmlProcessUtilizationSample_t, compute, smUtil);
SAME_MEMBER(abi::ProcessUtilization, nvmlProcessUtilizationSample_t, memory_copy, memUtil);
SAME_MEMBER(abi::ProcessUtilization, nvmlProcessUtilizationSample_t, encoder, encUtil);
SAME_MEMBER(abi::ProcessUtilization, nvmlProcessUtilizationSample_t, decoder, decUtil);

// The header's array has as many metrics as its version defines, Penstock's as many as it requests
// in one call.
SAME_SIZE(abi::GpmMetric, nvmlGpmMetric_t);
SAME_MEMBER(abi::GpmMetric, nvmlGpmMetric_t, metric, metricId);
SAME_MEMBER(abi::GpmMetric, nvmlGpmMetric_t, status, nvmlReturn);
SAME_MEMBER(abi::GpmMetric, nvmlGpmMetric_t, value, value);
SAME_MEMBER(abi::GpmMetric, nvmlGpmMetric_t, short_name, metricInfo.shortName);
SAME_MEMBER(abi::GpmMetric, nvmlGpmMetric_t, unit, metricInfo.unit);
SAME_MEMBER(abi::GpmMetrics, nvmlGpmMetricsGet_t, version, version);
SAME_MEMBER(abi::GpmMetrics, nvmlGpmMetricsGet_t, count, numMetrics);
SAME_MEMBER(abi::GpmMetrics, nvmlGpmMetricsGet_t, first, sample1);
SAME_MEMBER(abi::GpmMetrics, nvmlGpmMetricsGet_t, second, sample2);
static_assert(offsetof(abi::GpmMetrics, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics) &&
              abi::kMaxGpmMetrics <= NVML_GPM_METRIC_MAX);
static_assert(std::is_same_v<decltype(::nvmlGpmMetricsGet), nvmlReturn_t(nvmlGpmMetricsGet_t*)>);
SAME_VALUE(abi::kGpmMetrics, NVML_GPM_METRICS_GET_VERSION);
SAME_SIZE(abi::GpmSupport, nvmlGpmSupport_t);
SAME_MEMBER(abi::GpmSupport, nvmlGpmSupport_t, version, version);
SAME_MEMBER(abi::GpmSupport, nvmlGpmSupport_t, supported, isSupportedDevice);
SAME_VALUE(abi::kGpmSupport, NVML_GPM_SUPPORT_VERSION);
SAME_VALUE(abi::kGpmPcieSentRate, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME_VALUE(abi::kGpmPcieSentRate + 1, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
SAME_VALUE(abi::kGpmLinksReceived, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
SAME_VALUE(abi::kGpmLinksSent, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
SAME_VALUE(abi::kGpmLink0Received, NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC);
SAME_VALUE(abi::kGpmLink0Received + 2 * 17 + 1, NVML_GPM_METRIC_NVLINK_L17_TX_PER_SEC);
#if NVML_API_VERSION >= 13
SAME_VALUE(abi::kGpmPcieSent, NVML_GPM_METRIC_PCIE_TX);
SAME_VALUE(abi::kGpmPcieSent + 1, NVML_GPM_METRIC_PCIE_RX);
SAME_VALUE(abi::kGpmLink18Received, NVML_GPM_METRIC_NVLINK_L18_RX_PER_SEC);
SAME_VALUE(abi::kGpmLink18Received + 2 * 17 + 1, NVML_GPM_METRIC_NVLINK_L35_TX_PER_SEC);
#endif

SAME_SIZE(abi::LicensableFeature, nvmlGridLicensableFeature_t);
SAME_MEMBER(abi::LicensableFeature, nvmlGridLicensableFeature_t, code, featureCode);
SAME_MEMBER(abi::LicensableFeature, nvmlGridLicensableFeature_t, licensed, featureState);
SAME_SIZE(abi::LicensableFeatures, nvmlGridLicensableFeatures_t);
SAME_MEMBER(abi::LicensableFeatures, nvmlGridLicensableFeatures_t, supported,
            isGridLicenseSupported);
SAME_MEMBER(abi::LicensableFeatures, nvmlGridLicensableFeatures_t, count, licensableFeaturesCount);
SAME_MEMBER(abi::LicensableFeatures, nvmlGridLicensableFeatures_t, features,
            gridLicensableFeatures);

#if NVML_API_VERSION >= 13
SAME_SIZE(abi::FabricInfoV3, nvmlGpuFabricInfo_v3_t);
SAME_MEMBER(abi::FabricInfoV3, nvmlGpuFabricInfo_v3_t, version, version);
SAME_MEMBER(abi::FabricInfoV3, nvmlGpuFabricInfo_v3_t, cluster_uuid, clusterUuid);
SAME_MEMBER(abi::FabricInfoV3, nvmlGpuFabricInfo_v3_t, status, status);
SAME_MEMBER(abi::FabricInfoV3, nvmlGpuFabricInfo_v3_t, clique, cliqueId);
SAME_MEMBER(abi::FabricInfoV3, nvmlGpuFabricInfo_v3_t, state, state);
SAME_MEMBER(abi::FabricInfoV3, nvmlGpuFabricInfo_v3_t, health_mask, healthMask);
SAME_MEMBER(abi::FabricInfoV3, nvmlGpuFabricInfo_v3_t, health, healthSummary);
SAME_VALUE(abi::kFabricInfoV3, nvmlGpuFabricInfo_v3);
#endif

SAME_SIZE(abi::ProcessInfoV1, nvmlProcessInfo_v1_t);
SAME_MEMBER(abi::ProcessInfoV1, nvmlProcessInfo_v1_t, pid, pid);
SAME_MEMBER(abi::ProcessInfoV1, nvmlProcessInfo_v1_t, used_memory, usedGpuMemory);
SAME_SIZE(abi::ProcessInfo, nvmlProcessInfo_v2_t);
SAME_MEMBER(abi::ProcessInfo, nvmlProcessInfo_v2_t, pid, pid);
SAME_MEMBER(abi::ProcessInfo, nvmlProcessInfo_v2_t, used_memory, usedGpuMemory);
SAME_MEMBER(abi::ProcessInfo, nvmlProcessInfo_v2_t, gpu_instance, gpuInstanceId);
SAME_MEMBER(abi::ProcessInfo, nvmlProcessInfo_v2_t, compute_instance, computeInstanceId);

SAME_SIZE(abi::EventData, nvmlEventData_t);
SAME_MEMBER(abi::EventData, nvmlEventData_t, device, device);
SAME_MEMBER(abi::EventData, nvmlEventData_t, type, eventType);
SAME_MEMBER(abi::EventData, nvmlEventData_t, data, eventData);
SAME_MEMBER(abi::EventData, nvmlEventData_t, gpu_instance, gpuInstanceId);
SAME_MEMBER(abi::EventData, nvmlEventData_t, compute_instance, computeInstanceId);

SAME_SIZE(abi::FieldValue, nvmlFieldValue_t);
SAME_MEMBER(abi::FieldValue, nvmlFieldValue_t, field, fieldId);
SAME_MEMBER(abi::FieldValue, nvmlFieldValue_t, scope, scopeId);
SAME_MEMBER(abi::FieldValue, nvmlFieldValue_t, timestamp, timestamp);
SAME_MEMBER(abi::FieldValue, nvmlFieldValue_t, latency, latencyUsec);
SAME_MEMBER(abi::FieldValue, nvmlFieldValue_t, type, valueType);
SAME_MEMBER(abi::FieldValue, nvmlFieldValue_t, status, nvmlReturn);
SAME_MEMBER(abi::FieldValue, nvmlFieldValue_t, value, value);

SAME_VALUE(abi::kSuccess, NVML_SUCCESS);
SAME_VALUE(abi::kUninitialized, NVML_ERROR_UNINITIALIZED);
SAME_VALUE(abi::kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(abi::kNotSupported, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(abi::kNoPermission, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(abi::kNotFound, NVML_ERROR_NOT_FOUND);
SAME_VALUE(abi::kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(abi::kDriverNotLoaded, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(abi::kTimeout, NVML_ERROR_TIMEOUT);
SAME_VALUE(abi::kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(abi::kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(abi::kResetRequired, NVML_ERROR_RESET_REQUIRED);
SAME_VALUE(abi::kOperatingSystem, NVML_ERROR_OPERATING_SYSTEM);
SAME_VALUE(abi::kLibRmVersionMismatch, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_VALUE(abi::kInUse, NVML_ERROR_IN_USE);
SAME_VALUE(abi::kNoData, NVML_ERROR_NO_DATA);
SAME_VALUE(abi::kArgumentVersionMismatch, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_VALUE(abi::kNotReady, NVML_ERROR_NOT_READY);
SAME_VALUE(abi::kGpuNotFound, NVML_ERROR_GPU_NOT_FOUND);
SAME_VALUE(abi::kUnknown, NVML_ERROR_UNKNOWN);

SAME_VALUE(abi::kEventDoubleBitEcc, nvmlEventTypeDoubleBitEccError);
SAME_VALUE(abi::kEventXid, nvmlEventTypeXidCriticalError);
SAME_VALUE(abi::kEventDramRetirement, nvmlEventTypeDramRetirementEvent);
SAME_VALUE(abi::kEventDramRetirementFailure, nvmlEventTypeDramRetirementFailure);
SAME_VALUE(abi::kEventNonFatalPoison, nvmlEventTypeNonFatalPoisonError);
SAME_VALUE(abi::kEventFatalPoison, nvmlEventTypeFatalPoisonError);
SAME_VALUE(abi::kEventGpuUnavailable, nvmlEventTypeGpuUnavailableError);
SAME_VALUE(abi::kEventRecoveryAction, nvmlEventTypeGpuRecoveryAction);

SAME_VALUE(abi::kUnsignedInt, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_VALUE(abi::kUnsignedLong, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_VALUE(abi::kUnsignedLongLong, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_VALUE(abi::kSignedLongLong, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME_VALUE(abi::kSignedInt, NVML_VALUE_TYPE_SIGNED_INT);
SAME_VALUE(abi::kFieldRecoveryAction, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
SAME_VALUE(abi::kFieldPcieSent, NVML_FI_DEV_PCIE_COUNT_TX_BYTES);
SAME_VALUE(abi::kFieldPcieSent + 1, NVML_FI_DEV_PCIE_COUNT_RX_BYTES);
SAME_VALUE(abi::kFieldLinkSent, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME_VALUE(abi::kFieldLinkSent + 1, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
SAME_VALUE(abi::kFieldLinkSentBytes, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES);
SAME_VALUE(abi::kFieldLinkReceivedBytes, NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES);
SAME_VALUE(abi::kClockOfTheApplication, NVML_CLOCK_ID_APP_CLOCK_TARGET);
SAME_VALUE(abi::kPcieSent, NVML_PCIE_UTIL_TX_BYTES);
SAME_VALUE(abi::kPcieReceived, NVML_PCIE_UTIL_RX_BYTES);
SAME_VALUE(abi::kDouble, NVML_VALUE_TYPE_DOUBLE);
SAME_VALUE(abi::kNotAvailable, NVML_VALUE_NOT_AVAILABLE);
SAME_VALUE(abi::kTopologyInternal, NVML_TOPOLOGY_INTERNAL);
SAME_VALUE(abi::kTopologySingle, NVML_TOPOLOGY_SINGLE);
SAME_VALUE(abi::kTopologyMultiple, NVML_TOPOLOGY_MULTIPLE);
SAME_VALUE(abi::kTopologyHostBridge, NVML_TOPOLOGY_HOSTBRIDGE);
SAME_VALUE(abi::kTopologyNode, NVML_TOPOLOGY_NODE);
SAME_VALUE(abi::kTopologySystem, NVML_TOPOLOGY_SYSTEM);
SAME_VALUE(abi::kNvLinkToGpu, NVML_NVLINK_DEVICE_TYPE_GPU);
SAME_VALUE(abi::kNvLinkToSwitch, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME_VALUE(abi::kUncorrectedErrors, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_VALUE(abi::kVolatileCounter, NVML_VOLATILE_ECC);
SAME_VALUE(abi::kTemperatureOfTheGpu, NVML_TEMPERATURE_GPU);
static_assert(abi::kUuidLength >= NVML_DEVICE_UUID_V2_BUFFER_SIZE &&
              abi::kNameLength >= NVML_DEVICE_NAME_V2_BUFFER_SIZE);
static_assert(abi::kSerialLength >= NVML_DEVICE_SERIAL_BUFFER_SIZE &&
              abi::kVbiosLength >= NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE);
static_assert(abi::kPartNumberLength >= NVML_DEVICE_PART_NUMBER_BUFFER_SIZE &&
              abi::kVersionLength >= NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
static_assert(abi::kInforomLength >= NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE);
#if NVML_API_VERSION >= 13
static_assert(abi::kMaxNvLinks >= NVML_NVLINK_MAX_LINKS);
#endif

}  // namespace penstock::conformance
