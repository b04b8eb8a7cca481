#include "app/devices/driver_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/devices/paths.h"
#include "device/testing/acme.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"

namespace penstock::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DialectWithRoot final : public device::testing::AcmeDialect {
 public:
  const device::KernelDriver* kernel_driver() const override { return &driver_; }

 private:
  const device::KernelDriver driver_ = {
      .module = "acme",
      .control = "/dev/acmectl",
      .libraries = {"/usr/lib64/libacme.so.1", "/usr/lib/libacme.so.1"}};
};

class DriverRootTest : public ::testing::Test {
 protected:
  DriverRootTest() {
    config_.paths.driver_root = folder_.path();
    config_.paths.driver_container_root = "/run/drivers/acme";
    folder_.Write("dev/acmectl", "");
  }

  void PutLibrary() { folder_.Write("run/drivers/acme/usr/lib/libacme.so.1", "text"); }
  DriverRoot Find() const { return FindDriverRoot({config_, dialect_.vendor()}, dialect_); }

  const os::TemporaryFolder folder_;
  const std::string root_ = folder_.path() + "/run/drivers/acme";
  const DialectWithRoot dialect_;
  api::NodeConfig config_;
};

TEST_F(DriverRootTest, IsAContainersOnceItsLibraryIsThere) {
  EXPECT_FALSE(Find().container);
  folder_.Write("run/drivers/acme/etc/os-release", "");
  const DriverRoot unfinished = Find();
  EXPECT_FALSE(unfinished.container);
  EXPECT_THAT(unfinished.problem, IsEmpty());
  EXPECT_NE(unfinished.seen, "");
  PutLibrary();
  const DriverRoot root = Find();
  EXPECT_TRUE(root.container);
  EXPECT_EQ(root.place, "/run/drivers/acme");
  EXPECT_EQ(root.seen, unfinished.seen);
  const api::PathsConfig paths = PathsIn(config_.paths, root);
  EXPECT_EQ(paths.driver_root, root_);
  EXPECT_EQ(paths.host_driver_root, root_);
}

TEST_F(DriverRootTest, IsNotLookedForUnlessConfigured) {
  PutLibrary();
  config_.paths.driver_container_root = "";
  EXPECT_EQ(Find(), DriverRoot{});
  config_.paths.driver_container_root = "/run/drivers/acme";
  EXPECT_EQ(FindDriverRoot({config_, "acme"}, device::testing::AcmeDialect()), DriverRoot{});
}

TEST_F(DriverRootTest, TheConfiguredRootIsNoContainers) {
  folder_.Write("usr/lib/libacme.so.1", "text");
  config_.paths.driver_container_root = "/";
  EXPECT_FALSE(Find().container);
}

TEST_F(DriverRootTest, ThatOthersCanChangeIsIgnoredWithTheReason) {
  PutLibrary();
  ASSERT_EQ(::chmod((folder_.path() + "/run/drivers").c_str(), 0777), 0);
  const DriverRoot root = Find();
  EXPECT_FALSE(root.container);
  EXPECT_THAT(root.problem, HasSubstr("/run/drivers is writable by everyone"));
  ASSERT_EQ(::chmod((folder_.path() + "/run/drivers").c_str(), 0755), 0);
  ASSERT_EQ(::chmod((root_ + "/usr/lib/libacme.so.1").c_str(), 0666), 0);
  EXPECT_THAT(Find().problem, HasSubstr("libacme.so.1 is writable by everyone"));
}

TEST_F(DriverRootTest, ALinkStaysBelowTheConfiguredRoot) {
  PutLibrary();
  ASSERT_EQ(::symlink("/run/drivers", (folder_.path() + "/var").c_str()), 0);
  config_.paths.driver_container_root = "/var/acme";
  EXPECT_EQ(Find().place, "/run/drivers/acme");
}

TEST_F(DriverRootTest, AnotherLibraryIsAnotherInstance) {
  PutLibrary();
  const DriverRoot before = Find();
  EXPECT_EQ(Find(), before);
  ASSERT_EQ(::unlink((root_ + "/usr/lib/libacme.so.1").c_str()), 0);
  folder_.Write("other", "");  // may take the number of the inode that is free now
  PutLibrary();
  EXPECT_NE(Find().instance, before.instance);
  EXPECT_FALSE(SameRoot(Find(), before));
}

TEST_F(DriverRootTest, DeviceFilesAreTheContainersUnlessOnlyTheHostHasThem) {
  PutLibrary();
  EXPECT_FALSE(Find().own_dev);
  EXPECT_EQ(PathsIn(config_.paths, Find()).dev_root, folder_.path());
  EXPECT_EQ(PathsIn(config_.paths, Find()).host_dev_root, folder_.path());
  folder_.Write("run/drivers/acme/dev/null", "");
  EXPECT_FALSE(Find().own_dev);  // the host has the control file
  folder_.Write("run/drivers/acme/dev/acmectl", "");
  EXPECT_TRUE(Find().own_dev);
  EXPECT_EQ(PathsIn(config_.paths, Find()).dev_root, root_);
  ASSERT_EQ(::unlink((root_ + "/dev/acmectl").c_str()), 0);
  ASSERT_EQ(::unlink((folder_.path() + "/dev/acmectl").c_str()), 0);
  EXPECT_TRUE(Find().own_dev);  // neither has it yet
}

