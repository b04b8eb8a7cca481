// The part of NVML's C ABI that the simulated library implements, from the documented nvml.h (12.9
// and 13.x); types only. tests/conformance compares every size, offset, value and signature below
// with NVIDIA's own headers.
#ifndef PENSTOCK_SIM_NVML_ABI_H_
#define PENSTOCK_SIM_NVML_ABI_H_

typedef struct SimDevice* NvDevice;
typedef struct SimEventSet* NvEventSet;
typedef struct SimInstanceHandle* NvGpuInstance;
typedef struct SimComputeHandle* NvComputeInstance;
typedef unsigned int NvUint;
typedef unsigned long long NvUlong;
typedef unsigned long NvMask;  // one word of a CPU or node set
typedef char NvText;

// nvmlReturn_t
typedef enum {
  NV_SUCCESS = 0,
  NV_UNINITIALIZED = 1,
  NV_INVALID_ARGUMENT = 2,
  NV_NOT_SUPPORTED = 3,
  NV_NO_PERMISSION = 4,
  NV_ALREADY_INITIALIZED = 5,
  NV_NOT_FOUND = 6,
  NV_INSUFFICIENT_SIZE = 7,
  NV_INSUFFICIENT_POWER = 8,
  NV_DRIVER_NOT_LOADED = 9,
  NV_TIMEOUT = 10,
  NV_IRQ_ISSUE = 11,
  NV_LIBRARY_NOT_FOUND = 12,
  NV_FUNCTION_NOT_FOUND = 13,
  NV_CORRUPTED_INFOROM = 14,
  NV_GPU_IS_LOST = 15,
  NV_RESET_REQUIRED = 16,
  NV_OPERATING_SYSTEM = 17,
  NV_LIB_RM_VERSION_MISMATCH = 18,
  NV_IN_USE = 19,
  NV_MEMORY = 20,
  NV_NO_DATA = 21,
  NV_VGPU_ECC_NOT_SUPPORTED = 22,
  NV_INSUFFICIENT_RESOURCES = 23,
  NV_FREQ_NOT_SUPPORTED = 24,
  NV_ARGUMENT_VERSION_MISMATCH = 25,
  NV_DEPRECATED = 26,
  NV_NOT_READY = 27,
  NV_GPU_NOT_FOUND = 28,
  NV_INVALID_STATE = 29,
  NV_UNKNOWN = 999,
} NvReturn;

enum { NV_DISABLED = 0, NV_ENABLED = 1 };
enum { NV_CLOCK_GRAPHICS = 0, NV_CLOCK_SM = 1, NV_CLOCK_MEM = 2, NV_CLOCK_VIDEO = 3 };
enum {
  NV_CLOCK_ID_CURRENT = 0,
  NV_CLOCK_ID_APP_TARGET = 1,
  NV_CLOCK_ID_APP_DEFAULT = 2,
  NV_CLOCK_ID_BOOST_MAX = 3
};
enum {
  NV_THRESHOLD_SHUTDOWN = 0,
  NV_THRESHOLD_SLOWDOWN = 1,
  NV_THRESHOLD_MEM_MAX = 2,
  NV_THRESHOLD_GPU_MAX = 3
};
enum { NV_ERRORS_CORRECTED = 0, NV_ERRORS_UNCORRECTED = 1 };
enum { NV_ECC_VOLATILE = 0, NV_ECC_AGGREGATE = 1 };
enum { NV_LOCATION_DRAM = 2, NV_LOCATION_SRAM = 7, NV_LOCATION_COUNT = 8 };
enum { NV_INFOROM_OEM = 0, NV_INFOROM_ECC = 1, NV_INFOROM_POWER = 2 };
enum { NV_P2P_READ = 0, NV_P2P_WRITE = 1, NV_P2P_NVLINK = 2, NV_P2P_ATOMICS = 3, NV_P2P_PCI = 4 };
enum { NV_P2P_OK = 0, NV_P2P_CHIPSET_NOT_SUPPORTED = 1, NV_P2P_NOT_SUPPORTED = 5 };
enum {
  NV_TOPOLOGY_INTERNAL = 0,
  NV_TOPOLOGY_SINGLE = 10,
  NV_TOPOLOGY_MULTIPLE = 20,
  NV_TOPOLOGY_HOSTBRIDGE = 30,
  NV_TOPOLOGY_NODE = 40,
  NV_TOPOLOGY_SYSTEM = 50
};
enum {
  NV_VALUE_DOUBLE = 0,
  NV_VALUE_UINT = 1,
  NV_VALUE_ULONG = 2,
  NV_VALUE_ULONGLONG = 3,
  NV_VALUE_LONGLONG = 4,
  NV_VALUE_INT = 5
};
enum { NV_LINK_TO_GPU = 0, NV_LINK_TO_SWITCH = 2, NV_MAX_LINKS = 18 };
enum {
  NV_LINK_CAP_P2P = 0,
  NV_LINK_CAP_SYSMEM = 1,
  NV_LINK_CAP_P2P_ATOMICS = 2,
  NV_LINK_CAP_SYSMEM_ATOMICS = 3,
  NV_LINK_CAP_SLI = 4,
  NV_LINK_CAP_VALID = 5
};
enum {
  NV_ARCH_VOLTA = 5,
  NV_ARCH_TURING = 6,
  NV_ARCH_AMPERE = 7,
  NV_ARCH_ADA = 8,
  NV_ARCH_HOPPER = 9,
  NV_ARCH_BLACKWELL = 10
};
enum { NV_BRAND_TESLA = 2, NV_BRAND_GEFORCE = 5, NV_BRAND_NVIDIA = 14 };

