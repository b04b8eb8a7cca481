// Gathers the facts of a GPU from NVML and the kernel's files. Keeps no state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backend/nvidia/machine_files.h"
#include "backend/nvidia/mig.h"
#include "backend/nvidia/nvml.h"
#include "base/core/result.h"
#include "device/model.h"

namespace penstock::backend::nvidia {

/// The active NVLinks of one GPU.
struct Lanes {
  int to_switches = 0;
  std::map<device::PciAddress, int> direct;  ///< by the GPU at the other end
};

/// A described GPU: what its peers need of it.
struct Gpu {
  abi::Device handle = nullptr;
  std::string id;
  std::optional<device::PciAddress> pci;
  Lanes lanes;
  device::Facts facts;  ///< as last described, without links
  Mig mig;
  std::string changeable;  ///< see Changeable
};

/// Whether a code means that the device failed, not the call.
bool IsDeviceLost(abi::Return code);

/// Whether a code means that the driver is gone.
bool IsDriverGone(abi::Return code);

/// All facts but links and parts. Each fact may be missing, except the id: without a UUID it is the
/// PCI address, and without that the result is kDataLoss. kDataLoss also if the device reports that
/// it is lost; kUnavailable if the driver went away.
base::Result<device::Facts> GatherFacts(const Nvml& nvml, const MachineFiles& files,
                                        abi::Device device, const std::string& address);

/// The facts that may change while the device is present, in a comparable form: MIG mode, parts and
/// fabric. Updates the parts of `mig`. An error: a call failed that says nothing about them.
base::Result<std::string> Changeable(const Nvml& nvml, abi::Device device, Mig& mig);

Lanes CountLanes(const Nvml& nvml, const MachineFiles& files, abi::Device device);

/// One link for each peer other than the GPU itself.
std::vector<device::Link> GatherLinks(const Nvml& nvml, const Gpu& gpu,
                                      const std::map<std::string, Gpu>& gpus);

/// The family of a compute capability, as NVIDIA's GPU Feature Discovery names it; empty for one
/// that it does not know.
std::string Architecture(int major, int minor);

}  // namespace penstock::backend::nvidia
