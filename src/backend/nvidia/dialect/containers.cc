// The driver's files by name. The list of files and their purposes are libnvidia-container's
// (src/nvc_info.c, src/nvc_mount.c); their paths in containers and the hooks are the container
// toolkit's (pkg/nvcdi/{driver,common,full-gpu}-nvml.go,
// internal/discover/{graphics,ipc,hooks,symlinks}.go, internal/lookup/root).
#include "backend/nvidia/dialect/containers.h"

#include <array>

namespace penstock::backend::nvidia {
namespace {

using device::ContainerDriver;
using device::ContainerHook;
using device::DriverFile;
using Kind = device::DriverFile::Kind;

constexpr std::string_view kUtility = "utility", kCompute = "compute", kVideo = "video",
                           kGraphics = "graphics", kNgx = "ngx", kDisplay = "display";

/// A library whose file name ends with the driver's version.
struct Library {
  std::string_view name;
  std::string_view capability;
  bool expected;  ///< every driver since 450 has it, on every processor architecture
};

constexpr std::array kLibraries{
    Library{"libnvidia-ml.so", kUtility, true},
    Library{"libnvidia-cfg.so", kUtility, true},
    Library{"libnvidia-nscq.so", kUtility, false},
    Library{"libnvidia-sandboxutils.so", kUtility, false},
    Library{"libcuda.so", kCompute, true},
    Library{"libcudadebugger.so", kCompute, false},
    Library{"libnvidia-opencl.so", kCompute, true},
    Library{"libnvidia-gpucomp.so", kCompute, false},
    Library{"libnvidia-ptxjitcompiler.so", kCompute, true},
    Library{"libnvidia-fatbinaryloader.so", kCompute, false},
    Library{"libnvidia-allocator.so", kCompute, true},
    Library{"libnvidia-compiler.so", kCompute, false},
    Library{"libnvidia-pkcs11.so", kCompute, false},
    Library{"libnvidia-pkcs11-openssl3.so", kCompute, false},
    Library{"libnvidia-nvvm.so", kCompute, false},
    Library{"libnvidia-tileiras.so", kCompute, false},
    Library{"libvdpau_nvidia.so", kVideo, false},
    Library{"libnvidia-encode.so", kVideo, true},
    Library{"libnvidia-opticalflow.so", kVideo, true},
    Library{"libnvcuvid.so", kVideo, true},
    Library{"libnvidia-eglcore.so", kGraphics, true},
    Library{"libnvidia-glcore.so", kGraphics, true},
    Library{"libnvidia-tls.so", kGraphics, true},
    Library{"libnvidia-glsi.so", kGraphics, true},
    Library{"libnvidia-fbc.so", kGraphics, false},
    Library{"libnvidia-ifr.so", kGraphics, false},
    Library{"libnvidia-rtcore.so", kGraphics, true},
    Library{"libnvoptix.so", kGraphics, true},
    Library{"libGLX_nvidia.so", kGraphics, true},
    Library{"libEGL_nvidia.so", kGraphics, true},
    Library{"libGLESv2_nvidia.so", kGraphics, true},
    Library{"libGLESv1_CM_nvidia.so", kGraphics, true},
    Library{"libnvidia-glvkspirv.so", kGraphics, true},
    Library{"libnvidia-cbl.so", kGraphics, false},
    Library{"libnvidia-vulkan-producer.so", kGraphics, false},
    Library{"libnvidia-vksc-core.so", kGraphics, false},
    Library{"libnvidia-ngx.so", kNgx, false},
};

/// Files whose name does not end with the version, or that are not libraries; `capability` applies
/// to every file whose name begins with `name`.
struct Other {
  Kind kind;
  std::string_view pattern;
  std::string_view name;  ///< how file names begin
  std::string_view capability;
  bool expected = false;
  std::string_view folder = "";
};

constexpr std::string_view kShare = "/usr/share", kEtc = "/etc";

constexpr std::array kOthers{
    Other{Kind::kLibrary, "libnvidia-nvvm70.so.*", "libnvidia-nvvm70.so", kCompute},
    Other{Kind::kLibrary, "libnvidia-egl-gbm.so.*.*", "libnvidia-egl-gbm.so", kGraphics},
    Other{Kind::kLibrary, "libnvidia-egl-wayland.so.*.*", "libnvidia-egl-wayland.so", kGraphics},
    Other{Kind::kLibrary, "libnvidia-egl-wayland2.so.*.*", "libnvidia-egl-wayland2.so", kGraphics},
    Other{Kind::kLibrary, "libnvidia-egl-xcb.so.*.*", "libnvidia-egl-xcb.so", kGraphics},
    Other{Kind::kLibrary, "libnvidia-egl-xlib.so.*.*", "libnvidia-egl-xlib.so", kGraphics},
    Other{Kind::kLibrary, "libnvidia-api.so.*", "libnvidia-api.so", kGraphics},

    Other{Kind::kModule, "nvidia/xorg/nvidia_drv.so", "nvidia_drv.so", kDisplay},
    Other{Kind::kModule, "xorg/modules/drivers/nvidia_drv.so", "nvidia_drv.so", kDisplay},
    Other{Kind::kModule, "xorg/modules/updates/drivers/nvidia_drv.so", "nvidia_drv.so", kDisplay},
    Other{Kind::kModule, "nvidia/xorg/libglxserver_nvidia.so.{version}", "libglxserver_nvidia.so",
          kDisplay},
    Other{Kind::kModule, "xorg/modules/extensions/libglxserver_nvidia.so.{version}",
          "libglxserver_nvidia.so", kDisplay},
    Other{Kind::kModule, "xorg/modules/updates/extensions/libglxserver_nvidia.so.{version}",
          "libglxserver_nvidia.so", kDisplay},

    Other{Kind::kProgram, "nvidia-smi", "nvidia-smi", kUtility, true},
    Other{Kind::kProgram, "nvidia-debugdump", "nvidia-debugdump", kUtility},
    Other{Kind::kProgram, "nvidia-persistenced", "nvidia-persistenced", kUtility},
    Other{Kind::kProgram, "nvidia-cuda-mps-control", "nvidia-cuda-mps-control", kCompute},
    Other{Kind::kProgram, "nvidia-cuda-mps-server", "nvidia-cuda-mps-server", kCompute},
    Other{Kind::kProgram, "nvidia-imex", "nvidia-imex", kUtility},
    Other{Kind::kProgram, "nvidia-imex-ctl", "nvidia-imex-ctl", kUtility},
    Other{Kind::kProgram, "nvidia-xconfig", "nvidia-xconfig", kDisplay},

    Other{Kind::kConfiguration, "glvnd/egl_vendor.d/10_nvidia.json", "10_nvidia.json", kGraphics,
          true, kShare},
    Other{Kind::kConfiguration, "egl/egl_external_platform.d/15_nvidia_gbm.json",
          "15_nvidia_gbm.json", kGraphics, false, kShare},
    Other{Kind::kConfiguration, "egl/egl_external_platform.d/10_nvidia_wayland.json",
          "10_nvidia_wayland.json", kGraphics, false, kShare},
    Other{Kind::kConfiguration, "egl/egl_external_platform.d/09_nvidia_wayland2.json",
          "09_nvidia_wayland2.json", kGraphics, false, kShare},
    Other{Kind::kConfiguration, "egl/egl_external_platform.d/20_nvidia_xcb.json",
          "20_nvidia_xcb.json", kGraphics, false, kShare},
    Other{Kind::kConfiguration, "egl/egl_external_platform.d/20_nvidia_xlib.json",
          "20_nvidia_xlib.json", kGraphics, false, kShare},
    Other{Kind::kConfiguration, "nvidia/nvoptix.bin", "nvoptix.bin", kGraphics, false, kShare},
    Other{Kind::kConfiguration, "nvidia/nvidia-application-profiles-{version}-*",
          "nvidia-application-profiles-", kGraphics, false, kShare},
    Other{Kind::kConfiguration, "X11/xorg.conf.d/10-nvidia.conf", "10-nvidia.conf", kDisplay, false,
          kShare},
    Other{Kind::kConfiguration, "X11/xorg.conf.d/nvidia-drm-outputclass.conf",
          "nvidia-drm-outputclass.conf", kDisplay, false, kShare},
    Other{Kind::kConfiguration, "OpenCL/vendors/nvidia.icd", "nvidia.icd", kCompute, true, kEtc},
    Other{Kind::kConfiguration, "vulkan/icd.d/nvidia_icd.json", "nvidia_icd", kGraphics, false,
          kEtc},
    Other{Kind::kConfiguration, "vulkan/icd.d/nvidia_icd.x86_64.json", "nvidia_icd", kGraphics,
          false, kEtc},
    Other{Kind::kConfiguration, "vulkan/icd.d/nvidia_icd.aarch64.json", "nvidia_icd", kGraphics,
          false, kEtc},
    Other{Kind::kConfiguration, "vulkan/icd.d/nvidia_layers.json", "nvidia_layers.json", kGraphics,
          false, kEtc},
    Other{Kind::kConfiguration, "vulkan/implicit_layer.d/nvidia_layers.json", "nvidia_layers.json",
          kGraphics, false, kEtc},
    Other{Kind::kConfiguration, "vulkansc/icd.d/nvidia_icd_vksc.json", "nvidia_icd", kGraphics,
          false, kEtc},

    Other{Kind::kFirmware, "nvidia/{version}/gsp*.bin", "gsp", ""},

    Other{Kind::kSocket, "/run/nvidia-persistenced/socket", "", kUtility},
    Other{Kind::kSocket, "/var/run/nvidia-persistenced/socket", "", kUtility},
    Other{Kind::kSocket, "/run/nvidia-fabricmanager/socket", "", kUtility},
    Other{Kind::kSocket, "/var/run/nvidia-fabricmanager/socket", "", kUtility},
    Other{Kind::kSocket, "/tmp/nvidia-mps", "", kCompute},
};

/// The capability of paths whose last component does not show it.
struct PathOf {
  std::string_view prefix;
  std::string_view capability;
};

// nvc_mount.c: "only compute libraries require specific devices (e.g. UVM)", "only display
// capability requires the modeset device".
constexpr std::array kPaths{
    PathOf{"/dev/nvidia-uvm", kCompute},
    PathOf{"/dev/nvidia-modeset", kDisplay},
    PathOf{"/dev/dri/", kGraphics},
    PathOf{"/run/nvidia-persistenced/", kUtility},
    PathOf{"/var/run/nvidia-persistenced/", kUtility},
    PathOf{"/run/nvidia-fabricmanager/", kUtility},
    PathOf{"/var/run/nvidia-fabricmanager/", kUtility},
    PathOf{"/tmp/nvidia-mps", kCompute},
};

/// Files with these names belong to the driver without being in the tables: parts of
/// nvidia-settings and of window systems.
constexpr std::array kDisplayLibraries{
    std::string_view("libnvidia-gtk"), std::string_view("libnvidia-wayland-client.so"),
    std::string_view("libnvidia-present.so"), std::string_view("libnvidia-wfb.so")};

std::vector<DriverFile> Files() {
  std::vector<DriverFile> files;
  for (const Library& library : kLibraries)
    files.push_back({Kind::kLibrary, std::string(library.name) + ".{version}",
                     std::string(library.capability), library.expected, ""});
  // All other libraries with the driver's version in their names: new drivers bring new libraries.
  files.push_back({Kind::kLibrary, "*.so.{version}", "", false, ""});
  files.push_back({Kind::kLibrary, "vdpau/*.so.{version}", std::string(kVideo), false, ""});
  for (const Other& other : kOthers)
    files.push_back({other.kind, std::string(other.pattern), std::string(other.capability),
                     other.expected, std::string(other.folder)});
  return files;
}

std::vector<ContainerHook> Hooks(const device::Driver& driver) {
  ContainerHook compat{"enable-cuda-compat", {"--host-driver-version={version}"}};
  if (!driver.runtime_version.empty())
    compat.arguments.push_back("--host-cuda-version=" + driver.runtime_version);
  return {{"create-symlinks", {}},
          std::move(compat),
          {"update-ldcache", {}},
          {"disable-device-node-modification", {}},
          {"update-application-profile", {}},
          // Deprecated there, and off by default: crun before 1.9 needed it for folders below /dev.
          {"chmod", {"--mode", "755"}, false}};
}

}  // namespace

std::vector<std::string> CdiDeviceNames(const device::Facts& device,
                                        std::span<const device::CdiNames> strategies) {
  const std::string number = NumberOf(device);
  std::vector<std::string> names;
  for (const device::CdiNames strategy : strategies) {
    if (strategy == device::CdiNames::kUuid) names.push_back(device.id);
    if (number.empty()) continue;
    if (strategy == device::CdiNames::kIndex) names.push_back(number);
    if (strategy == device::CdiNames::kTypeIndex)
      names.push_back((device.parent.empty() ? "gpu" : "mig") + number);
  }
  return names;
}

ContainerDriver ContainerDriverOf(const device::Driver& driver) {
  ContainerDriver all;
  all.version_libraries = {"libcuda.so", "libnvidia-ml.so"};
  // RHEL and SUSE, Debian and Ubuntu, Debian's glx-alternative packages, Arch and Gentoo, driver
  // containers of Container-Optimized OS and Flatcar, NixOS; the last are those of 32-bit
  // libraries.
  all.library_folders = {"/usr/lib64",
                         "/usr/lib/x86_64-linux-gnu",
                         "/usr/lib/aarch64-linux-gnu",
                         "/usr/lib/x86_64-linux-gnu/nvidia/current",
                         "/usr/lib/aarch64-linux-gnu/nvidia/current",
                         "/lib64",
                         "/lib/x86_64-linux-gnu",
                         "/lib/aarch64-linux-gnu",
                         "/lib/x86_64-linux-gnu/nvidia/current",
                         "/lib/aarch64-linux-gnu/nvidia/current",
                         "/usr/lib",
                         "/lib",
                         "/usr/local/nvidia/lib64",
                         "/run/opengl-driver/lib",
                         "/usr/lib32",
                         "/usr/lib/i386-linux-gnu",
                         "/usr/lib/i386-linux-gnu/nvidia/current",
                         "/run/opengl-driver-32/lib"};
  all.own_libraries = {"libnvidia-*",    "libcuda.so*",    "libcudadebugger.so*",
                       "libnvcuvid.so*", "libnvoptix.so*", "lib*_nvidia.so*"};
  all.files = Files();
  all.links = {{"libcuda.so", "libcuda.so.1"},
               {"libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1"},
               {"libGLX_indirect.so.0", "libGLX_nvidia.so.{version}"},
               {"libnvidia-vulkan-producer.so", "libnvidia-vulkan-producer.so.{version}"},
               {"libglxserver_nvidia.so", "libglxserver_nvidia.so.{version}"},
               {"gbm/nvidia-drm_gbm.so", "libnvidia-allocator.so.1"}};
  all.control_files = {{"/dev/nvidiactl", true, "nvidia-modprobe -c 255"},
                       {"/dev/nvidia-uvm", true, "nvidia-modprobe -c 0 -u"},
                       {"/dev/nvidia-uvm-tools", false, ""},
                       {"/dev/nvidia-modeset", false, ""}};
  all.hooks = Hooks(driver);
  all.hook_environment = {"NVIDIA_CTK_DEBUG=false"};
  all.subcommand_program = "nvidia-ctk";  // internal/discover/hooks.go
  // "void" keeps NVIDIA's runtime from adding devices of its own.
  all.environment = {"NVIDIA_CTK_LIBCUDA_DIR={folders}", "NVIDIA_VISIBLE_DEVICES=void"};
  all.narrow_kind = "nvidia.com/compat32";
  return all;
}

std::string_view CapabilityOf(std::string_view path) {
  for (const PathOf& one : kPaths)
    if (path.starts_with(one.prefix)) return one.capability;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const Library& library : kLibraries)
    if (name.starts_with(library.name)) return library.capability;
  for (const Other& other : kOthers) {
    const bool is_program = other.kind == Kind::kProgram;
    if (is_program ? name == other.name : !other.name.empty() && name.starts_with(other.name))
      return other.capability;
  }
  for (const std::string_view library : kDisplayLibraries)
    if (name.starts_with(library)) return kDisplay;
  return "";
}

}  // namespace penstock::backend::nvidia
