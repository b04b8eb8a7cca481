// Tests CDI specifications of NVIDIA's devices on driver roots as distributions lay them out, made
// of small ELF files. Checks properties that hold for any specification, never its text.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/dialect.h"
#include "node/cdi/generate.h"
#include "os/core/file.h"
#include "os/core/root.h"
#include "os/core/testing/temporary_folder.h"
#include "tests/support/driver_root.h"

namespace penstock {
namespace {

using api::cdi::DeviceNode;
using api::cdi::Hook;
using api::cdi::Mount;
using node::cdi::Generated;
using node::cdi::Input;
using node::cdi::Options;
using node::cdi::Places;
using support::DriverRoot;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kV = support::kDriverVersion;

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

const Hook* FindHook(const api::cdi::CdiEdits& edits, const std::string& name) {
  for (const Hook& hook : edits.hooks)
    if (hook.args.size() > 1 && hook.args[1] == name) return &hook;
  return nullptr;
}

std::vector<std::string> ValuesOf(const Hook* hook, const std::string& flag) {
  std::vector<std::string> values;
  if (hook == nullptr) return values;
  for (std::size_t i = 0; i + 1 < hook->args.size(); ++i)
    if (hook->args[i] == flag) values.push_back(hook->args[i + 1]);
  return values;
}

/// Link → target of create-symlinks.
std::map<std::string, std::string> LinksOf(const api::cdi::CdiEdits& edits) {
  std::map<std::string, std::string> links;
  for (const std::string& value : ValuesOf(FindHook(edits, "create-symlinks"), "--link")) {
    const auto middle = value.find("::");
    links[value.substr(middle + 2)] = value.substr(0, middle);
  }
  return links;
}

std::set<std::string> PathsOf(const std::vector<Mount>& mounts) {
  std::set<std::string> paths;
  for (const Mount& mount : mounts) paths.insert(mount.container_path);
  return paths;
}

/// The final path in a container after following these links.
std::string Resolve(std::string path, const std::map<std::string, std::string>& links) {
  for (int hops = 0; hops < 8; ++hops) {
    const auto link = links.find(path);
    if (link == links.end()) return path;
    path = std::filesystem::path(
               link->second.starts_with('/') ? link->second : FolderOf(path) + "/" + link->second)
               .lexically_normal();
  }
  return "a loop of links";
}

const api::cdi::Device* FindDevice(const api::cdi::Spec& spec, const std::string& name) {
  for (const api::cdi::Device& device : spec.devices)
    if (device.name == name) return &device;
  return nullptr;
}

std::vector<std::string> NamesOf(const api::cdi::Spec& spec) {
  std::vector<std::string> names;
  for (const auto& device : spec.devices) names.push_back(device.name);
  return names;
}

std::vector<std::string> NodesOf(const api::cdi::CdiEdits& edits) {
  std::vector<std::string> paths;
  for (const DeviceNode& node : edits.nodes) paths.push_back(node.path);
  return paths;
}

class Cdi : public ::testing::Test {
 protected:
  Cdi() : machine_(folder_ / "machine") {
    driver_ = {.vendor = "nvidia", .version = kV, .runtime_version = "12.9"};
    places_ = {.driver_root = machine_.path(),
               .dev_root = machine_.path(),
               .sysfs_root = machine_ / "/sys",
               .proc_root = machine_ / "/proc"};
  }

  void SetUp() override {
    ASSERT_TRUE(machine_.AddControlDevices())
        << "device files cannot be made in " << machine_.path();
  }

  void AddGpus(int count) {
    for (int i = 0; i < count; ++i) gpus_.push_back(support::AddGpu(machine_, i));
  }

  /// A complete driver as in Debian and Ubuntu, and two GPUs.
  void AddMachine() {
    machine_.AddLibraries(kMultiarch);
    machine_.AddPrograms("/usr/bin");
    machine_.AddConfiguration("/usr/share", "/etc/vulkan", "/etc/OpenCL");
    machine_.AddFirmware();
    AddGpus(2);
  }

  base::Result<Generated> Generate(const Options& options = {}) const {
    Input input{&backend::nvidia::TheDialect(), &driver_, {}};
    for (const device::Facts& gpu : gpus_) input.devices.push_back(&gpu);
    return node::cdi::Generate(input, places_, options);
  }

  /// Checks what holds for any specification.
  void CheckAll(const Generated& generated) const {
    const api::cdi::Spec& spec = generated.spec;
    EXPECT_TRUE(api::cdi::Check(spec).ok());
    EXPECT_EQ(api::cdi::MinimumVersion(spec), "0.5.0");
    const std::string text = api::cdi::ToYaml(spec);
    auto read = api::cdi::Parse(text, "spec.yaml");
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_TRUE(read->edits == spec.edits);
    EXPECT_EQ(api::cdi::ToYaml(Generate(kPlain)->spec), text) << "twice the same is not the same";
    CheckMounts(spec.edits);
    CheckHooks(spec.edits);
    CheckNodes(spec.edits);
    for (const auto& device : spec.devices) CheckNodes(device.edits);
  }

