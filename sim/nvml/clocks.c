// NVML calls for clocks and for what limits them. Reads the state, changes nothing.
#include "sim/nvml/library.h"

static NvReturn Clock(NvUint type, uint32_t sm, uint32_t memory, uint32_t video, NvUint* mhz) {
  switch (type) {
    case NV_CLOCK_GRAPHICS:
    case NV_CLOCK_SM: return Give(sm, mhz);
    case NV_CLOCK_MEM: return Give(memory, mhz);
    case NV_CLOCK_VIDEO: return Give(video, mhz);
    default: return NV_INVALID_ARGUMENT;
  }
}

static NvReturn CurrentClock(const SimGpu* gpu, NvUint type, NvUint* mhz) {
  uint64_t instead;
  if (type <= NV_CLOCK_SM && IsNonsense(gpu, kSimReadSmClock, &instead))
    return GiveReading(gpu, kSimReadSmClock, 0, mhz);
  if (type == NV_CLOCK_MEM && IsNonsense(gpu, kSimReadMemoryClock, &instead))
    return GiveReading(gpu, kSimReadMemoryClock, 0, mhz);
  return Clock(type, gpu->clock_sm, gpu->clock_memory, gpu->clock_video, mhz);
}

NvReturn nvmlDeviceGetClockInfo(NvDevice device, NvUint type, NvUint* mhz) {
  DEVICE_CALL(nvmlDeviceGetClockInfo);
  return CurrentClock(gpu, type, mhz);
}

NvReturn nvmlDeviceGetMaxClockInfo(NvDevice device, NvUint type, NvUint* mhz) {
  DEVICE_CALL(nvmlDeviceGetMaxClockInfo);
  return Clock(type, gpu->clock_sm_max, gpu->clock_memory_max, gpu->clock_video_max, mhz);
}

static NvReturn AppClock(const SimGpu* gpu, NvUint type, NvUint* mhz) {
  const uint32_t memory = gpu->clock_app == SIM_NA ? SIM_NA : gpu->clock_memory_max;
  return Clock(type, gpu->clock_app, memory, SIM_NA, mhz);
}

NvReturn nvmlDeviceGetClock(NvDevice device, NvUint type, NvUint id, NvUint* mhz) {
  DEVICE_CALL(nvmlDeviceGetClock);
  switch (id) {
    case NV_CLOCK_ID_CURRENT: return CurrentClock(gpu, type, mhz);
    case NV_CLOCK_ID_APP_TARGET:
    case NV_CLOCK_ID_APP_DEFAULT: return AppClock(gpu, type, mhz);
    case NV_CLOCK_ID_BOOST_MAX:
      return Clock(type, gpu->clock_sm_max, gpu->clock_memory_max, SIM_NA, mhz);
    default: return NV_INVALID_ARGUMENT;
  }
}

NvReturn nvmlDeviceGetApplicationsClock(NvDevice device, NvUint type, NvUint* mhz) {
  DEVICE_CALL(nvmlDeviceGetApplicationsClock);
  return SessionState()->driver_branch >= 590 ? NV_DEPRECATED : AppClock(gpu, type, mhz);
}

NvReturn nvmlDeviceGetDefaultApplicationsClock(NvDevice device, NvUint type, NvUint* mhz) {
  DEVICE_CALL(nvmlDeviceGetDefaultApplicationsClock);
  return SessionState()->driver_branch >= 590 ? NV_DEPRECATED : AppClock(gpu, type, mhz);
}

NvReturn nvmlDeviceGetSupportedMemoryClocks(NvDevice device, NvUint* count, NvUint* mhz) {
  NEED(count);
  DEVICE_CALL(nvmlDeviceGetSupportedMemoryClocks);
  const int fits = *count >= 1 && mhz;
  *count = 1;
  if (!fits) return NV_INSUFFICIENT_SIZE;
  return Give(gpu->clock_memory_max, mhz);
}

NvReturn nvmlDeviceGetSupportedGraphicsClocks(NvDevice device, NvUint memory, NvUint* count,
                                              NvUint* mhz) {
  NEED(count);
  DEVICE_CALL(nvmlDeviceGetSupportedGraphicsClocks);
  if (memory != gpu->clock_memory_max) return NV_NOT_FOUND;
  const NvUint lowest = gpu->clock_sm_idle < 210 ? gpu->clock_sm_idle : 210;
  const NvUint steps = (gpu->clock_sm_max - lowest) / 15 + 1;
  const int fits = *count >= steps && mhz;
  *count = steps;
  if (!fits) return NV_INSUFFICIENT_SIZE;
  for (NvUint i = 0; i < steps; i++) mhz[i] = gpu->clock_sm_max - 15 * i;
  return NV_SUCCESS;
}

static NvReturn Reasons(uint64_t reasons, NvUlong* result) {
  NEED(result);
  *result = reasons;
  return NV_SUCCESS;
}

enum { kAllReasons = 0x1ff };

NvReturn nvmlDeviceGetCurrentClocksThrottleReasons(NvDevice device, NvUlong* reasons) {
  DEVICE_CALL(nvmlDeviceGetCurrentClocksThrottleReasons);
  return Reasons(gpu->clock_event_reasons, reasons);
}

NvReturn nvmlDeviceGetSupportedClocksThrottleReasons(NvDevice device, NvUlong* reasons) {
  DEVICE_CALL(nvmlDeviceGetSupportedClocksThrottleReasons);
  return Reasons(kAllReasons, reasons);
}

NvReturn nvmlDeviceGetCurrentClocksEventReasons(NvDevice device, NvUlong* reasons) {
  DEVICE_CALL(nvmlDeviceGetCurrentClocksEventReasons);
  return Reasons(gpu->clock_event_reasons, reasons);
}

NvReturn nvmlDeviceGetSupportedClocksEventReasons(NvDevice device, NvUlong* reasons) {
  DEVICE_CALL(nvmlDeviceGetSupportedClocksEventReasons);
  return Reasons(kAllReasons, reasons);
}

NvReturn nvmlDeviceGetViolationStatus(NvDevice device, NvUint policy, NvViolation* time) {
  NEED(time);
  DEVICE_CALL(nvmlDeviceGetViolationStatus);
  // Policies 0 to 5, and two totals.
  if (policy > 11 || (policy > 5 && policy < 10)) return NV_INVALID_ARGUMENT;
  if (gpu->virtualization) return NV_NOT_SUPPORTED;
  struct Meters meters;
  ReadMeters(gpu, &meters);
  time->referenceTime = meters.time;
  time->violationTime = meters.count[kSimLimitedByPower + (policy < 10 ? policy : policy - 4)];
  return NV_SUCCESS;
}
