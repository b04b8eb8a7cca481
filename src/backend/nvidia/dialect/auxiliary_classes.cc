// The classes and platforms that the NVIDIA container toolkit calls modes (pkg/nvcdi/mode.go).
#include "backend/nvidia/dialect/auxiliary_classes.h"

#include "backend/nvidia/dialect/capability_files.h"

namespace penstock::backend::nvidia {
namespace {

using device::CdiClass;
using device::CdiPlatform;
using device::HostFile;

/// The IMEX channels that a driver can have (NVIDIA container toolkit, internal/config/image,
/// "imex").
constexpr std::uint64_t kHighestChannel = (1u << 20) - 1;

constexpr const char* kMigMinors = "/proc/driver/nvidia-caps/mig-minors";

/// All devices, for containers that manage the GPUs: pkg/nvcdi/management.go. They need no forward
/// compatibility and may create device files.
CdiClass Management() {
  return {.mode = "management",
          .kind = "management.nvidia.com/gpu",
          .nodes = {"/dev/nvidia*"},
          .nodes_too = {"/dev/nvidia-caps/nvidia-cap*", "/dev/nvidia-caps-imex-channels/channel*"},
          .except = {"/dev/nvidia-fs*", "/dev/nvidia-nvswitch*", "/dev/nvidia-nvlink*"},
          .with_driver = true,
          .without_hooks = {"enable-cuda-compat", "disable-device-node-modification"}};
}

/// pkg/nvcdi/driver-wsl.go. Windows mounts its driver store, which has one folder per package. Only
/// dxcore knows which one is in use; it is not asked, since that means loading it.
CdiPlatform Wsl() {
  return {
      .mode = "wsl",
      .name = "Windows Subsystem for Linux",
      .signs = {"/dev/dxg"},
      .nodes = {"/dev/dxg"},
      .folders = {{.pattern = "/usr/lib/wsl/drivers/*",
                   .known_by = "libcuda.so.1.1",
                   .files = {"libcuda.so.1.1", "libcuda_loader.so", "libnvidia-ptxjitcompiler.so.1",
                             "libnvidia-ml.so.1", "libnvidia-ml_loader.so", "libnvdxgdmal.so.1",
                             "nvcubins.bin", "nvidia-smi"},
                   .files_too = {"*.so*", "*.bin", "*.dll"}},
                  {.pattern = "/usr/lib/wsl/lib",
                   .known_by = "libdxcore.so",
                   .files = {"libdxcore.so"}}},
      .links = {{"/usr/bin/nvidia-smi", "nvidia-smi"}}};
}

/// internal/platform-support/tegra. NVML supports the integrated GPUs of Orin and Thor in part:
/// their model names identify them.
CdiPlatform Tegra() {
  const std::string folder = "/etc/nvidia-container-runtime/host-files-for-container.d/";
  return {.mode = "csv",
          .name = "Tegra",
          .signs = {"/etc/nv_tegra_release"},
          .sign_file = "/sys/devices/soc0/family",
          .sign_text = "tegra",
          .unless_library = "libnvidia-ml.so.1",
          .if_models = {"*(nvgpu)*", "NVIDIA Thor*"},
          .numbered = true,
          .mounts = {"/etc/nv_tegra_release", "/sys/devices/soc0/family"},
          .lists = {folder + "devices.csv", folder + "drivers.csv", folder + "l4t.csv"},
          .words = {{"dev", HostFile::kDevice},
                    {"dir", HostFile::kFolder},
                    {"lib", HostFile::kFile},
                    {"sym", HostFile::kLink}},
          .links = {{"libcuda.so", "libcuda.so.1"},
                    {"libGLX_indirect.so.0", "libGLX_nvidia.so.0"},
                    {"libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1"}}};
}

}  // namespace

std::vector<CdiClass> AuxiliaryCdiClasses() {
  return {Management(),
          {.mode = "gds",
           .kind = "nvidia.com/gds",
           .nodes = {"/dev/nvidia-fs*"},
           .mounts = {"/run/udev", "/etc/cufile.json"}},
          {.mode = "gdrcopy", .kind = "nvidia.com/gdrcopy", .nodes = {"/dev/gdrdrv"}},
          {.mode = "mofed",
           .kind = "nvidia.com/mofed",
           .nodes = {"/dev/infiniband/uverbs*"},
           .nodes_too = {"/dev/infiniband/rdma_cm"}},
          {.mode = "nvswitch",
           .kind = "nvidia.com/nvswitch",
           .nodes = {"/dev/nvidia-nvswitchctl", "/dev/nvidia-nvswitch*"}},
          {.mode = "imex",
           .kind = "nvidia.com/imex-channel",
           .nodes = {"/dev/nvidia-caps-imex-channels/channel*"},
           .device_per_node = true,
           .highest = kHighestChannel},
          {.mode = "mig-caps",
           .kind = "nvidia.com/mig-caps",
           .list = kMigMinors,
           .named = ManagementCapabilityFiles}};
}

std::vector<CdiPlatform> OtherPlatforms() { return {Wsl(), Tegra()}; }

}  // namespace penstock::backend::nvidia
