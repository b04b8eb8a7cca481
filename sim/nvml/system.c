// NVML calls for the library and the machine: sessions, versions, counting and finding devices.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/nvml/library.h"

NvReturn nvmlInit(void) { return SessionStart(); }
NvReturn nvmlInit_v2(void) { return SessionStart(); }
NvReturn nvmlInitWithFlags(NvUint flags) {
  (void)flags;
  return SessionStart();
}
NvReturn nvmlShutdown(void) { return SessionEnd(); }

// Penstock's own texts for NVML's codes.
static const char* const kErrors[] = {
    "Success",
    "Uninitialized",
    "Invalid Argument",
    "Not Supported",
    "Insufficient Permissions",
    "Already Initialized",
    "Not Found",
    "Insufficient Size",
    "Insufficient External Power",
    "Driver Not Loaded",
    "Timeout",
    "Interrupt Request Issue",
    "NVML Shared Library Not Found",
    "Function Not Found",
    "Corrupted infoROM",
    "GPU is lost",
    "GPU requires reset",
    "The operating system has blocked the request",
    "Driver/library version mismatch",
    "In use by another client",
    "Insufficient Memory",
    "No data",
    "Operation not available on vGPU because ECC is enabled",
    "Insufficient Resources",
    "Frequency not supported",
    "Version mismatch between the argument and the function",
    "Deprecated",
    "Not ready",
    "GPU not found",
    "Invalid state",
};

const char* nvmlErrorString(NvReturn result) {
  return (unsigned)result < sizeof kErrors / sizeof kErrors[0] ? kErrors[result] : "Unknown Error";
}

NvReturn CopyText(const char* text, char* buffer, NvUint length) {
  if (!buffer) return NV_INVALID_ARGUMENT;
  const size_t size = strlen(text);
  if (size == 0) return NV_NOT_SUPPORTED;
  if (size >= length) return NV_INSUFFICIENT_SIZE;
  memcpy(buffer, text, size + 1);
  return NV_SUCCESS;
}

NvReturn Give(uint32_t value, NvUint* result) {
  NEED(result);
  if (value == SIM_NA) return NV_NOT_SUPPORTED;
  *result = value;
  return NV_SUCCESS;
}

int IsNonsense(const SimGpu* gpu, enum SimReading reading, uint64_t* value) {
  if (!(gpu->nonsense >> reading & 1)) return 0;
  *value = gpu->nonsense_values[reading];
  return 1;
}

NvReturn GiveReading(const SimGpu* gpu, enum SimReading reading, uint32_t value, NvUint* result) {
  NEED(result);
  uint64_t instead;
  if (!IsNonsense(gpu, reading, &instead)) return Give(value, result);
  *result = (NvUint)instead;
  return NV_SUCCESS;
}

NvReturn nvmlSystemGetDriverVersion(NvText* version, NvUint length) {
  SYSTEM_CALL(nvmlSystemGetDriverVersion);
  return CopyText(SessionState()->driver_version, version, length);
}

NvReturn nvmlSystemGetNVMLVersion(NvText* version, NvUint length) {
  SYSTEM_CALL(nvmlSystemGetNVMLVersion);
  char text[64];
  const SimState* state = SessionState();
  snprintf(text, sizeof text, "%u.%s", state->cuda_version / 1000, state->driver_version);
  return CopyText(text, version, length);
}

NvReturn nvmlSystemGetCudaDriverVersion(int* version) {
  NEED(version);
  SYSTEM_CALL(nvmlSystemGetCudaDriverVersion);
  *version = (int)SessionState()->cuda_version;
  return NV_SUCCESS;
}

NvReturn nvmlSystemGetCudaDriverVersion_v2(int* version) {
  NEED(version);
  SYSTEM_CALL(nvmlSystemGetCudaDriverVersion_v2);
  *version = (int)SessionState()->cuda_version;
  return NV_SUCCESS;
}

NvReturn nvmlSystemGetProcessName(NvUint pid, NvText* name, NvUint length) {
  SYSTEM_CALL(nvmlSystemGetProcessName);
  if (!name || length == 0) return NV_INVALID_ARGUMENT;
  char text[512];
  const char* known = ProcessName(SessionState(), pid);
  if (!known) {
    snprintf(text, sizeof text, "/proc/%u/cmdline", pid);
    const int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NV_NOT_FOUND;
    const ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0) return NV_NOT_FOUND;
    text[size] = 0;
    known = text;
  }
  // A long name is truncated, as the documentation promises.
  snprintf(name, length, "%s", known);
  return NV_SUCCESS;
}

