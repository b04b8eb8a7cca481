// Penstock's own declarations of those parts of the NVML ABI that it calls, as nvml.h documents
// them. tests/conformance compares them with NVIDIA's header. Do not include that header here:
// building Penstock needs no vendor SDK.
#pragma once

#include <cstddef>

namespace penstock::backend::nvidia::abi {

struct DeviceObject;           // opaque
struct EventSetObject;         // opaque
struct GpmSampleObject;        // opaque
struct GpuInstanceObject;      // opaque
struct ComputeInstanceObject;  // opaque
struct ComputeInstanceObject;  // opaque
using Device = DeviceObject*;
using EventSet = EventSetObject*;
using GpmSample = GpmSampleObject*;
using GpuInstance = GpuInstanceObject*;
using ComputeInstance = ComputeInstanceObject*;
using ComputeInstance = ComputeInstanceObject*;

/// nvmlReturn_t
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kAlreadyInitialized = 5,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInsufficientPower = 8,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kIrqIssue = 11,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kCorruptedInforom = 14,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kInUse = 19,
  kMemory = 20,
  kNoData = 21,
  kVgpuEccNotSupported = 22,
  kInsufficientResources = 23,
  kFreqNotSupported = 24,
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kNotReady = 27,
  kGpuNotFound = 28,
  kInvalidState = 29,
  kUnknown = 999,
};

// Lengths of text buffers: of each, the longest version.
inline constexpr unsigned kUuidLength = 96;
inline constexpr unsigned kNameLength = 96;
inline constexpr unsigned kSerialLength = 30;
inline constexpr unsigned kVbiosLength = 32;
inline constexpr unsigned kPartNumberLength = 80;
inline constexpr unsigned kVersionLength = 80;
inline constexpr unsigned kInforomLength = 16;

// nvmlInforomObject_t
inline constexpr unsigned kInforomOem = 0;
inline constexpr unsigned kInforomEcc = 1;
inline constexpr unsigned kInforomPower = 2;

/// nvmlPciInfo_t (version 3). Versions 1 and 2 have the same leading fields and end at bus_id.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned device_id;     ///< device << 16 | vendor
  unsigned subsystem_id;  ///< likewise
  char bus_id[32];
};

/// nvmlMemory_t
struct Memory {
  unsigned long long total, free, used;  ///< bytes; `used` includes what the driver reserves
};

/// nvmlMemory_v2_t
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2u << 24);

/// nvmlBAR1Memory_t
struct Bar1Memory {
  unsigned long long total, free, used;
};

/// nvmlUtilization_t
struct Utilization {
  unsigned gpu, memory;  ///< percent
};

/// nvmlMarginTemperature_t (version 1)
struct MarginTemperature {
  unsigned version;
  int margin;  ///< degrees to the nearest slowdown; negative above it
};
inline constexpr unsigned kMarginTemperature = sizeof(MarginTemperature) | (1u << 24);

/// nvmlRowRemapperHistogramValues_t
struct RemappedBanks {
  unsigned most, high, partial, low, none;
};

/// nvmlProcessInfo_v1_t
struct ProcessInfoV1 {
  unsigned pid;
  unsigned long long used_memory;
};

/// nvmlProcessInfo_v2_t; version 3 is the same
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
inline constexpr unsigned long long kNotAvailable = ~0ull;  ///< NVML_VALUE_NOT_AVAILABLE
inline constexpr unsigned kNoInstance = ~0u;  ///< of a process or an event that is on no instance

/// nvmlProcessUtilizationSample_t
struct ProcessUtilization {
  unsigned pid;
  unsigned long long time;  ///< microseconds of the CPU's clock
  unsigned compute, memory_copy, encoder, decoder;
};

