// NVML calls for a device's modes: persistence, compute mode, power limit, display, accounting.
// Besides those of MIG, these are the only calls that change the state.
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
  if (mode > 3) return NV_INVALID_ARGUMENT;
  // NVIDIA/go-nvml#61
  return mode != 0 && SimMigOn(gpu) ? NV_NOT_SUPPORTED : Set(&gpu->compute_mode, mode);
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
