#include "backend/nvidia/mig_compute.h"

#include <algorithm>
#include <string>

#include "backend/nvidia/nvml_device.h"

namespace penstock::backend::nvidia {
namespace {

using device::PartProfile;
using device::Placement;

/// The kinds of compute instances, NVML_COMPUTE_INSTANCE_PROFILE_*, of which nvml.h 13 has 8; and
/// the only kind of engines that it knows, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED.
constexpr unsigned kComputeKinds = 8, kSharedEngines = 0;

/// Whether one slice has more multiprocessors in some profile than in another one.
bool AlignsComputeInstances(const std::vector<PartProfile>& profiles) {
  int least = 0, most = 0;
  for (const PartProfile& profile : profiles) {
    if (profile.slices != 1 || !profile.within.empty()) continue;
    const int units = profile.capacity.compute_units;
    least = least == 0 ? units : std::min(least, units);
    most = std::max(most, units);
  }
  return least != most;
}

}  // namespace

std::vector<PartProfile> ComputeProfilesWithin(const PartProfile& outer) {
  std::vector<PartProfile> within;
  // 3 slices exist only in 3 and 7 (MIG user guide, "Compute Instances").
  for (const int slices : {1, 2, 3, 4})
    if (slices < outer.slices && (slices != 3 || outer.slices == 7))
      within.push_back({.name = std::to_string(slices) + "c." + outer.name,
                        .within = outer.name,
                        .slices = slices,
                        .most = outer.slices / slices});
  return within;
}

void PlaceComputeProfiles(std::vector<PartProfile>& profiles) {
  const bool aligned = AlignsComputeInstances(profiles);
  for (PartProfile& profile : profiles) {
    if (profile.within.empty()) continue;
    profile.placements.clear();
    const int step = profile.slices == 3 ? 4 : profile.slices;
    for (int i = 0; i < profile.most; ++i)
      profile.placements.push_back({i * step, aligned ? step : profile.slices});
  }
}

base::Result<unsigned> ComputeProfile(const Nvml& nvml, abi::GpuInstance instance, int slices) {
  for (unsigned kind = 0; kind < kComputeKinds; ++kind) {
    abi::ComputeInstanceProfile info{};
    const abi::Return answer =
        nvml->compute_instance_profile(instance, kind, kSharedEngines, &info);
    if (answer == abi::kSuccess && info.slices == static_cast<unsigned>(slices)) return info.id;
    if (answer == abi::kNoPermission || IsDriverGone(answer) || IsDeviceLost(answer))
      return ToError(answer, nvml->compute_instance_profile.name);
  }
  return Error(Code::kInvalidArgument,
               "this driver has no compute instance of " + std::to_string(slices) + " slices here");
}

base::Result<std::optional<Placement>> ComputePlacement(const Nvml& nvml, abi::GpuInstance instance,
                                                        unsigned id) {
  const std::optional<Placement> unknown;
  if (!nvml->create_compute_instance_at) return unknown;
  const auto is_unknown = [](abi::Return answer) {
    return answer == abi::kNotFound || IsPermanent(answer);
  };
  abi::ComputeInstance compute = nullptr;
  if (const abi::Return answer = nvml->compute_instance_by_id(instance, id, &compute);
      answer != abi::kSuccess)
    return is_unknown(answer) ? base::Result<std::optional<Placement>>(unknown)
                              : ToError(answer, nvml->compute_instance_by_id.name);
  abi::ComputeInstanceInfo info{};
  if (const abi::Return answer = nvml->compute_instance_info(compute, &info);
      answer != abi::kSuccess)
    return is_unknown(answer) ? base::Result<std::optional<Placement>>(unknown)
                              : ToError(answer, nvml->compute_instance_info.name);
  return std::optional(
      Placement{static_cast<int>(info.placement.start), static_cast<int>(info.placement.size)});
}

base::Status CreateComputeInstance(const Nvml& nvml, abi::GpuInstance instance, int slices,
                                   const std::optional<Placement>& placement) {
  ASSIGN(const unsigned profile, ComputeProfile(nvml, instance, slices));
  std::optional<Placement> at = placement;
  if (!nvml->create_compute_instance_at) at.reset();
  if (at) {
    const auto possible = ListPlacements(nvml->compute_instance_placements, instance, profile);
    // Drivers differ in how many slices a placement has, not in where it begins.
    const auto same = std::ranges::find(possible, at->start, &Placement::start);
    if (same != possible.end())
      at = *same;
    else if (!possible.empty())
      at.reset();
  }
  abi::ComputeInstance compute = nullptr;
  if (!at) {
    const abi::Return answer = nvml->create_compute_instance(instance, profile, &compute);
    return answer == abi::kSuccess ? base::Status()
                                   : ToError(answer, nvml->create_compute_instance.name);
  }
  const abi::Placement where{static_cast<unsigned>(at->start), static_cast<unsigned>(at->size)};
  const abi::Return answer = nvml->create_compute_instance_at(instance, profile, &where, &compute);
  return answer == abi::kSuccess ? base::Status()
                                 : ToError(answer, nvml->create_compute_instance_at.name);
}

}  // namespace penstock::backend::nvidia
