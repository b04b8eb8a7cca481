// The hooks: what each does to a container's tree. All of them can be run again, in parallel, and after having been killed.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "hook/warnings.h"
#include "hook/work.h"
#include "os/core/confined_tree.h"

namespace penstock::hook {

/// Makes symbolic links, each "target::link"; replaces what stands there. kInvalidArgument for anything else.
base::Status CreateSymlinks(const os::ConfinedTree& root, const std::vector<std::string>& links, Warnings& warnings);

/// Makes the libraries of these folders found by programs in the container: /etc/ld.so.cache and a file below /etc/ld.so.conf.d for the
/// container's own ldconfig (glibc), /etc/ld-musl-*.path (musl). Nothing is executed.
base::Status UpdateLdCache(const os::ConfinedTree& root, const std::vector<std::string>& folders, Warnings& warnings);

/// The folders in /etc/ld-musl-*.path, where the container has musl's dynamic linker.
base::Status UpdateMuslPaths(const os::ConfinedTree& root, const std::vector<std::string>& folders, Work& work);
bool HasMusl(const os::ConfinedTree& root);

/// Makes a SONAME link for each library of these folders.
base::Status CreateSonameLinks(const os::ConfinedTree& root, const std::vector<std::string>& folders, Warnings& warnings);

struct CudaCompat {
  std::string driver_version;  ///< of the machine: "550.54.15"
  std::string cuda_version;    ///< of the machine: "12.4"
  std::string folder = "/usr/local/cuda/compat";
};
/// Puts the container's CUDA compatibility libraries before the driver's where they are newer than the machine's driver. Takes effect with
/// UpdateLdCache.
base::Status EnableCudaCompat(const os::ConfinedTree& root, const CudaCompat& machine, Warnings& warnings);

/// chmod of files and folders; those that are not there, or are not the container's own, are passed over.
base::Status ChangeModes(const os::ConfinedTree& root, const std::string& mode, const std::vector<std::string>& paths, Warnings& warnings);

/// Where NVIDIA's driver says its parameters.
struct DriverParams {
  std::string machine = "/proc/driver/nvidia/params";
  std::string container = "/proc/driver/nvidia/params";  ///< the same file as the container sees it
};
/// Shows the container a driver that forbids making device files, by a file over the kernel's own, in memory and read-only. Nothing is done
/// where the machine has no driver, or one that forbids it already.
base::Status DisableDeviceNodeModification(const os::ConfinedTree& root, const DriverParams& params, Warnings& warnings);

/// Has EGL and Vulkan see only the GPUs whose device files the container has, by a profile of NVIDIA's driver.
base::Status UpdateApplicationProfile(const os::ConfinedTree& root, Warnings& warnings);

/// The part of the container that a path is written in: below /dev that is the runtime's own mount there; never the machine's /dev.
struct WritablePlace {
  os::ConfinedTree tree;
  std::string path;
};
base::Result<WritablePlace> FindWritablePlace(const os::ConfinedTree& root, const std::string& path);

}  // namespace penstock::hook
