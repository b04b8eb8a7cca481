#include "app/devices/paths.h"

#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::app {
namespace {

TEST(Paths, ADevRootHoldsDevOrIsOne) {
  const os::TemporaryFolder folder;
  folder.Write("root/dev/nvidiactl", "");
  api::PathsConfig paths;
  paths.driver_root = folder.path() + "/root";
  EXPECT_EQ(OpenedPath(paths, "/dev/nvidia0"), folder.path() + "/root/dev/nvidia0");
  paths.dev_root = folder.path() + "/root/dev";
  EXPECT_EQ(OpenedPath(paths, "/dev/nvidia0"), folder.path() + "/root/dev/nvidia0");
}

TEST(Paths, TheKubeletIsAnsweredWhatTheMachineCallsIt) {
  const os::TemporaryFolder folder;
  folder.Write("driver-root/dev/nvidiactl", "");
  api::PathsConfig paths;
  paths.driver_root = folder.path() + "/driver-root";
  EXPECT_EQ(HostDevicePath(paths, "/dev/nvidia0"), folder.path() + "/driver-root/dev/nvidia0");
  paths.host_driver_root = "/run/nvidia/driver";
  EXPECT_EQ(HostDevicePath(paths, "/dev/nvidia0"), "/run/nvidia/driver/dev/nvidia0");
  paths.host_dev_root = "/";
  EXPECT_EQ(HostDevicePath(paths, "/dev/nvidia0"), "/dev/nvidia0");
}

}  // namespace
}  // namespace penstock::app
