// Reads a GPU's meters at one moment. Copies them between two writes of the state, so that no
// reader sees a count decrease.
#include <string.h>

#include "sim/nvml/library.h"

void ReadMeters(const SimGpu* gpu, struct Meters* meters) {
  const uint32_t* generation = &SessionState()->generation;
  SimMeter copy[kSimMeters];
  uint64_t metered = 0;
  // Do not wait indefinitely: a writer may have died during a change.
  for (int attempt = 0; attempt < 1000; attempt++) {
    const uint32_t before = __atomic_load_n(generation, __ATOMIC_ACQUIRE);
    memcpy(copy, gpu->meters, sizeof copy);
    metered = gpu->metered;
    meters->time = MachineTime();
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (!(before & 1) && before == __atomic_load_n(generation, __ATOMIC_ACQUIRE)) break;
  }
  for (int i = 0; i < kSimMeters; i++) {
    meters->count[i] = SimMeterAt(&copy[i], metered, meters->time);
    meters->rate[i] = copy[i].rate;
  }
}

NvUint ActiveLinks(const SimGpu* gpu) {
  NvUint active = 0;
  for (uint32_t i = 0; i < gpu->nvlink_count && i < kSimMaxLinks; i++)
    active += gpu->nvlinks[i].active != 0;
  return active;
}

// The first link also carries the remainder of the division, so that the parts add up to the sum.
uint64_t LinkPart(const SimGpu* gpu, uint32_t link, uint64_t sum) {
  const NvUint active = ActiveLinks(gpu);
  if (link >= kSimMaxLinks || !gpu->nvlinks[link].active) return 0;
  uint32_t first = 0;
  while (!gpu->nvlinks[first].active) first++;
  return sum / active + (link == first ? sum % active : 0);
}
