// Who uses a device. Copies out of the state between two writes, never half of one.
#include <string.h>

#include "sim/nvml/library.h"

const char* ProcessName(const SimState* state, uint32_t pid) {
  for (uint32_t i = 0; i < state->gpu_count; i++)
    for (uint32_t p = 0; p < state->gpus[i].process_count && p < kSimMaxProcesses; p++)
      if (state->gpus[i].processes[p].pid == pid && state->gpus[i].processes[p].name[0]) return state->gpus[i].processes[p].name;
  return 0;
}

// A copy of the process table as it was between two changes. A writer that died in the middle is not waited for.
static uint32_t Copy(const SimGpu* gpu, SimProcess* processes) {
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

// The caller gives room for *count entries of `size` bytes, which all begin as NvProcess1 does.
static NvReturn List(const SimGpu* gpu, uint32_t type, NvUint* count, void* processes, size_t size) {
  NEED(count);
  SimProcess all[kSimMaxProcesses];
  const uint32_t total = Copy(gpu, all);
  NvUint found = 0;
  for (uint32_t i = 0; i < total; i++) {
    if (all[i].type != type) continue;
    if (processes && found < *count) {
      NvProcess2 entry = {all[i].pid, all[i].memory_bytes, UINT32_MAX, UINT32_MAX};
      memcpy((char*)processes + found * size, &entry, size);
    }
    found++;
  }
  const int short_of_room = found > 0 && (!processes || *count < found);
  *count = found;
  return short_of_room ? NV_INSUFFICIENT_SIZE : NV_SUCCESS;
}

#define PROCESSES(name, letter, type)                              \
  NvReturn name(NvDevice device, NvUint* count, type* processes) { \
    DEVICE_CALL(name);                                             \
    return List(gpu, letter, count, processes, sizeof(type));      \
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

NvReturn nvmlDeviceGetProcessUtilization(NvDevice device, NvProcessUse* samples, NvUint* count, NvUlong since) {
  NEED(count);
  (void)since;
  DEVICE_CALL(nvmlDeviceGetProcessUtilization);
  SimProcess all[kSimMaxProcesses];
  const uint32_t total = Copy(gpu, all);
  if (gpu->mig_current == NV_ENABLED) return NV_NOT_SUPPORTED;
  if (total == 0) {
    *count = 0;
    return NV_NOT_FOUND;
  }
  const int fits = samples && *count >= total;
  *count = total;
  if (!fits) return NV_INSUFFICIENT_SIZE;
  const NvUlong now = NowMicroseconds();
  for (uint32_t i = 0; i < total; i++) samples[i] = (NvProcessUse){all[i].pid, now, all[i].sm_percent, all[i].sm_percent / 2, 0, 0};
  return NV_SUCCESS;
}
