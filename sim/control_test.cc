#include "sim/control.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sim/testing.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::BuiltAssets;
using ::testing::EndsWith;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Running;
using testing::Started;

std::string Read(const std::string& path) {
  auto text = ReadText(path);
  return text.ok() ? *text : "(" + text.error().message() + ")";
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Tree, HasWhatADriverAndItsKernelWouldShow) {
  const Running machine("dgx-a100");
  const std::string device = machine / "sys/bus/pci/devices/0000:47:00.0";
  EXPECT_EQ(Read(device + "/vendor"), "0x10de\n");
  EXPECT_EQ(Read(device + "/device"), "0x20b0\n");
  EXPECT_EQ(Read(device + "/class"), "0x030200\n");
  EXPECT_EQ(Read(device + "/numa_node"), "1\n");
  EXPECT_EQ(Read(device + "/local_cpulist"), "16-31,144-159\n");
  EXPECT_THAT(fs::canonical(device + "/driver").string(), EndsWith("m/sys/bus/pci/drivers/nvidia"));
  EXPECT_THAT(fs::canonical(machine / "sys/bus/pci/drivers/nvidia/0000:47:00.0"),
              fs::canonical(device));
  EXPECT_EQ(Read(machine / "sys/bus/pci/devices/0000:c4:00.0/class"), "0x068000\n");
  EXPECT_EQ(Read(machine / "sys/module/nvidia/version"), "550.54.15\n");
  EXPECT_EQ(Read(machine / "sys/class/dmi/id/product_name"), "DGXA100 920-23687-2531-001\n");
  EXPECT_EQ(Read(machine / "sys/devices/system/node/node3/cpulist"), "48-63,176-191\n");
  EXPECT_THAT(Read(machine / "proc/driver/nvidia/version"),
              HasSubstr("Kernel Module  550.54.15  "));
  EXPECT_THAT(
      Read(machine / "proc/driver/nvidia/gpus/0000:47:00.0/information"),
      AllOf(HasSubstr(machine.control.state().gpus[2].uuid), HasSubstr("Device Minor: \t 2\n")));
  EXPECT_EQ(fs::read_symlink(machine / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"),
            "libnvidia-ml.so.550.54.15");
  EXPECT_EQ(access((machine / "usr/bin/nvidia-smi").c_str(), X_OK), 0);
}

TEST(Tree, HasDeviceNodesWhereTheKernelAllowsThemElseFiles) {
  const Running machine("mixed");
  for (const auto& [name, minor_number] :
       {std::pair("nvidia0", 0u), {"nvidia2", 2u}, {"nvidiactl", 255u}, {"nvidia-modeset", 254u}}) {
    struct stat info {};
    ASSERT_EQ(stat((machine / "dev/" + name).c_str(), &info), 0) << name;
    if (machine.control.tree().character_devices)
      EXPECT_TRUE(S_ISCHR(info.st_mode) && info.st_rdev == makedev(195, minor_number)) << name;
    else
      EXPECT_TRUE(S_ISREG(info.st_mode)) << name;
  }
}

TEST(Tree, HasTheDevicesOfDisplaysAndSwitchesAndTheDaemonsSockets) {
  Running machine("dgx-a100");
  const auto there = [&](const std::string& path) { return fs::exists(machine / path); };
  EXPECT_THAT(Names(machine / "sys/bus/pci/devices/0000:0f:00.0/drm"),
              ::testing::ElementsAre("card2", "renderD129"));
  EXPECT_EQ(fs::read_symlink(machine / "dev/dri/by-path/pci-0000:0f:00.0-render"), "../renderD129");
  EXPECT_TRUE(there("dev/dri/renderD129") && there("dev/nvidia-nvswitchctl") &&
              there("dev/nvidia-nvswitch5"));
  EXPECT_FALSE(there("dev/nvidia-nvswitch6") || there("dev/nvidia-caps-imex-channels"));
  EXPECT_TRUE(fs::is_socket(machine / "run/nvidia-persistenced/socket") &&
              fs::is_socket(machine / "run/nvidia-fabricmanager/socket"));
  EXPECT_THAT(Read(machine / "proc/driver/nvidia-caps/mig-minors"),
              HasSubstr("gpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n"));
  ASSERT_TRUE(machine.control.Unplug(1).ok());
  EXPECT_FALSE(there("dev/dri/renderD129") || there("dev/dri/by-path/pci-0000:0f:00.0-card"));
  EXPECT_TRUE(there("dev/dri/renderD128"));
  ASSERT_TRUE(machine.control.UnloadDriver().ok());
  EXPECT_FALSE(there("dev/dri/renderD128") || there("run/nvidia-persistenced/socket"));
  EXPECT_TRUE(there("dev/nvidia0"));
}

TEST(Tree, HasNoFilesOfADriverThatAContainerBrings) {
  Running machine("t4-x1");
  const auto there = [&](const std::string& path) { return fs::exists(machine / path); };
  const std::string library = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1";
  ASSERT_TRUE(machine.control.UninstallDriver().ok());
  EXPECT_FALSE(there(library) || there("usr/bin/nvidia-smi") || there("sys/module/nvidia"));
  ASSERT_TRUE(machine.control.LoadDriver("550.54.15", true).ok());
  EXPECT_FALSE(there(library));
  EXPECT_EQ(Read(machine / "sys/module/nvidia/version"), "550.54.15\n");
  ASSERT_TRUE(machine.control.UnloadDriver().ok());
  EXPECT_FALSE(there(library));
  ASSERT_TRUE(machine.control.LoadDriver("").ok());
  EXPECT_TRUE(there(library));
}

TEST(Tree, HasTheImexChannelsThatTheMachineFileSays) {
  Folder folder;
  auto machine = LoadMachine(BuiltAssets(), testing::BuiltCatalogue(), "dgx-h100");
  machine->machine.imex_channels = 2;
  ASSERT_TRUE(
      Control::Start(folder / "m", BuiltAssets(), testing::BuiltCatalogue(), *machine, {}).ok());
  EXPECT_THAT(Names(folder / "m/dev/nvidia-caps-imex-channels"),
              ::testing::ElementsAre("channel0", "channel1"));
  EXPECT_THAT(Read(folder / "m/proc/devices"), HasSubstr(" nvidia-caps-imex-channels\n"));
  EXPECT_TRUE(fs::exists(folder / "m/usr/bin/nvidia-imex"));
}

TEST(Tree, EqualFilesAreNamesOfOneAndAChangeOfOneLeavesTheOthers) {
  Running machine("dgx-a100");
  const std::string model = machine / "sys/bus/pci/devices/0000:07:00.0/vendor";
  EXPECT_GT(fs::hard_link_count(model), 8u);
  ASSERT_TRUE(machine.control.Unplug(0).ok());
  ASSERT_TRUE(machine.control.HealGpu(0).ok());
  EXPECT_EQ(Read(model), "0x10de\n");
  EXPECT_EQ(Read(machine / "sys/bus/pci/devices/0000:0f:00.0/vendor"), "0x10de\n");
  EXPECT_EQ(Read(machine / "sys/bus/pci/devices/0000:0f:00.0/numa_node"), "3\n");
  EXPECT_EQ(Read(machine / "sys/bus/pci/devices/0000:47:00.0/numa_node"), "1\n");
}

TEST(Tree, WhatDoesNotChangeIsThereAllTheTime) {
  Running machine("dgx-a100");
  const int changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  for (const auto* path : {"sys/module/nvidia", "proc/driver/nvidia", "usr/lib/x86_64-linux-gnu",
                           "sys/bus/pci/devices/0000:0f:00.0", "dev"})
    ASSERT_GE(inotify_add_watch(changes, (machine / path).c_str(), IN_CREATE | IN_DELETE | IN_MOVE),
              0)
        << path;
  ASSERT_TRUE(machine.control.Lose(0, kSimLostInHandle).ok());
  ASSERT_TRUE(machine.control.HealGpu(0).ok());
  std::array<char, 4096> events{};
  const ssize_t length = read(changes, events.data(), events.size());
  EXPECT_EQ(length, -1) << "a GPU that fails and recovers changes no file, but: "
                        << reinterpret_cast<const inotify_event*>(events.data())->name;
  ASSERT_TRUE(machine.control.Unplug(0).ok());
  EXPECT_GT(read(changes, events.data(), events.size()), 0) << "its device file goes";
  close(changes);
}

TEST(Tree, AMachineWithoutADriverHasOnlyItsHardware) {
  Running machine("t4-x1", {.no_driver = true});
  EXPECT_EQ(Read(machine / "sys/bus/pci/devices/0000:00:1e.0/device"), "0x1eb8\n");
  EXPECT_FALSE(fs::exists(machine / "sys/bus/pci/devices/0000:00:1e.0/driver"));
  EXPECT_THAT(Names(machine / "dev"), ::testing::ElementsAre("kmsg"));
  EXPECT_FALSE(fs::exists(machine / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"));
}

TEST(Tree, AGeForceBringsItsAudioFunction) {
  Running machine("mixed");
  EXPECT_EQ(Read(machine / "sys/bus/pci/devices/0000:65:00.0/class"), "0x030000\n");
  EXPECT_EQ(Read(machine / "sys/bus/pci/devices/0000:65:00.1/device"), "0x1aef\n");
}

TEST(Tree, AGpuHasAConfigurationSpaceAndAVgpuSaysWhoseItIs) {
  Folder folder;
  (void)Started(folder / "t4", "t4-x1");
  const std::string gpu = Read(folder / "t4/sys/bus/pci/devices/0000:00:1e.0/config");
  ASSERT_EQ(gpu.size(), 256u);
  EXPECT_EQ(gpu.substr(0, 4), std::string("\xde\x10\xb8\x1e"));
  EXPECT_EQ(gpu.find("VF"), std::string::npos);
  (void)Started(folder / "vgpu", "vgpu-t4");
  const std::string vgpu = Read(folder / "vgpu/sys/bus/pci/devices/0000:02:01.0/config");
  ASSERT_EQ(vgpu.size(), 256u);
  EXPECT_EQ(vgpu.substr(0xb7, 4), std::string("VF\0\x16", 4));
  EXPECT_EQ(vgpu.substr(0xbb, 20), std::string("535.183.04r538_67\0\0\0", 20));
}

TEST(Control, RefusesAFolderThatHoldsOtherFilesAndASecondMachine) {
  Folder folder;
  std::ofstream(folder / "letter") << "keep me";
  const auto machine = LoadMachine(BuiltAssets(), testing::BuiltCatalogue(), "t4-x1");
  const auto start = [&](const std::string& root) {
    return Control::Start(root, BuiltAssets(), testing::BuiltCatalogue(), *machine, {});
  };
  EXPECT_THAT(start(folder.path()).error().message(), HasSubstr("holds other files"));
  ASSERT_TRUE(start(folder / "m").ok());
  EXPECT_EQ(start(folder / "m").error().code(), base::Code::kAlreadyExists);
  EXPECT_EQ(Read(folder / "letter"), "keep me");
}

TEST(Control, StoppingLeavesNothingAndTouchesNothingElse) {
  Folder folder;
  (void)Started(folder / "m", "t4-x1");
  ASSERT_TRUE(RemoveTree(folder / "m").ok());
  EXPECT_FALSE(fs::exists(folder / "m"));
  fs::create_directories(folder / "other/usr");
  EXPECT_FALSE(RemoveTree(folder / "other").ok());
  EXPECT_TRUE(fs::exists(folder / "other/usr"));
}

TEST(Control, AFailedStartLeavesNothing) {
  Folder folder;
  Assets assets = BuiltAssets();
  assets.library_folder = folder / "nowhere";
  const auto machine = LoadMachine(BuiltAssets(), testing::BuiltCatalogue(), "t4-x1");
  EXPECT_FALSE(Control::Start(folder / "m", assets, testing::BuiltCatalogue(), *machine, {}).ok());
  EXPECT_FALSE(fs::exists(folder / "m"));
}

TEST(Control, AnUnpluggedGpuIsGoneFromSysAndDevAndComesBack) {
  Running machine("dgx-a100");
  ASSERT_TRUE(machine.control.Unplug(3).ok());
  const auto there = [&](const std::string& path) {
    return fs::exists(fs::symlink_status(machine / path));
  };
  for (const auto* path :
       {"sys/bus/pci/devices/0000:4e:00.0", "sys/bus/pci/drivers/nvidia/0000:4e:00.0",
        "dev/nvidia3", "proc/driver/nvidia/gpus/0000:4e:00.0"})
    EXPECT_FALSE(there(path)) << path;
  EXPECT_TRUE(there("dev/nvidia4"));
  ASSERT_TRUE(machine.control.HealGpu(3).ok());
  EXPECT_TRUE(there("sys/bus/pci/devices/0000:4e:00.0") && there("dev/nvidia3"));
}

TEST(Control, AnotherDriverBringsItsLibraryAndItsNames) {
  Running machine("a100-40gb-x1");
  ASSERT_TRUE(machine.control.UnloadDriver().ok());
  EXPECT_FALSE(fs::exists(machine / "sys/module/nvidia"));
  ASSERT_TRUE(machine.control.LoadDriver("450.80.02").ok());
  EXPECT_EQ(fs::read_symlink(machine / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"),
            "libnvidia-ml.so.450.80.02");
  EXPECT_EQ(Read(machine / "sys/module/nvidia/version"), "450.80.02\n");
  EXPECT_STREQ(machine.control.state().gpus[0].name, "A100-SXM4-40GB");
}

TEST(Control, FindsGpusByNumberUuidAndAddress) {
  const Running machine("dgx-a100");
  EXPECT_EQ(*machine.control.Find("5"), std::vector<std::uint32_t>{5});
  EXPECT_EQ(*machine.control.Find(machine.control.state().gpus[5].uuid),
            std::vector<std::uint32_t>{5});
  EXPECT_EQ(*machine.control.Find("0000:0F:00.0"), std::vector<std::uint32_t>{1});
  EXPECT_EQ(machine.control.Find("all")->size(), 8u);
  EXPECT_THAT(machine.control.Find("8").error().message(), HasSubstr("GPUs 0 to 7"));
}

TEST(Control, AnXidIsLoggedOnceWithTheGpuNamedBeforeIt) {
  Running machine("dgx-a100");
  ASSERT_TRUE(machine.control.Xid(0, 31, {}).ok());
  ASSERT_TRUE(machine.control.Xid(0, 13, {.text = "two\nlines"}).ok());
  const std::string log = Read(machine / "dev/kmsg");
  EXPECT_THAT(log, ::testing::MatchesRegex(
                       "4,0,[0-9]+,-;NVRM: GPU at PCI:0000:07:00: GPU-[^\n]*\n"
                       "4,1,[0-9]+,-;NVRM: Xid \\(PCI:0000:07:00\\): 31, [^\n]*\n"
                       "4,2,[0-9]+,-;NVRM: Xid \\(PCI:0000:07:00\\): 13, [^\n]*two.x0alines\n"));
}

TEST(Control, Xid79LosesTheGpuAndAsksForAResetFrom565) {
  Running machine("dgx-a100", {.driver = "570.133.20"});
  ASSERT_TRUE(machine.control.Xid(2, 79, {}).ok());
  EXPECT_EQ(machine.control.state().gpus[2].lost,
            static_cast<std::uint32_t>(kSimLostInHandle | kSimLostInGetter));
  EXPECT_EQ(machine.control.state().gpus[2].recovery_action, 1u);
  EXPECT_THAT(
      Read(machine / "dev/kmsg"),
      HasSubstr("154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"));
  ASSERT_TRUE(machine.control.HealGpu(2).ok());
  EXPECT_EQ(machine.control.state().gpus[2].lost + machine.control.state().gpus[2].recovery_action,
            0u);
}

TEST(Control, SettingsAreTakenAllOrNone) {
  Running machine("mixed");
  EXPECT_THAT(machine.control.Set({0}, {"temperature=70", "utilisaton=5"}).error().message(),
              HasSubstr("did you mean utilisation?"));
  EXPECT_EQ(machine.control.state().gpus[0].temperature, 33u);
  EXPECT_THAT(machine.control.Set({0, 1}, {"mig=enabled"}).error().message(),
              HasSubstr("RTX 3090 has no MIG"));
  EXPECT_EQ(machine.control.state().gpus[0].mig_current, 0u);
  ASSERT_TRUE(
      machine.control
          .Set({0}, {"utilisation=100", "process=12:1024:a", "process=12:2048:a", "process=13:1Gi"})
          .ok());
  EXPECT_EQ(machine.control.state().gpus[0].process_count, 2u);
  EXPECT_EQ(machine.control.state().gpus[0].processes[0].memory_bytes, 2048ull << 20);
  EXPECT_EQ(machine.control.state().gpus[0].clock_sm, 1410u);
  for (const auto* bad : {"uuid=GPU-1", "serial=", "utilisation=101", "process=0:1", "process=12",
                          "memory-used=90000", "temperature=hot", "power="})
    EXPECT_FALSE(machine.control.Set({0}, {bad}).ok()) << bad;
}

TEST(Control, AnotherBoardCanSitInTheSamePlace) {
  Running machine("t4-x1");
  const std::string uuid = "GPU-00000000-1111-2222-3333-444444444444";
  ASSERT_TRUE(machine.control.Unplug(0).ok());
  ASSERT_TRUE(machine.control.Set({0}, {"uuid=" + uuid, "serial=4711"}).ok());
  ASSERT_TRUE(machine.control.HealGpu(0).ok());
  EXPECT_STREQ(machine.control.state().gpus[0].serial, "4711");
  EXPECT_THAT(Read(machine / "proc/driver/nvidia/gpus/0000:00:1e.0/information"), HasSubstr(uuid));
}

TEST(Control, FaultsOfCallsNeedANameThatTheLibraryHas) {
  Running machine("t4-x1");
  EXPECT_THAT(machine.control.FaultCall(0, "nvmlDeviceGetMemoryinfo", kSimFaultHang, 10, 0, 0)
                  .error()
                  .message(),
              HasSubstr("did you mean nvmlDeviceGetMemoryInfo"));
  EXPECT_TRUE(
      machine.control.FaultCall(0, "nvmlDeviceGetMemoryInfo", kSimFaultHang, 10, 0, 0).ok());
  EXPECT_EQ(machine.control.state().fault_count, 1u);
  ASSERT_TRUE(machine.control.HealGpu(0).ok());
  EXPECT_EQ(machine.control.state().fault_count, 0u);
}

TEST(Control, RefusesFaultsThatAModelCannotHave) {
  Running machine("mixed");
  EXPECT_THAT(machine.control.EccErrors(1, 1, false).error().message(),
              HasSubstr("RTX 3090) has no ECC"));
  EXPECT_THAT(machine.control.Remap(1, false).error().message(),
              HasSubstr("neither remaps rows nor retires pages"));
  ASSERT_TRUE(machine.control.Remap(2, false).ok());  // a T4 retires pages instead
  EXPECT_EQ(machine.control.state().gpus[2].retire_pending, 1u);
  EXPECT_THAT(Read(machine / "dev/kmsg"), Not(HasSubstr("65:00")));
}

}  // namespace
}  // namespace penstock::sim
