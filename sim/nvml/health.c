// ECC, retired pages, remapped rows and field values, the recovery action among them. Reads the state, changes nothing.
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

static NvReturn Counts(const SimGpu* gpu, NvUint error, NvUint counter, const uint64_t** counts) {
  if (error > 1 || counter > 1) return NV_INVALID_ARGUMENT;
  if (gpu->ecc_current != NV_ENABLED) return NV_NOT_SUPPORTED;
  *counts = (counter == NV_ECC_VOLATILE ? &gpu->ecc_volatile : &gpu->ecc_aggregate)->count[error];
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetTotalEccErrors(NvDevice device, NvUint error, NvUint counter, NvUlong* count) {
  NEED(count);
  DEVICE_CALL(nvmlDeviceGetTotalEccErrors);
  const uint64_t* counts;
  const NvReturn result = Counts(gpu, error, counter, &counts);
  if (result == NV_SUCCESS) *count = counts[0] + counts[1];
  return result;
}

NvReturn nvmlDeviceGetDetailedEccErrors(NvDevice device, NvUint error, NvUint counter, NvEccCounts* counts) {
  NEED(counts);
  DEVICE_CALL(nvmlDeviceGetDetailedEccErrors);
  const uint64_t* found;
  const NvReturn result = Counts(gpu, error, counter, &found);
  if (result == NV_SUCCESS) *counts = (NvEccCounts){0, found[0], found[1], 0};
  return result;
}

NvReturn nvmlDeviceGetMemoryErrorCounter(NvDevice device, NvUint error, NvUint counter, NvUint location, NvUlong* count) {
  if (!count || location >= NV_LOCATION_COUNT) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetMemoryErrorCounter);
  const uint64_t* counts;
  const NvReturn result = Counts(gpu, error, counter, &counts);
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

static NvReturn Retired(const SimGpu* gpu, NvUint cause, NvUint* count, NvUlong* addresses, NvUlong* times) {
  if (!count || cause > 1) return NV_INVALID_ARGUMENT;
  if (!gpu->has_retirement) return NV_NOT_SUPPORTED;
  const NvUint pages = cause == 0 ? gpu->retired_single : gpu->retired_double;
  const int short_of_room = addresses ? *count < pages : *count != 0;
  if (addresses && !short_of_room) {
    for (NvUint i = 0; i < pages; i++) {
      addresses[i] = 0x1000u + i * 0x1000u;
      if (times) times[i] = NowMicroseconds();
    }
  }
  *count = pages;
  return short_of_room ? NV_INSUFFICIENT_SIZE : NV_SUCCESS;
}

NvReturn nvmlDeviceGetRetiredPages(NvDevice device, NvUint cause, NvUint* count, NvUlong* addresses) {
  DEVICE_CALL(nvmlDeviceGetRetiredPages);
  return Retired(gpu, cause, count, addresses, 0);
}

NvReturn nvmlDeviceGetRetiredPages_v2(NvDevice device, NvUint cause, NvUint* count, NvUlong* addresses, NvUlong* times) {
  DEVICE_CALL(nvmlDeviceGetRetiredPages_v2);
  return Retired(gpu, cause, count, addresses, times);
}

NvReturn nvmlDeviceGetRetiredPagesPendingStatus(NvDevice device, NvUint* pending) {
  DEVICE_CALL(nvmlDeviceGetRetiredPagesPendingStatus);
  return Give(gpu->has_retirement ? gpu->retire_pending : SIM_NA, pending);
}

static int HasRemapper(const SimGpu* gpu) { return gpu->has_remapper && gpu->mig_current != NV_ENABLED; }

NvReturn nvmlDeviceGetRemappedRows(NvDevice device, NvUint* correctable, NvUint* uncorrectable, NvUint* pending, NvUint* failure) {
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
  const NvUint used = gpu->remapped_uncorrectable < gpu->remapper_banks ? gpu->remapped_uncorrectable : gpu->remapper_banks;
  memset(histogram, 0, sizeof *histogram);
  histogram->high = gpu->remap_failure ? used - 1 : used;
  histogram->none = gpu->remap_failure ? 1 : 0;
  histogram->max = gpu->remapper_banks - histogram->high - histogram->none;
  return NV_SUCCESS;
}

static void FieldUint(NvFieldValue* field, uint32_t value) {
  field->valueType = NV_VALUE_UINT;
  field->nvmlReturn = Give(value, &field->value.uiVal);
}

static void FieldCount(NvFieldValue* field, const SimGpu* gpu, NvUint error, NvUint counter) {
  const uint64_t* counts;
  field->valueType = NV_VALUE_ULONGLONG;
  field->nvmlReturn = Counts(gpu, error, counter, &counts);
  if (field->nvmlReturn == NV_SUCCESS) field->value.ullVal = counts[0] + counts[1];
}

static void FieldLong(NvFieldValue* field, int there, uint64_t value) {
  field->valueType = NV_VALUE_ULONGLONG;
  field->nvmlReturn = there ? NV_SUCCESS : NV_NOT_SUPPORTED;
  if (there) field->value.ullVal = value;
}

static void FieldMargin(NvFieldValue* field, const SimGpu* gpu, int32_t margin) {
  field->valueType = NV_VALUE_INT;
  field->nvmlReturn = gpu->limits_are_margins ? NV_SUCCESS : NV_NOT_SUPPORTED;
  if (gpu->limits_are_margins) field->value.siVal = margin;
}

static int ActiveLinks(const SimGpu* gpu) {
  int active = 0;
  for (uint32_t i = 0; i < gpu->nvlink_count && i < kSimMaxLinks; i++) active += gpu->nvlinks[i].active != 0;
  return active;
}

static void LinkField(NvFieldValue* field, const SimGpu* gpu, uint32_t link) {
  const int up = link < gpu->nvlink_count && link < kSimMaxLinks && gpu->nvlinks[link].active;
  switch (field->fieldId) {
    case NV_FI_NVLINK_GET_STATE: FieldUint(field, link < gpu->nvlink_count ? (uint32_t)up : SIM_NA); break;
    case NV_FI_NVLINK_GET_VERSION: FieldUint(field, up ? gpu->nvlink_version : SIM_NA); break;
    default: FieldUint(field, up ? gpu->nvlink_mbps : SIM_NA); break;
  }
}

static int IsLinkField(NvUint id) {
  return (id >= NV_FI_NVLINK_GET_SPEED && id <= NV_FI_NVLINK_GET_VERSION) || (id >= NV_FI_NVLINK_SPEED_L0 && id <= NV_FI_NVLINK_SPEED_L5) ||
         (id >= NV_FI_NVLINK_SPEED_L6 && id <= NV_FI_NVLINK_SPEED_L11);
}

static uint32_t LinkOfField(const NvFieldValue* field) {
  if (field->fieldId <= NV_FI_NVLINK_SPEED_L5) return field->fieldId - NV_FI_NVLINK_SPEED_L0;
  if (field->fieldId <= NV_FI_NVLINK_SPEED_L11) return 6 + field->fieldId - NV_FI_NVLINK_SPEED_L6;
  return field->scopeId;
}

static void PowerField(NvFieldValue* field, const SimGpu* gpu) {
  switch (field->fieldId) {
    case NV_FI_POWER_AVERAGE:
    case NV_FI_POWER_INSTANT: FieldUint(field, gpu->power_draw); break;
    case NV_FI_POWER_MIN_LIMIT: FieldUint(field, gpu->power_min); break;
    case NV_FI_POWER_MAX_LIMIT: FieldUint(field, gpu->power_max); break;
    case NV_FI_POWER_DEFAULT_LIMIT: FieldUint(field, gpu->power_default); break;
    default: FieldUint(field, gpu->power_limit); break;
  }
}

static void MemoryField(NvFieldValue* field, const SimGpu* gpu) {
  switch (field->fieldId) {
    case NV_FI_RETIRED_SBE: FieldLong(field, (int)gpu->has_retirement, gpu->retired_single); break;
    case NV_FI_RETIRED_DBE: FieldLong(field, (int)gpu->has_retirement, gpu->retired_double); break;
    case NV_FI_RETIRED_PENDING: FieldLong(field, (int)gpu->has_retirement, gpu->retire_pending); break;
    case NV_FI_REMAPPED_COR: FieldUint(field, HasRemapper(gpu) ? gpu->remapped_correctable : SIM_NA); break;
    case NV_FI_REMAPPED_UNC: FieldUint(field, HasRemapper(gpu) ? gpu->remapped_uncorrectable : SIM_NA); break;
    case NV_FI_REMAPPED_PENDING: FieldUint(field, HasRemapper(gpu) ? gpu->remap_pending : SIM_NA); break;
    case NV_FI_REMAPPED_FAILURE: FieldUint(field, HasRemapper(gpu) ? gpu->remap_failure : SIM_NA); break;
    case NV_FI_MEMORY_TEMP: FieldUint(field, gpu->memory_temperature); break;
    default: field->nvmlReturn = NV_NOT_SUPPORTED; break;
  }
}

static void Field(const SimGpu* gpu, NvDevice device, NvFieldValue* field) {
  const NvUint id = field->fieldId;
  NvUlong energy = 0;
  if (IsLinkField(id)) {
    LinkField(field, gpu, LinkOfField(field));
    return;
  }
  if ((id >= NV_FI_POWER_AVERAGE && id <= NV_FI_POWER_CURRENT_LIMIT) || id == NV_FI_POWER_REQUESTED_LIMIT) {
    PowerField(field, gpu);
    return;
  }
  switch (id) {
    case NV_FI_ECC_CURRENT: FieldUint(field, gpu->ecc_current); break;
    case NV_FI_ECC_PENDING: FieldUint(field, gpu->ecc_pending); break;
    case NV_FI_ECC_SBE_VOL_TOTAL: FieldCount(field, gpu, 0, 0); break;
    case NV_FI_ECC_DBE_VOL_TOTAL: FieldCount(field, gpu, 1, 0); break;
    case NV_FI_ECC_SBE_AGG_TOTAL: FieldCount(field, gpu, 0, 1); break;
    case NV_FI_ECC_DBE_AGG_TOTAL: FieldCount(field, gpu, 1, 1); break;
    case NV_FI_NVLINK_CRC_FLIT_TOTAL:
    case NV_FI_NVLINK_CRC_DATA_TOTAL:
    case NV_FI_NVLINK_REPLAY_TOTAL:
    case NV_FI_NVLINK_RECOVERY_TOTAL: FieldLong(field, ActiveLinks(gpu) > 0, 0); break;
    case NV_FI_NVLINK_SPEED_COMMON: FieldUint(field, ActiveLinks(gpu) ? gpu->nvlink_mbps : SIM_NA); break;
    case NV_FI_NVLINK_LINK_COUNT: FieldUint(field, gpu->nvlink_count); break;
    case NV_FI_NVSWITCH_CONNECTED_LINK_COUNT:
      FieldUint(field, ActiveLinks(gpu) && gpu->nvlinks[0].remote_type == NV_LINK_TO_SWITCH ? (uint32_t)ActiveLinks(gpu) : 0);
      break;
    case NV_FI_PCIE_REPLAY: FieldUint(field, gpu->pcie_replays); break;
    case NV_FI_TOTAL_ENERGY:
    case NV_FI_ENERGY: FieldLong(field, nvmlDeviceGetTotalEnergyConsumption(device, &energy) == NV_SUCCESS, energy); break;
    case NV_FI_TLIMIT_SHUTDOWN: FieldMargin(field, gpu, gpu->limit_shutdown); break;
    case NV_FI_TLIMIT_SLOWDOWN: FieldMargin(field, gpu, gpu->limit_slowdown); break;
    case NV_FI_TLIMIT_MEM_MAX:
    case NV_FI_TLIMIT_GPU_MAX: FieldMargin(field, gpu, gpu->limit_max); break;
    case NV_FI_RECOVERY_ACTION: FieldUint(field, gpu->recovery_action); break;
    default: MemoryField(field, gpu); break;
  }
}

// The branch that brought a field; an older driver refuses the id.
static uint32_t BranchOfField(NvUint id) {
  if (id >= 226) return 565;
  if (id >= 185) return 525;
  return 0;
}

NvReturn nvmlDeviceGetFieldValues(NvDevice device, int count, NvFieldValue* values) {
  if (!values || count < 0) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetFieldValues);
  const int lost = (gpu->lost & kSimLostInGetter) != 0;
  for (int i = 0; i < count; i++) {
    NvFieldValue* field = &values[i];
    field->timestamp = (long long)NowMicroseconds();
    field->latencyUsec = 0;
    if (BranchOfField(field->fieldId) > SessionState()->driver_branch)
      field->nvmlReturn = NV_INVALID_ARGUMENT;
    else if (lost && field->fieldId != NV_FI_RECOVERY_ACTION)
      field->nvmlReturn = NV_GPU_IS_LOST;
    else
      Field(gpu, device, field);
  }
  return NV_SUCCESS;
}
