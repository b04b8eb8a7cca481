// Tests which GPUs the simulated library lists: those that the process can open, on a machine and
// in a container.
#include <filesystem>
#include <fstream>

#include "sim/testing_library.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;
using testing::Folder;
using testing::Library;
using testing::Running;
using testing::Started;

// The files of a container with some of a machine's GPUs: the driver's files, and the device files
// that it received.
class Container {
 public:
  Container(const std::string& machine, const std::string& root, const std::string& version,
            const std::vector<std::string>& devices)
      : root_(root) {
    fs::create_directories(root + "/usr/lib/x86_64-linux-gnu");
    fs::copy_file(machine + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so." + version,
                  root + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so." + version);
    fs::create_symlink("libnvidia-ml.so." + version,
                       root + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
    fs::create_directories(root + "/usr/lib/firmware/nvidia/" + version);
    for (const auto& file : fs::directory_iterator(machine + "/usr/lib/firmware/nvidia/" + version))
      fs::copy_file(file.path(), root + "/usr/lib/firmware/nvidia/" + version + "/" +
                                     file.path().filename().string());
    fs::create_directories(root + "/dev");
    for (const std::string& device : devices) std::ofstream(root + "/dev/" + device);
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

std::string UuidOf(const Library& nvml, NvUint index) {
  char uuid[96] = "";
  EXPECT_EQ(
      nvml("nvmlDeviceGetUUID", nvml.Device(index), static_cast<char*>(uuid), NvUint{sizeof uuid}),
      NV_SUCCESS);
  return uuid;
}

TEST(Library, FindsItsMachineAmongTheFirmwareAndListsTheGpusOfItsContainer) {
  Folder folder;
  for (const std::string version : {"550.54.15", "470.82.01", "450.80.02"}) {
    const std::string machine = folder / ("m" + version);
    const Control control = Started(machine, "dgx-a100", {.driver = version});
    const Container container(machine, folder / ("c" + version), version,
                              {"nvidiactl", "nvidia2", "nvidia5"});
    const Library nvml(container.root());
    ASSERT_EQ(nvml("nvmlInit_v2"), NV_SUCCESS) << version;
    NvUint count = 0;
    ASSERT_EQ(nvml("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
    ASSERT_EQ(count, 2u);
    EXPECT_EQ(UuidOf(nvml, 0), control.state().gpus[2].uuid);
    EXPECT_EQ(UuidOf(nvml, 1), control.state().gpus[5].uuid);
    NvUint index = 0;
    EXPECT_EQ(nvml("nvmlDeviceGetIndex", nvml.Device(1), &index), NV_SUCCESS);
    EXPECT_EQ(index, 1u);
    NvDevice device = nullptr;
    EXPECT_EQ(nvml("nvmlDeviceGetHandleByIndex_v2", NvUint{2}, &device), NV_INVALID_ARGUMENT);
    EXPECT_EQ(nvml("nvmlDeviceGetHandleByUUID",
                   static_cast<const char*>(control.state().gpus[0].uuid), &device),
              NV_NOT_FOUND);
  }
}

TEST(Library, WithoutTheControlDeviceThereIsNoDriver) {
  Folder folder;
  (void)Started(folder / "m", "t4-x1");
  const Container container(folder / "m", folder / "c", "535.183.01", {"nvidia0"});
  const Library nvml(container.root());
  EXPECT_EQ(nvml("nvmlInit_v2"), NV_DRIVER_NOT_LOADED);
  std::ofstream(container.root() + "/dev/nvidiactl");
  EXPECT_EQ(nvml("nvmlInit_v2"), NV_SUCCESS);
}

TEST(Library, OtherFirmwareIsNoMachine) {
  Folder folder;
  (void)Started(folder / "m", "t4-x1");
  const Container container(folder / "m", folder / "c", "535.183.01", {"nvidiactl", "nvidia0"});
  std::ofstream(container.root() + "/usr/lib/firmware/nvidia/535.183.01/gsp_tu10x.bin")
      << "what a real driver has there";
  const Library nvml(container.root());
  EXPECT_EQ(nvml("nvmlInit_v2"), NV_DRIVER_NOT_LOADED);
}

TEST(Library, WhatCouldBeOpenedOnceStaysListed) {
  Running machine("dgx-a100");
  const Library nvml(machine.root());
  NvUint count = 0;
  ASSERT_EQ(nvml("nvmlInit_v2"), NV_SUCCESS);
  ASSERT_EQ(nvml("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
  EXPECT_EQ(count, 8u);
  fs::remove(machine / "dev/nvidia6");
  ASSERT_EQ(nvml("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
  EXPECT_EQ(count, 8u);
  ASSERT_EQ(nvml("nvmlShutdown"), NV_SUCCESS);
  ASSERT_EQ(nvml("nvmlInit_v2"), NV_SUCCESS);
  ASSERT_EQ(nvml("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
  EXPECT_EQ(count, 7u);
}

}  // namespace
}  // namespace penstock::sim
