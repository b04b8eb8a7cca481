// Samples what MIG devices and GPU instances measure themselves: memory, and the activity of their
// units.
#pragma once

#include "backend/nvidia/sampling/sample_builder.h"

namespace penstock::backend::nvidia {

/// Marks the quantities that no instance has; their values are the GPU's. DCGM has the same ones
/// for instances.
void PrepareInstance(SampledGpu& instance);

/// `builder` is about a MIG device. The instance that it fills or stands for has been set in its
/// GPM; without `measured`, it shares one with others, and the activity of its units is not known.
void ReadInstance(SampleBuilder& builder, bool measured);

}  // namespace penstock::backend::nvidia