TEST_F(DriverRootTest, DeviceFilesThatAreConfiguredElsewhereStayThere) {
  PutLibrary();
  folder_.Write("run/drivers/acme/dev/acmectl", "");
  config_.paths.host_driver_root = "/";
  config_.paths.host_dev_root = "/other";
  config_.paths.dev_root = folder_.path() + "/other";
  EXPECT_FALSE(Find().own_dev);
  EXPECT_EQ(PathsIn(config_.paths, Find()).host_dev_root, "/other");
  // As in a pod of the chart.
  config_.paths.host_dev_root = "/";
  config_.paths.dev_root = "/";
  const api::PathsConfig paths = PathsIn(config_.paths, Find());
  EXPECT_EQ(paths.host_driver_root, "/run/drivers/acme");
  EXPECT_EQ(paths.host_dev_root, "/run/drivers/acme");
  EXPECT_EQ(paths.dev_root, root_);
}

TEST_F(DriverRootTest, TheKubeletIsAnsweredFilesOfTheDriversOwnPlace) {
  PutLibrary();
  folder_.Write("run/drivers/acme/dev/acmectl", "");
  config_.paths.host_driver_root = "/";
  node::inventory::Snapshot inventory;
  device::Driver driver;
  driver.files = {{"/dev/acmectl", 1, 1}};
  inventory.vendors = {{.vendor = "acme",
                        .driver = std::make_shared<const device::Driver>(driver),
                        .reason = "",
                        .place = PlaceIn(config_.paths, Find(), "")}};
  HostDevicePaths on_host(std::make_shared<const api::NodeConfig>(config_),
                          std::make_shared<const node::inventory::Snapshot>(inventory));
  EXPECT_EQ(on_host("/dev/acmectl"), "/run/drivers/acme/dev/acmectl");
  EXPECT_EQ(on_host("/dev/other"), "/dev/other");
}

TEST_F(DriverRootTest, AWatchFollowsWhatComesAndGoes) {
  os::TurnedLoop loop("driver-root");
  std::vector<bool> before;
  bool container = false;
  DriverRootWatch watch(loop.loop(), loop.loop(), {config_, "acme"}, dialect_,
                        [&](const DriverRoot& one) { before.push_back(one.container); });
  loop.Start();
  const auto look = [&] {
    watch.Look();
    watch.Look();  // one after the other
  };
  loop.Run(look);
  loop.Settle();
  PutLibrary();
  loop.Run(look);
  loop.Settle();
  loop.Run([&] { container = watch.now().container; });
  EXPECT_TRUE(container);
  ASSERT_EQ(::unlink((root_ + "/usr/lib/libacme.so.1").c_str()), 0);
  loop.Run(look);
  loop.Settle();
  loop.Stop();
  EXPECT_FALSE(watch.now().container);
  EXPECT_EQ(before, (std::vector<bool>{false, true}));
}

TEST_F(DriverRootTest, ARootThatIsAwayForAMomentIsThereAsLongAsItsModuleIsLoaded) {
  config_.paths.sysfs_root = folder_ / "sys";
  folder_.Write("sys/module/acme/refcnt", "1");
  PutLibrary();
  const std::string library = root_ + "/usr/lib/libacme.so.1";
  os::TurnedLoop loop("driver-root");
  int changes = 0;
  DriverRootWatch watch(loop.loop(), loop.loop(), {config_, "acme"}, dialect_,
                        [&](const DriverRoot&) { ++changes; });
  loop.Start();
  const auto is_there = [&](base::Duration after) {
    bool container = false;
    loop.Run([&] { watch.Look(); });
    loop.Settle();
    loop.Advance(after);
    loop.Run([&] { container = watch.now().container; });
    return container;
  };
  ASSERT_EQ(::unlink(library.c_str()), 0);
  EXPECT_TRUE(is_there(std::chrono::milliseconds(2900)));
  EXPECT_EQ(changes, 0);
  PutLibrary();
  EXPECT_TRUE(is_there({}));
  EXPECT_EQ(changes, 1) << "it may be another one";
  ASSERT_EQ(::unlink(library.c_str()), 0);
  EXPECT_TRUE(is_there(std::chrono::milliseconds(2900)));
  EXPECT_FALSE(is_there(std::chrono::milliseconds(200))) << "without another sign";
  PutLibrary();
  EXPECT_TRUE(is_there({}));
  ASSERT_EQ(::unlink(library.c_str()), 0);
  ASSERT_EQ(::unlink((folder_ / "sys/module/acme/refcnt").c_str()), 0);
  EXPECT_FALSE(is_there({})) << "the driver was unloaded";
  loop.Stop();
}

}  // namespace
}  // namespace penstock::app
