// What is known of AMD's devices.
#pragma once

#include "backend/amd/machine.h"
#include "device/model.h"

namespace penstock::backend::amd {

/// Whether a GPU is divided: its mode says so, or there are several partitions.
bool IsDivided(const AmdGpu& gpu, const std::string& compute_mode);

/// Facts of a GPU. A divided one has parts and no files: its partitions do.
device::Facts FactsOfGpu(const Machine& machine, const std::vector<AmdGpu>& gpus,
                         const AmdGpu& gpu);

/// Facts of one of its partitions.
device::Facts FactsOfPart(const Machine& machine, const std::vector<AmdGpu>& gpus,
                          const AmdGpu& gpu, const Partition& partition);

}  // namespace penstock::backend::amd
