#include "node/health/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/health/checkpoint_writer.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::health {
namespace {

using namespace std::chrono_literals;

const base::WallTime kNow{1'700'000'000s};

HealthCheckpoint SomeMemory() {
  HealthCheckpoint memory;
  RememberedDevice& device = memory.devices["GPU-1"];
  device.faults.push_back(
      {"xid", 48, {device::Severity::kReset, "XID 48: ECC \xff", false}, kNow - 1h, false});
  device.recovery = {true, 2, 90s, 40s};
  device.reason = "XID 48";
  device.resets = {kNow - 2h};
  memory.drivers["nvidia"] = {"550.54.15", "77"};
  memory.occupancy["0000:07:00.0"] = {"GPU-1", "111"};
  return memory;
}

TEST(HealthCheckpoint, IsReadAsItWasWritten) {
  const auto read = DecodeHealthCheckpoint(EncodeHealthCheckpoint(SomeMemory(), "boot", kNow),
                                           "boot", "health.json", kNow + 10s);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  const RememberedDevice& device = read->devices.at("GPU-1");
  ASSERT_EQ(device.faults.size(), 1u);
  EXPECT_EQ(device.faults[0].verdict.severity, device::Severity::kReset);
  EXPECT_EQ(device.faults[0].at, kNow - 1h);
  EXPECT_EQ(device.recovery.relapses, 2);
  EXPECT_EQ(device.recovery.recovered_ago, 100s) << "time passed";
  EXPECT_EQ(device.resets, SomeMemory().devices.at("GPU-1").resets);
  EXPECT_EQ(read->occupancy, SomeMemory().occupancy);
  ASSERT_EQ(read->drivers.size(), 1u);
  EXPECT_EQ(read->drivers.at("nvidia").version, "550.54.15");
}

TEST(HealthCheckpoint, AfterARebootTroublesAreOverAndTheRestIsKnown) {
  const auto read = DecodeHealthCheckpoint(EncodeHealthCheckpoint(SomeMemory(), "boot", kNow),
                                           "another boot", "health.json", kNow + 10s);
  ASSERT_TRUE(read.ok());
  const RememberedDevice& device = read->devices.at("GPU-1");
  EXPECT_TRUE(device.faults.empty());
  EXPECT_FALSE(device.recovery.unhealthy);
  EXPECT_EQ(device.recovery.relapses, 2);
  EXPECT_EQ(device.resets.size(), 1u);
  EXPECT_EQ(read->occupancy, SomeMemory().occupancy);
  EXPECT_TRUE(read->drivers.empty());
}

TEST(HealthCheckpoint, DamagedTextIsNoMemoryAndANewerOneIsLeftAlone) {
  const std::string good = EncodeHealthCheckpoint(SomeMemory(), "boot", kNow);
  for (
      const std::string& bad :
      {std::string(), good.substr(0, good.size() / 2), std::string("[]"), std::string("{}"),
       std::string(R"({"version":1,"devices":{"GPU-1":7}})"),
       std::string(
           R"({"version":1,"devices":{"GPU-1":{"troubles":[{"kind":"xid","code":1,"severity":"awful"}]}}})")}) {
    const auto read = DecodeHealthCheckpoint(bad, "boot", "health.json", kNow);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.error().code(), base::Code::kDataLoss) << bad;
  }
  const auto newer =
      DecodeHealthCheckpoint(R"({"version":2,"what":1})", "boot", "health.json", kNow);
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().code(), base::Code::kFailedPrecondition);
}

class HealthCheckpointWriterTest : public ::testing::Test {
 protected:
  HealthCheckpointWriterTest() {
    inventory_.SetFacts("acme", {device::testing::AcmeDevice(0, 1)}, "", control_.clock().Wall());
    monitor_.OnReading("G0", {});
  }
  void Run() {
    for (int i = 0; i < 5; ++i) {
      control_.RunUntilIdle();
      io_.RunUntilIdle();
    }
  }
  void Fault(std::int64_t code) {
    monitor_.OnEvidence({.device = "G0", .kind = "code", .code = code});
  }
  HealthCheckpoint Load() {
    return *HealthCheckpointWriter::Load(folder_.path(), "boot", control_.clock().Wall());
  }

