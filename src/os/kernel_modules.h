// Reads which modules of the kernel are loaded, and unloads them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

/// A module that is loaded.
struct KernelModule {
  std::string name;                ///< with underscores, as in sysfs
  std::vector<std::string> users;  ///< the modules that use it, sorted
  int references = 0;  ///< by them, by open files and by the kernel; 0 where it is not known
  bool operator==(const KernelModule&) const = default;
};

/// Nothing if no such module is loaded, or if it is part of the kernel. `sysfs_root`: "/sys".
std::optional<KernelModule> FindKernelModule(const std::string& sysfs_root,
                                             const std::string& name);

/// Unloads a module (delete_module(2)) that nothing uses. Success also if it is not loaded.
/// kUnavailable: something uses it, or it is being unloaded; kPermissionDenied: this process lacks
/// CAP_SYS_MODULE. Blocks as long as the module's own code takes, and cannot be interrupted.
base::Status UnloadKernelModule(const std::string& name);

}  // namespace penstock::os
