// Declarations shared by the files that answer field values.
#ifndef PENSTOCK_SIM_NVML_FIELDS_H_
#define PENSTOCK_SIM_NVML_FIELDS_H_

#include "sim/nvml/library.h"

// One call's view of a device: its meters are read once.
struct Look {
  const SimGpu* gpu;
  struct Meters meters;
};

// Store a value that may be SIM_NA (NOT_SUPPORTED), and a 64-bit value that may be absent.
void FieldUint(NvFieldValue* field, uint32_t value);
void FieldLong(NvFieldValue* field, int there, uint64_t value);

// Answers a field of NVLink; returns 0 for any other field.
int LinkField(NvFieldValue* field, const struct Look* look);

#endif  // PENSTOCK_SIM_NVML_FIELDS_H_
