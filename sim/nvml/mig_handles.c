// Handles of GPU instances, compute instances and MIG devices: tables of this process, by ids. A
// handle is valid while what it was made for exists; a new one for the same ids replaces it.
#include <string.h>

#include "sim/mig_files.h"
#include "sim/nvml/library.h"

static struct SimDevice g_devices[kSimMaxGpus][kSimGpuInstances][kSimComputeInstances];
static struct SimInstanceHandle g_instances[kSimMaxGpus][kSimGpuInstances];
static struct SimComputeHandle g_computes[kSimMaxGpus][kSimGpuInstances][kSimComputeInstances];

// Whether `at` is an element of a table that this process has used.
static int IsIn(const void* at, const void* table, size_t size, size_t element) {
  const uintptr_t address = (uintptr_t)at, first = (uintptr_t)table;
  return address >= first && address < first + size && (address - first) % element == 0;
}

static uint32_t Load(const uint32_t* born) { return __atomic_load_n(born, __ATOMIC_ACQUIRE); }
static void Store(uint32_t* born, uint32_t value) {
  __atomic_store_n(born, value, __ATOMIC_RELEASE);
}

const struct SimDevice* MigOf(NvDevice device) {
  return IsIn(device, g_devices, sizeof g_devices, sizeof *device) && Load(&device->born) ? device
                                                                                          : NULL;
}

const struct SimInstanceHandle* InstanceOf(NvGpuInstance instance) {
  return IsIn(instance, g_instances, sizeof g_instances, sizeof *instance) && Load(&instance->born)
             ? instance
             : NULL;
}

const struct SimComputeHandle* ComputeOf(NvComputeInstance compute) {
  return IsIn(compute, g_computes, sizeof g_computes, sizeof *compute) && Load(&compute->born)
             ? compute
             : NULL;
}

int IsAliveCompute(const SimGpu* gpu, uint32_t instance, uint32_t compute, uint32_t born) {
  return Load(&gpu->instances[instance].computes[compute].born) == born;
}

static uint32_t SlotOfGpu(const SimGpu* gpu) { return (uint32_t)(gpu - SessionState()->gpus); }

NvDevice MigHandle(const SimGpu* gpu, const struct Instances* instances, uint32_t instance,
                   uint32_t compute) {
  const uint32_t slot = SlotOfGpu(gpu);
  struct SimDevice* made = &g_devices[slot][instance][compute];
  made->slot = slot;
  made->instance = instance;
  made->compute = compute;
  Store(&made->born, instances->all[instance].computes[compute].born);
  return made;
}

NvGpuInstance InstanceHandle(const SimGpu* gpu, const struct Instances* instances, uint32_t id) {
  const uint32_t slot = SlotOfGpu(gpu);
  struct SimInstanceHandle* made = &g_instances[slot][id];
  made->slot = slot;
  made->id = id;
  Store(&made->born, instances->all[id].born);
  return made;
}

NvComputeInstance ComputeHandle(const SimGpu* gpu, const struct Instances* instances,
                                uint32_t instance, uint32_t id) {
  const uint32_t slot = SlotOfGpu(gpu);
  struct SimComputeHandle* made = &g_computes[slot][instance][id];
  made->slot = slot;
  made->instance = instance;
  made->id = id;
  Store(&made->born, instances->all[instance].computes[id].born);
  return made;
}

// Do not wait indefinitely: a writer may have died during a change.
void CopyInstances(const SimGpu* gpu, struct Instances* instances) {
  const uint32_t* generation = &SessionState()->generation;
  for (int attempt = 0; attempt < 1000; attempt++) {
    const uint32_t before = Load(generation);
    memcpy(instances->all, gpu->instances, sizeof instances->all);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (!(before & 1) && before == Load(generation)) break;
  }
}

const SimMigProfile* ProfileOfInstance(const SimGpu* gpu, const struct Instances* instances,
                                       uint32_t id) {
  return id < kSimGpuInstances && instances->all[id].born
             ? SimProfileAt(gpu, instances->all[id].profile)
             : NULL;
}

// What NVIDIA documents for MIG device handles, and the compute capability, for which programs ask
// that have only such a handle.
int AnswersForMig(enum Function function) {
  switch (function) {
    case kFunction_nvmlDeviceGetName:
    case kFunction_nvmlDeviceGetIndex:
    case kFunction_nvmlDeviceGetUUID:
    case kFunction_nvmlDeviceGetHandleByUUID:
    case kFunction_nvmlDeviceGetHandleByUUIDV:
    case kFunction_nvmlDeviceGetCudaComputeCapability:
    case kFunction_nvmlDeviceGetComputeMode:
    case kFunction_nvmlDeviceGetMemoryInfo:
    case kFunction_nvmlDeviceGetMemoryInfo_v2:
    case kFunction_nvmlDeviceGetBAR1MemoryInfo:
    case kFunction_nvmlDeviceGetComputeRunningProcesses:
    case kFunction_nvmlDeviceGetComputeRunningProcesses_v2:
    case kFunction_nvmlDeviceGetComputeRunningProcesses_v3:
    case kFunction_nvmlDeviceGetGraphicsRunningProcesses:
    case kFunction_nvmlDeviceGetGraphicsRunningProcesses_v2:
    case kFunction_nvmlDeviceGetGraphicsRunningProcesses_v3:
    case kFunction_nvmlDeviceGetMPSComputeRunningProcesses:
    case kFunction_nvmlDeviceGetMPSComputeRunningProcesses_v2:
    case kFunction_nvmlDeviceGetMPSComputeRunningProcesses_v3:
    case kFunction_nvmlDeviceGetAttributes:
    case kFunction_nvmlDeviceGetAttributes_v2:
    case kFunction_nvmlDeviceIsMigDeviceHandle:
    case kFunction_nvmlDeviceGetDeviceHandleFromMigDeviceHandle:
    case kFunction_nvmlDeviceGetGpuInstanceId:
    case kFunction_nvmlDeviceGetComputeInstanceId:
    case kFunction_nvmlDeviceGetTotalEccErrors:
    case kFunction_nvmlDeviceGetMemoryErrorCounter:
    case kFunction_nvmlGpmSampleGet:
    case kFunction_nvmlGpmQueryDeviceSupport: return 1;
    default: return 0;
  }
}

enum { kConfig = 1, kMonitor = 2 };

int MayConfigure(void) { return SessionMayWrite() && OpenCapability(kConfig) == 0; }
int MayMonitor(void) { return OpenCapability(kMonitor) == 0 || OpenCapability(kConfig) == 0; }
