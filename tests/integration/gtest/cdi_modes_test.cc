// Tests NVIDIA's CDI modes other than nvml on trees like those of machines with such devices.
// Checks properties, never text.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/dialect.h"
#include "node/cdi/modes.h"
#include "os/core/testing/elf_maker.h"
#include "os/core/testing/temporary_folder.h"
#include "tests/support/driver_root.h"

namespace penstock {
namespace {

using node::cdi::Fits;
using node::cdi::Generated;
using support::DriverRoot;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr const char* kLists = "/etc/nvidia-container-runtime/host-files-for-container.d";

class CdiModes : public ::testing::Test {
 protected:
  CdiModes() : machine_(folder_ / "machine") {
    places_ = {.driver_root = machine_.path(),
               .dev_root = machine_.path(),
               .sysfs_root = machine_ / "/sys",
               .proc_root = machine_ / "/proc"};
  }

  void SetUp() override {
    ASSERT_TRUE(machine_.AddDevice("/dev/null", 1, 3))
        << "device files cannot be made in " << machine_.path();
  }

  void AddDevices(const std::vector<std::string>& paths, unsigned mode = 0666) {
    for (const std::string& path : paths) ASSERT_TRUE(machine_.AddDevice(path, 195, 0, mode));
  }

  void AddElf(const std::string& path, const std::string& soname) {
    machine_.Write(path, os::MakeElf({.machine = EM_AARCH64, .soname = soname}), 0644);
  }

  node::cdi::Input input() const { return {&backend::nvidia::TheDialect(), &driver_, {}}; }

  base::Result<Generated> Make(const std::string& mode) {
    for (const auto& one : backend::nvidia::TheDialect().CdiClasses())
      if (one.mode == mode)
        return Checked(node::cdi::GenerateClass(one, input(), places_, options_));
    for (const auto& one : backend::nvidia::TheDialect().CdiPlatforms())
      if (one.mode == mode)
        return Checked(node::cdi::GeneratePlatform(one, input(), places_, options_, more_));
    return base::Error(base::Code::kInternal, "no mode " + mode);
  }

  /// Which platform this machine is.
  std::string Platform() {
    for (const auto& one : backend::nvidia::TheDialect().CdiPlatforms()) {
      const Fits fits = node::cdi::FitsPlatform(one, input(), places_);
      if (fits != Fits::kNo) return one.mode + (fits == Fits::kByModels ? " by models" : "");
    }
    return "";
  }

  os::TemporaryFolder folder_;
  DriverRoot machine_;
  device::Driver driver_;
  node::cdi::Places places_;
  node::cdi::Options options_;
  node::cdi::PlatformOptions more_;