/// nvmlEventData_t; version 1 ends at `data`.
struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
inline constexpr unsigned long long kEventDoubleBitEcc = 0x2;
inline constexpr unsigned long long kEventXid = 0x8;
inline constexpr unsigned long long kEventMigConfig = 0x100;
inline constexpr unsigned long long kEventDramRetirement = 0x400;
inline constexpr unsigned long long kEventDramRetirementFailure = 0x800;
inline constexpr unsigned long long kEventNonFatalPoison = 0x1000;
inline constexpr unsigned long long kEventFatalPoison = 0x2000;
inline constexpr unsigned long long kEventGpuUnavailable = 0x4000;
inline constexpr unsigned long long kEventRecoveryAction = 0x8000;

/// nvmlValue_t
union Value {
  double d;
  int si;
  unsigned ui;
  unsigned long ul;
  unsigned long long ull;
  long long sll;
};

/// nvmlValueType_t
enum ValueType : unsigned {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5
};

/// nvmlFieldValue_t
struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp, latency;
  ValueType type;
  Return status;
  Value value;
};
inline constexpr unsigned kFieldRecoveryAction =
    230;  ///< NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, from driver 565
inline constexpr unsigned kFieldPcieSent =
    197;  ///< NVML_FI_DEV_PCIE_COUNT_TX_BYTES, from driver 550; received follows
inline constexpr unsigned kFieldLinkSent =
    138;  ///< NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX; received follows. KiB
inline constexpr unsigned kFieldLinkSentBytes = 202;      ///< NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES
inline constexpr unsigned kFieldLinkReceivedBytes = 204;  ///< NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES
inline constexpr unsigned kAllLinks = ~0u;                ///< as a field's scope

/// nvmlGpmMetric_t
struct GpmMetric {
  unsigned metric;
  Return status;
  double value;
  const char *short_name, *long_name, *unit;
};
/// nvmlGpmMetricsGet_t. Its array has room for all metrics that existed when the driver was
/// written; the library reads `count` of them.
inline constexpr unsigned kMaxGpmMetrics = 96;
struct GpmMetrics {
  unsigned version, count;
  GpmSample first, second;
  GpmMetric metrics[kMaxGpmMetrics];
};
inline constexpr unsigned kGpmMetrics = 1;  ///< NVML_GPM_METRICS_GET_VERSION
/// nvmlGpmSupport_t
struct GpmSupport {
  unsigned version, supported;
};
inline constexpr unsigned kGpmSupport = 1;  ///< NVML_GPM_SUPPORT_VERSION
inline constexpr unsigned kGpmPcieSentRate = 20,
                          kGpmPcieSent =
                              255;  ///< NVML_GPM_METRIC_PCIE_TX_PER_SEC, _PCIE_TX; received follows
inline constexpr unsigned kGpmLinksReceived = 60,
                          kGpmLinksSent = 61;  ///< NVML_GPM_METRIC_NVLINK_TOTAL_*_PER_SEC
inline constexpr unsigned kGpmLink0Received = 62,
                          kGpmLink18Received = 212;  ///< NVML_GPM_METRIC_NVLINK_L*_RX_PER_SEC

/// nvmlGridLicensableFeatures_t; only the leading members of each feature are used.
struct LicensableFeature {
  unsigned code, licensed;
  char auxiliary[276];
};
struct LicensableFeatures {
  int supported;
  unsigned count;
  LicensableFeature features[3];
};

/// nvmlGpuFabricInfo_t
struct FabricInfo {
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique;
  unsigned char state;
};
/// nvmlGpuFabricInfo_v2_t
struct FabricInfoV2 {
  unsigned version;
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
};
inline constexpr unsigned kFabricInfoV2 = sizeof(FabricInfoV2) | (2u << 24);
/// nvmlGpuFabricInfo_v3_t
struct FabricInfoV3 {
  unsigned version;
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
  unsigned char health;
};
inline constexpr unsigned kFabricInfoV3 = sizeof(FabricInfoV3) | (3u << 24);
inline constexpr unsigned char kFabricCompleted = 3;  ///< NVML_GPU_FABRIC_STATE_COMPLETED

