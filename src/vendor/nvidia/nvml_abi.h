// Our own declarations of the NVML ABI, as nvml.h documents it: what we call and nothing else. tests/conformance compares them with
// NVIDIA's header. Must not include it: building Penstock needs no vendor SDK.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::vendor::nvidia::abi {

struct DeviceObject;    // opaque
struct EventSetObject;  // opaque
using Device = DeviceObject*;
using EventSet = EventSetObject*;

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

// Lengths of text buffers, the longest version of each.
inline constexpr unsigned kUuidLength = 96;
inline constexpr unsigned kNameLength = 96;
inline constexpr unsigned kSerialLength = 30;
inline constexpr unsigned kVbiosLength = 32;
inline constexpr unsigned kPartNumberLength = 80;
inline constexpr unsigned kVersionLength = 80;

/// nvmlPciInfo_t (version 3). Versions 1 and 2 end at bus_id and have the same fields in front.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned device_id;     ///< device << 16 | vendor
  unsigned subsystem_id;  ///< likewise
  char bus_id[32];
};

/// nvmlMemory_t
struct Memory {
  unsigned long long total, free, used;  ///< bytes; used includes what the driver reserves
};

/// nvmlMemory_v2_t
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2u << 24);

/// nvmlUtilization_t
struct Utilization {
  unsigned gpu, memory;  ///< percent
};

/// nvmlProcessInfo_v1_t
struct ProcessInfoV1 {
  unsigned pid;
  unsigned long long used_memory;
};

/// nvmlProcessInfo_v2_t, also that of version 3
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
inline constexpr unsigned long long kNotAvailable = ~0ull;  ///< NVML_VALUE_NOT_AVAILABLE

/// nvmlEventData_t; version 1 ends at `data`.
struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
inline constexpr unsigned long long kEventDoubleBitEcc = 0x2;
inline constexpr unsigned long long kEventXid = 0x8;
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
enum ValueType : unsigned { kDouble = 0, kUnsignedInt = 1, kUnsignedLong = 2, kUnsignedLongLong = 3, kSignedLongLong = 4, kSignedInt = 5 };

/// nvmlFieldValue_t
struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp, latency;
  ValueType type;
  Return status;
  Value value;
};
inline constexpr unsigned kFieldRecoveryAction = 230;  ///< NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, from driver 565

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
inline constexpr unsigned char kFabricCompleted = 3;  ///< NVML_GPU_FABRIC_STATE_COMPLETED

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

inline constexpr unsigned kMostNvLinks = 36;         ///< NVML_NVLINK_MAX_LINKS of nvml.h 13; 18 before
inline constexpr unsigned kUncorrectedErrors = 1;    ///< NVML_MEMORY_ERROR_TYPE_UNCORRECTED
inline constexpr unsigned kVolatileCounter = 0;      ///< NVML_VOLATILE_ECC
inline constexpr unsigned kTemperatureOfTheGpu = 0;  ///< NVML_TEMPERATURE_GPU

// Nobody may change these by accident: they are another library's memory.
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);
static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);
static_assert(sizeof(ProcessInfoV1) == 16 && sizeof(ProcessInfo) == 24);
static_assert(sizeof(FabricInfo) == 28 && sizeof(FabricInfoV2) == 36);
static_assert(sizeof(EventData) == 32 && sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

}  // namespace penstock::vendor::nvidia::abi
