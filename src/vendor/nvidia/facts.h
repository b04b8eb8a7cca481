// What a GPU is, as NVML and the kernel's files tell it. Keeps nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "device/model.h"
#include "vendor/nvidia/machine_files.h"
#include "vendor/nvidia/nvml.h"

namespace penstock::vendor::nvidia {

/// NVLinks of one GPU that are up.
struct Lanes {
  int to_switches = 0;
  std::map<device::PciAddress, int> direct;  ///< by the GPU at the other end
};

/// A GPU that was described: what its peers need of it.
struct Gpu {
  abi::Device handle = nullptr;
  std::string id;
  std::optional<device::PciAddress> pci;
  Lanes lanes;
  std::string changeable;  ///< see Changeable
};

/// Codes by which a call says that it is the device that fails, not the question.
bool SaysLost(abi::Return code);

/// Codes by which a call says that the driver is gone.
bool SaysDriverGone(abi::Return code);

/// All facts but links. Each of them may be missing, except the id: without UUID it is the PCI address, and without that kDataLoss.
/// kDataLoss also where the device says of itself that it is lost; kUnavailable where the driver went away.
base::Result<device::Facts> GatherFacts(const Nvml& nvml, const MachineFiles& files, abi::Device device, const std::string& address);

/// Those of the facts that may change while the device is there, in a form to compare: MIG mode and fabric.
std::string Changeable(const Nvml& nvml, abi::Device device);

Lanes CountLanes(const Nvml& nvml, const MachineFiles& files, abi::Device device);

/// One link for each peer that is not the GPU itself.
std::vector<device::Link> GatherLinks(const Nvml& nvml, const Gpu& gpu, const std::map<std::string, Gpu>& gpus);

/// By compute capability, as NVIDIA's GPU feature discovery names families; empty for one that it does not know.
std::string Architecture(int major, int minor);

}  // namespace penstock::vendor::nvidia
