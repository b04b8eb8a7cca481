// NVML's field values: values queried by number, many in one call. Reads the state, changes
// nothing.
#include "sim/nvml/fields.h"

#include <stdio.h>
#include <string.h>

void FieldUint(NvFieldValue* field, uint32_t value) {
  field->valueType = NV_VALUE_UINT;
  field->nvmlReturn = Give(value, &field->value.uiVal);
}

void FieldLong(NvFieldValue* field, int there, uint64_t value) {
  field->valueType = NV_VALUE_ULONGLONG;
  field->nvmlReturn = there ? NV_SUCCESS : NV_NOT_SUPPORTED;
  if (there) field->value.ullVal = value;
}

static void FieldReading(NvFieldValue* field, const SimGpu* gpu, enum SimReading reading,
                         uint32_t value) {
  field->valueType = NV_VALUE_UINT;
  field->nvmlReturn = GiveReading(gpu, reading, value, &field->value.uiVal);
}

static void FieldMargin(NvFieldValue* field, const SimGpu* gpu, int32_t margin) {
  field->valueType = NV_VALUE_INT;
  field->nvmlReturn = gpu->limits_are_margins ? NV_SUCCESS : NV_NOT_SUPPORTED;
  if (gpu->limits_are_margins) field->value.siVal = margin;
}

static void EccField(NvFieldValue* field, const SimGpu* gpu) {
  static const struct {
    NvUint error, counter;
  } kOf[] = {{NV_ERRORS_CORRECTED, NV_ECC_VOLATILE},
             {NV_ERRORS_UNCORRECTED, NV_ECC_VOLATILE},
             {NV_ERRORS_CORRECTED, NV_ECC_AGGREGATE},
             {NV_ERRORS_UNCORRECTED, NV_ECC_AGGREGATE}};
  const NvUint at = field->fieldId - NV_FI_ECC_SBE_VOL_TOTAL;
  const uint64_t* counts;
  field->valueType = NV_VALUE_ULONGLONG;
  field->nvmlReturn = EccErrors(gpu, kOf[at].error, kOf[at].counter, &counts);
  if (field->nvmlReturn == NV_SUCCESS) field->value.ullVal = counts[0] + counts[1];
}

// Up to Volta, errors are counted by location; from Turing on, the locations are SRAM and DRAM, and
// only DRAM has fields.
static void EccPlaceField(NvFieldValue* field, const SimGpu* gpu) {
  // Volatile, then aggregate. Each has L1, L2, device memory, registers and textures, first
  // corrected, then uncorrected; the last field is uncorrected.
  const NvUint at = field->fieldId - NV_FI_ECC_SBE_VOL_L1, aggregate = at >= 11,
               in = aggregate ? at - 11 : at;
  const NvUint place = in / 2, error = in == 10 ? NV_ERRORS_UNCORRECTED : in % 2;
  const uint64_t* counts;
  field->valueType = NV_VALUE_ULONGLONG;
  field->nvmlReturn =
      EccErrors(gpu, error, aggregate ? NV_ECC_AGGREGATE : NV_ECC_VOLATILE, &counts);
  if (field->nvmlReturn != NV_SUCCESS) return;
  if (place == 2)
    field->value.ullVal = counts[1];
  else if (gpu->architecture < NV_ARCH_TURING)
    field->value.ullVal = place == 1 ? counts[0] : 0;
  else
    field->nvmlReturn = NV_NOT_SUPPORTED;
}

// Only the scope of the GPU is supported: the simulated machine has no module scope.
static void PowerField(NvFieldValue* field, const SimGpu* gpu) {
  if (field->scopeId != NV_POWER_SCOPE_GPU) {
    FieldUint(field, SIM_NA);
    return;
  }
  switch (field->fieldId) {
    case NV_FI_POWER_AVERAGE:
      if (HasAveragePower(gpu))
        FieldReading(field, gpu, kSimReadPower, gpu->power_draw);
      else
        FieldUint(field, SIM_NA);
      break;
    case NV_FI_POWER_INSTANT: FieldReading(field, gpu, kSimReadPower, gpu->power_draw); break;
    case NV_FI_POWER_MIN_LIMIT: FieldUint(field, gpu->power_min); break;
    case NV_FI_POWER_MAX_LIMIT: FieldUint(field, gpu->power_max); break;
    case NV_FI_POWER_DEFAULT_LIMIT: FieldUint(field, gpu->power_default); break;
    default: FieldUint(field, gpu->power_limit); break;
  }
}

