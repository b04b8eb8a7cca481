#include "view/samples.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"

namespace penstock::view {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const base::WallTime kSampledAt{1700000000s};

api::HolderReport HolderOf(const std::string& lease, std::vector<std::int64_t> pids) {
  api::HolderReport holder;
  holder.device = "G0";
  holder.index = 0;
  holder.kind = "pod";
  holder.lease = lease;
  holder.pids = std::move(pids);
  holder.pod = lease + "-pod";
  holder.namespace_name = "ml";
  holder.command = "the first one";
  return holder;
}

struct SamplesFixture {
  SamplesFixture() {
    api::DeviceReport device;
    device.id = "G0";
    device.vendor = "acme";
    device.model = "Acme Big";
    device.index = 0;
    device.memory_bytes = 1 << 30;
    device.health_state = "healthy";
    device.sharing = "time-slicing";
    device.shares = 4;
    device.free = 2;
    report.node = "n1";
    report.devices = {device};
    auto sample = std::make_shared<node::sample::DeviceSample>();
    sample->device = "G0";
    sample->at = kSampledAt - 1s;
    sample->values = {{{0, -1, std::uint64_t{40}}, kSampledAt},
                      {{1, -1, std::uint64_t{512}}, kSampledAt},
                      {{2, -1, std::uint64_t{250500}}, kSampledAt}};
    sample->history = {{"utilization", {0.5F, std::numeric_limits<float>::quiet_NaN()}}};
    sample->processes = {{.pid = 11, .memory = base::Mebibytes(100), .compute = 25}, {.pid = 12}};
    samples.interval = 1s;
    samples.devices["G0"] = sample;
  }
  api::Samples Make() const {
    return MakeSamples(report, ledger, samples, device::testing::FindAcme, kSampledAt);
  }

  api::Report report;
  node::ledger::Snapshot ledger;
  node::sample::Snapshot samples;
};

TEST(MakeSamples, ReportsDevicesInBaseUnits) {
  const api::Samples samples = SamplesFixture().Make();
  EXPECT_EQ(samples.node, "n1");
  EXPECT_EQ(samples.interval_seconds, 1);
  const api::SampledDevice& device = samples.devices.at(0);
  EXPECT_EQ(device.utilization, 0.4);
  EXPECT_EQ(device.memory_used, 512.0 * 1048576);
  EXPECT_EQ(device.power, 250.5);
  EXPECT_EQ(device.temperature, std::nullopt);
  EXPECT_EQ(device.collected, base::FormatTime(kSampledAt - 1s));
  EXPECT_EQ(device.free, 2);
  EXPECT_THAT(device.history.at("utilization"), ElementsAre(0.5, std::nullopt));
}

TEST(MakeSamples, JoinsProcessesWithTheirHolders) {
  SamplesFixture fixture;
  fixture.report.devices[0].holders = {HolderOf("lease-a", {10, 11}), HolderOf("lease-b", {99})};
  node::ledger::Lease lease;
  lease.processes = {{.pid = 10, .user = "ann", .command = "the first one"},
                     {.pid = 11, .user = "ann", .command = "python train.py"}};
  fixture.ledger.leases = {lease};
  const auto processes = fixture.Make().processes;
  ASSERT_THAT(processes, SizeIs(3));
  EXPECT_EQ(processes[0].pid, 11);
  EXPECT_EQ(processes[0].pod, "lease-a-pod");
  EXPECT_EQ(processes[0].command, "python train.py")
      << "the command of the process, not of the holder";
  EXPECT_EQ(processes[0].user, "ann");
  EXPECT_EQ(processes[0].compute, 0.25);
  EXPECT_EQ(processes[0].memory_bytes, 100u << 20);
  EXPECT_EQ(processes[1].pid, 12);
  EXPECT_EQ(processes[1].kind, "") << "the kind is not known yet";
  EXPECT_EQ(processes[1].device, "G0");
  EXPECT_EQ(processes[2].pid, 0) << "it holds the device without a process on it";
  EXPECT_EQ(processes[2].lease, "lease-b");
}

TEST(MakeSamples, AHolderOfSeveralSharesIsReportedOnce) {
  SamplesFixture fixture;
  fixture.report.devices[0].holders = {HolderOf("lease-a", {}), HolderOf("lease-a", {}),
                                       HolderOf("lease-b", {11}), HolderOf("lease-b", {11})};
  const auto processes = fixture.Make().processes;
  ASSERT_THAT(processes, SizeIs(3));
  EXPECT_EQ(processes[0].lease, "lease-b");
  EXPECT_EQ(processes[2].lease, "lease-a");
}

TEST(MakeSamples, AnOutsiderWhoHasEndedIsNotReported) {
  SamplesFixture fixture;
  api::HolderReport outside = HolderOf("", {77});
  outside.kind = "outside";
  fixture.report.devices[0].holders = {outside};
  EXPECT_THAT(fixture.Make().processes, SizeIs(2));
}

TEST(MakeSamples, ADeviceThatWasNotSampledIsReportedWithoutValues) {
  SamplesFixture fixture;
  fixture.samples.devices.clear();
  const api::Samples samples = fixture.Make();
  EXPECT_EQ(samples.devices.at(0).utilization, std::nullopt);
  EXPECT_EQ(samples.devices.at(0).collected, "");
  EXPECT_THAT(samples.processes, IsEmpty());
}

}  // namespace
}  // namespace penstock::view
