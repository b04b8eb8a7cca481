// The state of a simulated machine as one mapped file, shared by the library, nvidia-smi and
// penstock-sim. Plain C, no pointers. Contains data only: nvml/ decides how a fault appears,
// machine.cc what a machine consists of.
#ifndef PENSTOCK_SIM_STATE_H_
#define PENSTOCK_SIM_STATE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  kSimMagic = 0x4d495350,  // "PSIM"
  kSimLayout = 7,  // raised with every change of the structs below; a reader refuses any other
                   // value
  kSimMaxGpus = 16,
  kSimMaxLinks = 18,
  kSimMaxProcesses = 64,
  kSimMaxFaults = 32,
  kSimEventSlots = 256,
  kSimMaxNodes = 16,
  kSimMigProfiles = 18,   // NVML's number of GPU instance profiles
  kSimGpuInstances = 15,  // as many as can have device files
  kSimComputeInstances = 8,
};

// "The device has no such value": the library returns NOT_SUPPORTED.
#define SIM_NA UINT32_MAX

// Where a lost GPU shows an error.
enum { kSimLostInHandle = 1, kSimLostInGetter = 2 };

enum { kSimFaultNone = 0, kSimFaultHang = 1, kSimFaultError = 2, kSimFaultField = 3 };

// Counts that only grow. Bytes, nanoseconds and millijoules are plain; utilization is percent times
// microseconds.
enum SimMeterIndex {
  kSimEnergy,
  kSimPcieTx,
  kSimPcieRx,
  kSimNvlinkTx,  // sum over all links; each active link carries an equal part
  kSimNvlinkRx,
  // Time at reduced clocks, by NVML's policies
  kSimLimitedByPower,
  kSimLimitedByHeat,
  kSimLimitedBySyncBoost,
  kSimLimitedByBoard,
  kSimLimitedByLowUse,
  kSimLimitedByReliability,
  kSimLimitedByAppClocks,
  kSimLimitedByBaseClocks,
  // and for reasons that no policy reports
  kSimLimitedBySwHeat,
  kSimLimitedByHwHeat,
  kSimLimitedByPowerBrake,
  // Utilization, as GPM's metrics 1 to 13
  kSimUseGraphics,
  kSimUseSm,
  kSimUseOccupancy,
  kSimUseInteger,
  kSimUseTensor,
  kSimUseDfma,
  kSimUseHmma,
  kSimUseDmma,
  kSimUseImma,
  kSimUseDram,
  kSimUseFp64,
  kSimUseFp32,
  kSimUseFp16,
  // and that of the engines, one per kind
  kSimUseDecoder,
  kSimUseJpeg,
  kSimUseOfa,
  kSimMeters
};

// A count at the time SimGpu::metered, and its growth per second since then.
typedef struct {
  uint64_t count;
  uint64_t rate;
} SimMeter;

// Readings for which a fault can return impossible values, until healed.
enum SimReading {
  kSimReadTemperature,
  kSimReadMemoryTemperature,
  kSimReadPower,
  kSimReadUse,
  kSimReadMemoryUse,
  kSimReadMemoryUsed,
  kSimReadSmClock,
  kSimReadMemoryClock,
  kSimReadFan,
  kSimReadEncoder,
  kSimReadDecoder,
  kSimReadProcessUse,
  kSimReadProcessMemory,
  kSimReadGpm,
  kSimReadings
};

// Errors of the PCIe link, in the order of NVML's fields.
enum {
  kSimPcieL0ToRecovery,
  kSimPcieCorrectable,
  kSimPcieNakReceived,
  kSimPcieReceiver,
  kSimPcieBadTlp,
  kSimPcieNakSent,
  kSimPcieBadDllp,
  kSimPcieNonFatal,
  kSimPcieFatal,
  kSimPcieUnsupported,
  kSimPcieLcrc,
  kSimPcieLane,
  kSimPcieErrors
};

// Errors of one NVLink.
enum { kSimLinkCrcFlit, kSimLinkCrcData, kSimLinkReplay, kSimLinkRecovery, kSimLinkErrors };

// A process on a GPU. If it has no utilization of its own, the library computes its part of the
// GPU's.
typedef struct {
  uint32_t pid;
  uint32_t type;  // 'C' compute, 'G' graphics, 'M' an MPS client
  uint32_t own_use;
  uint32_t use_sm, use_memory, use_encoder, use_decoder;  // percent
  uint32_t gpu_instance, compute_instance;                // SIM_NA: on no instance
  uint32_t reserved;
  uint64_t memory_bytes;
  char name[128];
} SimProcess;

typedef struct {
  uint32_t active;
  uint32_t remote_type;  // 0 GPU, 2 NVSwitch, as in NVML
  uint32_t remote_domain, remote_bus, remote_device;
  uint32_t remote_pci_id, remote_subsystem_id;
  uint32_t remote_link;
  uint64_t errors[kSimLinkErrors];
} SimNvLink;

// [corrected 0, uncorrected 1][SRAM 0, DRAM 1]
typedef struct {
  uint64_t count[2][2];
} SimEccCounts;

