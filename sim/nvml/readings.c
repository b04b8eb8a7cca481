// NVML calls for a device's readings: memory, utilization, temperature, power. Reads the state,
// changes nothing.
#include <string.h>

#include "sim/nvml/library.h"

uint64_t UsedBytes(const SimGpu* gpu) {
  uint64_t used = gpu->memory_used;
  if (IsNonsense(gpu, kSimReadMemoryUsed, &used)) return used;
  for (uint32_t i = 0; i < gpu->process_count && i < kSimMaxProcesses; i++)
    used += gpu->processes[i].memory_bytes;
  const uint64_t most = gpu->memory_total - gpu->memory_reserved;
  return used < most ? used : most;
}

uint64_t UsedBytesOf(const SimGpu* gpu, uint32_t instance) {
  SimProcess all[kSimMaxProcesses];
  const uint32_t count = CopyProcesses(gpu, all);
  uint64_t used = 0;
  if (IsNonsense(gpu, kSimReadMemoryUsed, &used)) return used;
  for (uint32_t i = 0; i < count; i++)
    if (all[i].gpu_instance == instance) used += all[i].memory_bytes;
  return used;
}

// All compute instances of a GPU instance share its memory. Nothing of it is reserved.
static NvReturn MigMemory(const SimGpu* gpu, const struct SimDevice* mig, NvMemory* memory) {
  struct Instances instances;
  CopyInstances(gpu, &instances);
  const SimMigProfile* profile = ProfileOfInstance(gpu, &instances, mig->instance);
  if (!profile) return NV_INVALID_ARGUMENT;
  memory->total = profile->memory_mib << 20;
  memory->used = UsedBytesOf(gpu, mig->instance);
  if (memory->used > memory->total) memory->used = memory->total;
  memory->free = memory->total - memory->used;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetMemoryInfo(NvDevice device, NvMemory* memory) {
  NEED(memory);
  DEVICE_CALL(nvmlDeviceGetMemoryInfo);
  if (MigOf(device)) return MigMemory(gpu, MigOf(device), memory);
  memory->total = gpu->memory_total;
  memory->used = gpu->memory_reserved + UsedBytes(gpu);
  memory->free = memory->total - memory->used;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetMemoryInfo_v2(NvDevice device, NvMemory2* memory) {
  NEED(memory);
  DEVICE_CALL(nvmlDeviceGetMemoryInfo_v2);
  if (memory->version != NV_STRUCT_VERSION(NvMemory2, 2)) return NV_ARGUMENT_VERSION_MISMATCH;
  if (MigOf(device)) {
    NvMemory plain;
    const NvReturn result = MigMemory(gpu, MigOf(device), &plain);
    if (result != NV_SUCCESS) return result;
    *memory = (NvMemory2){memory->version, plain.total, 0, plain.free, plain.used};
    return NV_SUCCESS;
  }
  memory->total = gpu->memory_total;
  memory->reserved = gpu->memory_reserved;
  memory->used = UsedBytes(gpu);
  memory->free = memory->total - memory->reserved - memory->used;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetBAR1MemoryInfo(NvDevice device, NvBar1Memory* memory) {
  NEED(memory);
  DEVICE_CALL(nvmlDeviceGetBAR1MemoryInfo);
  if (MigOf(device)) {
    // The window is divided like the memory.
    struct Instances instances;
    CopyInstances(gpu, &instances);
    const SimMigProfile* profile = ProfileOfInstance(gpu, &instances, MigOf(device)->instance);
    const SimMigProfile* whole = SimWholeProfile(gpu);
    if (!profile || !whole) return NV_INVALID_ARGUMENT;
    memory->bar1Total = memory->bar1Free = gpu->bar1_total / whole->size * profile->size;
    memory->bar1Used = 0;
    return NV_SUCCESS;
  }
  memory->bar1Total = gpu->bar1_total;
  memory->bar1Used = gpu->bar1_used;
  memory->bar1Free = gpu->bar1_total - gpu->bar1_used;
  return NV_SUCCESS;
}

// All utilization calls return NOT_SUPPORTED while MIG is enabled.
static uint32_t Use(const SimGpu* gpu, uint32_t percent) {
  return gpu->mig_current == NV_ENABLED ? SIM_NA : percent;
}

NvReturn nvmlDeviceGetUtilizationRates(NvDevice device, NvUtilization* use) {
  NEED(use);
  DEVICE_CALL(nvmlDeviceGetUtilizationRates);
  const NvReturn result = GiveReading(gpu, kSimReadUse, Use(gpu, gpu->use_gpu), &use->gpu);
  return result == NV_SUCCESS
             ? GiveReading(gpu, kSimReadMemoryUse, Use(gpu, gpu->use_memory), &use->memory)
             : result;
}

static NvReturn EnginePeriod(NvUint* period_us) {
  NEED(period_us);
  *period_us = 167000;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetEncoderUtilization(NvDevice device, NvUint* percent, NvUint* period_us) {
  DEVICE_CALL(nvmlDeviceGetEncoderUtilization);
  const NvReturn result = EnginePeriod(period_us);
  return result == NV_SUCCESS
             ? GiveReading(gpu, kSimReadEncoder, Use(gpu, gpu->use_encoder), percent)
             : result;
}

NvReturn nvmlDeviceGetDecoderUtilization(NvDevice device, NvUint* percent, NvUint* period_us) {
  DEVICE_CALL(nvmlDeviceGetDecoderUtilization);
  const NvReturn result = EnginePeriod(period_us);
  return result == NV_SUCCESS
             ? GiveReading(gpu, kSimReadDecoder, Use(gpu, gpu->use_decoder), percent)
             : result;
}

NvReturn nvmlDeviceGetJpgUtilization(NvDevice device, NvUint* percent, NvUint* period_us) {
  DEVICE_CALL(nvmlDeviceGetJpgUtilization);
  const NvReturn result = EnginePeriod(period_us);
  return result == NV_SUCCESS ? Give(Use(gpu, gpu->use_jpeg), percent) : result;
}

NvReturn nvmlDeviceGetOfaUtilization(NvDevice device, NvUint* percent, NvUint* period_us) {
  DEVICE_CALL(nvmlDeviceGetOfaUtilization);
  const NvReturn result = EnginePeriod(period_us);
  return result == NV_SUCCESS ? Give(Use(gpu, gpu->use_ofa), percent) : result;
}

NvReturn nvmlDeviceGetTemperature(NvDevice device, NvUint sensor, NvUint* celsius) {
  if (sensor != 0) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetTemperature);
  return GiveReading(gpu, kSimReadTemperature, gpu->temperature, celsius);
}

NvReturn nvmlDeviceGetTemperatureV(NvDevice device, NvTemperature* temperature) {
  NEED(temperature);
  DEVICE_CALL(nvmlDeviceGetTemperatureV);
  if (temperature->version != NV_STRUCT_VERSION(NvTemperature, 1))
    return NV_ARGUMENT_VERSION_MISMATCH;
  if (temperature->sensorType != 0) return NV_INVALID_ARGUMENT;
  NvUint celsius;
  const NvReturn result = GiveReading(gpu, kSimReadTemperature, gpu->temperature, &celsius);
  if (result == NV_SUCCESS) temperature->temperature = (int)celsius;
  return result;
}

NvReturn nvmlDeviceGetTemperatureThreshold(NvDevice device, NvUint threshold, NvUint* celsius) {
  if (threshold > 7) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetTemperatureThreshold);
  // Ada and Hopper report margins, and only as field values.
  if (gpu->limits_are_margins || gpu->virtualization) return NV_NOT_SUPPORTED;
  switch (threshold) {
    case NV_THRESHOLD_SHUTDOWN: return Give((uint32_t)gpu->limit_shutdown, celsius);
    case NV_THRESHOLD_SLOWDOWN: return Give((uint32_t)gpu->limit_slowdown, celsius);
    case NV_THRESHOLD_GPU_MAX: return Give((uint32_t)gpu->limit_max, celsius);
    case NV_THRESHOLD_MEM_MAX:
      return gpu->limit_memory ? Give((uint32_t)gpu->limit_memory, celsius) : NV_NOT_SUPPORTED;
    default: return NV_NOT_SUPPORTED;
  }
}

NvReturn nvmlDeviceGetMarginTemperature(NvDevice device, NvMarginTemperature* margin) {
  NEED(margin);
  DEVICE_CALL(nvmlDeviceGetMarginTemperature);
  if (margin->version != NV_STRUCT_VERSION(NvMarginTemperature, 1))
    return NV_ARGUMENT_VERSION_MISMATCH;
  if (!gpu->limits_are_margins) return NV_NOT_SUPPORTED;
  margin->marginTemperature = 87 - (int)gpu->temperature;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetFanSpeed(NvDevice device, NvUint* percent) {
  DEVICE_CALL(nvmlDeviceGetFanSpeed);
  return GiveReading(gpu, kSimReadFan, gpu->fan_percent, percent);
}

NvReturn nvmlDeviceGetFanSpeed_v2(NvDevice device, NvUint fan, NvUint* percent) {
  DEVICE_CALL(nvmlDeviceGetFanSpeed_v2);
  if (gpu->fan_percent != SIM_NA && fan >= gpu->fans) return NV_INVALID_ARGUMENT;
  return GiveReading(gpu, kSimReadFan, gpu->fan_percent, percent);
}

NvReturn nvmlDeviceGetNumFans(NvDevice device, NvUint* count) {
  DEVICE_CALL(nvmlDeviceGetNumFans);
  return Give(gpu->fans, count);
}

NvReturn nvmlDeviceGetPowerManagementMode(NvDevice device, NvUint* mode) {
  DEVICE_CALL(nvmlDeviceGetPowerManagementMode);
  return Give(NV_ENABLED, mode);
}

int HasAveragePower(const SimGpu* gpu) {
  const int is_ga100 = gpu->architecture == NV_ARCH_AMPERE && gpu->cc_minor == 0;
  return gpu->architecture >= NV_ARCH_AMPERE && !is_ga100;
}

NvReturn nvmlDeviceGetPowerUsage(NvDevice device, NvUint* milliwatt) {
  DEVICE_CALL(nvmlDeviceGetPowerUsage);
  return GiveReading(gpu, kSimReadPower, gpu->power_draw, milliwatt);
}

NvReturn nvmlDeviceGetEnforcedPowerLimit(NvDevice device, NvUint* milliwatt) {
  DEVICE_CALL(nvmlDeviceGetEnforcedPowerLimit);
  return Give(gpu->power_limit, milliwatt);
}

NvReturn nvmlDeviceGetPowerManagementLimit(NvDevice device, NvUint* milliwatt) {
  DEVICE_CALL(nvmlDeviceGetPowerManagementLimit);
  return Give(gpu->power_limit, milliwatt);
}

NvReturn nvmlDeviceGetPowerManagementDefaultLimit(NvDevice device, NvUint* milliwatt) {
  DEVICE_CALL(nvmlDeviceGetPowerManagementDefaultLimit);
  return Give(gpu->power_default, milliwatt);
}

NvReturn nvmlDeviceGetPowerManagementLimitConstraints(NvDevice device, NvUint* least,
                                                      NvUint* most) {
  DEVICE_CALL(nvmlDeviceGetPowerManagementLimitConstraints);
  const NvReturn result = Give(gpu->power_min, least);
  return result == NV_SUCCESS ? Give(gpu->power_max, most) : result;
}

NvReturn nvmlDeviceGetTotalEnergyConsumption(NvDevice device, NvUlong* millijoule) {
  NEED(millijoule);
  DEVICE_CALL(nvmlDeviceGetTotalEnergyConsumption);
  if (gpu->architecture < NV_ARCH_VOLTA || gpu->power_draw == SIM_NA) return NV_NOT_SUPPORTED;
  struct Meters meters;
  ReadMeters(gpu, &meters);
  *millijoule = meters.count[kSimEnergy];
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetPerformanceState(NvDevice device, NvUint* state) {
  DEVICE_CALL(nvmlDeviceGetPerformanceState);
  return Give(gpu->pstate, state);
}

NvReturn nvmlDeviceGetPowerState(NvDevice device, NvUint* state) {
  DEVICE_CALL(nvmlDeviceGetPowerState);
  return Give(gpu->pstate, state);
}