  void CheckMounts(const api::cdi::CdiEdits& edits) const {
    std::set<std::string> paths;
    for (const Mount& mount : edits.mounts) {
      EXPECT_TRUE(paths.insert(mount.container_path).second) << mount.container_path << " twice";
      struct stat about {};
      EXPECT_EQ(::lstat((host_ + mount.host_path).c_str(), &about), 0)
          << mount.host_path << " does not exist";
      EXPECT_FALSE(S_ISLNK(about.st_mode)) << mount.host_path << " is a link";
      EXPECT_EQ(mount.container_path.find("/../"), std::string::npos);
      EXPECT_THAT(mount.options, ElementsAre("ro", "nosuid", "nodev", "rbind", "rprivate"))
          << mount.container_path;
    }
    EXPECT_TRUE(std::is_sorted(
        edits.mounts.begin(), edits.mounts.end(),
        [](const Mount& a, const Mount& b) { return a.container_path < b.container_path; }));
    const auto links = LinksOf(edits);
    for (const auto& [link, target] : links) {
      EXPECT_TRUE(paths.contains(Resolve(link, links)))
          << link << " -> " << target << " leads to " << Resolve(link, links);
      EXPECT_FALSE(paths.contains(link)) << link << " is a mount, too";
    }
    const auto folders = ValuesOf(FindHook(edits, "update-ldcache"), "--folder");
    for (const std::string& folder : folders)
      EXPECT_THAT(paths, Contains(testing::StartsWith(folder + "/")))
          << folder << " has no library in it";
  }

  void CheckHooks(const api::cdi::CdiEdits& edits) const {
    std::vector<std::string> names;
    for (const Hook& hook : edits.hooks) {
      EXPECT_EQ(hook.name, "createContainer");
      ASSERT_GT(hook.args.size(), 1u);
      EXPECT_EQ(hook.args[0], NameOf(hook.path));
      EXPECT_THAT(hook.env, Not(IsEmpty())) << "the image's variables would count (CVE-2025-23266)";
      names.push_back(hook.args[1]);
    }
    EXPECT_THAT(names,
                ElementsAre("create-symlinks", "enable-cuda-compat", "update-ldcache",
                            "disable-device-node-modification", "update-application-profile"));
  }

  void CheckNodes(const api::cdi::CdiEdits& edits) const {
    std::set<std::string> paths;
    for (const DeviceNode& node : edits.nodes) {
      EXPECT_TRUE(paths.insert(node.path).second) << node.path << " twice";
      struct stat about {};
      const std::string host_path = node.host_path.empty() ? node.path : node.host_path;
      EXPECT_EQ(::lstat((host_ + host_path).c_str(), &about), 0) << host_path;
      EXPECT_EQ(node.major, ::major(about.st_rdev));
      EXPECT_EQ(node.minor, ::minor(about.st_rdev));
      EXPECT_EQ(node.file_mode, about.st_mode & 0777);
      EXPECT_EQ(node.permissions, "rwm");
    }
  }

  static constexpr const char* kMultiarch = "/usr/lib/x86_64-linux-gnu";
  // Group ids require version 0.7.0.
  inline static const Options kPlain = {.additional_gids = false};

