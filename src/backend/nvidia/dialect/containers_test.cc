#include "backend/nvidia/dialect/containers.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::backend::nvidia {
namespace {

using device::CdiNames;
using device::Facts;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::array kAllNames{CdiNames::kIndex, CdiNames::kUuid, CdiNames::kTypeIndex};

Facts Gpu(int index) {
  Facts facts;
  facts.id = "GPU-5a00000" + std::to_string(index);
  facts.index = index;
  return facts;
}

Facts Mig(const Facts& parent, int index) {
  Facts facts;
  facts.id = "MIG-7b00000" + std::to_string(index);
  facts.number = std::to_string(parent.index) + ":" + std::to_string(index);
  facts.parent = parent.id;
  return facts;
}

TEST(CdiDeviceNames, AreThoseOfNvidiasToolkit) {
  const Facts gpu = Gpu(2);
  EXPECT_THAT(CdiDeviceNames(gpu, kAllNames), ElementsAre("2", "GPU-5a000002", "gpu2"));
  const Facts mig = Mig(gpu, 1);
  EXPECT_THAT(CdiDeviceNames(mig, kAllNames), ElementsAre("2:1", "MIG-7b000001", "mig2:1"));
}

TEST(CdiDeviceNames, LeaveOutWhatIsNotKnown) {
  Facts without_index = Gpu(0);
  without_index.index = -1;
  EXPECT_THAT(CdiDeviceNames(without_index, kAllNames), ElementsAre("GPU-5a000000"));
  EXPECT_THAT(CdiDeviceNames(Gpu(0), {}), IsEmpty());
}

TEST(CapabilityOf, IsThatOfLibnvidiaContainersLists) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"/usr/lib64/libcuda.so.550.54.15", "compute"},
      {"/usr/lib64/libcudadebugger.so.550.54.15", "compute"},
      {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "utility"},
      {"/usr/lib64/libnvidia-nvvm.so.550.54.15", "compute"},
      {"/usr/lib64/libnvidia-nvvm70.so.4", "compute"},
      {"/usr/lib64/libnvidia-pkcs11-openssl3.so.550.54.15", "compute"},
      {"/usr/lib64/libnvidia-encode.so.550.54.15", "video"},
      {"/usr/lib64/vdpau/libvdpau_nvidia.so.550.54.15", "video"},
      {"/usr/lib64/libGLX_nvidia.so.550.54.15", "graphics"},
      {"/usr/lib64/libnvidia-egl-wayland2.so.1.0.0", "graphics"},
      {"/usr/lib64/libnvidia-gtk3.so.550.54.15", "display"},
      {"/usr/lib64/xorg/modules/drivers/nvidia_drv.so", "display"},
      {"/usr/lib64/libnvidia-ngx.so.550.54.15", "ngx"},
      {"/usr/bin/nvidia-smi", "utility"},
      {"/usr/bin/nvidia-cuda-mps-server", "compute"},
      {"/etc/OpenCL/vendors/nvidia.icd", "compute"},
      {"/etc/vulkan/icd.d/nvidia_icd.x86_64.json", "graphics"},
      {"/usr/share/nvidia/nvidia-application-profiles-550.54.15-rc", "graphics"},
      {"/lib/firmware/nvidia/550.54.15/gsp_tu10x.bin", ""},
      {"/run/nvidia-persistenced/socket", "utility"},
      {"/tmp/nvidia-mps", "compute"},
      {"/dev/nvidia-uvm-tools", "compute"},
      {"/dev/nvidia-modeset", "display"},
      {"/dev/dri/renderD128", "graphics"},
      {"/dev/nvidia0", ""},
      {"/dev/nvidiactl", ""},
      {"/usr/lib64/libnvidia-of-next-year.so.999.1", ""},
      {"/usr/bin/nvidia-smi-wrapper", ""},
      {"libcuda.so.1", "compute"},
      {"", ""},
  };
  for (const auto& [path, capability] : cases) EXPECT_EQ(CapabilityOf(path), capability) << path;
}

TEST(ContainerDriverOf, KnowsTheCapabilityOfEveryFileThatItNames) {
  const device::ContainerDriver driver = ContainerDriverOf({});
  for (const device::DriverFile& file : driver.files)
    if (file.pattern.find('/') == std::string::npos && !file.pattern.starts_with('*')) {
      EXPECT_EQ(CapabilityOf(file.pattern), file.capability) << file.pattern;
    }
}

TEST(ContainerDriverOf, NamesEachFileOnce) {
  const device::ContainerDriver driver = ContainerDriverOf({});
  std::set<std::string> patterns;
  for (const device::DriverFile& file : driver.files)
    EXPECT_TRUE(patterns.insert(file.pattern).second) << file.pattern;
  for (const device::DriverFile& file : driver.files)
    EXPECT_EQ(file.kind == device::DriverFile::Kind::kConfiguration, !file.folder.empty())
        << file.pattern;
}

TEST(ContainerDriverOf, ReportsTheHookWhichCudaTheDriverServesWhereThatIsKnown) {
  const auto compat = [](const device::Driver& driver) {
    return ContainerDriverOf(driver).hooks[1].arguments;
  };
  EXPECT_THAT(compat({.runtime_version = "12.4"}),
              ElementsAre("--host-driver-version={version}", "--host-cuda-version=12.4"));
  EXPECT_THAT(compat({}), ElementsAre("--host-driver-version={version}"));
}

}  // namespace
}  // namespace penstock::backend::nvidia
