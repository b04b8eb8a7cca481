// NVML calls for compute instances, the parts of a GPU instance.
#include "sim/mig_compute.h"

#include <stdio.h>
#include <string.h>

#include "sim/nvml/library.h"

// Returns the number of profiles that a branch knows, as in NVIDIA's Python binding.
static NvUint ProfilesOf(uint32_t branch) {
  return branch >= 610 ? 9 : branch >= 525 ? 8 : branch >= 460 ? 7 : 5;
}

static NvReturn FindProfile(const SimGpu* gpu, const SimMigProfile* of, NvUint profile,
                            NvUint engines, SimComputeProfile* found) {
  if (profile >= ProfilesOf(SessionState()->driver_branch) || engines != NV_CI_ENGINES_SHARED)
    return NV_INVALID_ARGUMENT;
  return of && SimComputeProfileAt(gpu, of, profile, found) ? NV_SUCCESS : NV_NOT_SUPPORTED;
}

NvReturn nvmlGpuInstanceGetComputeInstanceProfileInfo(NvGpuInstance instance, NvUint profile,
                                                      NvUint engines, NvComputeProfile* info) {
  NEED(info);
  INSTANCE_CALL(nvmlGpuInstanceGetComputeInstanceProfileInfo);
  const SimMigProfile* of = ProfileOfInstance(gpu, &instances, handle->id);
  SimComputeProfile found;
  const NvReturn result = FindProfile(gpu, of, profile, engines, &found);
  if (result == NV_SUCCESS)
    *info = (NvComputeProfile){.id = profile,
                               .sliceCount = found.slices,
                               .instanceCount = found.most,
                               .multiprocessorCount = found.multiprocessors,
                               .sharedCopyEngineCount = of->copy_engines,
                               .sharedDecoderCount = of->decoders,
                               .sharedEncoderCount = of->encoders,
                               .sharedJpegCount = of->jpegs,
                               .sharedOfaCount = of->ofas};
  return result;
}

// As for GPU instances: the version becomes 0, version 3 has no name.
static void Describe(const SimMigProfile* of, NvUint profile, const SimComputeProfile* found,
                     NvComputeProfile2* info) {
  NvComputeProfile3 all = {.id = profile,
                           .sliceCount = found->slices,
                           .instanceCount = found->most,
                           .multiprocessorCount = found->multiprocessors,
                           .sharedCopyEngineCount = of->copy_engines,
                           .sharedDecoderCount = of->decoders,
                           .sharedEncoderCount = of->encoders,
                           .sharedJpegCount = of->jpegs,
                           .sharedOfaCount = of->ofas,
                           .capabilities = of->graphics ? NV_CI_CAP_GFX : 0};
  if (info->version == NV_STRUCT_VERSION(NvComputeProfile3, 3)) {
    memcpy(info, &all, sizeof all);
    return;
  }
  char name[32];
  SimComputeName(of, found->slices, name);
  snprintf(all.name, sizeof all.name, "MIG %s", name);
  memcpy(info, &all, sizeof *info);  // version 2 is version 3 without its end
}

NvReturn nvmlGpuInstanceGetComputeInstanceProfileInfoV(NvGpuInstance instance, NvUint profile,
                                                       NvUint engines, NvComputeProfile2* info) {
  NEED(info);
  INSTANCE_CALL(nvmlGpuInstanceGetComputeInstanceProfileInfoV);
  const int third = info->version == NV_STRUCT_VERSION(NvComputeProfile3, 3);
  if (!(info->version == NV_STRUCT_VERSION(NvComputeProfile2, 2) ||
        (third && SessionState()->driver_branch >= 570)))
    return NV_INVALID_ARGUMENT;
  const SimMigProfile* of = ProfileOfInstance(gpu, &instances, handle->id);
  SimComputeProfile found;
  const NvReturn result = FindProfile(gpu, of, profile, engines, &found);
  if (result == NV_SUCCESS) Describe(of, profile, &found, info);
  return result;
}

