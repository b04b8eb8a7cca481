// Reads and writes the files of mig-parted's verb `checkpoint`: the MIG mode of each GPU, and its
// GPU and compute instances at their places. Pure.
//
// Its JSON is that of Go's structs without names for the keys (api/checkpoint/v1/state.go,
// pkg/types/mig_state.go). Profiles are numbers of NVML: NVML_GPU_INSTANCE_PROFILE_*,
// NVML_COMPUTE_INSTANCE_PROFILE_* and NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_*. The placement of a
// compute instance is an addition, which mig-parted ignores.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api::compat {

struct MigCheckpoint {
  struct Placement {
    int start = 0, size = 0;
    bool operator==(const Placement&) const = default;
  };
  struct ComputeInstance {
    int profile = 0;
    int engines = 0;
    std::optional<Placement> placement = {};  ///< slices of compute; nothing: any
    bool operator==(const ComputeInstance&) const = default;
  };
  struct GpuInstance {
    int profile = 0;
    int start = 0, size = 0;  ///< slices of memory
    std::vector<ComputeInstance> compute_instances;
    bool operator==(const GpuInstance&) const = default;
  };
  struct Gpu {
    std::string uuid;
    bool enabled = false;
    std::vector<GpuInstance> instances;
    bool operator==(const Gpu&) const = default;
  };
  std::vector<Gpu> gpus;  ///< all that have a MIG mode
  bool operator==(const MigCheckpoint&) const = default;
};

/// Reads also the keys ProfileId and EngProfileId of older versions. kInvalidArgument: all
/// problems, each with file:line:column; unlike mig-parted also unknown keys, GPUs that occur
/// twice, and instances of a GPU whose MIG mode is disabled.
Result<MigCheckpoint> ReadMigCheckpoint(std::string_view text, std::string_view file);

std::string WriteMigCheckpoint(const MigCheckpoint& checkpoint);

/// The slices of a profile of compute instances; nothing: unknown.
std::optional<int> SlicesOfComputeProfile(int profile);
/// The profile of compute instances with so many slices; nothing: there is none.
std::optional<int> ComputeProfileOf(int slices);

}  // namespace penstock::api::compat
