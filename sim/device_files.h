// Device nodes of the driver's modules: GPUs, control, capabilities, NVSwitches, IMEX channels, and DRM with its folders in sysfs.
#pragma once

#include <cstdint>
#include <map>

#include "sim/machine.h"
#include "sim/state.h"
#include "sim/tree_builder.h"

namespace penstock::sim {

/// The machine's NVSwitches, those that a GPU is linked to, and their PCI ids.
std::map<PciAddress, std::uint32_t> SwitchesOf(const SimState& state);

/// Makes dev/ match the state. Nodes of the NVIDIA modules outlive these, as real ones do; DRM's go with them.
void SyncDevices(TreeBuilder& tree, const SimState& state);

}  // namespace penstock::sim
