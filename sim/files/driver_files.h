// Installs the files of a driver's package below a driver root: libraries, programs, firmware and
// configuration of one version. Only files; tree.cc creates what the kernel modules expose.
#pragma once

#include "sim/files/assets.h"
#include "sim/files/tree_builder.h"
#include "sim/state.h"

namespace penstock::sim {

/// Makes the driver files match the state's library version: removes those of another version once
/// the new ones exist, and all of them if no driver is installed. Leaves existing files untouched.
/// `.penstock-sim/driver-files` lists what was installed.
void SyncDriverFiles(TreeBuilder& tree, const Assets& assets, const SimState& state);

/// Gives the state file a second name among the driver's firmware, which containers get with the
/// other driver files, so that the library finds its machine there. Call it once the state file
/// exists; before, it does nothing.
void SyncFirmware(TreeBuilder& tree, const SimState& state);

}  // namespace penstock::sim