 private:
  /// Checks that the result is a valid specification, or an error that means "not on this machine".
  static base::Result<Generated> Checked(base::Result<Generated> made) {
    if (made.ok()) {
      const auto status = api::cdi::Check(made->spec);
      EXPECT_TRUE(status.ok()) << status.error().message();
      const auto read = api::cdi::Parse(api::cdi::ToYaml(made->spec), "made.yaml");
      EXPECT_TRUE(read.ok()) << read.error().message();
    }
    return made;
  }
};

std::vector<std::string> NamesOf(const Generated& generated) {
  std::vector<std::string> names;
  for (const auto& device : generated.spec.devices) names.push_back(device.name);
  return names;
}

std::vector<std::string> NodesOf(const api::cdi::CdiEdits& edits) {
  std::vector<std::string> paths;
  for (const auto& node : edits.nodes) paths.push_back(node.path);
  return paths;
}

std::vector<std::string> MountsOf(const Generated& generated) {
  std::vector<std::string> paths;
  for (const auto& mount : generated.spec.edits.mounts) paths.push_back(mount.container_path);
  return paths;
}

std::vector<std::string> HooksOf(const Generated& generated) {
  std::vector<std::string> names;
  for (const auto& hook : generated.spec.edits.hooks) names.push_back(hook.args.at(1));
  return names;
}

std::vector<std::string> ValuesOf(const Generated& generated, const std::string& hook_name,
                                  const std::string& flag) {
  std::vector<std::string> values;
  for (const auto& hook : generated.spec.edits.hooks)
    for (std::size_t i = 2; hook.args.at(1) == hook_name && i + 1 < hook.args.size(); ++i)
      if (hook.args[i] == flag) values.push_back(hook.args[i + 1]);
  return values;
}

std::vector<std::string> LinksOf(const Generated& generated) {
  return ValuesOf(generated, "create-symlinks", "--link");
}

TEST_F(CdiModes, AMachineWithoutSuchDevicesHasNoneOfTheClasses) {
  for (const char* mode :
       {"management", "gds", "gdrcopy", "mofed", "nvswitch", "imex", "mig-caps", "wsl", "csv"}) {
    const auto made = Make(mode);
    ASSERT_FALSE(made.ok()) << mode;
    EXPECT_EQ(made.error().code(), base::Code::kNotFound) << mode << ": " << made.error().message();
  }
}

TEST_F(CdiModes, ManagementHasEveryFileButThoseOfStorageAndSwitches) {
  machine_.AddLibraries("/usr/lib/x86_64-linux-gnu");
  AddDevices({"/dev/nvidia0", "/dev/nvidia10", "/dev/nvidiactl", "/dev/nvidia-modeset",
              "/dev/nvidia-fs0", "/dev/nvidia-nvswitchctl", "/dev/nvidia-nvlink",
              "/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps-imex-channels/channel0"});
  const auto made = Make("management");
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->spec.kind, "management.nvidia.com/gpu");
  EXPECT_THAT(NamesOf(*made), ElementsAre("all"));
  EXPECT_THAT(NodesOf(made->spec.devices.at(0).edits),
              UnorderedElementsAre("/dev/nvidia0", "/dev/nvidia10", "/dev/nvidiactl",
                                   "/dev/nvidia-modeset", "/dev/nvidia-caps/nvidia-cap1",
                                   "/dev/nvidia-caps-imex-channels/channel0"));
  EXPECT_THAT(MountsOf(*made), Contains("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so." +
                                        std::string(support::kDriverVersion)));
  EXPECT_THAT(HooksOf(*made), Contains("update-ldcache"));
  EXPECT_THAT(HooksOf(*made), Not(Contains("disable-device-node-modification")));
  EXPECT_THAT(HooksOf(*made), Not(Contains("enable-cuda-compat")));
  EXPECT_EQ(made->version, support::kDriverVersion) << "by the libraries: no driver was asked";
}

TEST_F(CdiModes, ManagementWithoutADriversLibrariesSaysWhatIsMissing) {
  AddDevices({"/dev/nvidia0"});
  const auto made = Make("management");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), base::Code::kNotFound);
  EXPECT_THAT(made.error().message(), HasSubstr(machine_.path()));
}

TEST_F(CdiModes, FilesOfStorageComeWithTheirConfiguration) {
  AddDevices({"/dev/nvidia-fs0", "/dev/nvidia-fs1"});
  machine_.Write("/etc/cufile.json");
  machine_.Write("/run/udev/data/x");
  const auto made = Make("gds");
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->spec.kind, "nvidia.com/gds");
  EXPECT_THAT(NodesOf(made->spec.devices.at(0).edits),
              ElementsAre("/dev/nvidia-fs0", "/dev/nvidia-fs1"));
  EXPECT_THAT(MountsOf(*made), ElementsAre("/etc/cufile.json", "/run/udev"));
}

