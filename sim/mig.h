// The rules of MIG: modes, placements, instances. Works on the state alone, so that the library,
// nvidia-smi and penstock-sim change it in the same way. Plain C, for the library, too.
#ifndef PENSTOCK_SIM_MIG_H_
#define PENSTOCK_SIM_MIG_H_

#include <stddef.h>
#include <string.h>

#include "sim/meters.h"
#include "sim/state.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kSimAmpere = 7, kSimHopper = 9 };  // NVML's numbers of architectures

// The change of a mode: done, pending until a reset, or refused.
enum SimMigChange { kSimMigDone, kSimMigPending, kSimMigRefused };

static inline int SimHasMig(const SimGpu* gpu) {
  return gpu->mig_max != 0 && gpu->mig_max != SIM_NA && gpu->virtualization == 0;
}

static inline int SimMigOn(const SimGpu* gpu) { return SimHasMig(gpu) && gpu->mig_current == 1; }

static inline int SimHasInstances(const SimGpu* gpu) {
  for (int i = 0; i < kSimGpuInstances; i++)
    if (gpu->instances[i].born) return 1;
  return 0;
}

// Returns the profile with NVML's number `profile`, or null if the GPU has none.
static inline const SimMigProfile* SimProfileAt(const SimGpu* gpu, uint32_t profile) {
  return profile < kSimMigProfiles && gpu->mig_profiles[profile].name[0]
             ? &gpu->mig_profiles[profile]
             : NULL;
}

// Returns the number of the profile with this id, or kSimMigProfiles.
static inline uint32_t SimProfileOf(const SimGpu* gpu, uint32_t id) {
  uint32_t profile = 0;
  while (profile < kSimMigProfiles &&
         !(SimProfileAt(gpu, profile) && gpu->mig_profiles[profile].id == id))
    profile++;
  return profile;
}

// Returns the profile of an instance with the whole GPU.
static inline const SimMigProfile* SimWholeProfile(const SimGpu* gpu) {
  const SimMigProfile* whole = NULL;
  for (uint32_t i = 0; i < kSimMigProfiles; i++)
    if (SimProfileAt(gpu, i) && (!whole || gpu->mig_profiles[i].size > whole->size))
      whole = &gpu->mig_profiles[i];
  return whole;
}

// Returns slices as bits; none beyond the 32 that a GPU could have.
static inline uint32_t SimSlices(uint32_t start, uint32_t size) {
  const uint32_t all = size >= 32 ? UINT32_MAX : (1u << size) - 1;
  return start >= 32 ? 0 : all << start;
}

// Returns the memory slices that instances occupy, as bits.
static inline uint32_t SimUsedSlices(const SimGpu* gpu) {
  uint32_t used = 0;
  for (int i = 0; i < kSimGpuInstances; i++)
    if (gpu->instances[i].born) used |= SimSlices(gpu->instances[i].start, gpu->instances[i].size);
  return used;
}

// Returns how many more instances of the profile the media engines and the profile's own limit
// permit. The engines are those of an instance with the whole GPU.
static inline uint32_t SimMigAllowance(const SimGpu* gpu, uint32_t profile) {
  const SimMigProfile* wanted = SimProfileAt(gpu, profile);
  const SimMigProfile* whole = SimWholeProfile(gpu);
  if (!wanted || !whole) return 0;
  uint32_t left[] = {whole->decoders, whole->encoders, whole->jpegs, whole->ofas};
  const uint32_t each[] = {wanted->decoders, wanted->encoders, wanted->jpegs, wanted->ofas};
  uint32_t allowed = wanted->most;
  for (int i = 0; i < kSimGpuInstances; i++) {
    const SimMigProfile* there =
        gpu->instances[i].born ? SimProfileAt(gpu, gpu->instances[i].profile) : NULL;
    if (!there) continue;
    if (gpu->instances[i].profile == profile && allowed > 0) allowed--;
    const uint32_t taken[] = {there->decoders, there->encoders, there->jpegs, there->ofas};
    for (int e = 0; e < 4; e++) left[e] -= taken[e] < left[e] ? taken[e] : left[e];
  }
  for (int e = 0; e < 4; e++)
    if (each[e] && left[e] / each[e] < allowed) allowed = left[e] / each[e];
  return allowed;
}

static inline int SimMayStart(const SimMigProfile* profile, uint32_t start, uint32_t used) {
  return start < 32 && (profile->starts >> start & 1) && !(used & SimSlices(start, profile->size));
}

// Returns how many more instances of the profile can be created.
static inline uint32_t SimMigRemaining(const SimGpu* gpu, uint32_t profile) {
  const SimMigProfile* wanted = SimProfileAt(gpu, profile);
  if (!wanted) return 0;
  const uint32_t used = SimUsedSlices(gpu), allowed = SimMigAllowance(gpu, profile);
  uint32_t places = 0;
  // The placements of one profile do not overlap each other.
  for (uint32_t start = 0; start < 32; start++) places += SimMayStart(wanted, start, used) != 0;
  return places < allowed ? places : allowed;
}

// Returns the number of placements of all profiles that these used slices leave.
static inline uint32_t SimPlacementsLeft(const SimGpu* gpu, uint32_t used) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < kSimMigProfiles; i++)
    for (uint32_t start = 0; SimProfileAt(gpu, i) && start < 32; start++)
      left += SimMayStart(&gpu->mig_profiles[i], start, used) != 0;
  return left;
}

