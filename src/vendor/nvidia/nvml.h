// NVML, loaded when asked for. Each function may be missing: then it answers FUNCTION_NOT_FOUND like a library that knows it does not have
// it. Decides nothing about devices.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/core/result.h"
#include "device/backend.h"
#include "os/library.h"
#include "vendor/nvidia/nvml_abi.h"

namespace penstock::vendor::nvidia {

/// A function of the library, or its absence. Any thread.
template <typename... Parameters>
struct Function {
  const char* name = "";
  abi::Return (*pointer)(Parameters...) = nullptr;

  explicit operator bool() const { return pointer != nullptr; }
  abi::Return operator()(Parameters... arguments) const { return pointer != nullptr ? pointer(arguments...) : abi::kFunctionNotFound; }
};

/// What we call, under the names without "nvml" and version. The newest version that the library has is taken.
struct Functions {
  Function<> init, shutdown;
  Function<char*, unsigned> driver_version;
  Function<int*> cuda_version;

  Function<unsigned*> count;
  Function<unsigned, abi::Device*> handle_by_index;
  Function<abi::Device, char*, unsigned> uuid, name, serial, vbios, part_number;
  Function<abi::Device, unsigned*> minor, brand, max_pcie_generation, max_pcie_width, virtualization_mode;
  Function<abi::Device, abi::PciInfo*> pci;
  Function<abi::Device, int*, int*> compute_capability;
  Function<abi::Device, unsigned*, unsigned*> mig_mode;
  Function<abi::Device, abi::Memory*> memory;
  Function<abi::Device, abi::MemoryV2*> memory_v2;

  Function<abi::Device, abi::Device, unsigned*> common_ancestor;
  Function<abi::Device, unsigned, unsigned*> nvlink_state, nvlink_remote_type;
  Function<abi::Device, unsigned, abi::PciInfo*> nvlink_remote_pci;
  Function<abi::Device, abi::FabricInfo*> fabric;
  Function<abi::Device, abi::FabricInfoV2*> fabric_v2;

  Function<abi::Device, abi::Utilization*> utilization;
  Function<abi::Device, unsigned, unsigned*> temperature;
  Function<abi::Device, unsigned*> power;
  Function<abi::Device, int, abi::FieldValue*> field_values;
  Function<abi::Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows;
  Function<abi::Device, unsigned, unsigned, unsigned long long*> ecc_errors;
  Function<abi::Device, unsigned*, void*> processes[3];  ///< compute, graphics, MPS
  bool short_processes[3] = {};                          ///< only version 1 is there: records are abi::ProcessInfoV1

  Function<abi::EventSet*> event_set_create;
  Function<abi::EventSet> event_set_free;
  Function<abi::Device, unsigned long long*> supported_events;
  Function<abi::Device, unsigned long long, abi::EventSet> register_events;
  Function<abi::EventSet, abi::EventData*, unsigned> event_wait;
};

/// The loaded library, not initialized yet.
class Nvml {
 public:
  /// From Paths::library, or from the usual folders of the driver root and, where that is the machine's own, wherever the loader finds it.
  /// kNotFound: there is none; kFailedPrecondition: what is there cannot be loaded. The message says what to do.
  static base::Result<Nvml> Load(const device::Paths& paths);

  const Functions* operator->() const { return functions_.get(); }

 private:
  explicit Nvml(os::Library library);

  os::Library library_;
  std::unique_ptr<Functions> functions_;
};

/// "nvmlInit_v2: driver is not loaded", with the canonical code: the one place where NVML's codes are mapped.
base::Error ToError(abi::Return code, std::string_view function);

}  // namespace penstock::vendor::nvidia
