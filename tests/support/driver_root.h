// Creates NVIDIA's driver as distributions install it, of small ELF files, for tests and benchmarks
// of the code that searches for it.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "device/model.h"
#include "os/core/ld_cache.h"
#include "os/core/testing/elf_maker.h"

namespace penstock::support {

inline constexpr const char* kDriverVersion = "575.57.08";

/// A library of the driver: its name without the driver's version, its SONAME (empty: the file's
/// own name) and the libraries that it needs.
struct DriverLibrary {
  std::string name;
  std::string soname;
  std::vector<std::string> needed;
  bool versioned = true;  ///< the file's name ends with the driver's version
};

/// The libraries that the .run file of 575.57.08 installs for x86-64.
inline std::vector<DriverLibrary> DriverLibraries() {
  const std::string v = kDriverVersion;
  return {
      {"libEGL_nvidia.so",
       "libEGL_nvidia.so.0",
       {"libnvidia-eglcore.so." + v, "libnvidia-glsi.so." + v, "libX11.so.6"}},
      {"libGLESv1_CM_nvidia.so", "libGLESv1_CM_nvidia.so.1", {"libnvidia-eglcore.so." + v}},
      {"libGLESv2_nvidia.so", "libGLESv2_nvidia.so.2", {"libnvidia-eglcore.so." + v}},
      {"libGLX_nvidia.so",
       "libGLX_nvidia.so.0",
       {"libnvidia-glcore.so." + v, "libnvidia-tls.so." + v, "libX11.so.6"}},
      {"libcuda.so", "libcuda.so.1", {"libc.so.6", "libdl.so.2"}},
      {"libcudadebugger.so", "libcudadebugger.so.1", {"libc.so.6"}},
      {"libnvcuvid.so", "libnvcuvid.so.1", {"libcuda.so.1"}},
      {"libnvidia-allocator.so", "libnvidia-allocator.so.1", {}},
      {"libnvidia-cfg.so", "libnvidia-cfg.so.1", {}},
      {"libnvidia-eglcore.so", "", {"libnvidia-gpucomp.so." + v}},
      {"libnvidia-encode.so", "libnvidia-encode.so.1", {"libnvcuvid.so.1"}},
      {"libnvidia-fbc.so", "libnvidia-fbc.so.1", {}},
      {"libnvidia-glcore.so", "", {"libnvidia-gpucomp.so." + v}},
      {"libnvidia-glsi.so", "", {}},
      {"libnvidia-glvkspirv.so", "", {}},
      {"libnvidia-gpucomp.so", "", {}},
      {"libnvidia-gtk2.so", "", {"libgtk-x11-2.0.so.0"}},
      {"libnvidia-gtk3.so", "", {"libgtk-3.so.0"}},
      {"libnvidia-ml.so", "libnvidia-ml.so.1", {"libc.so.6"}},
      {"libnvidia-ngx.so", "libnvidia-ngx.so.1", {}},
      {"libnvidia-nvvm.so", "libnvidia-nvvm.so.4", {}},
      {"libnvidia-opencl.so", "libnvidia-opencl.so.1", {}},
      {"libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1", {}},
      {"libnvidia-pkcs11-openssl3.so", "", {"libcrypto.so.3"}},
      {"libnvidia-pkcs11.so", "", {"libcrypto.so.1.1"}},
      {"libnvidia-present.so", "", {}},
      {"libnvidia-ptxjitcompiler.so", "libnvidia-ptxjitcompiler.so.1", {}},
      {"libnvidia-rtcore.so", "", {}},
      {"libnvidia-sandboxutils.so", "libnvidia-sandboxutils.so.1", {}},
      {"libnvidia-tls.so", "", {}},
      {"libnvidia-vksc-core.so", "libnvidia-vksc-core.so.1", {}},
      {"libnvidia-wayland-client.so", "", {}},
      {"libnvoptix.so", "libnvoptix.so.1", {"libnvidia-rtcore.so." + v}},
      {"vdpau/libvdpau_nvidia.so", "libvdpau_nvidia.so.1", {}},
      {"libnvidia-egl-gbm.so.1.1.2", "libnvidia-egl-gbm.so.1", {"libgbm.so.1"}, false},
      {"libnvidia-egl-wayland.so.1.1.19", "libnvidia-egl-wayland.so.1", {}, false},
      {"libnvidia-egl-xcb.so.1.0.1", "libnvidia-egl-xcb.so.1", {}, false},
      {"libnvidia-egl-xlib.so.1.0.1", "libnvidia-egl-xlib.so.1", {}, false},
  };
}

inline std::string FileName(const DriverLibrary& library) {
  return library.name.substr(library.name.rfind('/') + 1) +
         (library.versioned ? std::string(".") + kDriverVersion : "");
}

/// A root folder that a test fills. The paths passed to its functions are below it.
class DriverRoot {
 public:
  explicit DriverRoot(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& below) const { return path_ + below; }

  void Write(const std::string& below, const std::string& content = "\n",
             unsigned mode = 0644) const {
    Prepare(below);
    std::ofstream(*this / below, std::ios::binary | std::ios::trunc) << content;
    ::chmod((*this / below).c_str(), mode);
  }
  void Link(const std::string& below, const std::string& target) const {
    Prepare(below);
    std::filesystem::create_symlink(target, *this / below);
  }
  void Remove(const std::string& below) const { std::filesystem::remove_all(*this / below); }