// NVML_GPU_INSTANCE_PROFILE_* and NVML_COMPUTE_INSTANCE_PROFILE_*
enum {
  NV_GI_1_SLICE = 0,
  NV_GI_2_SLICE = 1,
  NV_GI_3_SLICE = 2,
  NV_GI_4_SLICE = 3,
  NV_GI_7_SLICE = 4,
  NV_GI_1_SLICE_REV1 = 7,
  NV_GI_2_SLICE_REV1 = 8,
  NV_GI_1_SLICE_REV2 = 9,
  NV_GI_1_SLICE_GFX = 10,
  NV_GI_2_SLICE_GFX = 11,
  NV_GI_4_SLICE_GFX = 12,
  NV_GI_1_SLICE_NO_ME = 13,
  NV_GI_2_SLICE_NO_ME = 14,
  NV_GI_1_SLICE_ALL_ME = 15,
  NV_GI_2_SLICE_ALL_ME = 16,
};
enum { NV_GI_CAP_GFX = 2, NV_CI_CAP_GFX = 1 };
enum {
  NV_CI_1_SLICE = 0,
  NV_CI_2_SLICE = 1,
  NV_CI_3_SLICE = 2,
  NV_CI_4_SLICE = 3,
  NV_CI_7_SLICE = 4,
  NV_CI_1_SLICE_REV1 = 7,
};
enum { NV_CI_ENGINES_SHARED = 0 };

// nvmlEventType*
#define NV_EVENT_SINGLE_BIT_ECC 0x1ULL
#define NV_EVENT_DOUBLE_BIT_ECC 0x2ULL
#define NV_EVENT_PSTATE 0x4ULL
#define NV_EVENT_XID 0x8ULL
#define NV_EVENT_CLOCK 0x10ULL
#define NV_EVENT_MIG_CONFIG 0x100ULL
#define NV_EVENT_SINGLE_BIT_STORM 0x200ULL
#define NV_EVENT_REMAP 0x400ULL
#define NV_EVENT_REMAP_FAILURE 0x800ULL
#define NV_EVENT_NON_FATAL_POISON 0x1000ULL
#define NV_EVENT_FATAL_POISON 0x2000ULL
#define NV_EVENT_UNAVAILABLE 0x4000ULL
#define NV_EVENT_RECOVERY_ACTION 0x8000ULL

