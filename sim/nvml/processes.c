// NVML calls for the processes on a device. Copies the table between two writes of the state, so
// that it is consistent.
#include <string.h>

#include "sim/nvml/library.h"

const char* ProcessName(const SimState* state, uint32_t pid) {
  for (uint32_t i = 0; i < state->gpu_count; i++)
    for (uint32_t p = 0; p < state->gpus[i].process_count && p < kSimMaxProcesses; p++)
      if (state->gpus[i].processes[p].pid == pid && state->gpus[i].processes[p].name[0])
        return state->gpus[i].processes[p].name;
  return 0;
}

// Do not wait indefinitely: a writer may have died during a change.
uint32_t CopyProcesses(const SimGpu* gpu, SimProcess* processes) {
  const uint32_t* generation = &SessionState()->generation;
  uint32_t count = 0;
  for (int attempt = 0; attempt < 1000; attempt++) {
    const uint32_t before = __atomic_load_n(generation, __ATOMIC_ACQUIRE);
    count = gpu->process_count <= kSimMaxProcesses ? gpu->process_count : kSimMaxProcesses;
    memcpy(processes, gpu->processes, count * sizeof *processes);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (!(before & 1) && before == __atomic_load_n(generation, __ATOMIC_ACQUIRE)) break;
  }
  return count;
}

// The caller provides room for *count entries of `size` bytes; every version of the entry begins
// like NvProcess1. A MIG device has only the processes on it.
static NvReturn List(const SimGpu* gpu, const struct SimDevice* mig, uint32_t type, NvUint* count,
                     void* processes, size_t size) {
  NEED(count);
  SimProcess all[kSimMaxProcesses];
  const uint32_t total = CopyProcesses(gpu, all);
  uint64_t nonsense = 0;
  const int memory_is_nonsense = IsNonsense(gpu, kSimReadProcessMemory, &nonsense);
  NvUint found = 0;
  for (uint32_t i = 0; i < total; i++) {
    if (all[i].type != type) continue;
    if (mig && (all[i].gpu_instance != mig->instance || all[i].compute_instance != mig->compute))
      continue;
    if (processes && found < *count) {
      NvProcess2 entry = {all[i].pid, memory_is_nonsense ? nonsense : all[i].memory_bytes,
                          all[i].gpu_instance, all[i].compute_instance};
      memcpy((char*)processes + found * size, &entry, size);
    }
    found++;
  }
  const int short_of_room = found > 0 && (!processes || *count < found);
  *count = found;
  return short_of_room ? NV_INSUFFICIENT_SIZE : NV_SUCCESS;
}

#define PROCESSES(name, letter, type)                                        \
  NvReturn name(NvDevice device, NvUint* count, type* processes) {           \
    DEVICE_CALL(name);                                                       \
    return List(gpu, MigOf(device), letter, count, processes, sizeof(type)); \
  }

PROCESSES(nvmlDeviceGetComputeRunningProcesses, 'C', NvProcess1)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, 'C', NvProcess2)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, 'C', NvProcess2)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, 'G', NvProcess1)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, 'G', NvProcess2)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G', NvProcess2)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, 'M', NvProcess1)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'M', NvProcess2)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M', NvProcess2)