  os::TemporaryFolder folder_;
  DriverRoot machine_;
  std::string host_;  ///< prefix of the paths that the host uses
  Places places_;
  device::Driver driver_;
  std::vector<device::Facts> gpus_;
};

std::set<std::string> LibraryNames() {
  std::set<std::string> names;
  for (const auto& library : support::DriverLibraries()) names.insert(support::FileName(library));
  return names;
}

/// A distribution's layout of a driver.
struct Layout {
  const char* name;
  std::function<void(const DriverRoot& machine, Places& places)> make;
  std::string library_folder;  ///< in containers
  std::string program = "/usr/bin/nvidia-smi";
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }

class CdiLayouts : public Cdi, public ::testing::WithParamInterface<Layout> {};

/// As by glx-alternatives: programs and libraries are links to links into nvidia/current.
void MakeDebianAlternatives(const DriverRoot& machine, Places&) {
  const std::string real = "/usr/lib/x86_64-linux-gnu/nvidia/current";
  machine.AddLibraries(real);
  for (const auto& library : support::DriverLibraries()) {
    if (library.soname.empty() || library.name.find('/') != std::string::npos) continue;
    machine.Link("/etc/alternatives/glx--" + library.soname, real + "/" + library.soname);
    machine.Link("/usr/lib/x86_64-linux-gnu/" + library.soname,
                 "/etc/alternatives/glx--" + library.soname);
  }
  machine.Link("/lib", "usr/lib");
  machine.AddPrograms("/usr/lib/nvidia/current");
  machine.Link("/etc/alternatives/nvidia--nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi");
  machine.Link("/usr/bin/nvidia-smi", "/etc/alternatives/nvidia--nvidia-smi");
}

void MakeDriverContainer(const DriverRoot& machine, Places& places) {
  const DriverRoot driver(machine / "/run/nvidia/driver");
  driver.AddLibraries("/usr/lib64");
  driver.Link("/lib64", "/usr/lib64");
  driver.AddPrograms("/usr/bin");
  places.driver_root = driver.path();
}

/// The root is a folder of links into the store, which is beside it.
void MakeNixRoot(const DriverRoot& machine, Places& places) {
  const std::string store = machine / "/nix/store/abc-nvidia-x11";
  const DriverRoot package(store);
  package.AddLibraries("/lib");
  package.AddPrograms("/bin");
  const DriverRoot drivers(machine / "/nix/store/def-graphics-drivers");
  for (const char* folder : {"/lib", "/lib/vdpau"})
    for (const auto& entry : std::filesystem::directory_iterator(store + folder))
      if (!entry.is_directory())
        drivers.Link(std::string(folder) + "/" + entry.path().filename().string(), entry.path());
  drivers.Link("/bin", store + "/bin");
  machine.Link("/run/opengl-driver", drivers.path());
  places.driver_root = machine / "/run/opengl-driver";
}

/// NixOS from its own root: there the store's paths are absolute.
void MakeNixMachine(const DriverRoot& machine, Places&) {
  machine.AddLibraries("/nix/store/abc-nvidia-x11/lib");
  machine.Link("/run/opengl-driver", "/nix/store/abc-nvidia-x11");
  machine.AddPrograms("/usr/bin");
}

void MakeGke(const DriverRoot& machine, Places& places) {
  const DriverRoot driver(machine / "/home/kubernetes/bin/nvidia");
  driver.AddLibraries("/lib64");
  driver.AddPrograms("/bin");
  driver.Write("/vulkan/icd.d/nvidia_icd.json");
  places.driver_root = driver.path();
}

/// The libraries are in no usual folder; only ld.so's cache lists them.
void MakeCacheOnly(const DriverRoot& machine, Places&) {
  machine.AddLibraries("/opt/vendor/driver/libs");
  machine.AddPrograms("/usr/bin");
  machine.AddCache(
      {{"libcuda.so.1", "/opt/vendor/driver/libs/libcuda.so.1"}, {"libc.so.6", "/lib/libc.so.6"}});
}

const Layout kLayouts[] = {
    {"DebianMultiarch",
     [](const DriverRoot& machine, Places&) {
       machine.AddLibraries("/usr/lib/x86_64-linux-gnu");
       machine.Link("/lib", "usr/lib");
       machine.AddPrograms("/usr/bin");
     },
     "/usr/lib/x86_64-linux-gnu"},
    {"DebianAlternatives", MakeDebianAlternatives, "/usr/lib/x86_64-linux-gnu/nvidia/current"},
    {"Rhel",
     [](const DriverRoot& machine, Places&) {
       machine.AddLibraries("/usr/lib64");
       machine.Link("/lib64", "usr/lib64");
       machine.AddPrograms("/usr/bin");
     },
     "/usr/lib64"},
    {"Arch",
     [](const DriverRoot& machine, Places&) {
       machine.AddLibraries("/usr/lib");
       for (const char* link : {"/lib", "/lib64"}) machine.Link(link, "usr/lib");
       machine.Link("/usr/lib64", "lib");
       machine.AddPrograms("/usr/bin");
     },
     "/usr/lib"},
    {"DriverContainer", MakeDriverContainer, "/usr/lib64"},
    {"NixRoot", MakeNixRoot, "/lib", "/bin/nvidia-smi"},
    {"NixMachine", MakeNixMachine, "/nix/store/abc-nvidia-x11/lib"},
    {"Gke", MakeGke, "/lib64", "/bin/nvidia-smi"},
    {"CacheOnly", MakeCacheOnly, "/opt/vendor/driver/libs"},
};
INSTANTIATE_TEST_SUITE_P(Of, CdiLayouts, ::testing::ValuesIn(kLayouts),
                         [](const auto& test) { return test.param.name; });

TEST_P(CdiLayouts, GiveEveryLibraryOfTheDriver) {
  GetParam().make(machine_, places_);
  AddGpus(8);
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok()) << generated.error().message();
  CheckAll(*generated);
  std::set<std::string> names, folders;
  for (const Mount& mount : generated->spec.edits.mounts) {
    if (NameOf(mount.container_path).find(".so") == std::string::npos) continue;
    names.insert(NameOf(mount.container_path));
    folders.insert(FolderOf(mount.container_path));
  }
  EXPECT_EQ(names, LibraryNames());
  const std::string& folder = GetParam().library_folder;
  EXPECT_THAT(folders, ElementsAre(folder, folder + "/vdpau"));
  EXPECT_THAT(ValuesOf(FindHook(generated->spec.edits, "update-ldcache"), "--folder"),
              ElementsAre(folder, folder + "/vdpau"));
  EXPECT_THAT(PathsOf(generated->spec.edits.mounts), Contains(GetParam().program));
  const auto links = LinksOf(generated->spec.edits);
  EXPECT_EQ(Resolve(folder + "/libcuda.so", links), folder + "/libcuda.so." + kV);
  EXPECT_EQ(Resolve(folder + "/libnvidia-nvvm.so.4", links), folder + "/libnvidia-nvvm.so." + kV);
  EXPECT_EQ(Resolve(folder + "/libGLX_indirect.so.0", links), folder + "/libGLX_nvidia.so." + kV);
  EXPECT_EQ(Resolve(folder + "/gbm/nvidia-drm_gbm.so", links),
            folder + "/libnvidia-allocator.so." + kV);
  EXPECT_EQ(generated->spec.devices.size(), 17u);
}

TEST_P(CdiLayouts, TakeTheVersionFromTheLibrariesWhereNoOneElseSaysIt) {
  GetParam().make(machine_, places_);
  AddGpus(1);
  driver_.version.clear();
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok()) << generated.error().message();
  EXPECT_EQ(generated->version, kV);
  EXPECT_THAT(FindHook(generated->spec.edits, "enable-cuda-compat")->args,
              Contains("--host-driver-version=" + kV));
}

