// Names of MIG profiles: their grammar, and which profile of a GPU a name means; names of
// instances. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "device/model.h"

namespace penstock::backend::nvidia {

/// "1c.3g.20gb", "1g.24gb+me.all", "1g.24gb-me" (go-nvlib, pkg/nvlib/device/mig_profile.go).
struct MigProfile {
  int compute = 0;  ///< slices of the compute instance; equal to `slices` if it fills the instance
  int slices = 0;   ///< of compute, of the GPU instance
  int gigabytes = 0;
  std::vector<std::string> attributes;  ///< that it has: "me", "gfx"; sorted
  std::vector<std::string> without;     ///< that it lacks, sorted; one of the two lists is empty
  bool operator==(const MigProfile&) const = default;
};

/// kInvalidArgument: what is wrong with the name.
Result<MigProfile> ParseMigProfile(std::string_view name);

/// The canonical name.
std::string ToString(const MigProfile& profile);

/// The end of the resource's name, as NVIDIA's device plugin forms it: "mig-1g.5gb.me" in
/// "nvidia.com/mig-1g.5gb.me".
std::string MigResource(std::string_view profile);

/// The profile of a GPU that a name means: the one of this name, else the nearest one with the same
/// slices and attributes whose memory differs by at most 5 percent. The names contain the memory in
/// GB as the driver rounds it, and drivers differ: "7g.79gb" and "7g.80gb"
/// (NVIDIA/gpu-operator#351), "3g.39gb" and "3g.40gb". Five percent distinguish all models and
/// variants: the next ones are 1g.5gb and 1g.6gb, 1g.10gb and 1g.12gb. Errors, with "did you mean":
/// kInvalidArgument, it is no name of a profile; kNotFound, the GPU has no such profile, or two
/// that are equally near.
Result<const device::PartProfile*> FindMigProfile(std::string_view name,
                                                  std::span<const device::PartProfile> profiles);

/// An instance of a GPU in facts and evidence (device::Facts::part): "3", of the GPU instance 3;
/// "3/0", of its compute instance 0.
std::string PartName(std::uint64_t gpu_instance, std::optional<std::uint64_t> compute_instance);

}  // namespace penstock::backend::nvidia
