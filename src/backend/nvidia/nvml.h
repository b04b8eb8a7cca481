// NVML, loaded at run time. Any function may be missing: it then returns FUNCTION_NOT_FOUND, as a
// library does that knows it lacks the function.
#pragma once

#include <memory>
#include <string_view>

#include "backend/nvidia/nvml_abi.h"
#include "base/core/result.h"
#include "device/backend.h"
#include "os/library.h"

namespace penstock::backend::nvidia {

/// A function of the library, possibly missing. Any thread.
template <typename... Parameters>
struct Function {
  const char* name = "";
  abi::Return (*pointer)(Parameters...) = nullptr;

  explicit operator bool() const { return pointer != nullptr; }
  abi::Return operator()(Parameters... arguments) const {
    return pointer != nullptr ? pointer(arguments...) : abi::kFunctionNotFound;
  }
};

/// The functions that Penstock calls, named without "nvml" and version. Each is the newest version
/// that the library has.
struct Functions {
  Function<> init, shutdown;
  Function<char*, unsigned> driver_version;
  Function<int*> cuda_version;

  Function<unsigned*> count;
  Function<unsigned, abi::Device*> handle_by_index;
  Function<abi::Device, char*, unsigned> uuid, name, serial, vbios, part_number, inforom_image;
  Function<abi::Device, unsigned, char*, unsigned> inforom;
  Function<abi::Device, unsigned*> minor, brand, max_pcie_generation, max_pcie_width,
      virtualization_mode;
  Function<abi::Device, abi::PciInfo*> pci;
  Function<abi::Device, int*, int*> compute_capability;
  Function<abi::Device, unsigned*, unsigned*> mig_mode;
  Function<abi::Device, abi::Memory*> memory;
  Function<abi::Device, abi::MemoryV2*> memory_v2;

  Function<abi::Device, unsigned, abi::Device*> mig_device_by_index;
  Function<abi::Device, unsigned*> mig_devices_most, gpu_instance_id, compute_instance_id;
  Function<abi::Device, abi::Attributes*> attributes;
  Function<abi::Device, unsigned, abi::GpuInstanceProfile*> gpu_instance_profile;
  Function<abi::Device, unsigned, abi::GpuInstanceProfileV2*> gpu_instance_profile_v2;
  Function<abi::Device, unsigned, abi::Placement*, unsigned*> gpu_instance_placements;
  Function<abi::Device, unsigned, abi::GpuInstance*, unsigned*> gpu_instances;
  Function<abi::GpuInstance, abi::GpuInstanceInfo*> gpu_instance_info;

  Function<abi::Device, unsigned, abi::Return*> set_mig_mode;
  Function<abi::Device, unsigned, abi::GpuInstance*> create_gpu_instance, gpu_instance_by_id;
  Function<abi::Device, unsigned, const abi::Placement*, abi::GpuInstance*> create_gpu_instance_at;
  Function<abi::GpuInstance> destroy_gpu_instance;
  Function<abi::GpuInstance, unsigned, unsigned, abi::ComputeInstanceProfile*>
      compute_instance_profile;
  Function<abi::GpuInstance, unsigned, abi::ComputeInstance*> create_compute_instance,
      compute_instance_by_id;
  Function<abi::GpuInstance, unsigned, const abi::Placement*, abi::ComputeInstance*>
      create_compute_instance_at;
  Function<abi::GpuInstance, unsigned, abi::Placement*, unsigned*> compute_instance_placements;
  Function<abi::ComputeInstance, abi::ComputeInstanceInfo*> compute_instance_info;
  Function<abi::ComputeInstance> destroy_compute_instance;

  Function<abi::Device, abi::Device, unsigned*> common_ancestor;
  Function<abi::Device, unsigned, unsigned*> nvlink_state, nvlink_remote_type;
  Function<abi::Device, unsigned, abi::PciInfo*> nvlink_remote_pci;
  Function<abi::Device, abi::FabricInfo*> fabric;
  Function<abi::Device, abi::FabricInfoV2*> fabric_v2;

  Function<abi::Device, abi::Utilization*> utilization;
  Function<abi::Device, unsigned, unsigned*> temperature, threshold, clock_info, max_clock_info,
      application_clock, pcie_throughput;
  Function<abi::Device, unsigned, unsigned, unsigned*> clock;
  Function<abi::Device, abi::MarginTemperature*> margin;
  Function<abi::Device, unsigned*> power, power_limit, enforced_power_limit, default_power_limit;
  Function<abi::Device, unsigned*, unsigned*> power_limits;
  Function<abi::Device, unsigned*, unsigned*> encoder, decoder, jpeg, optical_flow;
  Function<abi::Device, abi::Bar1Memory*> bar1;
  Function<abi::Device, unsigned*> pcie_generation, pcie_width, pcie_replays, performance_state,
      fan, compute_mode, persistence_mode;
  Function<abi::Device, unsigned long long*> energy, clocks_reasons, known_clocks_reasons;
  Function<abi::Device, abi::LicensableFeatures*> licensable_features;
  Function<abi::Device, int, abi::FieldValue*> field_values;
  Function<abi::Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows;
  Function<abi::Device, abi::RemappedBanks*> remapped_banks;
  Function<abi::Device, unsigned, unsigned, unsigned long long*> ecc_errors, nvlink_errors;
  Function<abi::Device, unsigned, unsigned, unsigned, unsigned long long*> ecc_errors_by_location;
  Function<abi::Device, abi::FabricInfoV3*> fabric_v3;

  Function<abi::Device, abi::GpmSupport*> gpm_support;
  Function<abi::GpmSample*> gpm_allocate;
  Function<abi::GpmSample> gpm_free;
  Function<abi::Device, abi::GpmSample> gpm_sample;
  Function<abi::Device, unsigned, abi::GpmSample> gpm_mig_sample;
  Function<abi::GpmMetrics*> gpm_metrics;

  Function<abi::Device, abi::ProcessUtilization*, unsigned*, unsigned long long>
      process_utilization;
  Function<abi::Device, unsigned*, void*> processes[3];  ///< compute, graphics, MPS
  bool short_processes[3] = {};  ///< the library has only version 1: records are abi::ProcessInfoV1

  Function<abi::EventSet*> event_set_create;
  Function<abi::EventSet> event_set_free;
  Function<abi::Device, unsigned long long*> supported_events;
  Function<abi::Device, unsigned long long, abi::EventSet> register_events;
  Function<abi::EventSet, abi::EventData*, unsigned> event_wait;
};

/// The loaded library, not initialized yet.
class Nvml {
 public:
  /// Loads Paths::library or, if that is empty, the library from the usual folders of the driver
  /// root and, if the root is the machine's own, from wherever the loader finds it. kNotFound:
  /// there is none; kFailedPrecondition: it cannot be loaded. The message says what to do.
  static base::Result<Nvml> Load(const device::Paths& paths);

  const Functions* operator->() const { return functions_.get(); }
  const Functions& functions() const { return *functions_; }

 private:
  explicit Nvml(os::Library library);

  os::Library library_;
  std::unique_ptr<Functions> functions_;
};

/// An error such as "nvmlInit_v2: driver is not loaded", with the canonical code. The only place
/// that maps NVML's codes.
base::Error ToError(abi::Return code, std::string_view function);

}  // namespace penstock::backend::nvidia
