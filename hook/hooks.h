// The hooks and what each changes in a container's file tree. Each can be repeated, run in
// parallel, and run again after it was killed.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "hook/warnings.h"
#include "hook/work.h"
#include "os/core/confined_tree.h"

namespace penstock::hook {

/// Creates symbolic links, each given as "target::link"; replaces existing files. kInvalidArgument
/// for any other form.
base::Status CreateSymlinks(const os::ConfinedTree& root, const std::vector<std::string>& links,
                            Warnings& warnings);

/// Lets programs in the container find the libraries of these folders: writes /etc/ld.so.cache and
/// a file below /etc/ld.so.conf.d for the container's own ldconfig (glibc), and /etc/ld-musl-*.path
/// (musl). Executes nothing.
base::Status UpdateLdCache(const os::ConfinedTree& root, const std::vector<std::string>& folders,
                           Warnings& warnings);

/// Writes the folders to /etc/ld-musl-*.path if the container has musl's dynamic linker.
base::Status UpdateMuslPaths(const os::ConfinedTree& root, const std::vector<std::string>& folders,
                             Work& work);
bool HasMusl(const os::ConfinedTree& root);

/// Creates a SONAME link for each library of these folders.
base::Status CreateSonameLinks(const os::ConfinedTree& root,
                               const std::vector<std::string>& folders, Warnings& warnings);

struct CudaCompat {
  std::string driver_version;  ///< of the machine: "550.54.15"
  std::string cuda_version;    ///< of the machine: "12.4"
  std::string folder = "/usr/local/cuda/compat";
};
/// Makes the container use its CUDA compatibility libraries instead of the driver's if they are
/// newer than the machine's driver. Takes effect with UpdateLdCache.
base::Status EnableCudaCompat(const os::ConfinedTree& root, const CudaCompat& machine,
                              Warnings& warnings);

/// Changes the mode of files and folders; skips those that do not exist or are not the container's
/// own.
base::Status ChangeModes(const os::ConfinedTree& root, const std::string& mode,
                         const std::vector<std::string>& paths, Warnings& warnings);

/// Paths of the file in which NVIDIA's driver publishes its parameters.
struct DriverParams {
  std::string machine = "/proc/driver/nvidia/params";
  std::string container = "/proc/driver/nvidia/params";  ///< the same file as the container sees it
};
/// Makes the container see driver parameters that forbid creating device files, by mounting a
/// read-only in-memory file over the kernel's own. Does nothing if the machine has no driver, or
/// its parameters forbid it already.
base::Status DisableDeviceNodeModification(const os::ConfinedTree& root, const DriverParams& params,
                                           Warnings& warnings);

/// Makes EGL and Vulkan see only the GPUs whose device files the container has, by an application
/// profile of NVIDIA's driver.
base::Status UpdateApplicationProfile(const os::ConfinedTree& root, Warnings& warnings);

/// The tree that a path of the container is written in: below /dev the runtime's own mount there;
/// never the machine's /dev.
struct WritablePlace {
  os::ConfinedTree tree;
  std::string path;
};
base::Result<WritablePlace> FindWritablePlace(const os::ConfinedTree& root,
                                              const std::string& path);

}  // namespace penstock::hook
