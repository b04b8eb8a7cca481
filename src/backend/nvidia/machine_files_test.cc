#include "backend/nvidia/machine_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/core/testing/temporary_folder.h"

namespace penstock::backend::nvidia {
namespace {

using device::DeviceFile;
using device::DeviceNumbers;
using testing::ElementsAre;
using testing::IsEmpty;

class MachineFilesTest : public testing::Test {
 protected:
  MachineFiles Files() {
    device::Paths paths;
    paths.sysfs_root = folder_ / "sys";
    paths.proc_root = folder_ / "proc";
    paths.dev_root = folder_ / "dev";
    return MachineFiles(paths);
  }

  os::TemporaryFolder folder_;
  const device::PciAddress pci_ = {.domain = 0, .bus = 7, .device = 0, .function = 0};
};

TEST_F(MachineFilesTest, GraphicsFilesAreThoseBelowThePciFunction) {
  EXPECT_THAT(Files().GraphicsFiles(pci_), IsEmpty());
  const std::string drm = "sys/bus/pci/devices/" + ToString(pci_) + "/drm/";
  folder_.Write(drm + "card1/dev", "226:1\n");
  folder_.Write(drm + "renderD129/dev", "226:129\n");
  folder_.Write(drm + "odd/dev", "226:x\n");
  folder_.Write(drm + "large/dev", "99999:1\n");
  folder_.Write(drm + "none/other", "");
  EXPECT_THAT(Files().GraphicsFiles(pci_),
              ElementsAre(DeviceFile{"/dev/dri/card1", 226, 1},
                          DeviceFile{"/dev/dri/renderD129", 226, 129}));
}

TEST_F(MachineFilesTest, CapabilityFilesAreGuardedWhereThereAreSome) {
  folder_.Write("proc/devices",
                "Character devices:\n195 nvidia-frontend\n\nBlock devices:\n  8 sd\n");
  EXPECT_THAT(Files().GuardedNumbers(), ElementsAre(DeviceNumbers{195, 0, 253}));
  folder_.Write("proc/devices",
                "Character devices:\n195 nvidia-frontend\n236 nvidia-caps\n237 "
                "nvidia-caps-imex-channels\n\nBlock devices:\n  8 sd\n");
  EXPECT_THAT(Files().GuardedNumbers(),
              ElementsAre(DeviceNumbers{195, 0, 253}, DeviceNumbers{236, 0, 0xfffff}));
}

}  // namespace
}  // namespace penstock::backend::nvidia
