// The rules of compute instances, the parts of a GPU instance; as sim/mig.h, on the state alone.
#ifndef PENSTOCK_SIM_MIG_COMPUTE_H_
#define PENSTOCK_SIM_MIG_COMPUTE_H_

#include <stddef.h>
#include <string.h>

#include "sim/mig.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kSimComputeProfiles = 8 };  // NVML_COMPUTE_INSTANCE_PROFILE_*

// A kind of compute instance that a GPU instance can have.
typedef struct {
  uint32_t slices, most, multiprocessors;
  uint32_t size;              // compute slices that a placement takes
  uint32_t placements, step;  // their number, and the distance from one to the next
} SimComputeProfile;

// Whether compute instances lie only at multiples of their size. By NVIDIA's open kernel modules,
// that is so on GPUs on which one slice with twice the memory has more multiprocessors than one
// slice; on the others they lie wherever slices are free.
static inline int SimAlignsComputes(const SimGpu* gpu) {
  enum { kOneSlice = 0 };
  for (uint32_t i = 0; i < kSimMigProfiles; i++)
    if (SimProfileAt(gpu, i) && gpu->mig_profiles[i].slices == 1 &&
        gpu->mig_profiles[i].multiprocessors != gpu->mig_profiles[kOneSlice].multiprocessors)
      return 1;
  return 0;
}

// Computes the compute instance profile with NVML's number `profile`, which is also its id. Returns
// 0 if the GPU instance cannot have it. A part of a GPU instance has the multiprocessors of as many
// instances of one slice; one with all of them has those of the GPU instance.
static inline int SimComputeProfileAt(const SimGpu* gpu, const SimMigProfile* of, uint32_t profile,
                                      SimComputeProfile* result) {
  static const uint32_t kSlices[kSimComputeProfiles] = {1, 2, 3, 4, 7, 8, 6, 1};
  enum { kOneSlice = 0, kOneLargerSlice = 7 };
  if (profile >= kSimComputeProfiles || !gpu->mig_profiles[kOneSlice].name[0]) return 0;
  const uint32_t each = gpu->mig_profiles[kOneSlice].multiprocessors, slices = kSlices[profile];
  const int larger = of->slices == 1 && of->multiprocessors != each;
  if (larger != (profile == kOneLargerSlice) || slices > of->slices) return 0;
  if (slices == 3 && of->slices == 4) return 0;
  result->slices = slices;
  result->most = of->slices / slices;
  result->multiprocessors = slices == of->slices ? of->multiprocessors : slices * each;
  if (SimAlignsComputes(gpu)) {  // three slices take half of the GPU, seven all of it
    result->size = result->step = slices == 3 ? 4 : slices == 7 ? 8 : slices;
    result->placements = result->most;
  } else {
    result->size = slices;
    result->step = 1;
    result->placements = of->slices - slices + 1;
  }
  return 1;
}

static inline uint32_t SimUsedComputeSlices(const SimGpuInstance* instance) {
  uint32_t used = 0;
  for (int i = 0; i < kSimComputeInstances; i++)
    if (instance->computes[i].born)
      used |= SimSlices(instance->computes[i].start, instance->computes[i].size);
  return used;
}

// Returns the `at`th placement's first slice, or SIM_NA if that is occupied or does not exist.
static inline uint32_t SimComputeStart(const SimComputeProfile* profile, uint32_t used,
                                       uint32_t at) {
  const uint32_t start = at * profile->step;
  return at < profile->placements && !(used & SimSlices(start, profile->size)) ? start : SIM_NA;
}

// Returns how many more compute instances of the profile can be created beside these slices, one
// after the other from the first slice on.
static inline uint32_t SimComputesBeside(const SimComputeProfile* profile, uint32_t used) {
  uint32_t left = 0;
  for (uint32_t at = 0; at < profile->placements; at++) {
    if (SimComputeStart(profile, used, at) == SIM_NA) continue;
    used |= SimSlices(at * profile->step, profile->size);
    left++;
  }
  return left;
}

static inline uint32_t SimComputesRemaining(const SimGpuInstance* instance,
                                            const SimComputeProfile* profile) {
  return SimComputesBeside(profile, SimUsedComputeSlices(instance));
}

// Returns where the driver places a compute instance for which no placement was given, or SIM_NA.
// The rule is that of NVIDIA's open kernel modules: at the first slices that are free; on GPUs that
// align them, where most placements of all profiles are left.
static inline uint32_t SimChooseComputeStart(const SimGpu* gpu, const SimGpuInstance* in,
                                             const SimComputeProfile* profile) {
  const uint32_t used = SimUsedComputeSlices(in);
  uint32_t best = SIM_NA, most_left = 0;
  for (uint32_t at = 0; at < profile->placements; at++) {
    const uint32_t start = SimComputeStart(profile, used, at);
    if (start == SIM_NA) continue;
    if (!SimAlignsComputes(gpu)) return start;
    uint32_t left = 0;
    SimComputeProfile other;
    for (uint32_t i = 0; i < kSimComputeProfiles; i++)
      if (SimComputeProfileAt(gpu, &gpu->mig_profiles[in->profile], i, &other))
        left += SimComputesBeside(&other, used | SimSlices(start, profile->size));
    if (best != SIM_NA && left <= most_left) continue;
    best = start;
    most_left = left;
  }
  return best;
}

// Creates a compute instance; `start` SIM_NA: where the driver chooses. Returns its id, or SIM_NA
// if it does not fit.
static inline uint32_t SimCreateCompute(SimGpu* gpu, uint32_t instance, uint32_t number,
                                        uint32_t start) {
  SimGpuInstance* in = &gpu->instances[instance];
  const SimMigProfile* of = SimProfileAt(gpu, in->profile);
  SimComputeProfile profile;
  if (!of || !SimComputeProfileAt(gpu, of, number, &profile)) return SIM_NA;
  if (start == SIM_NA) start = SimChooseComputeStart(gpu, in, &profile);
  if (start == SIM_NA || start % profile.step != 0 ||
      SimComputeStart(&profile, SimUsedComputeSlices(in), start / profile.step) == SIM_NA)
    return SIM_NA;
  uint32_t id = 0;
  while (id < kSimComputeInstances && in->computes[id].born) id++;
  if (id == kSimComputeInstances) return SIM_NA;
  SimComputeInstance* made = &in->computes[id];
  made->profile = number;
  made->start = start;
  made->size = profile.size;
  made->born = ++gpu->mig_births;
  return id;
}

// Writes "3g.20gb", or "1c.3g.20gb" for a compute instance with a part of its GPU instance.
static inline void SimComputeName(const SimMigProfile* of, uint32_t slices, char name[32]) {
  size_t at = 0;
  if (slices != of->slices) {
    name[at++] = (char)('0' + slices % 10);
    name[at++] = 'c';
    name[at++] = '.';
  }
  memcpy(name + at, of->name, sizeof of->name);
  name[at + sizeof of->name - 1] = 0;
}

#ifdef __cplusplus
}
#endif

#endif  // PENSTOCK_SIM_MIG_COMPUTE_H_
