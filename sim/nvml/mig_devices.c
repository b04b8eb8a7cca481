// NVML calls for MIG devices: compute instances as devices with handles of their own.
#include <stdio.h>
#include <string.h>

#include "sim/mig_compute.h"
#include "sim/mig_files.h"
#include "sim/nvml/library.h"

// A process sees a MIG device if it may query all, or can open the device's own capabilities.
static int Shown(const SimGpu* gpu, int sees_all, uint32_t instance, uint32_t compute) {
  return sees_all || (OpenCapability(SimCapabilityMinor(gpu->minor, instance, SIM_NA)) == 0 &&
                      OpenCapability(SimCapabilityMinor(gpu->minor, instance, compute)) == 0);
}

// Calls `found` for the MIG devices that this process sees, in the order of their indices, until
// that returns nonzero. Returns its last result.
typedef int (*Visitor)(const SimGpu* gpu, const struct Instances* instances, uint32_t instance,
                       uint32_t compute, NvUint index, void* data);
static int Visit(const SimGpu* gpu, Visitor visitor, void* data) {
  struct Instances instances;
  CopyInstances(gpu, &instances);
  const int sees_all = MayMonitor();
  NvUint index = 0;
  for (uint32_t i = 0; i < kSimGpuInstances; i++)
    for (uint32_t c = 0; instances.all[i].born && c < kSimComputeInstances; c++)
      if (instances.all[i].computes[c].born && Shown(gpu, sees_all, i, c) &&
          visitor(gpu, &instances, i, c, index++, data))
        return 1;
  return 0;
}

NvReturn nvmlDeviceGetMaxMigDeviceCount(NvDevice device, NvUint* count) {
  DEVICE_CALL(nvmlDeviceGetMaxMigDeviceCount);
  return Give(SimMigOn(gpu) ? gpu->mig_max : 0, count);
}

struct ByIndex {
  NvUint index;
  NvDevice found;
};
static int HasIndex(const SimGpu* gpu, const struct Instances* instances, uint32_t instance,
                    uint32_t compute, NvUint index, void* data) {
  struct ByIndex* wanted = data;
  if (index != wanted->index) return 0;
  wanted->found = MigHandle(gpu, instances, instance, compute);
  return 1;
}

NvReturn nvmlDeviceGetMigDeviceHandleByIndex(NvDevice device, NvUint index, NvDevice* mig) {
  NEED(mig);
  DEVICE_CALL(nvmlDeviceGetMigDeviceHandleByIndex);
  if (!SimHasMig(gpu)) return NV_NOT_SUPPORTED;
  if (index >= gpu->mig_max) return NV_INVALID_ARGUMENT;
  struct ByIndex wanted = {index, NULL};
  if (!Visit(gpu, HasIndex, &wanted)) return NV_NOT_FOUND;
  *mig = wanted.found;
  return NV_SUCCESS;
}

struct IndexOf {
  const struct SimDevice* mig;
  NvUint index;
};
static int IsDevice(const SimGpu* gpu, const struct Instances* instances, uint32_t instance,
                    uint32_t compute, NvUint index, void* data) {
  (void)gpu, (void)instances;
  struct IndexOf* wanted = data;
  wanted->index = index;
  return instance == wanted->mig->instance && compute == wanted->mig->compute;
}

NvReturn MigIndex(const SimGpu* gpu, const struct SimDevice* mig, NvUint* index) {
  struct IndexOf wanted = {mig, 0};
  if (!Visit(gpu, IsDevice, &wanted)) return NV_INVALID_ARGUMENT;
  *index = wanted.index;
  return NV_SUCCESS;
}

enum { kUuidRoom = 96 };

// Before 470, the UUID of a MIG device names its GPU and its ids.
static void OldUuid(const SimGpu* gpu, uint32_t instance, uint32_t compute, char* uuid) {
  snprintf(uuid, kUuidRoom, "MIG-%s/%u/%u", gpu->uuid, instance, compute);
}
static void NewUuid(const SimGpu* gpu, uint32_t instance, uint32_t compute, char* uuid) {
  char digits[37];
  SimMigUuid(gpu, instance, compute, digits);
  snprintf(uuid, kUuidRoom, "MIG-%s", digits);
}

NvReturn MigUuid(const SimGpu* gpu, const struct SimDevice* mig, NvText* uuid, NvUint length) {
  char text[kUuidRoom];
  (SessionState()->driver_branch >= 470 ? NewUuid : OldUuid)(gpu, mig->instance, mig->compute,
                                                             text);
  return CopyText(text, uuid, length);
}

