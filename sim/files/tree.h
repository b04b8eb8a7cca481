// Creates the files of a machine below one folder: driver root, /dev, /sys, /proc. Makes them match
// the state.
#pragma once

#include <string>
#include <string_view>

#include "base/core/result.h"
#include "sim/files/assets.h"
#include "sim/state.h"

namespace penstock::sim {

/// Below the root: while this file exists, the machine has none of the driver's files.
inline constexpr const char* kFilesElsewhere = ".penstock-sim/files-elsewhere";

/// The result for the device nodes.
struct TreeReport {
  bool character_devices = true;  // false: the kernel did not permit creating them, so they are
                                  // empty files
};

/// Makes everything under `root` match the state, whatever existed before: devices plugged and
/// unplugged, driver installed, loaded or not.
base::Result<TreeReport> SyncTree(const std::string& root, const Assets& assets,
                                  const SimState& state);

/// Gives an existing state file its name among the driver's firmware (driver_files.h); SyncTree
/// does this, too.
base::Status NameState(const std::string& root, const SimState& state);

/// Removes a tree that SyncTree created. Refuses a folder without .penstock-sim.
base::Status RemoveTree(const std::string& root);

/// Appends a record to root/dev/kmsg in the format of /dev/kmsg ("prio,seq,usec,flags;text"), at
/// warning level. Call it under the state's lock.
base::Status AppendKernelLog(const std::string& root, std::string_view text);

}  // namespace penstock::sim