/// Adding or removing one file changes only what depends on that file.
TEST_P(CdiLayouts, LoseJustWhatIsRemoved) {
  GetParam().make(machine_, places_);
  AddGpus(1);
  const auto whole = Generate(kPlain);
  ASSERT_TRUE(whole.ok());
  const std::string kept = folder_ / "kept";
  for (const Mount& gone : whole->spec.edits.mounts) {
    std::filesystem::rename(gone.host_path, kept);
    const auto less = Generate(kPlain);
    std::filesystem::rename(kept, gone.host_path);
    ASSERT_TRUE(less.ok()) << gone.host_path << ": " << less.error().message();
    api::cdi::Spec expected = whole->spec;
    std::erase(expected.edits.mounts, gone);
    EXPECT_EQ(PathsOf(less->spec.edits.mounts), PathsOf(expected.edits.mounts)) << gone.host_path;
    EXPECT_TRUE(less->spec.edits.mounts == expected.edits.mounts) << gone.host_path;
    EXPECT_TRUE(less->spec.edits.nodes == expected.edits.nodes) << gone.host_path;
    EXPECT_TRUE(less->spec.devices == expected.devices) << gone.host_path;
    const auto links = LinksOf(whole->spec.edits);
    auto links_left = links;
    std::erase_if(links_left, [&](const auto& link) {
      return Resolve(link.first, links) == gone.container_path;
    });
    EXPECT_EQ(LinksOf(less->spec.edits), links_left) << gone.host_path;
  }
  EXPECT_TRUE(Generate(kPlain)->spec == whole->spec);
}

TEST_F(Cdi, NamesHostPathsAsTheHostDoes) {
  machine_.AddLibraries("/run/nvidia/driver/usr/lib64");
  AddGpus(1);
  places_.driver_root = machine_ / "/run/nvidia/driver";
  places_.host_driver_root = "/run/nvidia/driver";
  places_.host_dev_root = "/";
  host_ = machine_.path();
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok()) << generated.error().message();
  CheckAll(*generated);
  for (const Mount& mount : generated->spec.edits.mounts)
    EXPECT_EQ(mount.host_path, "/run/nvidia/driver" + mount.container_path);
  for (const DeviceNode& node : generated->spec.edits.nodes) EXPECT_EQ(node.host_path, "");
}

TEST_F(Cdi, FollowsLinksOutOfTheRootAlsoWhereThisProcessSeesTheHostElsewhere) {
  MakeNixRoot(machine_, places_);
  // Links in the store are absolute on the host, as in NixOS.
  const std::string store = machine_ / "/nix/store/def-graphics-drivers/lib";
  for (const auto& entry :
       std::vector<std::filesystem::path>{std::filesystem::directory_iterator(store), {}}) {
    if (!std::filesystem::is_symlink(entry)) continue;
    const std::string target =
        std::filesystem::read_symlink(entry).string().substr(machine_.path().size());
    std::filesystem::remove(entry);
    std::filesystem::create_symlink(target, entry);
  }
  AddGpus(1);
  places_.driver_root = machine_ / "/nix/store/def-graphics-drivers";
  places_.host_driver_root = "/nix/store/def-graphics-drivers";
  places_.host_dev_root = "/";
  host_ = machine_.path();
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok()) << generated.error().message();
  CheckAll(*generated);
  EXPECT_THAT(generated->spec.edits.mounts,
              Contains(Field(&Mount::host_path, "/nix/store/abc-nvidia-x11/lib/libcuda.so." + kV)));
}

TEST_F(Cdi, PutsOtherFilesWhereContainersLookForThem) {
  machine_.AddLibraries("/usr/lib64");
  machine_.AddConfiguration("/usr/share", "/usr/share/vulkan", "/etc/OpenCL");
  machine_.AddFirmware("/usr/lib/firmware/updates");
  machine_.Link("/lib", "usr/lib");
  machine_.Write("/usr/lib64/xorg/modules/drivers/nvidia_drv.so", os::MakeElf({}));
  machine_.Write("/usr/lib64/xorg/modules/extensions/libglxserver_nvidia.so." + kV,
                 os::MakeElf({}));
  AddGpus(1);
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok()) << generated.error().message();
  CheckAll(*generated);
  const auto paths = PathsOf(generated->spec.edits.mounts);
  for (const std::string& path :
       {std::string("/etc/vulkan/icd.d/nvidia_icd.json"),
        std::string("/etc/vulkan/implicit_layer.d/nvidia_layers.json"),
        std::string("/etc/OpenCL/vendors/nvidia.icd"),
        std::string("/usr/share/glvnd/egl_vendor.d/10_nvidia.json"),
        std::string("/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json"),
        std::string("/usr/share/nvidia/nvoptix.bin"),
        "/usr/share/nvidia/nvidia-application-profiles-" + kV + "-rc",
        "/lib/firmware/nvidia/" + kV + "/gsp_ga10x.bin",
        std::string("/usr/lib64/xorg/modules/drivers/nvidia_drv.so"),
        "/usr/lib64/xorg/modules/extensions/libglxserver_nvidia.so." + kV})
    EXPECT_THAT(paths, Contains(path));
  EXPECT_THAT(ValuesOf(FindHook(generated->spec.edits, "update-ldcache"), "--folder"),
              ElementsAre("/usr/lib64", "/usr/lib64/vdpau"));
}

