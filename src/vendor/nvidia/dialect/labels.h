// The nvidia.com labels of a node: GPU Feature Discovery's catalogue for GPUs whole and shared, the GPU Operator's gpu.present, and ours
// for each model. Pure tables: no I/O, no library.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "device/dialect.h"

namespace penstock::vendor::nvidia {

/// As GPU Feature Discovery writes names into labels: what no label may hold is dropped, blanks become one "-".
std::string Sanitise(std::string_view name);

/// What a model is called within a label's name: sanitised, without the "NVIDIA-" that drivers from 470 on put before it, cut so that
/// "gpu.present." before it still makes a label: "A100-SXM4-40GB".
std::string ModelKey(std::string_view model);

/// What the vendor's capability in a GPU's PCI configuration space says, where a hypervisor put it there.
struct VgpuCapability {
  std::string host_driver_version;  ///< "460.16"
  std::string host_driver_branch;   ///< "r460_00"
};

/// Whether a configuration space is that of a vGPU. `known` is false where too little of it could be read (64 bytes without rights).
struct VgpuAnswer {
  bool known = false;
  std::optional<VgpuCapability> vgpu;
};
VgpuAnswer FindVgpu(std::string_view pci_config);

/// All labels; none where there is no NVIDIA GPU on the PCI bus, gpu.present only where there is no driver for it.
std::map<std::string, std::string> NodeLabels(const device::LabelFacts& facts);

}  // namespace penstock::vendor::nvidia