// NVML_FI_DEV_*
enum {
  NV_FI_ECC_CURRENT = 1,
  NV_FI_ECC_PENDING = 2,
  NV_FI_ECC_SBE_VOL_TOTAL = 3,
  NV_FI_ECC_DBE_VOL_TOTAL = 4,
  NV_FI_ECC_SBE_AGG_TOTAL = 5,
  NV_FI_ECC_DBE_AGG_TOTAL = 6,
  NV_FI_ECC_SBE_VOL_L1 = 7,
  NV_FI_ECC_DBE_AGG_CBU = 28,
  NV_FI_RETIRED_SBE = 29,
  NV_FI_RETIRED_DBE = 30,
  NV_FI_RETIRED_PENDING = 31,
  NV_FI_NVLINK_CRC_FLIT_L0 = 32,
  NV_FI_NVLINK_CRC_FLIT_TOTAL = 38,
  NV_FI_NVLINK_CRC_DATA_L0 = 39,
  NV_FI_NVLINK_CRC_DATA_TOTAL = 45,
  NV_FI_NVLINK_REPLAY_L0 = 46,
  NV_FI_NVLINK_REPLAY_TOTAL = 52,
  NV_FI_NVLINK_RECOVERY_L0 = 53,
  NV_FI_NVLINK_RECOVERY_TOTAL = 59,
  NV_FI_PERF_POLICY_POWER = 74,
  NV_FI_PERF_POLICY_BASE_CLOCKS = 81,
  NV_FI_MEMORY_TEMP = 82,
  NV_FI_TOTAL_ENERGY = 83,
  NV_FI_NVLINK_SPEED_L0 = 84,
  NV_FI_NVLINK_SPEED_L5 = 89,
  NV_FI_NVLINK_SPEED_COMMON = 90,
  NV_FI_NVLINK_LINK_COUNT = 91,
  NV_FI_PCIE_REPLAY = 94,
  NV_FI_PCIE_REPLAY_ROLLOVER = 95,
  NV_FI_NVLINK_CRC_FLIT_L6 = 96,
  NV_FI_NVLINK_CRC_DATA_L6 = 102,
  NV_FI_NVLINK_REPLAY_L6 = 108,
  NV_FI_NVLINK_RECOVERY_L6 = 114,
  NV_FI_NVLINK_SPEED_L6 = 132,
  NV_FI_NVLINK_SPEED_L11 = 137,
  NV_FI_NVLINK_THROUGHPUT_DATA_TX = 138,
  NV_FI_NVLINK_THROUGHPUT_RAW_RX = 141,
  NV_FI_REMAPPED_COR = 142,
  NV_FI_REMAPPED_UNC = 143,
  NV_FI_REMAPPED_PENDING = 144,
  NV_FI_REMAPPED_FAILURE = 145,
  NV_FI_NVSWITCH_CONNECTED_LINK_COUNT = 147,
  NV_FI_NVLINK_ECC_DATA_TOTAL = 160,
  NV_FI_NVLINK_DL_REPLAY = 161,
  NV_FI_NVLINK_DL_RECOVERY = 162,
  NV_FI_NVLINK_DL_CRC = 163,
  NV_FI_NVLINK_GET_SPEED = 164,
  NV_FI_NVLINK_GET_STATE = 165,
  NV_FI_NVLINK_GET_VERSION = 166,
  NV_FI_PCIE_L0_TO_RECOVERY = 169,
  NV_FI_PCIE_CORRECTABLE = 173,
  NV_FI_PCIE_LANE = 183,
  NV_FI_MIG_WITHOUT_RESET = 184,
  NV_FI_POWER_AVERAGE = 185,
  NV_FI_POWER_INSTANT = 186,
  NV_FI_POWER_MIN_LIMIT = 187,
  NV_FI_POWER_MAX_LIMIT = 188,
  NV_FI_POWER_DEFAULT_LIMIT = 189,
  NV_FI_POWER_CURRENT_LIMIT = 190,
  NV_FI_ENERGY = 191,
  NV_FI_POWER_REQUESTED_LIMIT = 192,
  NV_FI_TLIMIT_SHUTDOWN = 193,
  NV_FI_TLIMIT_SLOWDOWN = 194,
  NV_FI_TLIMIT_MEM_MAX = 195,
  NV_FI_TLIMIT_GPU_MAX = 196,
  NV_FI_PCIE_TX_BYTES = 197,
  NV_FI_PCIE_RX_BYTES = 198,
  NV_FI_MIG_QUERY_WITHOUT_MODE = 199,
  NV_FI_NVLINK_XMIT_PACKETS = 201,
  NV_FI_NVLINK_XMIT_BYTES = 202,
  NV_FI_NVLINK_RCV_PACKETS = 203,
  NV_FI_NVLINK_RCV_BYTES = 204,
  NV_FI_NVLINK_MALFORMED = 206,
  NV_FI_NVLINK_RCV_ERRORS = 208,
  NV_FI_NVLINK_RECOVERIES_GOOD = 213,
  NV_FI_NVLINK_RECOVERIES = 215,
  NV_FI_NVLINK_SYMBOL_BER = 222,
  NV_FI_RECOVERY_ACTION = 230,
  NV_FI_NVLINK_FEC_HISTORY_0 = 235,
  NV_FI_NVLINK_FEC_HISTORY_15 = 250,
  NV_FI_REASON_SW_THERMAL_575 = 251,  // as numbered by drivers from 575 to 580.65
  NV_FI_REASON_SW_THERMAL = 269,
};
enum { NV_POWER_SCOPE_GPU = 0 };
enum { NV_LICENSE_VGPU = 1, NV_LICENSE_PERMANENT = 4 };