TEST_F(Cdi, FindsFirmwareWhereTheKernelWasReported) {
  machine_.AddLibraries("/run/nvidia/driver/usr/lib64");
  machine_.AddFirmware("/run/nvidia/driver/opt/firmware");
  machine_.Write("/sys/module/firmware_class/parameters/path", "/run/nvidia/driver/opt/firmware\n");
  AddGpus(1);
  places_.driver_root = machine_ / "/run/nvidia/driver";
  places_.host_driver_root = "/run/nvidia/driver";
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  EXPECT_THAT(generated->spec.edits.mounts,
              Contains(Field(&Mount::host_path,
                             "/run/nvidia/driver/opt/firmware/nvidia/" + kV + "/gsp_tu10x.bin")));
}

TEST_F(Cdi, GivesSocketsWritable) {
  AddMachine();
  machine_.Link("/var/run", "/run");
  machine_.AddDevice("/run/nvidia-persistenced/other", 0, 0);
  ASSERT_EQ(::mknod((machine_ / "/run/nvidia-persistenced/socket").c_str(), S_IFSOCK | 0666, 0), 0);
  std::filesystem::create_directories(machine_ / "/tmp/nvidia-mps");
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  for (const char* path : {"/run/nvidia-persistenced/socket", "/tmp/nvidia-mps"}) {
    const Mount expected{
        machine_ / path, path, {"nosuid", "nodev", "rbind", "rprivate", "noexec"}, ""};
    EXPECT_THAT(generated->spec.edits.mounts, Contains(expected));
  }
  EXPECT_THAT(generated->spec.edits.mounts,
              Not(Contains(Field(&Mount::container_path, "/var/run/nvidia-persistenced/socket"))));
  EXPECT_THAT(generated->folders, Contains(machine_ / "/run/nvidia-persistenced"));
}

TEST_F(Cdi, GivesNothingWritableThatAnyoneMayHavePutThere) {
  AddMachine();
  machine_.Write("/root/secret");
  machine_.Link("/tmp/nvidia-mps", "/root");
  auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  EXPECT_THAT(PathsOf(generated->spec.edits.mounts), Not(Contains(testing::StartsWith("/tmp"))));
  EXPECT_THAT(PathsOf(generated->spec.edits.mounts), Not(Contains("/root")));
  EXPECT_THAT(generated->remarks,
              Contains(HasSubstr("/tmp/nvidia-mps is neither a socket nor a folder")));

  if (::geteuid() != 0) return;  // only root may change a file's owner
  machine_.Remove("/tmp/nvidia-mps");
  std::filesystem::create_directories(machine_ / "/tmp/nvidia-mps");
  ASSERT_EQ(::chown((machine_ / "/tmp/nvidia-mps").c_str(), 65534, 65534), 0);
  generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  EXPECT_THAT(PathsOf(generated->spec.edits.mounts), Not(Contains("/tmp/nvidia-mps")));
  EXPECT_THAT(generated->remarks, Contains(HasSubstr("/tmp/nvidia-mps belongs to user 65534")));
}

TEST_F(Cdi, LibrariesFor32BitProgramsAreAClassOfTheirOwn) {
  AddMachine();
  ASSERT_FALSE(Generate()->narrow);
  machine_.AddLibraries("/usr/lib/i386-linux-gnu", false);
  // RHEL has these libraries in /usr/lib; the first folder wins.
  machine_.AddLibraries("/usr/lib", false);
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  CheckAll(*generated);
  EXPECT_THAT(PathsOf(generated->spec.edits.mounts),
              Not(Contains(testing::StartsWith("/usr/lib/i386-linux-gnu"))));
  ASSERT_TRUE(generated->narrow);
  EXPECT_EQ(generated->narrow->kind, "nvidia.com/compat32");
  EXPECT_TRUE(api::cdi::Check(*generated->narrow).ok());
  ASSERT_THAT(NamesOf(*generated->narrow), ElementsAre("all"));
  const api::cdi::CdiEdits& edits = generated->narrow->devices[0].edits;
  CheckMounts(edits);
  EXPECT_EQ(edits.mounts.size(), LibraryNames().size());
  EXPECT_THAT(ValuesOf(FindHook(edits, "update-ldcache"), "--folder"),
              ElementsAre("/usr/lib", "/usr/lib/vdpau"));
}

TEST_F(Cdi, LibrariesOfOtherProcessorsAreLeftOut) {
  AddMachine();
  machine_.Write("/usr/lib/aarch64-linux-gnu/libcuda.so." + kV,
                 os::MakeElf({.machine = EM_AARCH64, .soname = "libcuda.so.1"}));
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  CheckAll(*generated);
  EXPECT_THAT(PathsOf(generated->spec.edits.mounts),
              Not(Contains(testing::StartsWith("/usr/lib/aarch64-linux-gnu"))));
}

