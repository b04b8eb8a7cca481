// NVML calls for the MIG mode, and for GPU instances: their profiles, placements and lives.
#include <stdio.h>
#include <string.h>

#include "sim/mig_files.h"
#include "sim/nvml/library.h"

NvReturn nvmlDeviceGetMigMode(NvDevice device, NvUint* current, NvUint* pending) {
  DEVICE_CALL(nvmlDeviceGetMigMode);
  const NvReturn result = Give(gpu->mig_current, current);
  return result == NV_SUCCESS ? Give(gpu->mig_pending, pending) : result;
}

void EndChange(const SimGpu* gpu, int changed) {
  if (changed) {
    AddEvent(gpu, NV_EVENT_MIG_CONFIG);
    SimSyncInstanceFiles(MachineRoot(), SessionState(), gpu);
  }
  StateUnlock();
}

NvReturn nvmlDeviceSetMigMode(NvDevice device, NvUint mode, NvReturn* activation) {
  NEED(activation);
  DEVICE_CALL(nvmlDeviceSetMigMode);
  if (mode > NV_ENABLED) return NV_INVALID_ARGUMENT;
  if (!SimHasMig(gpu)) return NV_NOT_SUPPORTED;
  if (!StateLock()) return NV_NO_PERMISSION;
  const uint32_t before = gpu->mig_current;
  const enum SimMigChange change = SimSetMigMode(gpu, mode, MachineTime());
  EndChange(gpu, gpu->mig_current != before);
  *activation = change == kSimMigDone ? NV_SUCCESS : NV_IN_USE;
  return NV_SUCCESS;
}

// Whether this driver answers questions about profiles now: up to 545, only in MIG mode.
static int KnowsProfiles(const SimGpu* gpu) {
  return SimHasMig(gpu) && (SimMigOn(gpu) || SessionState()->driver_branch >= 550);
}

// Returns the number of profiles that a branch knows, as in NVIDIA's Python binding.
static NvUint ProfilesOf(uint32_t branch) {
  return branch >= 610   ? 18
         : branch >= 575 ? 17
         : branch >= 570 ? 13
         : branch >= 525 ? 10
         : branch >= 470 ? 8
         : branch >= 460 ? 7
                         : 5;
}