// NVML_GPM_METRIC_*
enum {
  NV_GPM_GRAPHICS_UTIL = 1,
  NV_GPM_FP16_UTIL = 13,
  NV_GPM_PCIE_TX = 20,
  NV_GPM_PCIE_RX = 21,
  NV_GPM_NVDEC_0 = 30,
  NV_GPM_NVDEC_7 = 37,
  NV_GPM_NVJPG_0 = 40,
  NV_GPM_NVJPG_7 = 47,
  NV_GPM_NVOFA_0 = 50,
  NV_GPM_NVOFA_1 = 51,
  NV_GPM_NVLINK_TOTAL_RX = 60,
  NV_GPM_NVLINK_TOTAL_TX = 61,
  NV_GPM_NVLINK_L0_RX = 62,
  NV_GPM_NVLINK_L17_TX = 97,
  NV_GPM_SM_CYCLES_ELAPSED = 248,
  NV_GPM_SM_CYCLES_ACTIVE = 249,
  NV_GPM_PCIE_TX_BYTES = 255,
  NV_GPM_PCIE_RX_BYTES = 256,
  NV_GPM_FP16_CYCLES_ACTIVE = 260,
  NV_GPM_NVLINK_L0_RX_BYTES = 261,
  NV_GPM_NVLINK_L17_TX_BYTES = 296,
};

typedef struct {
  char busIdLegacy[16];
  unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
} NvPciInfo;

typedef struct {
  unsigned int version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
  char busId[32];
} NvPciInfoExt;

typedef struct {
  unsigned long long total, free, used;
} NvMemory;

typedef struct {
  unsigned int version;
  unsigned long long total, reserved, free, used;
} NvMemory2;

typedef struct {
  unsigned long long bar1Total, bar1Free, bar1Used;
} NvBar1Memory;

typedef struct {
  unsigned int gpu, memory;
} NvUtilization;

typedef struct {
  unsigned int pid;
  unsigned long long usedGpuMemory;
} NvProcess1;

typedef struct {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
} NvProcess2;

typedef struct {
  unsigned int pid;
  unsigned long long timeStamp;
  unsigned int smUtil, memUtil, encUtil, decUtil;
} NvProcessUse;

typedef struct {
  unsigned long long timeStamp;
  unsigned int pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} NvProcessUse2;

typedef struct {
  unsigned int version, processSamplesCount;
  unsigned long long lastSeenTimeStamp;
  NvProcessUse2* procUtilArray;
} NvProcessesUse;

typedef struct SimGpmSample* NvGpmSample;

typedef struct {
  unsigned int metricId;
  NvReturn nvmlReturn;
  double value;
  struct {
    char *shortName, *longName, *unit;
  } metricInfo;
} NvGpmMetric;

// Callers have room for as many metrics as their header defines.
typedef struct {
  unsigned int version, numMetrics;
  NvGpmSample sample1, sample2;
  NvGpmMetric metrics[1];
} NvGpmMetrics;

typedef struct {
  unsigned int version, isSupportedDevice;
} NvGpmSupport;

typedef struct {
  unsigned long long l1Cache, l2Cache, deviceMemory, registerFile;
} NvEccCounts;

