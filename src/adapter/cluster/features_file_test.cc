// Tests the features.d file as NFD's worker would find it.
#include "adapter/cluster/features_file.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::adapter::cluster {
namespace {

using device::testing::AcmeDevice;
using device::testing::AcmeDriver;
using namespace std::chrono_literals;

class FeaturesFileTest : public testing::Test {
 protected:
  void Devices(int count) {
    std::vector<device::Facts> devices;
    for (int i = 0; i < count; ++i) devices.push_back(AcmeDevice(i, count));
    inventory_.SetVendor({"acme", std::make_shared<const device::Driver>(AcmeDriver()), ""});
    inventory_.SetFacts("acme", std::move(devices), "", base::WallTime{});
    Update();
    executor_.RunUntilIdle();
  }

  void Update() {
    labels_.Update({.inventory = inventory_.published().Get(),
                    .servers = std::make_shared<const device::SharedDevices>(),
                    .desired = std::make_shared<const node::share::DesiredAssignments>()});
  }

  void Begin() {
    node::label::LabelContext context;
    context.host_features = false;
    labels_.Set(context);
    Update();
    executor_.RunUntilIdle();
  }

  std::string Text() const { return os::ReadFile(path_).value_or("none"); }

  os::TemporaryFolder folder_;
  const std::string path_ = folder_ / "features.d/penstock";
  base::ManualExecutor executor_;
  node::inventory::Inventory inventory_;
  node::label::Labels labels_{device::testing::FindAcme};
};

TEST_F(FeaturesFileTest, SaysWhatTheLabelsSay) {
  Devices(1);
  const FeaturesFile file(executor_, executor_, labels_, path_);
  executor_.RunUntilIdle();
  EXPECT_EQ(Text(), "none") << "initial discovery is not complete";
  Begin();
  EXPECT_EQ(Text(), "acme.com/gpu.count=1\nacme.com/gpu.first=G0\n");
  Devices(2);
  EXPECT_EQ(Text(), "acme.com/gpu.count=2\nacme.com/gpu.first=G0\n");
  EXPECT_EQ(*os::ListDirectory(folder_ / "features.d"), std::vector<std::string>{"penstock"})
      << "no other file that NFD would read";
}

// DP#796: the file was removed at exit, and the node's labels with it.
TEST_F(FeaturesFileTest, DP796OutlivesItsAgentAndIsLeftAloneByTheNext) {
  Devices(1);
  Begin();
  {
    const FeaturesFile file(executor_, executor_, labels_, path_);
    executor_.RunUntilIdle();
  }
  EXPECT_EQ(Text(), "acme.com/gpu.count=1\nacme.com/gpu.first=G0\n");
  const auto before = std::filesystem::last_write_time(path_) - 1h;
  std::filesystem::last_write_time(path_, before);
  const FeaturesFile next(executor_, executor_, labels_, path_);
  executor_.RunUntilIdle();
  EXPECT_EQ(std::filesystem::last_write_time(path_), before)
      << "an unchanged file is not written again";
}

TEST_F(FeaturesFileTest, IsTriedAgainWhereItCannotBeWritten) {
  folder_.Write("features.d", "a file where the folder should be");
  Devices(1);
  Begin();
  const FeaturesFile file(executor_, executor_, labels_, path_);
  executor_.RunUntilIdle();
  EXPECT_THAT(file.problem(), testing::HasSubstr("features.d"));
  std::filesystem::remove(folder_ / "features.d");
  executor_.Advance(1s);
  EXPECT_EQ(file.problem(), "");
  EXPECT_EQ(Text(), "acme.com/gpu.count=1\nacme.com/gpu.first=G0\n");
}

TEST_F(FeaturesFileTest, IsNotWrittenAfterItsEnd) {
  Devices(1);
  Begin();
  { const FeaturesFile file(executor_, executor_, labels_, folder_ / "none/such/x"); }
  folder_.Write("features.d", "in the way");
  {
    const FeaturesFile file(executor_, executor_, labels_, path_);
    executor_.RunUntilIdle();
  }
  std::filesystem::remove(folder_ / "features.d");
  executor_.Advance(5min);
  EXPECT_EQ(Text(), "none");
}

}  // namespace
}  // namespace penstock::adapter::cluster