NvReturn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(NvGpuInstance instance, NvUint id,
                                                            NvUint* count) {
  NEED(count);
  INSTANCE_CALL(nvmlGpuInstanceGetComputeInstanceRemainingCapacity);
  const SimMigProfile* of = ProfileOfInstance(gpu, &instances, handle->id);
  SimComputeProfile profile;
  if (!of || !SimComputeProfileAt(gpu, of, id, &profile)) return NV_NOT_SUPPORTED;
  if (!MayMonitor()) return NV_NO_PERMISSION;
  *count = SimComputesRemaining(&instances.all[handle->id], &profile);
  return NV_SUCCESS;
}

NvReturn nvmlGpuInstanceGetComputeInstancePossiblePlacements(NvGpuInstance instance, NvUint id,
                                                             NvPlacement* placements,
                                                             NvUint* count) {
  NEED(count);
  INSTANCE_CALL(nvmlGpuInstanceGetComputeInstancePossiblePlacements);
  const SimMigProfile* of = ProfileOfInstance(gpu, &instances, handle->id);
  SimComputeProfile profile;
  if (!of || !SimComputeProfileAt(gpu, of, id, &profile)) return NV_NOT_SUPPORTED;
  if (!MayMonitor()) return NV_NO_PERMISSION;
  for (NvUint i = 0; placements && i < profile.placements; i++)
    placements[i] = (NvPlacement){i * profile.step, profile.size};
  *count = profile.placements;
  return NV_SUCCESS;
}

static NvReturn Create(SimGpu* gpu, const struct SimInstanceHandle* handle, NvUint id,
                       const NvPlacement* placement, NvComputeInstance* compute) {
  const SimMigProfile* of = SimProfileAt(gpu, gpu->instances[handle->id].profile);
  SimComputeProfile profile;
  if (!of || !SimComputeProfileAt(gpu, of, id, &profile)) return NV_NOT_SUPPORTED;
  if (placement && (placement->size != profile.size || placement->start % profile.step != 0 ||
                    placement->start / profile.step >= profile.placements))
    return NV_INVALID_ARGUMENT;
  if (!MayConfigure() || !StateLock()) return NV_NO_PERMISSION;
  const int there = gpu->instances[handle->id].born == handle->born;
  const uint32_t made =
      there ? SimCreateCompute(gpu, handle->id, id, placement ? placement->start : SIM_NA) : SIM_NA;
  struct Instances now;
  memcpy(now.all, gpu->instances, sizeof now.all);
  EndChange(gpu, made != SIM_NA);
  if (made == SIM_NA) return there ? NV_INSUFFICIENT_RESOURCES : NV_INVALID_ARGUMENT;
  *compute = ComputeHandle(gpu, &now, handle->id, made);
  return NV_SUCCESS;
}

NvReturn nvmlGpuInstanceCreateComputeInstance(NvGpuInstance instance, NvUint id,
                                              NvComputeInstance* compute) {
  NEED(compute);
  INSTANCE_CALL(nvmlGpuInstanceCreateComputeInstance);
  return Create(gpu, handle, id, NULL, compute);
}

NvReturn nvmlGpuInstanceCreateComputeInstanceWithPlacement(NvGpuInstance instance, NvUint id,
                                                           const NvPlacement* placement,
                                                           NvComputeInstance* compute) {
  NEED(placement);
  NEED(compute);
  INSTANCE_CALL(nvmlGpuInstanceCreateComputeInstanceWithPlacement);
  return Create(gpu, handle, id, placement, compute);
}

static NvReturn EnterCompute(enum Function function, NvComputeInstance compute, SimGpu** gpu,
                             const struct SimComputeHandle** handle) {
  *handle = ComputeOf(compute);
  const NvReturn result = EnterSlot(function, *handle ? (int)(*handle)->slot : -1, gpu);
  if (result != NV_SUCCESS) return result;
  return IsAliveCompute(*gpu, (*handle)->instance, (*handle)->id, (*handle)->born)
             ? NV_SUCCESS
             : NV_INVALID_ARGUMENT;
}

