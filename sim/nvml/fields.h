// What the files of the field values share.
#ifndef PENSTOCK_SIM_NVML_FIELDS_H_
#define PENSTOCK_SIM_NVML_FIELDS_H_

#include "sim/nvml/library.h"

// One call's look at a device: its meters are read once.
struct Look {
  const SimGpu* gpu;
  struct Meters meters;
};

// A value that may be SIM_NA (NOT_SUPPORTED), and one of 64 bits that may not be there.
void FieldUint(NvFieldValue* field, uint32_t value);
void FieldLong(NvFieldValue* field, int there, uint64_t value);

// Answers a field of NVLink; 0 for any other.
int LinkField(NvFieldValue* field, const struct Look* look);

#endif  // PENSTOCK_SIM_NVML_FIELDS_H_