static void MemoryField(NvFieldValue* field, const SimGpu* gpu) {
  const int remaps = HasRemapper(gpu), retires = (int)gpu->has_retirement;
  switch (field->fieldId) {
    case NV_FI_RETIRED_SBE: FieldLong(field, retires, gpu->retired_single); break;
    case NV_FI_RETIRED_DBE: FieldLong(field, retires, gpu->retired_double); break;
    case NV_FI_RETIRED_PENDING: FieldLong(field, retires, gpu->retire_pending); break;
    case NV_FI_REMAPPED_COR: FieldUint(field, remaps ? gpu->remapped_correctable : SIM_NA); break;
    case NV_FI_REMAPPED_UNC: FieldUint(field, remaps ? gpu->remapped_uncorrectable : SIM_NA); break;
    case NV_FI_REMAPPED_PENDING: FieldUint(field, remaps ? gpu->remap_pending : SIM_NA); break;
    case NV_FI_REMAPPED_FAILURE: FieldUint(field, remaps ? gpu->remap_failure : SIM_NA); break;
    case NV_FI_MEMORY_TEMP:
      FieldReading(field, gpu, kSimReadMemoryTemperature, gpu->memory_temperature);
      break;
    default: field->nvmlReturn = NV_NOT_SUPPORTED; break;
  }
}

// Returns the first of the three reasons' fields. They were added in 575 and renumbered between
// 580.65 and 580.82, when the power smoothing fields got their numbers of 570 back.
static NvUint FirstReason(void) {
  const SimState* state = SessionState();
  unsigned branch = 0, minor = 0;
  sscanf(state->driver_version, "%u.%u", &branch, &minor);
  if (branch < 575) return 0;
  return branch > 580 || (branch == 580 && minor >= 82) ? NV_FI_REASON_SW_THERMAL
                                                        : NV_FI_REASON_SW_THERMAL_575;
}

// Counts that grow with the clock.
static int MeterField(NvFieldValue* field, const struct Look* look) {
  const SimGpu* gpu = look->gpu;
  const int real = gpu->virtualization == 0, counts_pcie = SessionState()->driver_branch >= 555;
  const NvUint id = field->fieldId;
  if (id >= NV_FI_PERF_POLICY_POWER && id <= NV_FI_PERF_POLICY_BASE_CLOCKS) {
    FieldLong(field, real, look->meters.count[kSimLimitedByPower + (id - NV_FI_PERF_POLICY_POWER)]);
    return 1;
  }
  const NvUint first = FirstReason();
  if (first && id >= first && id < first + 3) {
    FieldLong(field, real, look->meters.count[kSimLimitedBySwHeat + (id - first)]);
    return 1;
  }
  switch (id) {
    case NV_FI_TOTAL_ENERGY:
    case NV_FI_ENERGY:
      FieldLong(field, gpu->architecture >= NV_ARCH_VOLTA && gpu->power_draw != SIM_NA,
                look->meters.count[kSimEnergy]);
      return 1;
    // Not in the bindings before 555.
    case NV_FI_PCIE_TX_BYTES:
      FieldLong(field, real && counts_pcie, look->meters.count[kSimPcieTx]);
      return 1;
    case NV_FI_PCIE_RX_BYTES:
      FieldLong(field, real && counts_pcie, look->meters.count[kSimPcieRx]);
      return 1;
    default: return 0;
  }
}

