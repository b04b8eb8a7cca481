// What a driver's package installs: libraries, programs, firmware and configuration of one version below a driver root. Only files; what
// its kernel modules show is in tree.cc.
#pragma once

#include "sim/assets.h"
#include "sim/state.h"
#include "sim/tree_builder.h"

namespace penstock::sim {

/// Makes the driver files match the state's library version: those of another one go once the new ones are there, and all of them where
/// no driver is installed. Leaves alone what is there already. `.penstock-sim/driver-files` says what was installed.
void SyncDriverFiles(TreeBuilder& tree, const Assets& assets, const SimState& state);

/// Gives the state a second name among the driver's firmware, which containers get with the other driver files: there the library finds
/// its machine. Call once the state file is there; does nothing before.
void SyncFirmware(TreeBuilder& tree, const SimState& state);

}  // namespace penstock::sim