TEST_F(CdiModes, OtherClassesAreTheirDeviceFiles) {
  AddDevices({"/dev/gdrdrv", "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1",
              "/dev/infiniband/rdma_cm", "/dev/infiniband/issm0", "/dev/nvidia-nvswitchctl",
              "/dev/nvidia-nvswitch0"});
  const std::map<std::string, std::vector<std::string>> classes{
      {"gdrcopy", {"/dev/gdrdrv"}},
      {"mofed", {"/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1", "/dev/infiniband/rdma_cm"}},
      {"nvswitch", {"/dev/nvidia-nvswitchctl", "/dev/nvidia-nvswitch0"}}};
  for (const auto& [mode, nodes] : classes) {
    const auto made = Make(mode);
    ASSERT_TRUE(made.ok()) << made.error().message();
    EXPECT_EQ(made->spec.kind, "nvidia.com/" + mode);
    EXPECT_THAT(NamesOf(*made), ElementsAre("all"));
    EXPECT_EQ(NodesOf(made->spec.devices.at(0).edits), nodes);
    EXPECT_THAT(made->spec.edits.env, ElementsAre("NVIDIA_VISIBLE_DEVICES=void"));
  }
}

TEST_F(CdiModes, EveryImexChannelIsADeviceByItsNumber) {
  const std::string folder = "/dev/nvidia-caps-imex-channels/";
  AddDevices(
      {folder + "channel10", folder + "channel9", folder + "channel0", folder + "channel1048575"});
  AddDevices({folder + "channel1048576", folder + "channel007", folder + "channel",
              folder + "channel99999999999999999999"});
  const auto made = Make("imex");
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->spec.kind, "nvidia.com/imex-channel");
  EXPECT_THAT(NamesOf(*made), ElementsAre("0", "9", "10", "1048575")) << "and no \"all\"";
  EXPECT_THAT(NodesOf(made->spec.devices.at(2).edits), ElementsAre(folder + "channel10"));
  EXPECT_EQ(made->remarks.size(), 4U);
}

TEST_F(CdiModes, MigsCapabilitiesAreDevicesByTheirNames) {
  machine_.Write("/proc/driver/nvidia-caps/mig-minors", "config 1\nmonitor 2\ngpu0/gi0/access 3\n");
  AddDevices({"/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2",
              "/dev/nvidia-caps/nvidia-cap3"},
             0400);
  const auto made = Make("mig-caps");
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_THAT(NamesOf(*made), ElementsAre("config", "monitor"));
  EXPECT_THAT(NodesOf(made->spec.devices.at(1).edits), ElementsAre("/dev/nvidia-caps/nvidia-cap2"));
  machine_.Write("/proc/driver/nvidia-caps/mig-minors", "config 1\nmonitor two\n");
  EXPECT_THAT(Make("mig-caps").error().message(), HasSubstr("mig-minors:2: "));
}

TEST_F(CdiModes, AFileThatItsGroupMayOpenBringsTheGroupUnlessItIsNotWanted) {
  AddDevices({"/dev/gdrdrv"}, 0660);
  ASSERT_EQ(::chown((machine_ / "/dev/gdrdrv").c_str(), static_cast<uid_t>(-1), ::getgid()), 0);
  const auto made = Make("gdrcopy");
  ASSERT_TRUE(made.ok());
  const std::vector<std::uint32_t> own =
      ::getgid() == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{::getgid()};
  EXPECT_EQ(made->spec.devices.at(0).edits.additional_gids, own);
  options_.additional_gids = false;
  EXPECT_THAT(Make("gdrcopy")->spec.devices.at(0).edits.additional_gids, IsEmpty());
}

