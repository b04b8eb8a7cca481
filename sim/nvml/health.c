// NVML calls for ECC, retired pages and remapped rows. Reads the state, changes nothing.
#include <string.h>

#include "sim/nvml/library.h"

NvReturn nvmlDeviceGetEccMode(NvDevice device, NvUint* current, NvUint* pending) {
  DEVICE_CALL(nvmlDeviceGetEccMode);
  const NvReturn result = Give(gpu->ecc_current, current);
  return result == NV_SUCCESS ? Give(gpu->ecc_pending, pending) : result;
}

NvReturn nvmlDeviceGetDefaultEccMode(NvDevice device, NvUint* mode) {
  DEVICE_CALL(nvmlDeviceGetDefaultEccMode);
  return Give(gpu->ecc_current == SIM_NA ? SIM_NA : NV_ENABLED, mode);
}

NvReturn EccErrors(const SimGpu* gpu, NvUint error, NvUint counter, const uint64_t** counts) {
  if (error > 1 || counter > 1) return NV_INVALID_ARGUMENT;
  if (gpu->ecc_current != NV_ENABLED) return NV_NOT_SUPPORTED;
  *counts = (counter == NV_ECC_VOLATILE ? &gpu->ecc_volatile : &gpu->ecc_aggregate)->count[error];
  return NV_SUCCESS;
}

