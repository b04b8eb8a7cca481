// MIG as NVML reports it: into which parts a GPU can be divided, and its parts. Keeps no state.
//
// The parts of a GPU are its GPU instances. One with a single compute instance that fills it is the
// MIG device, with its UUID. Any other one is a part without a UUID of its own, and its compute
// instances, which share its memory, are parts of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/nvidia/machine_files.h"
#include "backend/nvidia/nvml.h"
#include "base/core/result.h"
#include "device/model.h"

namespace penstock::backend::nvidia {

/// A GPU instance that exists.
struct GpuInstance {
  unsigned id = 0;
  std::string profile;  ///< "1g.5gb"
  device::Placement placement;
  bool operator==(const GpuInstance&) const = default;
};

/// A compute instance that exists, which programs use as a device.
struct MigDevice {
  std::string uuid;
  int index = -1;  ///< NVML's, on its GPU
  unsigned gpu_instance = 0, compute_instance = 0;
  abi::Attributes attributes{};
  std::optional<device::Placement> placement;  ///< in its GPU instance, if it does not fill that
  bool fills_its_gpu_instance() const { return attributes.compute_slices == attributes.gpu_slices; }
};

/// The parts of a GPU, and what it can be divided into.
struct Mig {
  std::vector<device::PartProfile> profiles;  ///< also while MIG mode is disabled: of GPU
                                              ///< instances, and of compute instances within them
  std::map<unsigned, std::string> names;      ///< of the profiles of GPU instances, by NVML's id
  std::vector<GpuInstance> instances;
  std::vector<MigDevice> devices;
  bool permitted = true;  ///< false: this process may not list the instances

  /// Whether one compute instance fills this GPU instance.
  bool IsFilled(const GpuInstance& instance) const;
  /// The addresses of the parts: UUIDs of MIG devices, and "0/3" for GPU instance 3 of GPU 0 where
  /// that is none.
  std::vector<std::string> Addresses(const std::string& gpu) const;
};

/// Without parts.
Mig ReadMigProfiles(const Nvml& nvml, abi::Device gpu, base::Bytes memory);

/// Reads the parts of a GPU in MIG mode. An error means that a call failed that says nothing about
/// the parts; `mig` is then incomplete.
base::Status ReadMigParts(const Nvml& nvml, abi::Device gpu, Mig& mig);

/// Replaces what was derived of the placements of compute instances by what the driver reports of
/// the GPU instances in which there is room for several.
void ReadComputePlacements(const Nvml& nvml, abi::Device gpu, Mig& mig);

/// GPU and GPU instance of "0/3"; nothing for other addresses.
struct GpuInstanceAddress {
  std::string gpu;
  unsigned instance = 0;
};
std::optional<GpuInstanceAddress> ParseGpuInstance(std::string_view address);
bool IsMigDevice(std::string_view address);

/// Facts of a part of this GPU, whose facts are `of_gpu`. kNotFound: `mig` does not have it.
base::Result<device::Facts> MigDeviceFacts(const Mig& mig, const MachineFiles& files,
                                           const device::Facts& of_gpu, const std::string& uuid);
base::Result<device::Facts> GpuInstanceFacts(const Mig& mig, const device::Facts& of_gpu,
                                             const GpuInstanceAddress& address);

/// The name of a profile by its size, as NVIDIA's go-nvlib computes it, for drivers that do not
/// report it: "1g.5gb", with the attributes of this kind of profile (NVML_GPU_INSTANCE_PROFILE_*).
std::string MigProfileName(unsigned kind, unsigned slices, unsigned long long memory_mib,
                           base::Bytes gpu_memory);

}  // namespace penstock::backend::nvidia