/// WSL 2 with a driver of 2024: a driver store with several packages, of which two are NVIDIA's and
/// one of these is left over.
TEST_F(CdiModes, WindowsDriverStoreIsGivenWhereItLies) {
  AddDevices({"/dev/dxg"});
  EXPECT_EQ(Platform(), "wsl");
  const std::string store = "/usr/lib/wsl/drivers/",
                    now = store + "nv_dispi.inf_amd64_43efafe5c18b0c7c", old = store + "nv_old";
  for (const std::string& package : {old, now}) {
    AddElf(package + "/libcuda.so.1.1", "libcuda.so.1.1");
    AddElf(package + "/libnvidia-ml.so.1", "libnvidia-ml.so.1");
    for (const char* name : {"libcuda_loader.so", "libnvidia-ptxjitcompiler.so.1",
                             "libnvidia-ml_loader.so", "libnvdxgdmal.so.1"})
      AddElf(package + "/" + name, "");
    machine_.Write(package + "/nvcubins.bin");
    machine_.Write(package + "/nvidia-smi", "#!/bin/sh\n", 0755);
    machine_.Write(package + "/nvwgf2umx.dll");
    machine_.Write(package + "/nv_dispi.inf");
  }
  machine_.Write(store + "iigd_dch.inf_amd64_0/igd10.dll");
  AddElf("/usr/lib/wsl/lib/libdxcore.so", "libdxcore.so");
  AddElf("/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so.1");
  const timespec past[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (machine_ / (old + "/libcuda.so.1.1")).c_str(), past, 0), 0);

  const auto made = Make("wsl");
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->spec.kind, "nvidia.com/gpu");
  EXPECT_THAT(NamesOf(*made), ElementsAre("all"));
  EXPECT_THAT(NodesOf(made->spec.devices.at(0).edits), ElementsAre("/dev/dxg"));
  EXPECT_THAT(
      MountsOf(*made),
      UnorderedElementsAre(now + "/libcuda.so.1.1", now + "/libcuda_loader.so",
                           now + "/libnvidia-ptxjitcompiler.so.1", now + "/libnvidia-ml.so.1",
                           now + "/libnvidia-ml_loader.so", now + "/libnvdxgdmal.so.1",
                           now + "/nvcubins.bin", now + "/nvidia-smi", now + "/nvwgf2umx.dll",
                           "/usr/lib/wsl/lib/libdxcore.so"));
  EXPECT_THAT(LinksOf(*made), Contains(now + "/nvidia-smi::/usr/bin/nvidia-smi"));
  EXPECT_THAT(ValuesOf(*made, "update-ldcache", "--folder"),
              UnorderedElementsAre(now, "/usr/lib/wsl/lib"));
  EXPECT_THAT(made->remarks, ElementsAre(HasSubstr(now)));
}

/// An Orin with JetPack 6.
class Tegra : public CdiModes {
 protected:
  void SetUp() override {
    CdiModes::SetUp();
    AddDevices({"/dev/nvhost-ctrl", "/dev/nvmap"});
    AddElf(kLibraries + "libcuda.so.1.1", "libcuda.so.1");
    AddElf(kLibraries + "libGLX_nvidia.so.0", "libGLX_nvidia.so.0");
    AddElf(kLibraries + "libnvrm_gpu.so", "libnvrm_gpu.so");
    machine_.Link("/usr/lib/aarch64-linux-gnu/libcuda.so", "tegra/libcuda.so.1.1");
    machine_.Link("/etc/vulkan/icd.d/nvidia_icd.json",
                  "/usr/lib/aarch64-linux-gnu/tegra/nvidia_icd.json");
    machine_.Write(kLibraries + "nvidia_icd.json", "{}");
    machine_.Write("/lib/firmware/tegra23x/vic.bin");
    machine_.Write("/etc/nv_tegra_release", "# R36 (release), REVISION: 3.0\n");
    machine_.Write("/sys/devices/soc0/family", "Tegra\n");
    machine_.Write(kLists + std::string("/devices.csv"),
                   "dev, /dev/nvhost-ctrl\ndev, /dev/nvmap\ndev, /dev/nvhost-nvdla0\n");
    machine_.Write(kLists + std::string("/drivers.csv"),
                   "dir, /lib/firmware/tegra23x\nlib, " + kLibraries + "libcuda.so.1.1\nlib, " +
                       kLibraries + "libGLX_nvidia.so.0\nlib, " + kLibraries +
                       "libnvrm_gpu.so\nsym, /usr/lib/aarch64-linux-gnu/libcuda.so\n"
                       "sym, /etc/vulkan/icd.d/nvidia_icd.json\n");
    machine_.Write(kLists + std::string("/cudnn.csv"), "this is read by nobody\n");
  }
  const std::string kLibraries = "/usr/lib/aarch64-linux-gnu/tegra/";
};