  os::TemporaryFolder folder_;
  const std::string path_ = folder_ / "health.json";
  base::ManualExecutor control_, io_;
  inventory::Inventory inventory_;
  Monitor monitor_{control_, inventory_, device::testing::FindAcme, {}};
};

TEST_F(HealthCheckpointWriterTest, WritesOffTheControlThreadAndOnceASecondAtMost) {
  const HealthCheckpointWriter keeper(control_, io_, monitor_, folder_.path(), "boot");
  control_.RunUntilIdle();
  EXPECT_FALSE(os::Exists(path_)) << "only the I/O executor writes";
  Run();
  EXPECT_EQ(Load().occupancy.at("0000:07:00.0").id, "G0");
  Fault(3);
  Run();
  EXPECT_TRUE(Load().devices.empty()) << "not yet";
  control_.Advance(1s);
  Run();
  EXPECT_EQ(Load().devices.at("G0").faults.size(), 1u);
}

TEST_F(HealthCheckpointWriterTest, WritesWhatIsNotWrittenYetWhenItEnds) {
  {
    const HealthCheckpointWriter keeper(control_, io_, monitor_, folder_.path(), "boot");
    Run();
    Fault(3);
  }
  EXPECT_EQ(Load().devices.at("G0").faults.size(), 1u);
}

TEST_F(HealthCheckpointWriterTest, AFullDiskIsTriedAgain) {
  folder_.Write("health.json/in-the-way", "");  // a folder, which cannot be replaced by a file
  const HealthCheckpointWriter keeper(control_, io_, monitor_, folder_.path(), "boot");
  Run();
  std::filesystem::remove_all(path_);
  control_.Advance(10s);
  Run();
  EXPECT_TRUE(os::Exists(path_));
}

TEST_F(HealthCheckpointWriterTest, ADamagedFileAndANewerOneAreSetAside) {
  folder_.Write("health.json", "{ half");
  EXPECT_TRUE(Load().devices.empty());
  EXPECT_TRUE(os::Exists(path_ + ".damaged"));
  folder_.Write("health-marks.json", "{ half");
  EXPECT_TRUE(HealthCheckpointWriter::Load(folder_.path(), "boot", kNow).ok())
      << "a missing file is not an error";
  EXPECT_TRUE(os::Exists(folder_ / "health-marks.json.damaged"));
  folder_.Write("health.json", R"({"version": 99})");
  folder_.Write("health-marks.json", R"({"version": 99})");
  EXPECT_TRUE(Load().devices.empty());
  EXPECT_TRUE(os::Exists(path_ + ".newer"));
  EXPECT_TRUE(os::Exists(folder_ / "health-marks.json.newer"));
  EXPECT_FALSE(os::Exists(path_));
}

TEST_F(HealthCheckpointWriterTest, KeepsWhatReportsAReset) {
  monitor_.OnDriverOpened("acme", {"1.0", "77"});
  monitor_.SetKernelLog(4711);
  Fault(3);
  device::Reading reading;
  reading.evidence.push_back({.kind = "reset-counter.energy", .code = 500, .standing = true});
  monitor_.OnReading("G0", reading);
  { const HealthCheckpointWriter keeper(control_, io_, monitor_, folder_.path(), "boot"); }
  const HealthCheckpoint memory = Load();
  EXPECT_EQ(memory.devices.at("G0").before, (ResetCounters{{"energy", 500}}));
  EXPECT_EQ(memory.drivers.at("acme"), (LoadedDriver{"1.0", "77"}));
  EXPECT_EQ(memory.kernel_log, 4711u);
  const auto rebooted = HealthCheckpointWriter::Load(folder_.path(), "another boot", kNow);
  ASSERT_TRUE(rebooted.ok());
  EXPECT_EQ(rebooted->kernel_log, std::nullopt);
  EXPECT_FALSE(rebooted->this_boot);
}

}  // namespace
}  // namespace penstock::node::health
