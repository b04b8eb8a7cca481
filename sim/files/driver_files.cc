#include "sim/files/driver_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/core/strings.h"
#include "sim/compile.h"
#include "sim/files/loader_cache.h"
#include "sim/files/shared_object.h"
#include "sim/files/symbols.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraries = "usr/lib/x86_64-linux-gnu";
constexpr const char* kManifest = ".penstock-sim/driver-files";
constexpr const char* kFirmware = "usr/lib/firmware/nvidia";
constexpr std::uint32_t kAlways = 0, kStill = UINT32_MAX;

// A library of the driver. Libraries without a version of their own have the driver's; "{v}" stands
// for it.
struct Library {
  const char* name;                                // without version
  const char* soname;                              // empty: the file's own name
  std::uint32_t since = kAlways, before = kStill;  // driver branches
  const char* needs = "";                          // dependencies other than the C library
  const char* version = "{v}";  // of the file's name; empty: the SONAME is the file's name
  const char* folder = "";      // below the library folder
  bool for_linking = false;     // there is also a name without version
};

// From NVIDIA's packages and from the file lists that distributions publish (Bottlerocket,
// Frugalware, Debian).
constexpr Library kDriverLibraries[] = {
    {"libcuda.so", "libcuda.so.1", kAlways, kStill, "", "{v}", "", true},
    {"libcudadebugger.so", "libcudadebugger.so.1", 520},
    {"libnvidia-ptxjitcompiler.so", "libnvidia-ptxjitcompiler.so.1", kAlways, kStill, "", "{v}", "",
     true},
    {"libnvidia-nvvm.so", "libnvidia-nvvm.so.4", 520, kStill, "", "{v}", "", true},
    {"libnvidia-compiler.so", "", kAlways, 520},
    {"libnvidia-fatbinaryloader.so", "", kAlways, 455},
    {"libnvidia-opencl.so", "libnvidia-opencl.so.1"},
    {"libnvidia-gpucomp.so", "", 550},
    {"libnvidia-pkcs11.so", "", 535},
    {"libnvidia-pkcs11-openssl3.so", "", 535},
    {"libnvidia-sandboxutils.so", "libnvidia-sandboxutils.so.1", 565},
    {"libnvidia-cfg.so", "libnvidia-cfg.so.1", kAlways, kStill, "", "{v}", "", true},
    {"libnvidia-allocator.so", "libnvidia-allocator.so.1", 450, kStill, "", "{v}", "", true},
    {"libnvidia-encode.so", "libnvidia-encode.so.1", kAlways, kStill, "libnvcuvid.so.1", "{v}", "",
     true},
    {"libnvcuvid.so", "libnvcuvid.so.1", kAlways, kStill, "libcuda.so.1", "{v}", "", true},
    {"libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1", kAlways, kStill, "libcuda.so.1",
     "{v}", "", true},
    {"libnvidia-fbc.so", "libnvidia-fbc.so.1", kAlways, kStill, "", "{v}", "", true},
    {"libnvidia-ifr.so", "libnvidia-ifr.so.1", kAlways, 470},
    {"libnvidia-cbl.so", "", kAlways, 495},
    {"libnvidia-tls.so", ""},
    {"libnvidia-glsi.so", ""},
    {"libnvidia-glcore.so", "", kAlways, kStill, "libnvidia-tls.so.{v}"},
    {"libnvidia-eglcore.so", "", kAlways, kStill, "libnvidia-tls.so.{v}"},
    {"libnvidia-glvkspirv.so", ""},
    {"libnvidia-rtcore.so", ""},
    {"libnvidia-ngx.so", "libnvidia-ngx.so.1"},
    {"libnvoptix.so", "libnvoptix.so.1", kAlways, kStill, "libnvidia-rtcore.so.{v}"},
    {"libEGL_nvidia.so", "libEGL_nvidia.so.0", kAlways, kStill, "libnvidia-glsi.so.{v}"},
    {"libGLX_nvidia.so", "libGLX_nvidia.so.0", kAlways, kStill,
     "libnvidia-glcore.so.{v} libnvidia-tls.so.{v}"},
    {"libGLESv1_CM_nvidia.so", "libGLESv1_CM_nvidia.so.1", kAlways, kStill,
     "libnvidia-eglcore.so.{v}"},
    {"libGLESv2_nvidia.so", "libGLESv2_nvidia.so.2", kAlways, kStill, "libnvidia-eglcore.so.{v}"},
    {"libnvidia-vulkan-producer.so", "", 470, 560},
    {"libnvidia-wayland-client.so", "", 535},
    {"libnvidia-egl-wayland.so", "libnvidia-egl-wayland.so.1", kAlways, kStill, "", "1.1.13"},
    {"libnvidia-egl-gbm.so", "libnvidia-egl-gbm.so.1", 495, kStill, "", "1.1.1"},
    {"libnvidia-api.so", "libnvidia-api.so.1", 535, kStill, "", ""},
    {"libvdpau_nvidia.so", "libvdpau_nvidia.so.1", kAlways, kStill, "", "{v}", "vdpau/"},
    {"libglxserver_nvidia.so", "libglxserver_nvidia.so", kAlways, kStill, "", "{v}",
     "../xorg/modules/extensions/"},
    {"nvidia_drv.so", "nvidia_drv.so", kAlways, kStill, "", "", "../xorg/modules/drivers/"},
};