TEST_F(Tegra, GivesWhatItsListsSay) {
  EXPECT_EQ(Platform(), "csv");
  const auto made = Make("csv");
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->spec.kind, "nvidia.com/gpu");
  EXPECT_THAT(NamesOf(*made), ElementsAre("0", "all"));
  EXPECT_THAT(NodesOf(made->spec.devices.at(0).edits),
              ElementsAre("/dev/nvhost-ctrl", "/dev/nvmap"));
  EXPECT_THAT(MountsOf(*made),
              UnorderedElementsAre(kLibraries + "libcuda.so.1.1", kLibraries + "libGLX_nvidia.so.0",
                                   kLibraries + "libnvrm_gpu.so", kLibraries + "nvidia_icd.json",
                                   "/lib/firmware/tegra23x", "/etc/nv_tegra_release",
                                   "/sys/devices/soc0/family"));
  EXPECT_THAT(
      LinksOf(*made),
      UnorderedElementsAre(kLibraries + "libcuda.so.1.1::/usr/lib/aarch64-linux-gnu/libcuda.so",
                           "libcuda.so.1.1::" + kLibraries + "libcuda.so.1",
                           "libcuda.so.1::" + kLibraries + "libcuda.so",
                           "libGLX_nvidia.so.0::" + kLibraries + "libGLX_indirect.so.0",
                           kLibraries + "nvidia_icd.json::/etc/vulkan/icd.d/nvidia_icd.json"));
  EXPECT_THAT(ValuesOf(*made, "update-ldcache", "--folder"),
              ElementsAre(kLibraries.substr(0, kLibraries.size() - 1)));
  EXPECT_THAT(HooksOf(*made), Not(Contains("enable-cuda-compat")));
  EXPECT_THAT(made->remarks, ElementsAre(HasSubstr("/dev/nvhost-nvdla0")));
  EXPECT_THAT(made->spec.edits.env, Contains("NVIDIA_VISIBLE_DEVICES=void"));
}

TEST_F(Tegra, DeviceNamesAreThoseOfTheFirstGpu) {
  options_.names = {device::CdiNames::kTypeIndex};
  options_.all = false;
  EXPECT_THAT(NamesOf(*Make("csv")), ElementsAre("gpu0"));
}

TEST_F(Tegra, IsReportedByItsFamilyToo) {
  machine_.Remove("/etc/nv_tegra_release");
  EXPECT_EQ(Platform(), "csv");
  machine_.Write("/sys/devices/soc0/family", "Other\n");
  EXPECT_EQ(Platform(), "");
}

TEST_F(Tegra, WithNvmlItIsOneIfAllOfItsGpusAreIntegrated) {
  AddElf("/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.1");
  EXPECT_EQ(Platform(), "csv by models");
  const auto tegra = backend::nvidia::TheDialect().CdiPlatforms().back();
  device::Facts orin, thor, discrete;
  orin.model = "Orin (nvgpu)";
  thor.model = "NVIDIA Thor";
  discrete.model = "NVIDIA RTX 6000 Ada Generation";
  using All = std::vector<const device::Facts*>;
  EXPECT_TRUE(node::cdi::AllOfModels(tegra, All{&orin, &thor}));
  EXPECT_FALSE(node::cdi::AllOfModels(tegra, All{&thor, &discrete}));
}

TEST_F(Tegra, ALineThatIsNoneEndsItWithItsNumber) {
  machine_.Write(kLists + std::string("/l4t.csv"),
                 "lib, /etc/nv_tegra_release\nlib, /usr/lib/../../etc/shadow\n");
  const auto made = Make("csv");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), base::Code::kInvalidArgument);
  EXPECT_THAT(made.error().message(), HasSubstr("/l4t.csv:2: "));
}

}  // namespace
}  // namespace penstock