struct ByUuid {
  const char* text;  // null: by bytes
  const unsigned char* bytes;
  NvDevice found;
};
static int HasUuid(const SimGpu* gpu, const struct Instances* instances, uint32_t instance,
                   uint32_t compute, NvUint index, void* data) {
  (void)index;
  struct ByUuid* wanted = data;
  const int is_new = SessionState()->driver_branch >= 470;
  char text[kUuidRoom];
  unsigned char bytes[16];
  int same = 0;
  NewUuid(gpu, instance, compute, text);
  if (wanted->text)
    same = is_new && strcmp(text, wanted->text) == 0;
  else
    UuidBytes(text + 4, bytes), same = memcmp(bytes, wanted->bytes, sizeof bytes) == 0;
  if (wanted->text && !same) {
    OldUuid(gpu, instance, compute, text);
    same = strcmp(text, wanted->text) == 0;
  }
  if (same) wanted->found = MigHandle(gpu, instances, instance, compute);
  return same;
}

static NvDevice Find(struct ByUuid wanted) {
  const SimState* state = SessionState();
  for (uint32_t i = 0; i < state->gpu_count && !wanted.found; i++)
    if (SlotShown(state, i)) Visit(&state->gpus[i], HasUuid, &wanted);
  return wanted.found;
}

NvDevice MigByUuid(const char* uuid) { return Find((struct ByUuid){uuid, NULL, NULL}); }
NvDevice MigByBytes(const unsigned char bytes[16]) {
  return Find((struct ByUuid){NULL, bytes, NULL});
}

// What a MIG device is a part of; null if it has ended meanwhile.
static const SimMigProfile* PartOf(const SimGpu* gpu, const struct SimDevice* mig,
                                   SimComputeInstance* compute) {
  struct Instances instances;
  CopyInstances(gpu, &instances);
  *compute = instances.all[mig->instance].computes[mig->compute];
  return compute->born == mig->born ? ProfileOfInstance(gpu, &instances, mig->instance) : NULL;
}

NvReturn MigName(const SimGpu* gpu, const struct SimDevice* mig, NvText* name, NvUint length) {
  SimComputeInstance compute;
  const SimMigProfile* of = PartOf(gpu, mig, &compute);
  if (!of) return NV_INVALID_ARGUMENT;
  SimComputeProfile found;
  char profile[32], text[sizeof gpu->name + sizeof profile + 8];
  if (!SimComputeProfileAt(gpu, of, compute.profile, &found)) return NV_INVALID_ARGUMENT;
  SimComputeName(of, found.slices, profile);
  snprintf(text, sizeof text, "%s MIG %s", gpu->name, profile);
  return CopyText(text, name, length);
}

static NvReturn Attributes(const SimGpu* gpu, NvDevice device, NvAttributes* attributes) {
  NEED(attributes);
  const struct SimDevice* mig = MigOf(device);
  if (!mig) return NV_NOT_SUPPORTED;
  SimComputeInstance compute;
  SimComputeProfile profile;
  const SimMigProfile* of = PartOf(gpu, mig, &compute);
  if (!of || !SimComputeProfileAt(gpu, of, compute.profile, &profile)) return NV_INVALID_ARGUMENT;
  *attributes = (NvAttributes){.multiprocessorCount = profile.multiprocessors,
                               .sharedCopyEngineCount = of->copy_engines,
                               .sharedDecoderCount = of->decoders,
                               .sharedEncoderCount = of->encoders,
                               .sharedJpegCount = of->jpegs,
                               .sharedOfaCount = of->ofas,
                               .gpuInstanceSliceCount = of->slices,
                               .computeInstanceSliceCount = profile.slices,
                               .memorySizeMB = of->memory_mib};
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetAttributes(NvDevice device, NvAttributes* attributes) {
  DEVICE_CALL(nvmlDeviceGetAttributes);
  return Attributes(gpu, device, attributes);
}

NvReturn nvmlDeviceGetAttributes_v2(NvDevice device, NvAttributes* attributes) {
  DEVICE_CALL(nvmlDeviceGetAttributes_v2);
  return Attributes(gpu, device, attributes);
}

NvReturn nvmlDeviceIsMigDeviceHandle(NvDevice device, NvUint* is_mig) {
  DEVICE_CALL(nvmlDeviceIsMigDeviceHandle);
  return Give(MigOf(device) != NULL, is_mig);
}

NvReturn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(NvDevice device, NvDevice* parent) {
  NEED(parent);
  DEVICE_CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
  if (!MigOf(device)) return NV_INVALID_ARGUMENT;
  *parent = HandleOf(MigOf(device)->slot);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetGpuInstanceId(NvDevice device, NvUint* id) {
  NEED(id);
  DEVICE_CALL(nvmlDeviceGetGpuInstanceId);
  if (!MigOf(device)) return SimHasMig(gpu) ? NV_INVALID_ARGUMENT : NV_NOT_SUPPORTED;
  return Give(MigOf(device)->instance, id);
}

NvReturn nvmlDeviceGetComputeInstanceId(NvDevice device, NvUint* id) {
  NEED(id);
  DEVICE_CALL(nvmlDeviceGetComputeInstanceId);
  if (!MigOf(device)) return SimHasMig(gpu) ? NV_INVALID_ARGUMENT : NV_NOT_SUPPORTED;
  return Give(MigOf(device)->compute, id);
}