static void Field(const struct Look* look, NvFieldValue* field) {
  const SimGpu* gpu = look->gpu;
  const NvUint id = field->fieldId;
  if (MeterField(field, look) || LinkField(field, look)) return;
  if ((id >= NV_FI_POWER_AVERAGE && id <= NV_FI_POWER_CURRENT_LIMIT) ||
      id == NV_FI_POWER_REQUESTED_LIMIT) {
    PowerField(field, gpu);
    return;
  }
  if (id >= NV_FI_ECC_SBE_VOL_L1 && id <= NV_FI_ECC_DBE_AGG_CBU) {
    EccPlaceField(field, gpu);
    return;
  }
  const int is_pcie_error =
      id == NV_FI_PCIE_L0_TO_RECOVERY || (id >= NV_FI_PCIE_CORRECTABLE && id <= NV_FI_PCIE_LANE);
  if (is_pcie_error) {
    const NvUint place = id == NV_FI_PCIE_L0_TO_RECOVERY ? 0 : id - NV_FI_PCIE_CORRECTABLE + 1;
    FieldUint(field, gpu->architecture >= NV_ARCH_HOPPER ? gpu->pcie_errors[place] : SIM_NA);
    return;
  }
  switch (id) {
    case NV_FI_ECC_CURRENT: FieldUint(field, gpu->ecc_current); break;
    case NV_FI_ECC_PENDING: FieldUint(field, gpu->ecc_pending); break;
    case NV_FI_ECC_SBE_VOL_TOTAL:
    case NV_FI_ECC_DBE_VOL_TOTAL:
    case NV_FI_ECC_SBE_AGG_TOTAL:
    case NV_FI_ECC_DBE_AGG_TOTAL: EccField(field, gpu); break;
    case NV_FI_PCIE_REPLAY: FieldUint(field, gpu->pcie_replays); break;
    case NV_FI_PCIE_REPLAY_ROLLOVER:
      FieldUint(field, gpu->pcie_replays == SIM_NA ? SIM_NA : 0);
      break;
    case NV_FI_TLIMIT_SHUTDOWN: FieldMargin(field, gpu, gpu->limit_shutdown); break;
    case NV_FI_TLIMIT_SLOWDOWN: FieldMargin(field, gpu, gpu->limit_slowdown); break;
    case NV_FI_TLIMIT_MEM_MAX:
    case NV_FI_TLIMIT_GPU_MAX: FieldMargin(field, gpu, gpu->limit_max); break;
    case NV_FI_RECOVERY_ACTION: FieldUint(field, gpu->recovery_action); break;
    case NV_FI_MIG_WITHOUT_RESET:
      FieldUint(field, SimHasMig(gpu) ? gpu->architecture >= NV_ARCH_HOPPER : SIM_NA);
      break;
    case NV_FI_MIG_QUERY_WITHOUT_MODE: FieldUint(field, SimHasMig(gpu) ? 1 : SIM_NA); break;
    default: MemoryField(field, gpu); break;
  }
}

// Returns one more than the largest id that a branch supports, as in NVIDIA's Python binding; an
// older driver refuses newer ids.
static NvUint FieldsOf(uint32_t branch) {
  static const struct {
    uint32_t branch;
    NvUint fields;
  } kSteps[] = {{610, 308}, {595, 296}, {590, 289}, {575, 274}, {570, 269}, {565, 231},
                {560, 230}, {555, 223}, {550, 200}, {525, 197}, {0, 161}};
  unsigned i = 0;
  while (kSteps[i].branch > branch) i++;
  return kSteps[i].fields;
}

static void ApplyFieldFault(const SimGpu* gpu, NvFieldValue* field) {
  SimFault fault;
  if (!FieldFault(gpu, field->fieldId, &fault)) return;
  if (fault.field_parts & kSimFieldStatus) field->nvmlReturn = (NvReturn)fault.code;
  if (fault.field_parts & kSimFieldType) field->valueType = fault.field_type;
  if (fault.field_parts & kSimFieldValue)
    memcpy(&field->value, &fault.field_value, sizeof field->value);
}

NvReturn nvmlDeviceGetFieldValues(NvDevice device, int count, NvFieldValue* values) {
  if (!values || count < 0) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetFieldValues);
  const int lost = (gpu->lost & kSimLostInGetter) != 0;
  const NvUint known = FieldsOf(SessionState()->driver_branch);
  struct Look look = {.gpu = gpu};
  ReadMeters(gpu, &look.meters);
  for (int i = 0; i < count; i++) {
    NvFieldValue* field = &values[i];
    field->timestamp = (long long)look.meters.time;
    field->latencyUsec = 0;
    if (field->fieldId == 0 || field->fieldId >= known)
      field->nvmlReturn = NV_INVALID_ARGUMENT;
    else if (lost && field->fieldId != NV_FI_RECOVERY_ACTION)
      field->nvmlReturn = NV_GPU_IS_LOST;
    else
      Field(&look, field);
    ApplyFieldFault(gpu, field);
  }
  return NV_SUCCESS;
}