// Returns where the driver places an instance for which no placement was given, or SIM_NA.
// NVIDIA does not document the rule. This one yields the order that users see (seven instances of
// one slice: at 6, 4, 5, 0, 1, 2, 3): where most placements are left for others; among equal ones,
// the first.
static inline uint32_t SimChooseStart(const SimGpu* gpu, uint32_t profile) {
  const SimMigProfile* wanted = SimProfileAt(gpu, profile);
  const uint32_t used = SimUsedSlices(gpu);
  uint32_t best = SIM_NA, most_left = 0;
  for (uint32_t start = 0; wanted && start < 32; start++) {
    if (!SimMayStart(wanted, start, used)) continue;
    const uint32_t left = SimPlacementsLeft(gpu, used | SimSlices(start, wanted->size));
    if (best != SIM_NA && left <= most_left) continue;
    best = start;
    most_left = left;
  }
  return best;
}

// Returns the id of an instance at a placement: its number in the tree of halves of the GPU, as in
// NVIDIA's open kernel modules (0 is the whole GPU, 1 and 2 are its halves, …).
static inline uint32_t SimInstanceId(const SimGpu* gpu, uint32_t start, uint32_t size) {
  const SimMigProfile* whole = SimWholeProfile(gpu);
  const uint32_t parts = whole && size ? whole->size / size : 0;
  const uint32_t id = parts ? parts - 1 + start / size : SIM_NA;
  return id < kSimGpuInstances ? id : SIM_NA;
}

// Creates an instance; `start` SIM_NA: where the driver chooses. Returns its id, or SIM_NA if it
// does not fit.
static inline uint32_t SimCreateInstance(SimGpu* gpu, uint32_t profile, uint32_t start) {
  const SimMigProfile* wanted = SimProfileAt(gpu, profile);
  if (!wanted || SimMigAllowance(gpu, profile) == 0) return SIM_NA;
  if (start == SIM_NA) start = SimChooseStart(gpu, profile);
  if (start == SIM_NA || !SimMayStart(wanted, start, SimUsedSlices(gpu))) return SIM_NA;
  const uint32_t id = SimInstanceId(gpu, start, wanted->size);
  if (id == SIM_NA) return SIM_NA;
  SimGpuInstance* made = &gpu->instances[id];
  memset(made, 0, sizeof *made);
  made->profile = profile;
  made->start = start;
  made->size = wanted->size;
  made->born = ++gpu->mig_births;
  return id;
}

static inline int SimHasProcess(const SimGpu* gpu, uint32_t instance, uint32_t compute) {
  for (uint32_t i = 0; i < gpu->process_count && i < kSimMaxProcesses; i++)
    if (gpu->processes[i].gpu_instance == instance &&
        (compute == SIM_NA || gpu->processes[i].compute_instance == compute))
      return 1;
  return 0;
}

// Whether an instance cannot be destroyed: it has compute instances or processes.
static inline int SimInstanceBusy(const SimGpu* gpu, uint32_t id) {
  for (int i = 0; i < kSimComputeInstances; i++)
    if (gpu->instances[id].computes[i].born) return 1;
  return SimHasProcess(gpu, id, SIM_NA);
}

// Writes the UUID of a MIG device, without its prefix: like NVIDIA's driver, the same one for the
// same ids on the same GPU.
static inline void SimMigUuid(const SimGpu* gpu, uint32_t instance, uint32_t compute,
                              char uuid[37]) {
  static const char kDigits[] = "0123456789abcdef";
  uint64_t seed = 14695981039346656037ull;
  for (const char* c = gpu->uuid; *c; c++) seed = (seed ^ (uint8_t)*c) * 1099511628211ull;
  seed = (seed ^ (instance << 8 | compute)) * 1099511628211ull;
  int at = 0;
  for (int byte = 0; byte < 16; byte++) {
    uint64_t z = seed += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    uint32_t value = (uint32_t)(z >> 32) & 0xff;
    if (byte == 6) value = (value & 0x0f) | 0x50;  // version 5, as computed from a name
    if (byte == 8) value = (value & 0x3f) | 0x80;
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) uuid[at++] = '-';
    uuid[at++] = kDigits[value >> 4];
    uuid[at++] = kDigits[value & 15];
  }
  uuid[at] = 0;
}

static inline void SimClearInstances(SimGpu* gpu) {
  memset(gpu->instances, 0, sizeof gpu->instances);
}

// What a GPU reset does: instances end, a pending mode becomes the current one.
static inline void SimResetMig(SimGpu* gpu) {
  SimClearInstances(gpu);
  if (SimHasMig(gpu)) gpu->mig_current = gpu->mig_pending;
}

// What the end of the driver does, or of the machine: instances end. Up to Ampere the mode is in
// the InfoROM; later, only the driver has it.
static inline void SimForgetMig(SimGpu* gpu) {
  if (SimHasMig(gpu) && gpu->architecture >= kSimHopper) gpu->mig_pending = 0;
  SimResetMig(gpu);
}

// Sets the mode. An Ampere GPU is reset for it, or the mode is pending while the GPU is in use.
// Later GPUs change at once, or not at all while they have processes or instances.
static inline enum SimMigChange SimSetMigMode(SimGpu* gpu, uint32_t mode, uint64_t now) {
  const int needs_reset = gpu->architecture < kSimHopper;
  if (gpu->mig_current == mode) {
    gpu->mig_pending = mode;
    return kSimMigDone;
  }
  if (!needs_reset && (gpu->process_count > 0 || SimHasInstances(gpu))) return kSimMigRefused;
  gpu->mig_pending = mode;
  if (gpu->process_count > 0) return kSimMigPending;
  SimResetMig(gpu);
  if (needs_reset) {
    memset(&gpu->ecc_volatile, 0, sizeof gpu->ecc_volatile);
    SimZeroMeters(gpu, now);
  }
  return kSimMigDone;
}

#ifdef __cplusplus
}
#endif

#endif  // PENSTOCK_SIM_MIG_H_
