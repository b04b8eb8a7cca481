// The files of GPU and compute instances, which a driver creates together with them. Plain C, for
// every program that changes instances; runs under the state's lock.
#ifndef PENSTOCK_SIM_MIG_FILES_H_
#define PENSTOCK_SIM_MIG_FILES_H_

#include "sim/state.h"

#ifdef __cplusplus
extern "C" {
#endif

// NVIDIA's table of capabilities has rows for this many GPUs.
enum { kSimCapabilityGpus = 32 };

// Returns the minor number of an instance's device file, as in /proc/driver/nvidia-caps/mig-minors;
// `compute` SIM_NA: of the GPU instance itself.
static inline uint32_t SimCapabilityMinor(uint32_t gpu_minor, uint32_t instance, uint32_t compute) {
  const uint32_t of_instance =
      3 + (gpu_minor * kSimGpuInstances + instance) * (1 + kSimComputeInstances);
  return compute == SIM_NA ? of_instance : of_instance + 1 + compute;
}

// Makes a GPU's files in <root>/proc/driver/nvidia/capabilities and <root>/dev/nvidia-caps match
// its instances; none exist while no driver is loaded or the GPU is unplugged. What cannot be
// written (a container has no such files of its own) stays as it is.
void SimSyncInstanceFiles(const char* root, const SimState* state, const SimGpu* gpu);

#ifdef __cplusplus
}
#endif

#endif  // PENSTOCK_SIM_MIG_FILES_H_