struct Text {
  const char* path;
  const char* content;
  std::uint32_t since = kAlways;
};

constexpr Text kConfiguration[] = {
    {"etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1"},
    {"etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf"},
    {"etc/ld.so.conf.d/x86_64-linux-gnu.conf",
     "/usr/local/lib/x86_64-linux-gnu\n/lib/x86_64-linux-gnu\n/usr/lib/x86_64-linux-gnu"},
    {"usr/share/glvnd/egl_vendor.d/10_nvidia.json",
     R"({"file_format_version": "1.0.0", "ICD": {"library_path": "libEGL_nvidia.so.0"}})"},
    {"usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json",
     R"({"file_format_version": "1.0.0", "ICD": {"library_path": "libnvidia-egl-wayland.so.1"}})"},
    {"usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
     R"({"file_format_version": "1.0.0", "ICD": {"library_path": "libnvidia-egl-gbm.so.1"}})", 495},
    {"usr/share/vulkan/icd.d/nvidia_icd.json",
     R"({"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3"}})"},
    {"usr/share/vulkan/implicit_layer.d/nvidia_layers.json",
     R"({"file_format_version": "1.0.0", "layer": {"name": "VK_LAYER_NV_optimus", "library_path": "libGLX_nvidia.so.0"}})"},
    {"usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf",
     "Section \"OutputClass\"\n    Driver \"nvidia\"\nEndSection"},
    {"usr/share/nvidia/nvoptix.bin", "a table of the ray tracing library"},
    {"usr/share/nvidia/nvidia-application-profiles-{v}-rc", R"({"rules": [], "profiles": []})"},
    {"usr/share/nvidia/nvidia-application-profiles-{v}-key-documentation", "[]"},
};

constexpr std::string_view kDaemon = "nvidia-cuda-mps-control";
constexpr const char* kPrograms[] = {"nvidia-smi", kDaemon.data(), "nvidia-cuda-mps-server",
                                     "mps-client"};
constexpr const char* kPlaceholders[] = {"nvidia-debugdump", "nvidia-persistenced",
                                         "nvidia-modprobe"};

std::string WithVersion(std::string_view text, const std::string& version) {
  std::string result(text);
  for (std::size_t at = 0; (at = result.find("{v}", at)) != std::string::npos; at += version.size())
    result.replace(at, 3, version);
  return result;
}

// Installs one version, and records the files that it installed.
class Installation {
 public:
  Installation(TreeBuilder& tree, const Assets& assets, const SimState& state)
      : tree_(tree),
        assets_(assets),
        version_(state.library_version),
        branch_(DriverBranch(version_)),
        imex_(state.imex_channels > 0) {}

  std::vector<std::string> Install() {
    if (!tree_.Exists("lib")) tree_.Link("lib", "usr/lib");
    for (const Library& library : kDriverLibraries)
      if (library.since <= branch_ && branch_ < library.before) Install(library);
    InstallNvml();
    Link("", "libGLX_indirect.so.0", "libGLX_nvidia.so.0");
    if (branch_ >= 450) Link("gbm/", "nvidia-drm_gbm.so", "../libnvidia-allocator.so.1");
    for (const Text& text : kConfiguration)
      if (text.since <= branch_)
        tree_.File(Note(WithVersion(text.path, version_)), WithVersion(text.content, version_),
                   0644);
    for (const char* program : kPrograms) Program(program, program);
    for (const char* program : kPlaceholders) Program(program, "placeholder");
    if (imex_)
      for (const char* program : {"nvidia-imex", "nvidia-imex-ctl"})
        Program(program, "placeholder");
    tree_.Bytes(Note("etc/ld.so.cache"), LoaderCache(cached_), 0644);
    return std::move(installed_);
  }

 private:
  std::string Note(const std::string& path) {
    installed_.push_back(path);
    return path;
  }

