// Reads the MIG profiles of a model. What is equal in all models with as many slices (numbers, ids,
// placements) is here; the catalogue has the rest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/core/document.h"
#include "sim/state.h"

namespace penstock::sim {

/// The profiles of a model, by NVML's numbers; absent ones have no name.
struct MigModel {
  std::uint32_t devices = 0;  // the most that exist at one time; 0: the model has no MIG
  std::array<SimMigProfile, kSimMigProfiles> profiles{};
};

/// Reads `mig: {slices: 7 | 4, profiles: {1g: {gb: 5, memory: 4864, …}, …}}`.
MigModel ReadMig(base::MapReader& model, base::Problems& problems);

/// Copies into a GPU the profiles that a driver branch knows.
void ApplyProfiles(const MigModel& model, std::uint32_t branch, SimGpu& gpu);

}  // namespace penstock::sim
