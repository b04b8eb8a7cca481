// Facts of k8s-driver-manager (cmd/driver-manager) and of NVIDIA's driver containers at 26.7.
#include "backend/nvidia/dialect/kernel_driver.h"

#include "backend/nvidia/dialect/kinds.h"

namespace penstock::backend::nvidia {

const device::KernelDriver& TheKernelDriver() {
  static const device::KernelDriver driver = [] {
    device::KernelDriver made{
        .module = "nvidia",
        .modules = {"nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem", "nvidia_fs",
                    "nvidia_vgpu_vfio", "gdrdrv"},
        .rivals = {"nouveau"},
        .device_files = {"nvidia", "gdrdrv"},
        .control = "/dev/nvidiactl",
        .libraries = {},
        .container_root = "nvidia/driver",
        .digest_file = "nvidia/nvidia-driver.state",
        .pid_file = "nvidia/nvidia-driver.pid",
        .ready_files = {"nvidia/validations/.driver-ctr-ready"}};
    for (const std::string_view folder : kLibraryFolders)
      made.libraries.push_back(std::string(folder) + "/" + std::string(kLibraryName));
    return made;
  }();
  return driver;
}

}  // namespace penstock::backend::nvidia
