// The tables of `nvidia-smi mig`, in the widths of each driver branch.
#pragma once

#include <vector>

#include "sim/nvidia-smi/instances.h"

namespace smi {

void PrintProfiles(const std::vector<const Gpu*>& gpus);
void PrintPlacements(const std::vector<const Gpu*>& gpus);
void PrintInstances(const std::vector<Instance>& instances);
void PrintComputeProfiles(const std::vector<Instance>& instances);
void PrintComputePlacements(const std::vector<Instance>& instances);
void PrintComputes(const std::vector<Compute>& computes);
/// The part of the default table with MIG devices; nothing if no GPU is in MIG mode.
void PrintMigDevices(const std::vector<Gpu>& gpus);

}  // namespace smi