static NvReturn FindProfile(const SimGpu* gpu, NvUint profile, const SimMigProfile** found) {
  if (profile >= ProfilesOf(SessionState()->driver_branch)) return NV_INVALID_ARGUMENT;
  *found = KnowsProfiles(gpu) ? SimProfileAt(gpu, profile) : NULL;
  return *found ? NV_SUCCESS : NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetGpuInstanceProfileInfo(NvDevice device, NvUint profile,
                                             NvGpuInstanceProfile* info) {
  NEED(info);
  DEVICE_CALL(nvmlDeviceGetGpuInstanceProfileInfo);
  const SimMigProfile* found;
  const NvReturn result = FindProfile(gpu, profile, &found);
  if (result != NV_SUCCESS) return result;
  *info = (NvGpuInstanceProfile){.id = found->id,
                                 .sliceCount = found->slices,
                                 .instanceCount = found->most,
                                 .multiprocessorCount = found->multiprocessors,
                                 .copyEngineCount = found->copy_engines,
                                 .decoderCount = found->decoders,
                                 .encoderCount = found->encoders,
                                 .jpegCount = found->jpegs,
                                 .ofaCount = found->ofas,
                                 .memorySizeMB = found->memory_mib};
  return NV_SUCCESS;
}

static int IsVersion(NvUint version) {
  return version == NV_STRUCT_VERSION(NvGpuInstanceProfile2, 2) ||
         (version == NV_STRUCT_VERSION(NvGpuInstanceProfile3, 3) &&
          SessionState()->driver_branch >= 570);
}

// Fills the version that the caller's struct has. Like driver 580, sets its version to 0, and
// leaves the name of version 3 empty.
static void Describe(const SimMigProfile* profile, NvGpuInstanceProfile2* info) {
  if (info->version == NV_STRUCT_VERSION(NvGpuInstanceProfile3, 3)) {
    *(NvGpuInstanceProfile3*)(void*)info =
        (NvGpuInstanceProfile3){.id = profile->id,
                                .sliceCount = profile->slices,
                                .instanceCount = profile->most,
                                .multiprocessorCount = profile->multiprocessors,
                                .copyEngineCount = profile->copy_engines,
                                .decoderCount = profile->decoders,
                                .encoderCount = profile->encoders,
                                .jpegCount = profile->jpegs,
                                .ofaCount = profile->ofas,
                                .memorySizeMB = profile->memory_mib,
                                .capabilities = profile->graphics ? NV_GI_CAP_GFX : 0};
    return;
  }
  *info = (NvGpuInstanceProfile2){.id = profile->id,
                                  .sliceCount = profile->slices,
                                  .instanceCount = profile->most,
                                  .multiprocessorCount = profile->multiprocessors,
                                  .copyEngineCount = profile->copy_engines,
                                  .decoderCount = profile->decoders,
                                  .encoderCount = profile->encoders,
                                  .jpegCount = profile->jpegs,
                                  .ofaCount = profile->ofas,
                                  .memorySizeMB = profile->memory_mib};
  snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
}

NvReturn nvmlDeviceGetGpuInstanceProfileInfoV(NvDevice device, NvUint profile,
                                              NvGpuInstanceProfile2* info) {
  NEED(info);
  DEVICE_CALL(nvmlDeviceGetGpuInstanceProfileInfoV);
  if (!IsVersion(info->version)) return NV_INVALID_ARGUMENT;
  const SimMigProfile* found;
  const NvReturn result = FindProfile(gpu, profile, &found);
  if (result == NV_SUCCESS) Describe(found, info);
  return result;
}

NvReturn nvmlDeviceGetGpuInstanceProfileInfoByIdV(NvDevice device, NvUint id,
                                                  NvGpuInstanceProfile2* info) {
  NEED(info);
  DEVICE_CALL(nvmlDeviceGetGpuInstanceProfileInfoByIdV);
  if (!IsVersion(info->version)) return NV_INVALID_ARGUMENT;
  if (!SimHasMig(gpu)) return NV_NOT_SUPPORTED;
  const SimMigProfile* found = SimProfileAt(gpu, SimProfileOf(gpu, id));
  if (!found) return NV_NOT_FOUND;
  Describe(found, info);
  return NV_SUCCESS;
}

// Without room, only counts.
static NvReturn Placements(const SimGpu* gpu, NvUint id, NvPlacement* placements, NvUint* count) {
  NEED(count);
  const SimMigProfile* profile =
      KnowsProfiles(gpu) ? SimProfileAt(gpu, SimProfileOf(gpu, id)) : NULL;
  if (!profile) return NV_NOT_SUPPORTED;
  if (!MayMonitor()) return NV_NO_PERMISSION;
  NvUint found = 0;
  for (uint32_t start = 0; start < 32; start++) {
    if (!(profile->starts >> start & 1)) continue;
    if (placements) placements[found] = (NvPlacement){start, profile->size};
    found++;
  }
  *count = found;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetGpuInstancePossiblePlacements(NvDevice device, NvUint id,
                                                    NvPlacement* placements, NvUint* count) {
  DEVICE_CALL(nvmlDeviceGetGpuInstancePossiblePlacements);
  return Placements(gpu, id, placements, count);
}

NvReturn nvmlDeviceGetGpuInstancePossiblePlacements_v2(NvDevice device, NvUint id,
                                                       NvPlacement* placements, NvUint* count) {
  DEVICE_CALL(nvmlDeviceGetGpuInstancePossiblePlacements_v2);
  return Placements(gpu, id, placements, count);
}

NvReturn nvmlDeviceGetGpuInstanceRemainingCapacity(NvDevice device, NvUint id, NvUint* count) {
  NEED(count);
  DEVICE_CALL(nvmlDeviceGetGpuInstanceRemainingCapacity);
  const uint32_t profile = KnowsProfiles(gpu) ? SimProfileOf(gpu, id) : kSimMigProfiles;
  if (profile == kSimMigProfiles) return NV_NOT_SUPPORTED;
  if (!MayMonitor()) return NV_NO_PERMISSION;
  *count = SimMigRemaining(gpu, profile);
  return NV_SUCCESS;
}

static NvReturn Create(SimGpu* gpu, NvUint id, uint32_t start, uint32_t size,
                       NvGpuInstance* instance) {
  const uint32_t profile = SimProfileOf(gpu, id);
  if (!SimMigOn(gpu)) return NV_NOT_SUPPORTED;
  if (!SimProfileAt(gpu, profile)) return NV_INVALID_ARGUMENT;
  const SimMigProfile* wanted = &gpu->mig_profiles[profile];
  if (start != SIM_NA && (start >= 32 || !(wanted->starts >> start & 1) || size != wanted->size))
    return NV_INVALID_ARGUMENT;
  if (!MayConfigure() || !StateLock()) return NV_NO_PERMISSION;
  // The mode may have changed meanwhile.
  const uint32_t made = SimMigOn(gpu) ? SimCreateInstance(gpu, profile, start) : SIM_NA;
  struct Instances instances;
  memcpy(instances.all, gpu->instances, sizeof instances.all);
  EndChange(gpu, made != SIM_NA);
  if (made == SIM_NA) return NV_INSUFFICIENT_RESOURCES;
  *instance = InstanceHandle(gpu, &instances, made);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceCreateGpuInstance(NvDevice device, NvUint id, NvGpuInstance* instance) {
  NEED(instance);
  DEVICE_CALL(nvmlDeviceCreateGpuInstance);
  return Create(gpu, id, SIM_NA, 0, instance);
}

NvReturn nvmlDeviceCreateGpuInstanceWithPlacement(NvDevice device, NvUint id,
                                                  const NvPlacement* placement,
                                                  NvGpuInstance* instance) {
  NEED(placement);
  NEED(instance);
  DEVICE_CALL(nvmlDeviceCreateGpuInstanceWithPlacement);
  return placement->start == SIM_NA ? NV_INVALID_ARGUMENT
                                    : Create(gpu, id, placement->start, placement->size, instance);
}

NvReturn EnterInstance(enum Function function, NvGpuInstance instance, SimGpu** gpu,
                       const struct SimInstanceHandle** handle, struct Instances* instances) {
  *handle = InstanceOf(instance);
  const NvReturn result = EnterSlot(function, *handle ? (int)(*handle)->slot : -1, gpu);
  if (result != NV_SUCCESS) return result;
  CopyInstances(*gpu, instances);
  return instances->all[(*handle)->id].born == (*handle)->born ? NV_SUCCESS : NV_INVALID_ARGUMENT;
}

NvReturn nvmlGpuInstanceDestroy(NvGpuInstance instance) {
  INSTANCE_CALL(nvmlGpuInstanceDestroy);
  if (!MayConfigure() || !StateLock()) return NV_NO_PERMISSION;
  SimGpuInstance* there = &gpu->instances[handle->id];
  NvReturn result = there->born != handle->born        ? NV_INVALID_ARGUMENT
                    : SimInstanceBusy(gpu, handle->id) ? NV_IN_USE
                                                       : NV_SUCCESS;
  if (result == NV_SUCCESS) memset(there, 0, sizeof *there);
  EndChange(gpu, result == NV_SUCCESS);
  return result;
}

// The caller has room for as many as the profile permits. Without MIG mode there are none.
NvReturn nvmlDeviceGetGpuInstances(NvDevice device, NvUint id, NvGpuInstance* instances,
                                   NvUint* count) {
  NEED(instances);
  NEED(count);
  DEVICE_CALL(nvmlDeviceGetGpuInstances);
  if (!SimHasMig(gpu)) return NV_NOT_SUPPORTED;
  const uint32_t profile = SimProfileOf(gpu, id);
  if (profile == kSimMigProfiles) return NV_INVALID_ARGUMENT;
  if (!MayMonitor()) return NV_NO_PERMISSION;
  struct Instances there;
  CopyInstances(gpu, &there);
  *count = 0;
  for (uint32_t i = 0; i < kSimGpuInstances; i++)
    if (there.all[i].born && there.all[i].profile == profile)
      instances[(*count)++] = InstanceHandle(gpu, &there, i);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetGpuInstanceById(NvDevice device, NvUint id, NvGpuInstance* instance) {
  NEED(instance);
  DEVICE_CALL(nvmlDeviceGetGpuInstanceById);
  if (!SimHasMig(gpu)) return NV_NOT_SUPPORTED;
  if (!MayMonitor()) return NV_NO_PERMISSION;
  struct Instances there;
  CopyInstances(gpu, &there);
  if (id >= kSimGpuInstances || !there.all[id].born) return NV_NOT_FOUND;
  *instance = InstanceHandle(gpu, &there, id);
  return NV_SUCCESS;
}

NvReturn nvmlGpuInstanceGetInfo(NvGpuInstance instance, NvGpuInstanceInfo* info) {
  NEED(info);
  INSTANCE_CALL(nvmlGpuInstanceGetInfo);
  const SimMigProfile* profile = ProfileOfInstance(gpu, &instances, handle->id);
  if (!profile) return NV_INVALID_ARGUMENT;
  const SimGpuInstance* there = &instances.all[handle->id];
  *info = (NvGpuInstanceInfo){
      HandleOf(handle->slot), handle->id, profile->id, {there->start, there->size}};
  return NV_SUCCESS;
}