  // The loader's cache contains no subfolders, and only links that are SONAMEs or for linking.
  // Where lib is a link, the cache uses its name, as Debian's does.
  void Cache(const std::string& folder, const std::string& name) {
    if (folder.empty()) cached_[name] = "/lib/x86_64-linux-gnu/" + name;
  }

  void Link(const std::string& folder, const std::string& name, const std::string& target) {
    tree_.Link(Note(std::string(kLibraries) + "/" + folder + name), target);
  }

  void Links(const Library& library, const std::string& file, const std::string& soname) {
    if (soname != file) Link(library.folder, soname, file);
    Cache(library.folder, soname);
    if (!library.for_linking) return;
    Link(library.folder, library.name, soname);
    Cache(library.folder, library.name);
  }

  void Install(const Library& library) {
    const std::string version = WithVersion(library.version, version_);
    const std::string file =
        version.empty() ? library.soname : std::string(library.name) + "." + version;
    const std::string soname = library.soname[0] ? library.soname : file;
    std::vector<std::string> needed = base::Split(WithVersion(library.needs, version_), ' ');
    std::erase(needed, "");
    needed.insert(needed.end(), {"libdl.so.2", "libc.so.6"});
    tree_.Bytes(Note(std::string(kLibraries) + "/" + library.folder + file),
                SharedObject(soname, needed), 0755);
    Links(library, file, soname);
  }

  void InstallNvml() {
    const std::string file = "libnvidia-ml.so." + version_;
    tree_.Copy(assets_.library_folder + "/libnvidia-ml.so.1",
               Note(std::string(kLibraries) + "/" + file),
               [&](const std::string& path) { return HideNewerSymbols(path, branch_); });
    Links({.name = "libnvidia-ml.so", .soname = "", .for_linking = true}, file,
          "libnvidia-ml.so.1");
  }

  void Program(const std::string& name, const std::string& asset) {
    const std::string from = assets_.library_folder + "/" + asset, to = Note("usr/bin/" + name);
    // EndMps recognizes a machine's daemons by the file of their program, so two machines must not
    // share it.
    if (name == kDaemon) return tree_.Copy(from, to);
    tree_.Borrow(from, to);
  }

  TreeBuilder& tree_;
  const Assets& assets_;
  const std::string version_;
  const std::uint32_t branch_;
  const bool imex_;
  std::vector<std::string> installed_;
  std::map<std::string, std::string> cached_;
};

// Returns the installed version and its files.
std::vector<std::string> ReadManifest(const TreeBuilder& tree) {
  const auto text = ReadText(tree.Path(kManifest));
  if (!text.ok()) return {""};
  return base::Split(base::Trim(*text), '\n');
}

}  // namespace

void SyncDriverFiles(TreeBuilder& tree, const Assets& assets, const SimState& state) {
  const std::string version = state.library_version;
  const auto before = ReadManifest(tree);
  const bool whole = std::all_of(before.begin() + 1, before.end(),
                                 [&](const std::string& path) { return tree.Exists(path); });
  if (before.front() == version && whole) return;
  std::vector<std::string> now;
  if (!version.empty()) now = Installation(tree, assets, state).Install();
  for (auto path = before.begin() + 1; path != before.end(); ++path)
    if (std::find(now.begin(), now.end(), *path) == now.end()) tree.Remove(*path);
  now.insert(now.begin(), version);
  tree.File(kManifest, base::Join(now, "\n"), 0644);
}

void SyncFirmware(TreeBuilder& tree, const SimState& state) {
  const std::string version = state.library_version,
                    folder = std::string(kFirmware) + "/" + version;
  std::error_code error;
  std::vector<std::string> others;
  for (fs::directory_iterator at(tree.Path(kFirmware), error), end; !error && at != end;
       at.increment(error))
    if (const std::string name = at->path().filename(); name != version) others.push_back(name);
  // One file before 515, then one for each generation of processors (open-gpu-kernel-modules,
  // nv-firmware.h); none before 465.
  const std::uint32_t branch = DriverBranch(version);
  const char* second = branch >= 535   ? "/gsp_ga10x.bin"
                       : branch >= 515 ? "/gsp_ad10x.bin"
                                       : nullptr;
  const std::string first = folder + (second ? "/gsp_tu10x.bin" : "/gsp.bin");
  if (!version.empty() && tree.Exists(".penstock-sim/state") && !tree.Exists(first)) {
    tree.HardLink(".penstock-sim/state", first);
    if (second) tree.File(folder + second, "firmware of " + version, 0644);
  }
  for (const std::string& name : others) tree.Remove(std::string(kFirmware) + "/" + name);
}

}  // namespace penstock::sim
