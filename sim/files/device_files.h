// Creates the device nodes of the driver's modules: GPUs, control, capabilities, NVSwitches, IMEX
// channels, and DRM with its folders in sysfs.
#pragma once

#include <cstdint>
#include <map>

#include "sim/files/tree_builder.h"
#include "sim/machine.h"
#include "sim/state.h"

namespace penstock::sim {

/// Returns the NVSwitches to which the machine's GPUs are linked, with their PCI ids.
std::map<PciAddress, std::uint32_t> SwitchesOf(const SimState& state);

/// Makes dev/ match the state. Device nodes of the NVIDIA modules outlive the modules, as on a real
/// machine; DRM's are removed.
void SyncDevices(TreeBuilder& tree, const SimState& state);

}  // namespace penstock::sim
