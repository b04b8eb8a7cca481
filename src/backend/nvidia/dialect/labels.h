// The nvidia.com labels of a node: GPU Feature Discovery's labels for whole and shared GPUs, the
// GPU Operator's gpu.present, and Penstock's own per model. Pure tables: no I/O, no library.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "device/dialect.h"

namespace penstock::backend::nvidia {

/// Turns a name into a label value as GPU Feature Discovery does: characters that labels do not
/// allow are dropped, blanks become one "-".
std::string Sanitise(std::string_view name);

/// A model's name as part of a label's name: sanitised, without the "NVIDIA-" with which it begins
/// in drivers from 470 on, and cut so that "gpu.present." plus this is still a valid label:
/// "A100-SXM4-40GB".
std::string ModelKey(std::string_view model);

/// The content of the vendor-specific capability in a GPU's PCI configuration space, if a
/// hypervisor put it there.
struct VgpuCapability {
  std::string host_driver_version;  ///< "460.16"
  std::string host_driver_branch;   ///< "r460_00"
};

/// Whether a configuration space is that of a vGPU. `known` is false if too little of it was
/// readable (64 bytes without privileges).
struct VgpuAnswer {
  bool known = false;
  std::optional<VgpuCapability> vgpu;
};
VgpuAnswer FindVgpu(std::string_view pci_config);

/// All labels of the node. Empty without an NVIDIA GPU on the PCI bus; only gpu.present without a
/// driver.
std::map<std::string, std::string> NodeLabels(const device::LabelFacts& facts);

}  // namespace penstock::backend::nvidia