TEST_F(Cdi, GivesWhatLibrariesNeedOfTheDriverAndNothingOfTheSystem) {
  AddMachine();
  const std::string folder = kMultiarch;
  machine_.AddLibrary(
      folder,
      {"libnvidia-glcore.so", "", {"libnvidia-odd.so.3", "libnvidia-lost.so.1", "libX11.so.6"}});
  machine_.Write(folder + "/libnvidia-odd.so.3.2",
                 os::MakeElf({.soname = "libnvidia-odd.so.3", .needed = {"libnvidia-odder.so"}}));
  machine_.Link(folder + "/libnvidia-odd.so.3", "libnvidia-odd.so.3.2");
  machine_.Write(folder + "/libnvidia-odder.so", os::MakeElf({}));
  machine_.Write(folder + "/libX11.so.6", os::MakeElf({.soname = "libX11.so.6"}));
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  CheckAll(*generated);
  const auto paths = PathsOf(generated->spec.edits.mounts);
  EXPECT_THAT(paths, Contains(folder + "/libnvidia-odd.so.3.2"));
  EXPECT_THAT(paths, Contains(folder + "/libnvidia-odder.so"));
  EXPECT_THAT(paths, Not(Contains(folder + "/libX11.so.6")));
  EXPECT_THAT(generated->remarks, Contains(HasSubstr("needs libnvidia-lost.so.1")));
}

TEST_F(Cdi, OfTwoLibrariesOfOneSonameTheOneThatTheRootLoadsIsLoaded) {
  AddMachine();
  const std::string folder = kMultiarch;
  // Other packages left these versions beside 1.1.19; in alphabetical order, one precedes it and
  // one follows it.
  for (const char* version : {"1.1.10", "1.1.9"})
    machine_.Write(folder + "/libnvidia-egl-wayland.so." + version,
                   os::MakeElf({.soname = "libnvidia-egl-wayland.so.1"}));
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  CheckAll(*generated);
  EXPECT_EQ(Resolve(folder + "/libnvidia-egl-wayland.so.1", LinksOf(generated->spec.edits)),
            folder + "/libnvidia-egl-wayland.so.1.1.19");
}

TEST_F(Cdi, SaysWhatOfTheDriverIsNotThere) {
  for (const char* name : {"libcuda.so", "libnvidia-ml.so"})
    machine_.AddLibrary(kMultiarch, {name, std::string(name) + ".1", {}});
  AddGpus(1);
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  EXPECT_THAT(generated->remarks,
              Contains(testing::AllOf(HasSubstr("graphics"), HasSubstr("libGLX_nvidia.so." + kV))));
  EXPECT_THAT(generated->remarks,
              Contains(testing::AllOf(HasSubstr("utility"), HasSubstr("nvidia-smi"))));
  EXPECT_THAT(generated->remarks, Not(Contains(HasSubstr("libcuda.so"))));
}

TEST_F(Cdi, LeavesOutWhatIsNoLibraryAndSaysSo) {
  AddMachine();
  const std::string folder = kMultiarch;
  machine_.Write(folder + "/libnvidia-text.so." + kV, "INPUT(libcuda.so)\n");
  machine_.Link(folder + "/libnvidia-dangling.so." + kV, "nowhere");
  machine_.Link(folder + "/libnvidia-loop.so." + kV, "libnvidia-loop.so." + kV);
  std::filesystem::create_directories(machine_ / (folder + "/libnvidia-folder.so." + kV));
  ASSERT_EQ(::mkfifo((machine_ / (folder + "/libnvidia-pipe.so." + kV)).c_str(), 0666), 0);
  machine_.Link("/usr/lib64", "/usr/lib64");
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok()) << generated.error().message();
  CheckAll(*generated);
  for (const char* name : {"text", "dangling", "loop", "folder", "pipe"}) {
    EXPECT_THAT(generated->remarks,
                Contains(HasSubstr("libnvidia-" + std::string(name) + ".so." + kV)));
    EXPECT_THAT(PathsOf(generated->spec.edits.mounts),
                Not(Contains(HasSubstr(name + std::string(".so.")))));
  }
}

TEST_F(Cdi, ReadsWhatACompilerMakes) {
  AddGpus(1);
  std::filesystem::create_directories(machine_ / kMultiarch);
  const std::string cuda = machine_ / (kMultiarch + std::string("/libcuda.so.") + kV);
  const std::string needed =
      machine_ / (kMultiarch + std::string("/libnvidia-ptxjitcompiler.so.") + kV);
  const std::string build =
      "echo 'int f(void) { return 0; }' | cc -xc -shared -fPIC -nostdlib -Wl,-soname,";
  ASSERT_EQ(std::system((build + "libnvidia-ptxjitcompiler.so.1 -o " + needed + " -").c_str()), 0);
  ASSERT_EQ(
      std::system(
          (build + "libcuda.so.1 -o " + cuda + " - -Wl,--no-as-needed -x none " + needed).c_str()),
      0);
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok()) << generated.error().message();
  CheckAll(*generated);
  const std::string folder = kMultiarch;
  const auto links = LinksOf(generated->spec.edits);
  EXPECT_EQ(Resolve(folder + "/libcuda.so.1", links), folder + "/libcuda.so." + kV);
  EXPECT_EQ(Resolve(folder + "/libnvidia-ptxjitcompiler.so.1", links),
            folder + "/libnvidia-ptxjitcompiler.so." + kV);
  EXPECT_THAT(generated->remarks, Not(Contains(HasSubstr("needs libnvidia-ptxjitcompiler"))));
}

