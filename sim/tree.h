// The files a machine has: driver root, /dev, /sys, /proc, all under one folder. Makes them match the state; decides nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/core/result.h"
#include "sim/assets.h"
#include "sim/state.h"

namespace penstock::sim {

/// What became of the device nodes.
struct TreeReport {
  bool character_devices = true;  // false: the kernel did not let us make them, so they are empty files
};

/// Makes everything under `root` match the state, whatever was there: devices plugged and unplugged, driver installed, loaded or not.
base::Result<TreeReport> SyncTree(const std::string& root, const Assets& assets, const SimState& state);

/// Gives the state file, once it is there, its name among the driver's firmware (driver_files.h); SyncTree does it, too.
base::Status NameState(const std::string& root, const SimState& state);

/// Removes a tree that StartTree or SyncTree made. Refuses a folder without .penstock-sim.
base::Status RemoveTree(const std::string& root);

/// Appends a record to root/dev/kmsg in the form of /dev/kmsg ("prio,seq,usec,flags;text"), warning level. Call under the state's lock.
base::Status AppendKernelLog(const std::string& root, std::string_view text);

}  // namespace penstock::sim