typedef struct {
  unsigned int version;
  unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity,
      volatileUncSecDed, volatileCor, aggregateUncBucketL2, aggregateUncBucketSm,
      aggregateUncBucketPcie, aggregateUncBucketMcu, aggregateUncBucketOther;
  unsigned int bThresholdExceeded;
} NvSramEcc;

typedef struct {
  unsigned int max, high, partial, low, none;
} NvRemapHistogram;

typedef struct {
  unsigned int multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
      sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
  unsigned long long memorySizeMB;
} NvAttributes;

typedef struct {
  unsigned int start, size;
} NvPlacement;  // of a GPU instance in memory slices, of a compute instance in compute slices

typedef struct {
  unsigned int id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
      decoderCount, encoderCount, jpegCount, ofaCount;
  unsigned long long memorySizeMB;
} NvGpuInstanceProfile;

typedef struct {
  unsigned int version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount,
      copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
  unsigned long long memorySizeMB;
  char name[96];
} NvGpuInstanceProfile2;

typedef struct {
  unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
      decoderCount, encoderCount, jpegCount, ofaCount;
  unsigned long long memorySizeMB;
  char name[96];
  unsigned int capabilities;
} NvGpuInstanceProfile3;

typedef struct {
  NvDevice device;
  unsigned int id, profileId;
  NvPlacement placement;
} NvGpuInstanceInfo;

typedef struct {
  unsigned int id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
      sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} NvComputeProfile;

typedef struct {
  unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
      sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
  char name[96];
} NvComputeProfile2;

typedef struct {
  unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
      sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
  char name[96];
  unsigned int capabilities;
} NvComputeProfile3;

// The first version ends before the placement.
typedef struct {
  NvDevice device;
  NvGpuInstance gpuInstance;
  unsigned int id, profileId;
  NvPlacement placement;
} NvComputeInstanceInfo;

typedef union {
  double dVal;
  int siVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
  unsigned short usVal;
} NvValue;

typedef struct {
  unsigned int fieldId, scopeId;
  long long timestamp, latencyUsec;
  unsigned int valueType;
  NvReturn nvmlReturn;
  NvValue value;
} NvFieldValue;

typedef struct {
  NvDevice device;
  unsigned long long eventType, eventData;
  unsigned int gpuInstanceId, computeInstanceId;
} NvEventData;

typedef struct {
  unsigned char clusterUuid[16];
  NvReturn status;
  unsigned int cliqueId;
  unsigned char state;
} NvFabric;

typedef struct {
  unsigned int version;
  unsigned char clusterUuid[16];
  NvReturn status;
  unsigned int cliqueId;
  unsigned char state;
  unsigned int healthMask;
} NvFabric2;

// v3 of newer headers is v2 with one more field.
typedef struct {
  unsigned int version;
  unsigned char clusterUuid[16];
  NvReturn status;
  unsigned int cliqueId;
  unsigned char state;
  unsigned int healthMask;
  unsigned char healthSummary;
} NvFabric3;

typedef struct {
  unsigned int version;
  unsigned int sensorType;
  int temperature;
} NvTemperature;

typedef struct {
  unsigned int version;
  int marginTemperature;
} NvMarginTemperature;

typedef struct {
  unsigned int year;
  unsigned short month, day, hour, min, sec;
  unsigned char status;
} NvLicenseExpiry;

typedef struct {
  unsigned int featureCode, featureState;
  char licenseInfo[128], productName[128];
  unsigned int featureEnabled;
  NvLicenseExpiry licenseExpiry;
} NvLicense;

typedef struct {
  int isGridLicenseSupported;
  unsigned int licensableFeaturesCount;
  NvLicense gridLicensableFeatures[3];
} NvLicenses;

typedef struct {
  unsigned int gpuUtilization, memoryUtilization;
  unsigned long long maxMemoryUsage, time, startTime;
  unsigned int isRunning, reserved[5];
} NvAccounting;

typedef struct {
  unsigned int version, type;
  union {
    char str[41];
    unsigned char bytes[16];
  } value;
} NvUuid;

typedef struct {
  unsigned long long referenceTime, violationTime;
} NvViolation;

// The version word of a versioned struct: its size and number.
#define NV_STRUCT_VERSION(type, number) \
  ((unsigned int)(sizeof(type) | ((unsigned int)(number) << 24)))

#endif  // PENSTOCK_SIM_NVML_ABI_H_