NvReturn nvmlSystemGetTopologyGpuSet(NvUint cpu, NvUint* count, NvDevice* devices) {
  NEED(count);
  SYSTEM_CALL(nvmlSystemGetTopologyGpuSet);
  const SimState* state = SessionState();
  NvUint found = 0;
  for (uint32_t i = 0; i < state->gpu_count; i++) {
    NvMask cpus[16] = {0};
    if (!SlotShown(state, i) || nvmlDeviceGetCpuAffinity(HandleOf(i), 16, cpus) != NV_SUCCESS)
      continue;
    if (cpu >= 1024 || !(cpus[cpu / 64] >> (cpu % 64) & 1)) continue;
    if (devices && found < *count) devices[found] = HandleOf(i);
    found++;
  }
  if (devices && *count < found) return NV_INSUFFICIENT_SIZE;
  *count = found;
  return NV_SUCCESS;
}

NvReturn nvmlUnitGetCount(NvUint* count) {
  NEED(count);
  SYSTEM_CALL(nvmlUnitGetCount);
  *count = 0;
  return NV_SUCCESS;
}

static NvReturn Count(NvUint* count) {
  NEED(count);
  const SimState* state = SessionState();
  NvUint present = 0;
  for (uint32_t i = 0; i < state->gpu_count; i++) present += (NvUint)SlotShown(state, i);
  *count = present;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetCount(NvUint* count) {
  SYSTEM_CALL(nvmlDeviceGetCount);
  return Count(count);
}

NvReturn nvmlDeviceGetCount_v2(NvUint* count) {
  SYSTEM_CALL(nvmlDeviceGetCount_v2);
  return Count(count);
}

// Returns the handle of a slot that was found, unless the GPU is lost and fails in the lookup;
// faults may name the GPU.
static NvReturn Found(enum Function function, int slot, NvDevice* device) {
  const SimState* state = SessionState();
  if (slot < 0) return NV_NOT_FOUND;
  const SimGpu* gpu = &state->gpus[slot];
  if (gpu->lost & kSimLostInHandle) return NV_GPU_IS_LOST;
  SimGpu* unused;
  const NvReturn result = EnterDevice(function, HandleOf((uint32_t)slot), &unused);
  if (result != NV_SUCCESS && !(result == NV_GPU_IS_LOST && gpu->lost)) return result;
  *device = HandleOf((uint32_t)slot);
  return NV_SUCCESS;
}

static NvReturn ByIndex(enum Function function, NvUint index, NvDevice* device) {
  NEED(device);
  const SimState* state = SessionState();
  for (uint32_t i = 0; i < state->gpu_count; i++) {
    if (!SlotShown(state, i)) continue;
    if (index-- == 0) return Found(function, (int)i, device);
  }
  return NV_INVALID_ARGUMENT;
}

NvReturn nvmlDeviceGetHandleByIndex(NvUint index, NvDevice* device) {
  SYSTEM_CALL(nvmlDeviceGetHandleByIndex);
  return ByIndex(kFunction_nvmlDeviceGetHandleByIndex, index, device);
}

NvReturn nvmlDeviceGetHandleByIndex_v2(NvUint index, NvDevice* device) {
  SYSTEM_CALL(nvmlDeviceGetHandleByIndex_v2);
  return ByIndex(kFunction_nvmlDeviceGetHandleByIndex_v2, index, device);
}

static int FindText(size_t offset, const char* text) {
  const SimState* state = SessionState();
  for (uint32_t i = 0; i < state->gpu_count; i++)
    if (strcmp((const char*)&state->gpus[i] + offset, text) == 0 && SlotShown(state, i))
      return (int)i;
  return -1;
}

NvReturn nvmlDeviceGetHandleBySerial(const NvText* serial, NvDevice* device) {
  if (!serial || !serial[0] || !device) return NV_INVALID_ARGUMENT;
  SYSTEM_CALL(nvmlDeviceGetHandleBySerial);
  return Found(kFunction_nvmlDeviceGetHandleBySerial,
               FindText(__builtin_offsetof(SimGpu, serial), serial), device);
}

// Returns a MIG device that was found; faults may name its GPU.
static NvReturn FoundMig(enum Function function, NvDevice mig, NvDevice* device) {
  SimGpu* unused;
  if (!mig) return NV_NOT_FOUND;
  const NvReturn result = EnterDevice(function, mig, &unused);
  if (result == NV_SUCCESS) *device = mig;
  return result;
}

NvReturn nvmlDeviceGetHandleByUUID(const NvText* uuid, NvDevice* device) {
  if (!uuid || !device) return NV_INVALID_ARGUMENT;
  SYSTEM_CALL(nvmlDeviceGetHandleByUUID);
  if (strncmp(uuid, "MIG-", 4) == 0)
    return FoundMig(kFunction_nvmlDeviceGetHandleByUUID, MigByUuid(uuid), device);
  return Found(kFunction_nvmlDeviceGetHandleByUUID,
               FindText(__builtin_offsetof(SimGpu, uuid), uuid), device);
}

static int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

void UuidBytes(const char* uuid, unsigned char bytes[16]) {
  unsigned digits = 0;
  memset(bytes, 0, 16);
  for (const char* c = uuid; *c && digits < 32; c++) {
    const int digit = HexDigit(*c);
    if (digit < 0) continue;
    bytes[digits / 2] = (unsigned char)(bytes[digits / 2] << 4 | digit);
    digits++;
  }
}

NvReturn nvmlDeviceGetHandleByUUIDV(const NvUuid* uuid, NvDevice* device) {
  if (!uuid || !device) return NV_INVALID_ARGUMENT;
  SYSTEM_CALL(nvmlDeviceGetHandleByUUIDV);
  if (uuid->version != NV_STRUCT_VERSION(NvUuid, 1)) return NV_ARGUMENT_VERSION_MISMATCH;
  char text[sizeof uuid->value.str + 1] = "";
  const SimState* state = SessionState();
  int slot = -1;
  if (uuid->type == 1) {
    memcpy(text, uuid->value.str, sizeof uuid->value.str);
    if (strncmp(text, "MIG-", 4) == 0)
      return FoundMig(kFunction_nvmlDeviceGetHandleByUUIDV, MigByUuid(text), device);
    slot = FindText(__builtin_offsetof(SimGpu, uuid), text);
  } else if (uuid->type == 2) {
    for (uint32_t i = 0; i < state->gpu_count && slot < 0; i++) {
      unsigned char bytes[16];
      UuidBytes(state->gpus[i].uuid + 4, bytes);  // behind "GPU-"
      if (memcmp(bytes, uuid->value.bytes, 16) == 0 && SlotShown(state, i)) slot = (int)i;
    }
    const NvDevice mig = slot < 0 ? MigByBytes(uuid->value.bytes) : NULL;
    if (mig) return FoundMig(kFunction_nvmlDeviceGetHandleByUUIDV, mig, device);
  } else {
    return NV_INVALID_ARGUMENT;
  }
  return Found(kFunction_nvmlDeviceGetHandleByUUIDV, slot, device);
}

static NvReturn ByPci(enum Function function, const char* address, NvDevice* device) {
  const SimState* state = SessionState();
  unsigned domain = 0, bus, slot;
  if (sscanf(address, "%x:%x:%x.%*x", &domain, &bus, &slot) < 3) {
    domain = 0;
    if (sscanf(address, "%x:%x.%*x", &bus, &slot) < 2) return NV_INVALID_ARGUMENT;
  }
  for (uint32_t i = 0; i < state->gpu_count; i++) {
    const SimGpu* gpu = &state->gpus[i];
    if (gpu->domain == domain && gpu->bus == bus && gpu->device == slot && SlotShown(state, i))
      return Found(function, (int)i, device);
  }
  return NV_NOT_FOUND;
}

NvReturn nvmlDeviceGetHandleByPciBusId(const NvText* address, NvDevice* device) {
  if (!address || !device) return NV_INVALID_ARGUMENT;
  SYSTEM_CALL(nvmlDeviceGetHandleByPciBusId);
  return ByPci(kFunction_nvmlDeviceGetHandleByPciBusId, address, device);
}

NvReturn nvmlDeviceGetHandleByPciBusId_v2(const NvText* address, NvDevice* device) {
  if (!address || !device) return NV_INVALID_ARGUMENT;
  SYSTEM_CALL(nvmlDeviceGetHandleByPciBusId_v2);
  return ByPci(kFunction_nvmlDeviceGetHandleByPciBusId_v2, address, device);
}
