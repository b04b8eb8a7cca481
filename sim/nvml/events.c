// NVML calls for event sets: every set sees each event of the state's ring once. Waits on the
// ring's futex, which all processes share.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/nvml/library.h"

enum { kSetMagic = 0x53455645 };

struct SimEventSet {
  uint32_t magic;
  uint32_t lost_told;           // bit per slot: this set has already reported that the GPU is lost
  uint64_t seen;                // sequence number of the last event examined
  uint64_t types[kSimMaxGpus];  // registered event types
};

static NvUlong SupportedTypes(const SimGpu* gpu) {
  const uint32_t branch = SessionState()->driver_branch;
  NvUlong types = NV_EVENT_XID | NV_EVENT_PSTATE | NV_EVENT_CLOCK;
  if (gpu->ecc_current != SIM_NA) types |= NV_EVENT_SINGLE_BIT_ECC | NV_EVENT_DOUBLE_BIT_ECC;
  if (gpu->mig_max && gpu->mig_max != SIM_NA) types |= NV_EVENT_MIG_CONFIG;
  if (gpu->has_remapper && branch >= 550)
    types |= NV_EVENT_SINGLE_BIT_STORM | NV_EVENT_REMAP | NV_EVENT_REMAP_FAILURE;
  if (gpu->has_remapper && branch >= 560)
    types |= NV_EVENT_NON_FATAL_POISON | NV_EVENT_FATAL_POISON;
  if (branch >= 565) types |= NV_EVENT_UNAVAILABLE | NV_EVENT_RECOVERY_ACTION;
  return types;
}

NvReturn nvmlDeviceGetSupportedEventTypes(NvDevice device, NvUlong* types) {
  NEED(types);
  DEVICE_CALL(nvmlDeviceGetSupportedEventTypes);
  *types = SupportedTypes(gpu);
  return NV_SUCCESS;
}

NvReturn nvmlEventSetCreate(NvEventSet* set) {
  NEED(set);
  SYSTEM_CALL(nvmlEventSetCreate);
  struct SimEventSet* made = calloc(1, sizeof *made);
  if (!made) return NV_MEMORY;
  made->magic = kSetMagic;
  made->seen = __atomic_load_n(&SessionState()->event_head, __ATOMIC_ACQUIRE);
  *set = made;
  return NV_SUCCESS;
}

NvReturn nvmlEventSetFree(NvEventSet set) {
  const NvReturn result = Enter(kFunction_nvmlEventSetFree);
  if (!set || set->magic != kSetMagic) return result == NV_SUCCESS ? NV_INVALID_ARGUMENT : result;
  // The set belongs to the caller and is freed even if the driver is gone.
  set->magic = 0;
  free(set);
  return result;
}

NvReturn nvmlDeviceRegisterEvents(NvDevice device, NvUlong types, NvEventSet set) {
  if (!set || set->magic != kSetMagic) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceRegisterEvents);
  // One type that this device does not support fails the whole call.
  if (types & ~SupportedTypes(gpu)) return NV_NOT_SUPPORTED;
  set->types[SlotOf(device)] |= types;
  return NV_SUCCESS;
}

// Returns the next event of a registered type, or 0. Events that the ring has overwritten are lost,
// as with the real driver.
static int Next(const SimState* state, NvEventSet set, NvEventData* data) {
  const uint64_t head = __atomic_load_n(&state->event_head, __ATOMIC_ACQUIRE);
  if (head > kSimEventSlots && set->seen < head - kSimEventSlots) set->seen = head - kSimEventSlots;
  while (set->seen < head) {
    set->seen++;
    const SimEvent* slot = &state->events[set->seen % kSimEventSlots];
    const SimEvent event = *slot;
    if (event.sequence != set->seen || event.gpu >= kSimMaxGpus ||
        !(set->types[event.gpu] & event.type))
      continue;
    // 0, none, becomes NVML's UINT32_MAX.
    *data = (NvEventData){HandleOf(event.gpu), event.type, event.data,
                          (event.instance & 0xffff) - 1, (event.instance >> 16) - 1};
    return 1;
  }
  return 0;
}

// A wait on a set with a lost GPU fails once for that GPU; the other GPUs' events still arrive.
static int NewlyLost(const SimState* state, NvEventSet set) {
  for (uint32_t i = 0; i < state->gpu_count; i++) {
    const uint32_t bit = 1u << i;
    const int gone = state->gpus[i].removed || (state->gpus[i].lost & kSimLostInGetter);
    if (!gone) set->lost_told &= ~bit;
    if (!gone || !set->types[i] || (set->lost_told & bit)) continue;
    set->lost_told |= bit;
    return 1;
  }
  return 0;
}

static uint64_t MonotonicMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static NvReturn Wait(enum Function function, NvEventSet set, NvEventData* data,
                     NvUint milliseconds) {
  if (!set || set->magic != kSetMagic || !data) return NV_INVALID_ARGUMENT;
  const uint64_t until = MonotonicMs() + milliseconds;
  for (;;) {
    const NvReturn result = Enter(function);
    if (result != NV_SUCCESS) return result;
    const SimState* state = SessionState();
    const uint32_t seen = __atomic_load_n(&state->event_futex, __ATOMIC_ACQUIRE);
    if (Next(state, set, data)) return NV_SUCCESS;
    if (NewlyLost(state, set)) return NV_GPU_IS_LOST;
    const uint64_t now = MonotonicMs();
    if (now >= until) return NV_TIMEOUT;
    const uint64_t left = until - now;
    const struct timespec timeout = {(time_t)(left / 1000), (long)(left % 1000) * 1000000};
    syscall(SYS_futex, &state->event_futex, FUTEX_WAIT, seen, &timeout, NULL, 0);
  }
}

// Callers of the first version have a struct that ends before the MIG ids.
NvReturn nvmlEventSetWait(NvEventSet set, NvEventData* data, NvUint milliseconds) {
  NEED(data);
  NvEventData whole;
  const NvReturn result = Wait(kFunction_nvmlEventSetWait, set, &whole, milliseconds);
  if (result == NV_SUCCESS) memcpy(data, &whole, __builtin_offsetof(NvEventData, gpuInstanceId));
  return result;
}

NvReturn nvmlEventSetWait_v2(NvEventSet set, NvEventData* data, NvUint milliseconds) {
  return Wait(kFunction_nvmlEventSetWait_v2, set, data, milliseconds);
}