// A MIG device has only uncorrected volatile errors of SRAM. The simulated errors are in DRAM.
static NvReturn MigEccErrors(const SimGpu* gpu, NvUint error, NvUint counter, NvUlong* count) {
  const uint64_t* counts;
  const NvReturn result = EccErrors(gpu, error, counter, &counts);
  if (result != NV_SUCCESS) return result;
  if (error != NV_ERRORS_UNCORRECTED || counter != NV_ECC_VOLATILE) return NV_NOT_SUPPORTED;
  *count = 0;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetTotalEccErrors(NvDevice device, NvUint error, NvUint counter,
                                     NvUlong* count) {
  NEED(count);
  DEVICE_CALL(nvmlDeviceGetTotalEccErrors);
  if (MigOf(device)) return MigEccErrors(gpu, error, counter, count);
  const uint64_t* counts;
  const NvReturn result = EccErrors(gpu, error, counter, &counts);
  if (result == NV_SUCCESS) *count = counts[0] + counts[1];
  return result;
}

NvReturn nvmlDeviceGetDetailedEccErrors(NvDevice device, NvUint error, NvUint counter,
                                        NvEccCounts* counts) {
  NEED(counts);
  DEVICE_CALL(nvmlDeviceGetDetailedEccErrors);
  const uint64_t* found;
  const NvReturn result = EccErrors(gpu, error, counter, &found);
  if (result == NV_SUCCESS) *counts = (NvEccCounts){0, found[0], found[1], 0};
  return result;
}

NvReturn nvmlDeviceGetMemoryErrorCounter(NvDevice device, NvUint error, NvUint counter,
                                         NvUint location, NvUlong* count) {
  if (!count || location >= NV_LOCATION_COUNT) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetMemoryErrorCounter);
  if (MigOf(device))
    return location == NV_LOCATION_SRAM ? MigEccErrors(gpu, error, counter, count)
                                        : NV_NOT_SUPPORTED;
  const uint64_t* counts;
  const NvReturn result = EccErrors(gpu, error, counter, &counts);
  if (result != NV_SUCCESS) return result;
  // By location up to Volta, SRAM or DRAM from Turing.
  const int by_location = gpu->architecture < NV_ARCH_TURING;
  if (location == NV_LOCATION_DRAM)
    *count = counts[1];
  else if (by_location ? location == 1 : location == NV_LOCATION_SRAM)
    *count = counts[0];
  else if (by_location && location != NV_LOCATION_SRAM)
    *count = 0;
  else
    return NV_NOT_SUPPORTED;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetSramEccErrorStatus(NvDevice device, NvSramEcc* status) {
  NEED(status);
  DEVICE_CALL(nvmlDeviceGetSramEccErrorStatus);
  if (status->version != NV_STRUCT_VERSION(NvSramEcc, 1)) return NV_ARGUMENT_VERSION_MISMATCH;
  if (gpu->architecture < NV_ARCH_AMPERE || gpu->ecc_current != NV_ENABLED) return NV_NOT_SUPPORTED;
  const NvUint version = status->version;
  memset(status, 0, sizeof *status);
  status->version = version;
  status->aggregateUncSecDed = gpu->ecc_aggregate.count[1][0];
  status->aggregateCor = gpu->ecc_aggregate.count[0][0];
  status->volatileUncSecDed = gpu->ecc_volatile.count[1][0];
  status->volatileCor = gpu->ecc_volatile.count[0][0];
  status->aggregateUncBucketL2 = gpu->ecc_aggregate.count[1][0];
  status->bThresholdExceeded = gpu->sram_threshold_exceeded;
  return NV_SUCCESS;
}

static NvReturn Retired(const SimGpu* gpu, NvUint cause, NvUint* count, NvUlong* addresses,
                        NvUlong* times) {
  if (!count || cause > 1) return NV_INVALID_ARGUMENT;
  if (!gpu->has_retirement) return NV_NOT_SUPPORTED;
  const NvUint pages = cause == 0 ? gpu->retired_single : gpu->retired_double;
  const int short_of_room = addresses ? *count < pages : *count != 0;
  if (addresses && !short_of_room) {
    for (NvUint i = 0; i < pages; i++) {
      addresses[i] = 0x1000u + i * 0x1000u;
      if (times) times[i] = MachineTime();
    }
  }
  *count = pages;
  return short_of_room ? NV_INSUFFICIENT_SIZE : NV_SUCCESS;
}

NvReturn nvmlDeviceGetRetiredPages(NvDevice device, NvUint cause, NvUint* count,
                                   NvUlong* addresses) {
  DEVICE_CALL(nvmlDeviceGetRetiredPages);
  return Retired(gpu, cause, count, addresses, 0);
}

NvReturn nvmlDeviceGetRetiredPages_v2(NvDevice device, NvUint cause, NvUint* count,
                                      NvUlong* addresses, NvUlong* times) {
  DEVICE_CALL(nvmlDeviceGetRetiredPages_v2);
  return Retired(gpu, cause, count, addresses, times);
}

NvReturn nvmlDeviceGetRetiredPagesPendingStatus(NvDevice device, NvUint* pending) {
  DEVICE_CALL(nvmlDeviceGetRetiredPagesPendingStatus);
  return Give(gpu->has_retirement ? gpu->retire_pending : SIM_NA, pending);
}

int HasRemapper(const SimGpu* gpu) { return gpu->has_remapper && gpu->mig_current != NV_ENABLED; }

NvReturn nvmlDeviceGetRemappedRows(NvDevice device, NvUint* correctable, NvUint* uncorrectable,
                                   NvUint* pending, NvUint* failure) {
  if (!correctable || !uncorrectable || !pending || !failure) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetRemappedRows);
  if (!HasRemapper(gpu)) return NV_NOT_SUPPORTED;
  *correctable = gpu->remapped_correctable;
  *uncorrectable = gpu->remapped_uncorrectable;
  *pending = gpu->remap_pending;
  *failure = gpu->remap_failure;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetRowRemapperHistogram(NvDevice device, NvRemapHistogram* histogram) {
  NEED(histogram);
  DEVICE_CALL(nvmlDeviceGetRowRemapperHistogram);
  if (!gpu->has_remapper) return NV_NOT_SUPPORTED;
  const NvUint used = gpu->remapped_uncorrectable < gpu->remapper_banks
                          ? gpu->remapped_uncorrectable
                          : gpu->remapper_banks;
  memset(histogram, 0, sizeof *histogram);
  histogram->high = gpu->remap_failure ? used - 1 : used;
  histogram->none = gpu->remap_failure ? 1 : 0;
  histogram->max = gpu->remapper_banks - histogram->high - histogram->none;
  return NV_SUCCESS;
}