// A kind of GPU instance that a GPU can have. Placements are in memory slices.
typedef struct {
  char name[24];  // "3g.20gb"; empty: the GPU has no such profile
  uint32_t id;    // the number by which NVML's other calls name the profile
  uint32_t slices, most, multiprocessors;
  uint32_t copy_engines, decoders, encoders, jpegs, ofas;
  uint32_t graphics;  // whether its instances can run graphics
  uint32_t size;      // memory slices of an instance
  uint32_t starts;    // bit per memory slice at which an instance may start
  uint32_t reserved;
  uint64_t memory_mib;
} SimMigProfile;

typedef struct {
  uint32_t born;         // number of the creation, which no other instance of the GPU has; 0: none
  uint32_t profile;      // NVML's number of the compute instance profile
  uint32_t start, size;  // compute slices of the GPU instance
} SimComputeInstance;

// The GPU instance whose id is its place in SimGpu::instances.
typedef struct {
  uint32_t born;                                      // as above
  uint32_t profile;                                   // place in SimGpu::mig_profiles
  uint32_t start, size;                               // memory slices
  SimComputeInstance computes[kSimComputeInstances];  // by id
} SimGpuInstance;

typedef struct {
  // Identity
  char name[96];
  char uuid[64];
  char serial[32];  // empty: none
  char vbios[32];
  char part_number[32];
  char inforom_image[32];
  char cpu_list[128];  // local_cpulist of sysfs; empty: unknown
  uint32_t domain, bus, device;
  uint32_t pci_id;        // device << 16 | vendor
  uint32_t subsystem_id;  // device << 16 | vendor
  uint32_t pci_class;     // as sysfs shows it, 0x030200
  uint32_t minor;
  uint32_t module_id;
  uint32_t brand, architecture, cc_major, cc_minor;
  uint32_t multiprocessors, cores, memory_bus_bits;
  uint32_t encoders, decoders, jpegs, ofas;
  int32_t numa_node;

  // Memory, bytes. `memory_used` is what is allocated besides the processes below.
  uint64_t memory_total, memory_reserved, memory_used;
  uint64_t bar1_total, bar1_used;

  // Links
  uint32_t pcie_gen_max, pcie_gen_host, pcie_gen_current, pcie_gen_idle;
  uint32_t pcie_width_max, pcie_width;
  uint32_t pcie_replays;
  uint32_t pcie_errors[kSimPcieErrors];
  uint32_t nvlink_count, nvlink_version, nvlink_mbps;
  SimNvLink nvlinks[kSimMaxLinks];
  uint8_t topology[kSimMaxGpus];   // NVML's level to each GPU of this machine
  uint8_t nvlink_to[kSimMaxGpus];  // links that lead to each GPU, directly or through switches

  // Power in mW, energy in mJ, temperatures in °C, clocks in MHz
  uint32_t power_draw, power_idle, power_limit, power_default, power_min, power_max;
  uint32_t temperature, memory_temperature;
  uint32_t limits_are_margins;
  int32_t limit_shutdown, limit_slowdown, limit_max, limit_memory;
  uint32_t clock_sm, clock_memory, clock_video;
  uint32_t clock_sm_max, clock_memory_max, clock_video_max, clock_app;
  uint32_t clock_sm_idle, clock_memory_idle;
  uint64_t clock_event_reasons;
  uint32_t pstate, pstate_idle;

  // Modes
  uint32_t persistence, compute_mode, display_active;
  uint32_t ecc_current, ecc_pending;
  uint32_t mig_max, mig_current, mig_pending;
  uint32_t mig_births;                          // instances created so far, of both kinds
  SimMigProfile mig_profiles[kSimMigProfiles];  // by NVML's number of the profile
  SimGpuInstance instances[kSimGpuInstances];
  uint32_t gsp_mode;
  uint32_t fans, fan_percent;
  uint32_t fabric;
  uint8_t fabric_cluster[16];  // zero: the fabric is limited to this machine
  uint32_t fabric_clique;
  uint32_t fabric_status;  // nvmlReturn_t
  uint32_t fabric_health;  // NVML's mask and summary: 0 if the hardware reports none
  uint32_t fabric_summary;
  uint32_t virtualization;    // NVML's mode: 0 none, 2 a vGPU in a guest
  uint32_t vgpu_licensed;     // SIM_NA: no license is required
  char vgpu_host_driver[12];  // the values that the hypervisor writes into its configuration space
  char vgpu_host_branch[12];

  // Utilization, percent
  uint32_t use_gpu, use_memory, use_encoder, use_decoder, use_jpeg, use_ofa;
  // µs of the machine's clock (SimNow): when the meters were last stored, and when all of them were
  // zero
  uint64_t metered, meters_begun;
  SimMeter meters[kSimMeters];

  uint32_t nonsense;  // bit per SimReading; nonsense_values has the values to return
  uint32_t junk_process_samples;
  uint64_t nonsense_values[kSimReadings];

  // Health
  uint32_t removed;  // unplugged: absent from the count and from sysfs
  uint32_t lost;     // kSimLostInHandle | kSimLostInGetter
  uint32_t recovery_action;
  uint32_t has_remapper, remapper_banks;
  uint32_t remapped_correctable, remapped_uncorrectable, remap_pending, remap_failure;
  uint32_t has_retirement;
  uint32_t retired_single, retired_double, retire_pending;
  uint32_t sram_threshold_exceeded;
  SimEccCounts ecc_volatile, ecc_aggregate;

  uint32_t announced;  // the kernel log has contained this GPU's UUID since the driver was loaded
  uint32_t process_count;
  SimProcess processes[kSimMaxProcesses];
} SimGpu;

