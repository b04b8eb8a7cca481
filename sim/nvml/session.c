// Opens and closes sessions, and admits or rejects each call.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/nvml/library.h"

static const struct {
  uint32_t branch;
  const char* name;
} kFunctions[kFunctionCount] = {
#define F(branch, name, parameters) {branch, #name},
#define D F
#include "sim/nvml/functions.def"
#undef F
#undef D
};

// One session state per process. The lock is held only briefly, so spinning with sched_yield
// suffices; libpthread's symbols would tie the library to a newer libc.
static int g_lock;
static uint32_t g_sessions;
static SimState* g_state;
static int g_writable;
static int g_lock_fd = -1;
static uint32_t g_load;     // the driver load to which this session belongs
static char g_version[32];  // of this library; constant once known, like the version of a mapped
                            // library
static struct SimDevice g_devices[kSimMaxGpus];
static int g_opened[kSimMaxGpus];  // GPUs whose device file this session was able to open

static void Lock(void) {
  while (__atomic_exchange_n(&g_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}
static void Unlock(void) { __atomic_store_n(&g_lock, 0, __ATOMIC_RELEASE); }

// Maps the state file, or keeps the mapping if it is still the same machine.
static NvReturn Attach(void) {
  int writable = 0;
  const int fd = OpenState(g_version, sizeof g_version, &writable);
  if (fd < 0) return errno == ENOENT ? NV_DRIVER_NOT_LOADED : NV_UNKNOWN;
  const off_t size = lseek(fd, 0, SEEK_END);
  void* mapped = size < (off_t)sizeof(SimState)
                     ? MAP_FAILED
                     : mmap(NULL, sizeof(SimState), PROT_READ | (writable ? PROT_WRITE : 0),
                            MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED || SimCheckState(mapped, (uint64_t)size) != kSimStateOk) {
    if (mapped != MAP_FAILED) munmap(mapped, sizeof(SimState));
    close(fd);
    return NV_UNKNOWN;
  }
  SimState* state = mapped;
  if (g_state && g_state->instance == state->instance && g_writable == writable) {
    munmap(mapped, sizeof(SimState));
    close(fd);
    return NV_SUCCESS;
  }
  // An older mapping stays: a call that hangs may still read it.
  if (g_lock_fd >= 0) close(g_lock_fd);
  g_lock_fd = fd;
  g_state = state;
  g_writable = writable;
  return NV_SUCCESS;
}

static NvReturn CheckDriver(const SimState* state) {
  if (!state->loaded || !state->driver_version[0]) return NV_DRIVER_NOT_LOADED;
  if (!g_version[0]) snprintf(g_version, sizeof g_version, "%s", state->library_version);
  return strcmp(g_version, state->driver_version) == 0 ? NV_SUCCESS : NV_LIB_RM_VERSION_MISMATCH;
}

// Without the control device no call works; if the device rules deny it, NVML returns "Unknown
// Error".
static NvReturn CheckControlDevice(void) {
  const int error = OpenDevice("nvidiactl");
  if (error == 0) return NV_SUCCESS;
  return error == EPERM || error == EACCES ? NV_UNKNOWN : NV_DRIVER_NOT_LOADED;
}

int SlotShown(const SimState* state, uint32_t slot) {
  const SimGpu* gpu = &state->gpus[slot];
  if (gpu->removed) return 0;
  if (__atomic_load_n(&g_opened[slot], __ATOMIC_ACQUIRE)) return 1;
  char name[32];
  snprintf(name, sizeof name, "nvidia%u", gpu->minor);
  // A real NVML keeps the file open, so a GPU stays listed after its file is taken away. A refused
  // file may become available later.
  const int shown = OpenDevice(name) == 0;
  if (shown) __atomic_store_n(&g_opened[slot], 1, __ATOMIC_RELEASE);
  return shown;
}

static NvReturn ApplyFaults(SimState* state, enum Function function, int slot);

NvReturn SessionStart(void) {
  Lock();
  NvReturn result = NV_SUCCESS;
  if (g_sessions == 0) {
    result = Attach();
    if (result == NV_SUCCESS) result = CheckDriver(g_state);
    if (result == NV_SUCCESS) result = CheckControlDevice();
    if (result == NV_SUCCESS) {
      g_load = g_state->load_count;
      for (uint32_t i = 0; i < kSimMaxGpus; i++) g_devices[i].slot = i, g_opened[i] = 0;
    }
  }
  SimState* state = g_state;
  Unlock();
  // A hang of nvmlInit must not hold the lock.
  if (result == NV_SUCCESS) result = ApplyFaults(state, kFunction_nvmlInit_v2, -1);
  if (result != NV_SUCCESS) return result;
  Lock();
  g_sessions++;
  Unlock();
  return NV_SUCCESS;
}

NvReturn SessionEnd(void) {
  Lock();
  const NvReturn result = g_sessions ? NV_SUCCESS : NV_UNINITIALIZED;
  if (g_sessions) g_sessions--;
  Unlock();
  return result;
}

SimState* SessionState(void) { return g_state; }
int SessionMayWrite(void) { return g_writable; }

int StateLock(void) {
  if (!g_writable || g_lock_fd < 0) return 0;
  while (flock(g_lock_fd, LOCK_EX) != 0)
    if (errno != EINTR) return 0;
  __atomic_fetch_or(&g_state->generation, 1, __ATOMIC_ACQ_REL);
  return 1;
}

void StateUnlock(void) {
  __atomic_add_fetch(&g_state->generation, 1, __ATOMIC_ACQ_REL);
  syscall(SYS_futex, &g_state->generation, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
  flock(g_lock_fd, LOCK_UN);
}

// A change of the state is in progress, so no other process adds an event.
void AddEvent(const SimGpu* gpu, uint64_t type) {
  const uint64_t sequence = g_state->event_head + 1;
  g_state->events[sequence % kSimEventSlots] =
      (SimEvent){sequence, type, 0, (uint32_t)(gpu - g_state->gpus), 0};
  __atomic_store_n(&g_state->event_head, sequence, __ATOMIC_RELEASE);
  __atomic_add_fetch(&g_state->event_futex, 1, __ATOMIC_ACQ_REL);
  syscall(SYS_futex, &g_state->event_futex, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static uint64_t NowMicroseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t MachineTime(void) { return SimNow(g_state, NowMicroseconds()); }

static void Pause(uint32_t milliseconds) {
  struct timespec left = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

// Hangs until the fault in this slot is healed: as with a call that is stuck in the kernel, no
// signal handler ends it.
static void HangUntilHealed(SimState* state, const SimFault* slot, const SimFault* fault) {
  for (;;) {
    const uint32_t seen = __atomic_load_n(&state->generation, __ATOMIC_ACQUIRE);
    if (memcmp(slot, fault, offsetof(SimFault, remaining)) != 0) return;
    const struct timespec second = {1, 0};
    syscall(SYS_futex, &state->generation, FUTEX_WAIT, seen, &second, NULL, 0);
  }
}

// Whether a counted fault still applies to this call; decrements its count.
static int TakeStrike(SimFault* slot) {
  uint32_t left = __atomic_load_n(&slot->remaining, __ATOMIC_ACQUIRE);
  if (left == 0 || !g_writable) return slot->mode != kSimFaultNone;
  while (left > 0) {
    if (__atomic_compare_exchange_n(&slot->remaining, &left, left - 1, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      if (left == 1) __atomic_store_n(&slot->mode, (uint32_t)kSimFaultNone, __ATOMIC_RELEASE);
      return 1;
    }
  }
  return 0;
}

static NvReturn ApplyFaults(SimState* state, enum Function function, int slot) {
  if (__atomic_load_n(&state->fault_count, __ATOMIC_ACQUIRE) == 0) return NV_SUCCESS;
  const char* name = kFunctions[function].name;
  const uint32_t whole = SimHash(name, (uint32_t)strlen(name));
  const uint32_t base = SimHash(name, SimBaseLength(name));
  for (uint32_t i = 0; i < kSimMaxFaults; i++) {
    SimFault* at = &state->faults[i];
    const SimFault fault = *at;
    if ((fault.mode != kSimFaultHang && fault.mode != kSimFaultError) ||
        (fault.function && fault.function != whole && fault.function != base))
      continue;
    if (fault.gpu >= 0 && fault.gpu != slot) continue;
    if (!TakeStrike(at)) continue;
    if (fault.mode == kSimFaultError) return (NvReturn)fault.code;
    if (fault.milliseconds)
      Pause(fault.milliseconds);
    else
      HangUntilHealed(state, at, &fault);
  }
  return NV_SUCCESS;
}

int FieldFault(const SimGpu* gpu, NvUint field, SimFault* fault) {
  SimState* state = g_state;
  if (__atomic_load_n(&state->fault_count, __ATOMIC_ACQUIRE) == 0) return 0;
  for (uint32_t i = 0; i < kSimMaxFaults; i++) {
    SimFault* at = &state->faults[i];
    *fault = *at;
    if (fault->mode != kSimFaultField || fault->function != field) continue;
    if (fault->gpu >= 0 && &state->gpus[fault->gpu] != gpu) continue;
    if (TakeStrike(at)) return 1;
  }
  return 0;
}

static NvReturn CheckSession(enum Function function, SimState** state) {
  *state = g_state;
  if (!__atomic_load_n(&g_sessions, __ATOMIC_ACQUIRE)) return NV_UNINITIALIZED;
  if (!(*state)->loaded) return NV_DRIVER_NOT_LOADED;
  if ((*state)->load_count != g_load)
    return NV_UNKNOWN;  // another driver was loaded meanwhile:
                        // this session's handles are invalid
  if (kFunctions[function].branch > (*state)->driver_branch) return NV_FUNCTION_NOT_FOUND;
  return NV_SUCCESS;
}

NvReturn Enter(enum Function function) {
  SimState* state;
  const NvReturn result = CheckSession(function, &state);
  return result == NV_SUCCESS ? ApplyFaults(state, function, -1) : result;
}

NvReturn EnterSlot(enum Function function, int slot, SimGpu** gpu) {
  SimState* state;
  NvReturn result = CheckSession(function, &state);
  if (result != NV_SUCCESS) return result;
  if (slot < 0 || (uint32_t)slot >= state->gpu_count) return NV_INVALID_ARGUMENT;
  *gpu = &state->gpus[slot];
  if ((*gpu)->removed) return NV_GPU_IS_LOST;
  result = ApplyFaults(state, function, slot);
  if (result != NV_SUCCESS) return result;
  // The driver itself stores the recovery action, so the field query still returns it (health.c),
  // and a set stays registered.
  const int asks_driver = function == kFunction_nvmlDeviceGetFieldValues;
  if (((*gpu)->lost & kSimLostInGetter) && !asks_driver) return NV_GPU_IS_LOST;
  return NV_SUCCESS;
}

NvReturn EnterDevice(enum Function function, NvDevice device, SimGpu** gpu) {
  const struct SimDevice* mig = MigOf(device);
  const NvReturn result = EnterSlot(function, mig ? (int)mig->slot : SlotOf(device), gpu);
  if (result != NV_SUCCESS || !mig) return result;
  if (!IsAliveCompute(*gpu, mig->instance, mig->compute, mig->born)) return NV_INVALID_ARGUMENT;
  return AnswersForMig(function) ? NV_SUCCESS : NV_NOT_SUPPORTED;
}

NvDevice HandleOf(uint32_t slot) { return slot < kSimMaxGpus ? &g_devices[slot] : NULL; }

int SlotOf(NvDevice device) {
  const uintptr_t at = (uintptr_t)device, first = (uintptr_t)g_devices;
  if (at < first || at >= first + sizeof g_devices || (at - first) % sizeof g_devices[0] != 0)
    return -1;
  return (int)((at - first) / sizeof g_devices[0]);
}

NvReturn OtherDevice(NvDevice device, SimGpu** gpu) {
  SimState* state = SessionState();
  const int slot = SlotOf(device);
  if (!state || slot < 0 || (uint32_t)slot >= state->gpu_count) return NV_INVALID_ARGUMENT;
  *gpu = &state->gpus[slot];
  return (*gpu)->removed || ((*gpu)->lost & kSimLostInGetter) ? NV_GPU_IS_LOST : NV_SUCCESS;
}
