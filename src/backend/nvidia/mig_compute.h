// Compute instances: the parts of a GPU instance that share its memory, and where they lie in it.
// Keeps no state.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "backend/nvidia/nvml.h"
#include "base/core/result.h"
#include "device/model.h"

namespace penstock::backend::nvidia {

/// The placements that a function of the driver lists for a profile, ascending; none if it fails.
template <typename Handle>
std::vector<device::Placement> ListPlacements(
    const Function<Handle, unsigned, abi::Placement*, unsigned*>& list, Handle of,
    unsigned profile) {
  std::array<abi::Placement, 64> found{};
  unsigned count = found.size();
  if (list(of, profile, found.data(), &count) != abi::kSuccess) return {};
  std::vector<device::Placement> placements;
  for (unsigned i = 0; i < std::min<unsigned>(count, found.size()); ++i)
    placements.push_back({static_cast<int>(found[i].start), static_cast<int>(found[i].size)});
  std::ranges::sort(placements);
  return placements;
}

/// The profiles of compute instances that are smaller than a GPU instance of this profile.
std::vector<device::PartProfile> ComputeProfilesWithin(const device::PartProfile& outer);

/// Sets the placements of profiles of compute instances. The driver reports them only of a GPU
/// instance that exists, and a plan is made before. NVIDIA's open kernel modules have two rules. On
/// GPUs on which one slice with twice the memory has more multiprocessors than one slice, compute
/// instances begin at multiples of their size, and three slices take as much as four; on the others
/// they begin at any slice. The placements here are those that both rules permit.
void PlaceComputeProfiles(std::vector<device::PartProfile>& profiles);

/// NVML's id of the profile with so many slices.
base::Result<unsigned> ComputeProfile(const Nvml& nvml, abi::GpuInstance instance, int slices);

/// Where a compute instance lies. Nothing: this driver does not place them, or it is gone.
base::Result<std::optional<device::Placement>> ComputePlacement(const Nvml& nvml,
                                                                abi::GpuInstance instance,
                                                                unsigned id);

/// Without a placement, and where this driver has no such placement, the driver chooses.
base::Status CreateComputeInstance(const Nvml& nvml, abi::GpuInstance instance, int slices,
                                   const std::optional<device::Placement>& placement);

}  // namespace penstock::backend::nvidia
