// NVML calls for a device's modes: persistence, compute mode, power limit, display, MIG,
// accounting. These are the only calls that change the state.
#include "sim/nvml/library.h"

NvReturn nvmlDeviceGetPersistenceMode(NvDevice device, NvUint* mode) {
  DEVICE_CALL(nvmlDeviceGetPersistenceMode);
  return Give(gpu->persistence, mode);
}

// A real driver permits this to root; the simulated one to processes that may write the state.
static NvReturn Set(uint32_t* field, uint32_t value) {
  if (!StateLock()) return NV_NO_PERMISSION;
  *field = value;
  StateUnlock();
  return NV_SUCCESS;
}

NvReturn nvmlDeviceSetPersistenceMode(NvDevice device, NvUint mode) {
  DEVICE_CALL(nvmlDeviceSetPersistenceMode);
  return mode > 1 ? NV_INVALID_ARGUMENT : Set(&gpu->persistence, mode);
}

NvReturn nvmlDeviceGetComputeMode(NvDevice device, NvUint* mode) {
  DEVICE_CALL(nvmlDeviceGetComputeMode);
  return Give(gpu->compute_mode, mode);
}

NvReturn nvmlDeviceSetComputeMode(NvDevice device, NvUint mode) {
  DEVICE_CALL(nvmlDeviceSetComputeMode);
  return mode > 3 ? NV_INVALID_ARGUMENT : Set(&gpu->compute_mode, mode);
}

NvReturn nvmlDeviceSetPowerManagementLimit(NvDevice device, NvUint milliwatt) {
  DEVICE_CALL(nvmlDeviceSetPowerManagementLimit);
  if (gpu->power_limit == SIM_NA) return NV_NOT_SUPPORTED;
  if (milliwatt < gpu->power_min || milliwatt > gpu->power_max) return NV_INVALID_ARGUMENT;
  return Set(&gpu->power_limit, milliwatt);
}

NvReturn nvmlDeviceGetDisplayMode(NvDevice device, NvUint* mode) {
  DEVICE_CALL(nvmlDeviceGetDisplayMode);
  // Server boards report "enabled" although they have no display connector.
  return SessionState()->driver_branch >= 590 ? NV_DEPRECATED : Give(NV_ENABLED, mode);
}

NvReturn nvmlDeviceGetDisplayActive(NvDevice device, NvUint* active) {
  DEVICE_CALL(nvmlDeviceGetDisplayActive);
  return Give(gpu->display_active, active);
}

NvReturn nvmlDeviceGetMigMode(NvDevice device, NvUint* current, NvUint* pending) {
  DEVICE_CALL(nvmlDeviceGetMigMode);
  const NvReturn result = Give(gpu->mig_current, current);
  return result == NV_SUCCESS ? Give(gpu->mig_pending, pending) : result;
}

NvReturn nvmlDeviceGetMaxMigDeviceCount(NvDevice device, NvUint* count) {
  DEVICE_CALL(nvmlDeviceGetMaxMigDeviceCount);
  return Give(gpu->mig_max, count);  // 0 where MIG does not exist
}

NvReturn nvmlDeviceGetMigDeviceHandleByIndex(NvDevice device, NvUint index, NvDevice* mig) {
  NEED(mig);
  DEVICE_CALL(nvmlDeviceGetMigDeviceHandleByIndex);
  if (gpu->mig_max == 0) return NV_NOT_SUPPORTED;
  return index >= gpu->mig_max ? NV_INVALID_ARGUMENT : NV_NOT_FOUND;
}

NvReturn nvmlDeviceIsMigDeviceHandle(NvDevice device, NvUint* is_mig) {
  DEVICE_CALL(nvmlDeviceIsMigDeviceHandle);
  return Give(0, is_mig);
}

NvReturn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(NvDevice device, NvDevice* parent) {
  NEED(parent);
  DEVICE_CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
  return NV_INVALID_ARGUMENT;
}

NvReturn nvmlDeviceGetGpuInstanceId(NvDevice device, NvUint* id) {
  NEED(id);
  DEVICE_CALL(nvmlDeviceGetGpuInstanceId);
  return NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetComputeInstanceId(NvDevice device, NvUint* id) {
  NEED(id);
  DEVICE_CALL(nvmlDeviceGetComputeInstanceId);
  return NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetAccountingMode(NvDevice device, NvUint* mode) {
  DEVICE_CALL(nvmlDeviceGetAccountingMode);
  return Give(NV_DISABLED, mode);
}

NvReturn nvmlDeviceGetAccountingStats(NvDevice device, NvUint pid, NvAccounting* stats) {
  NEED(stats);
  (void)pid;
  DEVICE_CALL(nvmlDeviceGetAccountingStats);
  return NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetAccountingPids(NvDevice device, NvUint* count, NvUint* pids) {
  NEED(count);
  (void)pids;
  DEVICE_CALL(nvmlDeviceGetAccountingPids);
  return NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetAccountingBufferSize(NvDevice device, NvUint* size) {
  DEVICE_CALL(nvmlDeviceGetAccountingBufferSize);
  return Give(4000, size);
}