/// nvmlGpuInstancePlacement_t, nvmlComputeInstancePlacement_t: in slices of memory, or of compute
struct Placement {
  unsigned start, size;
};
/// nvmlGpuInstanceProfileInfo_t
struct GpuInstanceProfile {
  unsigned id, peer_to_peer, slices, most, multiprocessors, copy, decoders, encoders, jpegs, ofas;
  unsigned long long memory_mib;
};
/// nvmlGpuInstanceProfileInfo_v2_t
struct GpuInstanceProfileV2 {
  unsigned version;
  unsigned id, peer_to_peer, slices, most, multiprocessors, copy, decoders, encoders, jpegs, ofas;
  unsigned long long memory_mib;
  char name[96];
};
inline constexpr unsigned kGpuInstanceProfileV2 = sizeof(GpuInstanceProfileV2) | (2u << 24);
/// nvmlGpuInstanceInfo_t
struct GpuInstanceInfo {
  Device device;
  unsigned id, profile;
  Placement placement;
};
/// nvmlComputeInstanceProfileInfo_t
struct ComputeInstanceProfile {
  unsigned id, slices, most, multiprocessors, copy, decoders, encoders, jpegs, ofas;
};
/// nvmlComputeInstanceInfo_t
struct ComputeInstanceInfo {
  Device device;
  GpuInstance instance;
  unsigned id, profile;
  Placement placement;
};
/// nvmlDeviceAttributes_t, of a MIG device
struct Attributes {
  unsigned multiprocessors, copy, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
  unsigned long long memory_mib;
};

// nvmlGpuTopologyLevel_t
inline constexpr unsigned kTopologyInternal = 0;
inline constexpr unsigned kTopologySingle = 10;
inline constexpr unsigned kTopologyMultiple = 20;
inline constexpr unsigned kTopologyHostBridge = 30;
inline constexpr unsigned kTopologyNode = 40;
inline constexpr unsigned kTopologySystem = 50;

// nvmlIntNvLinkDeviceType_t
inline constexpr unsigned kNvLinkToGpu = 0;
inline constexpr unsigned kNvLinkToSwitch = 2;

inline constexpr unsigned kClockOfTheApplication = 1;  ///< NVML_CLOCK_ID_APP_CLOCK_TARGET
inline constexpr unsigned kPcieSent = 0;               ///< NVML_PCIE_UTIL_TX_BYTES
inline constexpr unsigned kPcieReceived = 1;           ///< NVML_PCIE_UTIL_RX_BYTES
inline constexpr unsigned kMaxNvLinks = 36;  ///< NVML_NVLINK_MAX_LINKS of nvml.h 13; 18 before
inline constexpr unsigned kUncorrectedErrors = 1;    ///< NVML_MEMORY_ERROR_TYPE_UNCORRECTED
inline constexpr unsigned kVolatileCounter = 0;      ///< NVML_VOLATILE_ECC
inline constexpr unsigned kTemperatureOfTheGpu = 0;  ///< NVML_TEMPERATURE_GPU

// These layouts are another library's memory and must not change by accident.
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 &&
              offsetof(PciInfo, bus_id) == 36);
static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);
static_assert(sizeof(ProcessInfoV1) == 16 && sizeof(ProcessInfo) == 24);
static_assert(sizeof(FabricInfo) == 28 && sizeof(FabricInfoV2) == 36);
static_assert(sizeof(FabricInfoV3) == 40 && sizeof(ProcessUtilization) == 32 &&
              sizeof(GpmMetric) == 40 && offsetof(GpmMetrics, metrics) == 24);
static_assert(sizeof(ComputeInstanceProfile) == 36 && sizeof(GpuInstanceProfile) == 48 &&
              sizeof(GpuInstanceProfileV2) == 152 &&
              offsetof(GpuInstanceProfileV2, memory_mib) == 48 && sizeof(GpuInstanceInfo) == 24 &&
              sizeof(ComputeInstanceInfo) == 32 && offsetof(ComputeInstanceInfo, placement) == 24 &&
              sizeof(Attributes) == 40);
static_assert(sizeof(EventData) == 32 && sizeof(FieldValue) == 40 &&
              offsetof(FieldValue, value) == 32);

}  // namespace penstock::backend::nvidia::abi
