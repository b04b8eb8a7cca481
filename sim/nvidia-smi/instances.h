// The GPU instances, compute instances and MIG devices of GPUs, as nvidia-smi lists them.
#pragma once

#include <string>
#include <vector>

#include "sim/nvidia-smi/nvml.h"

namespace smi {

struct Instance {
  const Gpu* gpu;
  NvGpuInstance handle;
  NvGpuInstanceInfo info;
  NvGpuInstanceProfile2 profile;
};

struct Compute {
  Instance in;
  NvComputeInstance handle;
  NvComputeInstanceInfo info;
  NvComputeProfile2 profile;
};

/// Return the profiles that the GPU or the GPU instance has.
std::vector<NvGpuInstanceProfile2> ProfilesOf(const Gpu& gpu);
std::vector<NvComputeProfile2> ProfilesOf(const Instance& instance);

/// Return the instances on the GPUs that have one of these ids; without ids, all.
std::vector<Instance> InstancesOn(const std::vector<const Gpu*>& gpus,
                                  const std::vector<std::string>& ids);
std::vector<Compute> ComputesIn(const std::vector<Instance>& instances,
                                const std::vector<std::string>& ids);

struct MigDevice {
  NvUint index, instance, compute;
  NvDevice device;
  std::string name, uuid;  // "MIG 3g.20gb"
  NvAttributes attributes;
  NvMemory2 memory;
  NvBar1Memory bar1;
};
std::vector<MigDevice> MigDevicesOf(const Gpu& gpu);

/// Whether MIG mode is on.
bool InMigMode(const Gpu& gpu);

}  // namespace smi