NvReturn nvmlComputeInstanceDestroy(NvComputeInstance compute) {
  SimGpu* gpu;
  const struct SimComputeHandle* handle;
  NvReturn result = EnterCompute(kFunction_nvmlComputeInstanceDestroy, compute, &gpu, &handle);
  if (result != NV_SUCCESS) return result;
  if (!MayConfigure() || !StateLock()) return NV_NO_PERMISSION;
  SimComputeInstance* there = &gpu->instances[handle->instance].computes[handle->id];
  result = there->born != handle->born                        ? NV_INVALID_ARGUMENT
           : SimHasProcess(gpu, handle->instance, handle->id) ? NV_IN_USE
                                                              : NV_SUCCESS;
  if (result == NV_SUCCESS) memset(there, 0, sizeof *there);
  EndChange(gpu, result == NV_SUCCESS);
  return result;
}

NvReturn nvmlGpuInstanceGetComputeInstances(NvGpuInstance instance, NvUint id,
                                            NvComputeInstance* computes, NvUint* count) {
  NEED(computes);
  NEED(count);
  INSTANCE_CALL(nvmlGpuInstanceGetComputeInstances);
  const SimMigProfile* of = ProfileOfInstance(gpu, &instances, handle->id);
  SimComputeProfile profile;
  if (!of || !SimComputeProfileAt(gpu, of, id, &profile)) return NV_NOT_SUPPORTED;
  if (!MayMonitor()) return NV_NO_PERMISSION;
  *count = 0;
  for (uint32_t i = 0; i < kSimComputeInstances; i++) {
    const SimComputeInstance* there = &instances.all[handle->id].computes[i];
    if (there->born && there->profile == id)
      computes[(*count)++] = ComputeHandle(gpu, &instances, handle->id, i);
  }
  return NV_SUCCESS;
}

NvReturn nvmlGpuInstanceGetComputeInstanceById(NvGpuInstance instance, NvUint id,
                                               NvComputeInstance* compute) {
  NEED(compute);
  INSTANCE_CALL(nvmlGpuInstanceGetComputeInstanceById);
  if (!MayMonitor()) return NV_NO_PERMISSION;
  if (id >= kSimComputeInstances || !instances.all[handle->id].computes[id].born)
    return NV_NOT_FOUND;
  *compute = ComputeHandle(gpu, &instances, handle->id, id);
  return NV_SUCCESS;
}

static NvReturn Info(enum Function function, NvComputeInstance compute, NvComputeInstanceInfo* info,
                     size_t size) {
  NEED(info);
  SimGpu* gpu;
  const struct SimComputeHandle* handle;
  const NvReturn result = EnterCompute(function, compute, &gpu, &handle);
  if (result != NV_SUCCESS) return result;
  struct Instances there;
  CopyInstances(gpu, &there);
  const SimComputeInstance* found = &there.all[handle->instance].computes[handle->id];
  if (found->born != handle->born) return NV_INVALID_ARGUMENT;
  const NvComputeInstanceInfo all = {HandleOf(handle->slot),
                                     InstanceHandle(gpu, &there, handle->instance),
                                     handle->id,
                                     found->profile,
                                     {found->start, found->size}};
  memcpy(info, &all, size);
  return NV_SUCCESS;
}

NvReturn nvmlComputeInstanceGetInfo(NvComputeInstance compute, NvComputeInstanceInfo* info) {
  return Info(kFunction_nvmlComputeInstanceGetInfo, compute, info,
              offsetof(NvComputeInstanceInfo, placement));
}

NvReturn nvmlComputeInstanceGetInfo_v2(NvComputeInstance compute, NvComputeInstanceInfo* info) {
  return Info(kFunction_nvmlComputeInstanceGetInfo_v2, compute, info, sizeof *info);
}