// A NUMA node of the machine.
typedef struct {
  int32_t number;
  char cpu_list[128];
} SimNode;

// What a fault of a field changes.
enum { kSimFieldValue = 1, kSimFieldStatus = 2, kSimFieldType = 4 };

// A fault: one call that fails or hangs, or one wrong field value.
typedef struct {
  uint32_t mode;          // kSimFaultNone: the slot is free
  uint32_t function;      // SimHash of the name with or without its version, 0: every call; for a
                          // field: its id
  int32_t gpu;            // -1: every GPU, and calls without a GPU
  uint32_t milliseconds;  // duration of a hang; 0: until healed
  uint32_t code;          // nvmlReturn_t of an error or of a field
  uint32_t field_parts;   // kSimField…
  uint32_t field_type;    // nvmlValueType_t
  uint32_t remaining;     // calls that it still affects; 0: no limit
  uint64_t field_value;   // the value's 8 bytes
} SimFault;

typedef struct {
  uint64_t sequence;
  uint64_t type;  // NVML's bit
  uint64_t data;
  uint32_t gpu;
  uint32_t instance;  // GPU instance that it is about, plus 1, and in the high half its compute
                      // instance, plus 1; 0: none
} SimEvent;

typedef struct {
  uint32_t magic;
  uint32_t layout;
  uint64_t size;         // size of the whole file
  uint64_t instance;     // random: distinguishes a machine from its successor in the same folder
  uint32_t generation;   // odd during a write; also the futex on which a hanging call waits
  uint32_t event_futex;  // incremented by every change: the futex of waits for events
  uint64_t event_head;   // sequence number of the newest event; the first is 1

  char machine[64];
  char product_name[96];
  char product_vendor[64];

  char driver_version[32];   // of the kernel module; empty: no driver is installed
  char library_version[32];  // of the installed library
  uint32_t driver_branch;    // 550 of 550.54.15
  uint32_t cuda_version;     // 12040 for 12.4
  uint32_t loaded;
  uint32_t load_count;  // a session is valid within one load
  uint32_t gpu_count;
  uint32_t fault_count;  // 0: no slot is in use, so that a call without faults reads only one word
  uint32_t uvm_major;
  uint32_t caps_major;
  uint32_t node_count;
  uint32_t nvswitch_major;
  uint32_t imex_major;
  uint32_t imex_channels;  // number of IMEX channels that have device files
  SimNode nodes[kSimMaxNodes];

  // The clock of meters and samples: stopped at a time, or offset from CLOCK_MONOTONIC by some µs.
  uint64_t clock_stopped;  // µs since 1970; 0: it runs
  int64_t clock_ahead;     // offset from CLOCK_MONOTONIC

  SimFault faults[kSimMaxFaults];
  SimEvent events[kSimEventSlots];
  SimGpu gpus[kSimMaxGpus];
} SimState;

// Returns FNV-1a of the first `length` bytes; never 0, which means "every call".
static inline uint32_t SimHash(const char* text, uint32_t length) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
  return hash ? hash : 1;
}

// Returns the length of a function's name without its _vN.
static inline uint32_t SimBaseLength(const char* name) {
  uint32_t n = 0;
  while (name[n]) n++;
  if (n > 3 && name[n - 1] >= '0' && name[n - 1] <= '9' && name[n - 2] == 'v' && name[n - 3] == '_')
    return n - 3;
  return n;
}

// Whether a file of `size` bytes is a state that this program understands.
enum { kSimStateOk = 0, kSimStateForeign = 1, kSimStateTruncated = 2, kSimStateOtherLayout = 3 };
static inline int SimCheckState(const SimState* state, uint64_t size) {
  if (size < 16)
    return size >= 4 && state->magic == kSimMagic ? kSimStateTruncated : kSimStateForeign;
  if (state->magic != kSimMagic) return kSimStateForeign;
  if (state->layout != kSimLayout) return kSimStateOtherLayout;
  if (size < sizeof(SimState) || state->size != sizeof(SimState)) return kSimStateTruncated;
  if (state->gpu_count > kSimMaxGpus || state->fault_count > kSimMaxFaults ||
      state->node_count > kSimMaxNodes)
    return kSimStateForeign;
  for (uint32_t i = 0; i < state->gpu_count; i++)
    if (state->gpus[i].process_count > kSimMaxProcesses) return kSimStateForeign;
  return kSimStateOk;
}

#ifdef __cplusplus
}
#endif

#endif  // PENSTOCK_SIM_STATE_H_