TEST_F(Cdi, RefusesToPublishWithoutAControlDevice) {
  AddMachine();
  for (const std::string node : {"nvidia-uvm", "nvidiactl"}) {
    machine_.Remove("/dev/" + node);
    const auto generated = Generate();
    ASSERT_FALSE(generated.ok());
    EXPECT_EQ(generated.error().code(), base::Code::kNotFound);
    EXPECT_THAT(generated.error().message(),
                testing::AllOf(HasSubstr("/dev/" + node), HasSubstr("nvidia-modprobe")));
    machine_.AddDevice("/dev/" + node, 195, 255);
  }
  machine_.Remove("/dev/nvidia-modeset");
  EXPECT_TRUE(Generate().ok()) << "a machine without a display driver has no modeset device";
}

TEST_F(Cdi, RefusesToPublishWithoutADriver) {
  AddGpus(1);
  auto generated = Generate();
  ASSERT_FALSE(generated.ok());
  EXPECT_EQ(generated.error().code(), base::Code::kNotFound);
  EXPECT_THAT(generated.error().message(), HasSubstr("libcuda.so." + kV));

  machine_.AddLibraries(kMultiarch);
  driver_.version = "999.1";
  generated = Generate();
  ASSERT_FALSE(generated.ok());
  EXPECT_THAT(generated.error().message(),
              testing::AllOf(HasSubstr("999.1"), HasSubstr("version " + kV), HasSubstr("restart")));
  // Unrelated files with such names are not the driver's libraries.
  driver_.version = kV;
  for (const char* name : {"/libcuda.so.", "/libnvidia-ml.so."})
    machine_.Write(kMultiarch + (name + kV), "text");
  EXPECT_FALSE(Generate().ok());
}

TEST_F(Cdi, RefusesToPublishWithoutADevice) {
  AddMachine();
  for (device::Facts& gpu : gpus_) gpu.files = {{"/dev/nvidia77", 195, 77}};
  const auto generated = Generate();
  ASSERT_FALSE(generated.ok());
  EXPECT_EQ(generated.error().code(), base::Code::kNotFound);
  EXPECT_THAT(generated.error().message(), HasSubstr("/dev/nvidia77"));
  gpus_.clear();
  EXPECT_EQ(Generate().error().code(), base::Code::kNotFound);
}

TEST_F(Cdi, ADeviceWithoutItsFileIsLeftOutAlone) {
  AddMachine();
  machine_.Remove("/dev/nvidia0");
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  CheckAll(*generated);
  EXPECT_THAT(NamesOf(generated->spec), ElementsAre("1", gpus_[1].id, "all"));
  EXPECT_THAT(generated->remarks,
              Contains(testing::AllOf(HasSubstr(gpus_[0].id), HasSubstr("/dev/nvidia0"))));
}

