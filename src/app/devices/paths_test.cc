#include "app/devices/paths.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::app {
namespace {

TEST(Paths, ADevRootHoldsDevOrIsOne) {
  const os::TemporaryFolder folder;
  folder.Write("root/dev/null", "");
  api::PathsConfig paths;
  paths.driver_root = folder.path() + "/root";
  EXPECT_EQ(OpenedPath(paths, "/dev/nvidia0"), folder.path() + "/root/dev/nvidia0");
  paths.dev_root = folder.path() + "/root/dev";
  EXPECT_EQ(OpenedPath(paths, "/dev/nvidia0"), folder.path() + "/root/dev/nvidia0");
}

TEST(Paths, TheKubeletIsAnsweredWhatTheMachineCallsIt) {
  const os::TemporaryFolder folder;
  folder.Write("driver-root/dev/nvidiactl", "");
  api::NodeConfig config;
  const auto on_host = [&config](const std::string& file) {
    return HostDevicePaths(std::make_shared<const api::NodeConfig>(config),
                           std::make_shared<const node::inventory::Snapshot>())(file);
  };
  config.paths.driver_root = folder.path() + "/driver-root";
  EXPECT_EQ(on_host("/dev/nvidia0"), folder.path() + "/driver-root/dev/nvidia0");
  config.paths.host_driver_root = "/run/nvidia/driver";
  EXPECT_EQ(on_host("/dev/nvidia0"), "/run/nvidia/driver/dev/nvidia0");
  config.paths.host_dev_root = "/";
  EXPECT_EQ(on_host("/dev/nvidia0"), "/dev/nvidia0");
}

TEST(Paths, ADriverRootThatIsBeingReplacedIsNoFolderOfDeviceFiles) {
  const os::TemporaryFolder folder;
  api::NodeConfig config;
  config.paths.driver_root = folder.path();
  const auto expect = [&](const std::string& path) {
    EXPECT_EQ(OpenedPath(config.paths, "/dev/nvidia0"), folder.path() + path);
    EXPECT_EQ(HostDevicePaths(std::make_shared<const api::NodeConfig>(config),
                              std::make_shared<const node::inventory::Snapshot>())("/dev/nvidia0"),
              folder.path() + path);
  };
  expect("/dev/nvidia0");
  // What the kubelet makes for a driver pod's mount while its container's root is away.
  std::filesystem::create_directories(folder.path() + "/lib/firmware");
  expect("/dev/nvidia0");
  folder.Write("null", "");
  expect("/nvidia0");
  folder.Write("dev/nvidiactl", "");
  expect("/dev/nvidia0");
}

TEST(Paths, AFolderWithTheAskedFileIsADev) {
  const os::TemporaryFolder folder;
  folder.Write("nvidia0", "");
  EXPECT_EQ(OpenedPath(folder.path(), "/dev/nvidia0"), folder.path() + "/nvidia0");
  EXPECT_EQ(OpenedPath(folder.path(), "/dev/nvidia1"), folder.path() + "/dev/nvidia1");
  api::NodeConfig config;
  config.paths.driver_root = folder.path();
  HostDevicePaths on_host(std::make_shared<const api::NodeConfig>(config),
                          std::make_shared<const node::inventory::Snapshot>());
  EXPECT_EQ(on_host("/dev/nvidia-uvm"), folder.path() + "/dev/nvidia-uvm");
  EXPECT_EQ(on_host("/dev/nvidia0"), folder.path() + "/nvidia0") << "now there is evidence";
}

TEST(Paths, TheFilesOfOneAnswerAreNamedAlike) {
  const os::TemporaryFolder folder;
  folder.Write("dev/nvidiactl", "");
  api::NodeConfig config;
  config.paths.driver_root = folder.path();
  HostDevicePaths on_host(std::make_shared<const api::NodeConfig>(config),
                          std::make_shared<const node::inventory::Snapshot>());
  EXPECT_EQ(on_host("/dev/nvidiactl"), folder.path() + "/dev/nvidiactl");
  std::filesystem::remove_all(folder.path() + "/dev");
  EXPECT_EQ(on_host("/dev/nvidia0"), folder.path() + "/dev/nvidia0");
}

}  // namespace
}  // namespace penstock::app