  /// Adds one library to a folder, with the links that ldconfig and a development package create
  /// beside it.
  void AddLibrary(const std::string& folder, const DriverLibrary& library, bool wide = true) const {
    const auto slash = library.name.rfind('/');
    const std::string in =
        slash == std::string::npos ? folder : folder + "/" + library.name.substr(0, slash);
    const std::string file = FileName(library);
    const std::string soname = library.soname.empty() ? file : library.soname;
    const std::uint16_t machine = wide ? EM_X86_64 : EM_386;
    Write(in + "/" + file,
          os::MakeElf(
              {.wide = wide, .machine = machine, .soname = soname, .needed = library.needed}));
    if (soname == file) return;
    Link(in + "/" + soname, file);
    Link(in + "/" + file.substr(0, file.find(".so") + 3), soname);
  }

  void AddLibraries(const std::string& folder, bool wide = true) const {
    for (const DriverLibrary& library : DriverLibraries()) AddLibrary(folder, library, wide);
    Link(folder + "/gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1");
  }

  void AddPrograms(const std::string& folder) const {
    for (const char* name : {"nvidia-smi", "nvidia-debugdump", "nvidia-persistenced",
                             "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"})
      Write(folder + "/" + name, "#!/bin/sh\n", 0755);
  }

  /// `shared`: the folder that is /usr/share on most machines.
  void AddConfiguration(const std::string& shared, const std::string& vulkan,
                        const std::string& opencl) const {
    Write(shared + "/glvnd/egl_vendor.d/10_nvidia.json");
    Write(shared + "/egl/egl_external_platform.d/15_nvidia_gbm.json");
    Write(shared + "/egl/egl_external_platform.d/10_nvidia_wayland.json");
    Write(shared + "/nvidia/nvoptix.bin");
    Write(shared + "/nvidia/nvidia-application-profiles-" + kDriverVersion + "-rc");
    Write(vulkan + "/icd.d/nvidia_icd.json");
    Write(vulkan + "/implicit_layer.d/nvidia_layers.json");
    Write(opencl + "/vendors/nvidia.icd");
  }

  void AddFirmware(const std::string& folder = "/lib/firmware") const {
    for (const char* name : {"gsp_ga10x.bin", "gsp_tu10x.bin"})
      Write(folder + "/nvidia/" + kDriverVersion + "/" + name);
  }

  /// Writes ld.so.cache as ldconfig does: each SONAME and the path that it leads to.
  void AddCache(const std::map<std::string, std::string>& paths) const {
    std::vector<os::LdCacheEntry> entries;
    for (const auto& [soname, path] : paths)
      entries.push_back({.soname = soname, .path = path, .flags = 0x0303});
    Write("/etc/ld.so.cache", os::WriteLdCache(entries));
  }

  /// Adds a device file: a real one where that is allowed, else one with number 0:0, which any user
  /// may create (mknod(2) since Linux 5.8).
  bool AddDevice(const std::string& below, unsigned major_number, unsigned minor_number,
                 unsigned mode = 0666) const {
    Prepare(below);
    const std::string path = *this / below;
    const bool made =
        ::mknod(path.c_str(), S_IFCHR | mode, ::makedev(major_number, minor_number)) == 0 ||
        ::mknod(path.c_str(), S_IFCHR | mode, 0) == 0;
    return made && ::chmod(path.c_str(), mode) == 0;
  }
  bool AddControlDevices() const {
    return AddDevice("/dev/nvidiactl", 195, 255) && AddDevice("/dev/nvidia-modeset", 195, 254) &&
           AddDevice("/dev/nvidia-uvm", 510, 0) && AddDevice("/dev/nvidia-uvm-tools", 510, 1);
  }

 private:
  void Prepare(const std::string& below) const {
    std::filesystem::create_directories(std::filesystem::path(*this / below).parent_path());
  }

  std::string path_;
};

/// Adds a GPU of a machine with eight, with its files below `dev` and `sysfs`: /dev/nvidia<index>
/// and two of DRM.
inline device::Facts AddGpu(const DriverRoot& root, int index) {
  device::Facts facts;
  facts.id = "GPU-5a00000" + std::to_string(index) + "-0000-0000-0000-000000000000";
  facts.vendor = "nvidia";
  facts.model = "NVIDIA A100-SXM4-40GB";
  facts.index = index;
  facts.pci = device::PciAddress{.bus = static_cast<std::uint32_t>(7 + index)};
  const std::string number = std::to_string(index), card = "card" + number,
                    render = "renderD" + std::to_string(128 + index);
  facts.files = {{"/dev/nvidia" + number, 195, static_cast<std::uint32_t>(index)}};
  root.AddDevice("/dev/nvidia" + number, 195, static_cast<unsigned>(index));
  root.AddDevice("/dev/dri/" + card, 226, static_cast<unsigned>(index), 0660);
  root.AddDevice("/dev/dri/" + render, 226, static_cast<unsigned>(128 + index), 0660);
  const std::string pci = ToString(*facts.pci);
  root.Link("/dev/dri/by-path/pci-" + pci + "-card", "../" + card);
  root.Link("/dev/dri/by-path/pci-" + pci + "-render", "../" + render);
  for (const std::string& name : {card, render})
    std::filesystem::create_directories(root / ("/sys/bus/pci/devices/" + pci + "/drm/" + name));
  return facts;
}

}  // namespace penstock::support