TEST_F(Cdi, EachDeviceHasItsFilesUnderEachOfItsNames) {
  AddMachine();
  std::reverse(gpus_.begin(), gpus_.end());
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  CheckAll(*generated);
  EXPECT_THAT(NamesOf(generated->spec), ElementsAre("0", gpus_[1].id, "1", gpus_[0].id, "all"));
  const api::cdi::CdiEdits& first = FindDevice(generated->spec, "0")->edits;
  EXPECT_THAT(NodesOf(first), ElementsAre("/dev/dri/card0", "/dev/dri/renderD128", "/dev/nvidia0"));
  EXPECT_TRUE(FindDevice(generated->spec, gpus_[1].id)->edits == first);
  const std::string by_path = "/dev/dri/by-path/pci-0000:07:00.0";
  EXPECT_THAT(LinksOf(first), ElementsAre(testing::Pair(by_path + "-card", "../card0"),
                                          testing::Pair(by_path + "-render", "../renderD128")));
  const api::cdi::CdiEdits& all = FindDevice(generated->spec, "all")->edits;
  EXPECT_THAT(NodesOf(all), ElementsAre("/dev/dri/card0", "/dev/dri/card1", "/dev/dri/renderD128",
                                        "/dev/dri/renderD129", "/dev/nvidia0", "/dev/nvidia1"));
  EXPECT_EQ(LinksOf(all).size(), 4u);
  EXPECT_THAT(NodesOf(generated->spec.edits),
              ElementsAre("/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                          "/dev/nvidiactl"));
  EXPECT_THAT(
      generated->spec.edits.env,
      ElementsAre("NVIDIA_CTK_LIBCUDA_DIR=" + std::string(kMultiarch) + ":" + kMultiarch + "/vdpau",
                  "NVIDIA_VISIBLE_DEVICES=void"));
}

TEST_F(Cdi, PartitionsHaveTheFilesThatTheirHoldersOpen) {
  AddMachine();
  gpus_[0].withheld = "MIG mode is enabled";
  for (int i = 0; i < 2; ++i) {
    device::Facts mig;
    mig.id = "MIG-7b00000" + std::to_string(i);
    mig.number = "0:" + std::to_string(i);
    mig.parent = gpus_[0].id;
    mig.pci = gpus_[0].pci;
    mig.files = {gpus_[0].files.front()};
    for (const unsigned cap :
         {30u + 10 * static_cast<unsigned>(i), 31u + 10 * static_cast<unsigned>(i)}) {
      const std::string path = "/dev/nvidia-caps/nvidia-cap" + std::to_string(cap);
      ASSERT_TRUE(machine_.AddDevice(path, 236, cap, 0444));
      mig.files.push_back({path, 236, cap});
    }
    gpus_.push_back(mig);
  }
  const auto generated =
      Generate({.names = {device::CdiNames::kTypeIndex}, .additional_gids = false});
  ASSERT_TRUE(generated.ok());
  EXPECT_THAT(NamesOf(generated->spec), ElementsAre("gpu0", "mig0:0", "mig0:1", "gpu1", "all"));
  EXPECT_THAT(NodesOf(FindDevice(generated->spec, "mig0:1")->edits),
              ElementsAre("/dev/nvidia-caps/nvidia-cap40", "/dev/nvidia-caps/nvidia-cap41",
                          "/dev/nvidia0"));
  const auto all = NodesOf(FindDevice(generated->spec, "all")->edits);
  EXPECT_THAT(all, Contains("/dev/nvidia0")) << "of its partitions";
  EXPECT_THAT(all, Not(Contains("/dev/dri/card0"))) << "the GPU itself is not in it";

  gpus_.erase(gpus_.begin());
  const auto orphans = Generate(kPlain);
  ASSERT_TRUE(orphans.ok());
  EXPECT_THAT(NamesOf(orphans->spec),
              testing::UnorderedElementsAre("MIG-7b000000", "MIG-7b000001", "0:0", "0:1", "1",
                                            gpus_[0].id, "all"));
}

TEST_F(Cdi, GroupsMatterOnlyWhereNotEverybodyMayOpenADevice) {
  AddMachine();
  const std::string render = machine_ / "/dev/dri/renderD128";
  if (::geteuid() == 0) { ASSERT_EQ(::chown(render.c_str(), 0, 44), 0); }
  struct stat about {};
  ASSERT_EQ(::stat(render.c_str(), &about), 0);
  auto generated = Generate();
  ASSERT_TRUE(generated.ok());
  EXPECT_THAT(FindDevice(generated->spec, "0")->edits.additional_gids, ElementsAre(about.st_gid));
  EXPECT_THAT(generated->spec.edits.additional_gids, IsEmpty());
  EXPECT_EQ(api::cdi::MinimumVersion(generated->spec), "0.7.0");
  for (const char* node : {"card0", "card1", "renderD128", "renderD129"})
    std::filesystem::permissions(machine_ / ("/dev/dri/" + std::string(node)),
                                 std::filesystem::perms(0666));
  generated = Generate();
  EXPECT_THAT(FindDevice(generated->spec, "0")->edits.additional_gids, IsEmpty());
  EXPECT_EQ(api::cdi::MinimumVersion(generated->spec), "0.5.0");
}

TEST_F(Cdi, DeviceFilesThatCannotBeMadeHereHaveTheNumbersThatTheDriverReports) {
  AddMachine();
  machine_.Remove("/dev/nvidia0");
  machine_.Write("/dev/nvidia0");
  const auto generated = Generate(kPlain);
  ASSERT_TRUE(generated.ok());
  const auto& nodes = FindDevice(generated->spec, "0")->edits.nodes;
  const auto node = std::find_if(nodes.begin(), nodes.end(),
                                 [](const DeviceNode& one) { return one.path == "/dev/nvidia0"; });
  ASSERT_NE(node, nodes.end());
  EXPECT_EQ(node->type, "c");
  EXPECT_EQ(node->major, 195);
  EXPECT_EQ(node->minor, 0);
}

TEST_F(Cdi, HooksAreThoseThatAreWanted) {
  AddMachine();
  const auto names = [&](const Options& options) {
    std::vector<std::string> found;
    const auto generated = Generate(options);
    for (const Hook& hook : generated->spec.edits.hooks) found.push_back(hook.args[1]);
    for (const auto& device : generated->spec.devices)
      for (const Hook& hook : device.edits.hooks)
        if (device.name == "0") found.push_back("0:" + hook.args[1]);
    return found;
  };
  EXPECT_THAT(names({.hook = ""}), IsEmpty());
  EXPECT_THAT(names({.disable_hooks = {"all"}}), IsEmpty());
  EXPECT_THAT(names({.disable_hooks = {"all"}, .enable_hooks = {"update-ldcache"}}),
              ElementsAre("update-ldcache"));
  EXPECT_THAT(names({.disable_hooks = {"create-symlinks", "enable-cuda-compat"}}),
              ElementsAre("update-ldcache", "disable-device-node-modification",
                          "update-application-profile"));
  EXPECT_THAT(names({.enable_hooks = {"chmod"}}), Contains("0:chmod"));
  const auto chmod = Generate({.enable_hooks = {"chmod"}});
  EXPECT_THAT(FindHook(FindDevice(chmod->spec, "0")->edits, "chmod")->args,
              ElementsAre("penstock-hook", "chmod", "--mode", "755", "--path", "/dev/dri"));
}

TEST_F(Cdi, CallsNvidiasProgramsAsTheyAreCalled) {
  AddMachine();
  const auto generated = Generate({.hook = "/usr/bin/nvidia-ctk", .ldconfig = "/sbin/ldconfig"});
  ASSERT_TRUE(generated.ok());
  const Hook& hook = generated->spec.edits.hooks[2];
  EXPECT_THAT(
      std::vector(hook.args.begin(), hook.args.begin() + 5),
      ElementsAre("nvidia-ctk", "hook", "update-ldcache", "--ldconfig-path", "/sbin/ldconfig"));
}

TEST_F(Cdi, RefusesAKindThatIsNone) {
  AddMachine();
  const auto generated = Generate({.kind = "gpu"});
  ASSERT_FALSE(generated.ok());
  EXPECT_EQ(generated.error().code(), base::Code::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
