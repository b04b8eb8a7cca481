#include "view/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/allocators.h"
#include "base/core/printable.h"

namespace penstock::view {
namespace {

using namespace std::chrono_literals;
using api::ConditionReport;
using testing::HasSubstr;

api::Report Sample() {
  api::Report report;
  report.vendors = {{.vendor = "nvidia", .driver = "550.54.15"}};
  for (int i = 0; i < 5; ++i)
    report.devices.push_back({.id = "GPU-" + std::to_string(i),
                              .vendor = "nvidia",
                              .index = i,
                              .health_state = "healthy",
                              .allocator = "kubelet"});
  report.allocators = {{.name = "kubelet", .state = "open"}, {.name = "local", .state = "open"}};
  report.configuration.origin = "defaults";
  return report;
}

ConditionReport Of(const api::Report& report, const std::string& type) {
  for (const ConditionReport& condition : ConditionsOf(report))
    if (condition.type == type) return condition;
  return {.type = "missing"};
}

void Expect(const api::Report& report, const std::string& type, bool status,
            const std::string& reason, const std::string& message = "") {
  const ConditionReport condition = Of(report, type);
  EXPECT_EQ(condition.type, type);
  EXPECT_EQ(condition.status, status) << type;
  EXPECT_EQ(condition.reason, reason) << type;
  EXPECT_THAT(condition.message, HasSubstr(message)) << type;
}

TEST(Conditions, AreAllTrueWhereAllIsWell) {
  for (const char* type :
       {"Ready", "DriverReady", "DevicesHealthy", "ConfigurationApplied", "KubeletDoor"})
    EXPECT_TRUE(Of(Sample(), type).status) << type;
}

TEST(Conditions, AnAllocatorHasTheOneOfItsRowUnlessItIsClosed) {
  for (const api::Allocator& row : api::Allocators())
    for (const std::string state : {"open", "waiting", "closed"}) {
      api::Report report = Sample();
      report.allocators.clear();
      const std::size_t others = ConditionsOf(report).size();
      report.allocators = {{.name = std::string(row.name), .state = state}};
      const bool expected = !row.condition.empty() && state != "closed";
      EXPECT_EQ(ConditionsOf(report).size(), others + (expected ? 1 : 0)) << row.name << state;
      if (!expected) continue;
      EXPECT_EQ(Of(report, std::string(row.condition)).status, state == "open") << row.name;
    }
}

TEST(Conditions, OneBadDeviceOfManyIsReportedAndLeavesTheNodeReady) {
  api::Report report = Sample();
  report.devices[3].health_state = "unhealthy";
  report.devices[3].health_reason = "XID 79";
  Expect(report, "DevicesHealthy", false, "DeviceUnhealthy", "GPU-3 (index 3): XID 79");
  EXPECT_TRUE(Of(report, "Ready").status);
}

TEST(Conditions, NameThreeDevicesWorstFirstAndCountTheRest) {
  api::Report report = Sample();
  for (auto& device : report.devices) device.health_state = "gone";
  report.devices[4].health_state = "unhealthy";
  const ConditionReport condition = Of(report, "DevicesHealthy");
  EXPECT_EQ(condition.reason, "DeviceUnhealthy");
  EXPECT_TRUE(condition.message.starts_with("GPU-4")) << condition.message;
  EXPECT_TRUE(condition.message.ends_with("and 2 more")) << condition.message;
  Expect(report, "Ready", false, "NoDeviceUsable");
}

TEST(Conditions, TheDriverOfAnotherVendorIsNotMissed) {
  api::Report report = Sample();
  report.vendors.push_back({.vendor = "amd", .reason = "there is no amdgpu module"});
  Expect(report, "DriverReady", true, "DriverLoaded");
  report.vendors[0] = {.vendor = "nvidia", .reason = "the library is not there"};
  Expect(report, "DriverReady", false, "DriverMissing", "nvidia: the library is not there");
  Expect(report, "Ready", false, "DriverMissing");
  report.devices.clear();
  Expect(report, "DriverReady", false, "NoDriver", "amd: there is no amdgpu module");
}

TEST(Conditions, ADriverThatIsThereAndOfNoUseIsNotReady) {
  api::Report report = Sample();
  report.vendors[0].reason = "there is no driver library of version 550.54.15, where 550.90.07 is";
  Expect(report, "DriverReady", false, "DriverUnusable", "nvidia: there is no driver library");
  Expect(report, "Ready", false, "DriverUnusable");
}

TEST(Conditions, ReadyAsksForAnOpenAllocatorOfADeviceThatIsWell) {
  api::Report report = Sample();
  report.allocators[0] = {
      .name = "kubelet", .state = "stepped-back", .reason = "nvidia-device-plugin serves it"};
  Expect(report, "KubeletDoor", false, "SteppedBack", "nvidia-device-plugin");
  Expect(report, "Ready", false, "NoDoorOpen", "nvidia-device-plugin");
  report.devices[1].allocator = "local";
  EXPECT_TRUE(Of(report, "Ready").status);
  report.devices[1].withheld = "MIG mode is enabled";
  EXPECT_FALSE(Of(report, "Ready").status);
}

TEST(Conditions, AMachineWithoutAKubeletIsNotAskedForOne) {
  api::Report report = Sample();
  report.allocators[0].state = "closed";
  EXPECT_EQ(Of(report, "KubeletDoor").type, "missing");
}

TEST(Conditions, SayWhyAConfigurationIsNotInForce) {
  api::Report report = Sample();
  report.configuration.remarks = {"flags.x: is passed over"};
  Expect(report, "ConfigurationApplied", true, "AppliedWithRemarks", "flags.x: is passed over");
  report.configuration.not_yet = {"sharing.mps"};
  Expect(report, "ConfigurationApplied", true, "AppliedInPart", "sharing.mps");
  report.configuration.problem = "line 3: unknown key";
  report.configuration.problem_origin = "ConfigMap x/y, key z";
  Expect(report, "ConfigurationApplied", false, "Refused",
         "ConfigMap x/y, key z: line 3: unknown key");
  EXPECT_EQ(RefusalOf({.problem = "ConfigMap x/y, key z:2:1: unknown key",
                       .problem_origin = "ConfigMap x/y, key z (default)"}),
            "ConfigMap x/y, key z:2:1: unknown key");
}

TEST(Conditions, AreSinceTheLastChangeOfTheirStatus) {
  ConditionTimes times;
  const base::WallTime start{1700000000s};
  std::vector<ConditionReport> conditions = {
      {.type = "Ready", .status = false, .reason = "NoDriver"}};
  times.Stamp(conditions, start);
  EXPECT_EQ(conditions[0].since, base::FormatTime(start));
  conditions[0].reason = "NoDoorOpen";
  times.Stamp(conditions, start + 5s);
  EXPECT_EQ(conditions[0].since, base::FormatTime(start));
  conditions[0].status = true;
  times.Stamp(conditions, start + 9s);
  EXPECT_EQ(conditions[0].since, base::FormatTime(start + 9s));
}

TEST(Conditions, SharingIsReadyWhereItsServersAreAndMissingWhereThereAreNone) {
  api::Report report = Sample();
  EXPECT_EQ(Of(report, "SharingReady").type, "missing");
  report.servers = {{.set = "nvidia.com/gpu", .kind = "mps", .state = "ready"}};
  Expect(report, "SharingReady", true, "ServersReady");
  report.servers.push_back({.set = "nvidia.com/big",
                            .kind = "mps",
                            .state = "waiting",
                            .reason = "its control daemon has died"});
  Expect(report, "SharingReady", false, "ServerNotReady",
         "mps of nvidia.com/big: its control daemon has died");
  report.servers[1].state = "ending";
  Expect(report, "SharingReady", true, "ServersReady");
}

TEST(Conditions, ADeviceThatIsOfferedOtherwiseThanAskedForIsReadyStill) {
  api::Report report = Sample();
  for (auto& device : report.devices) device.withheld = "MPS holds no memory limit on this driver";
  EXPECT_FALSE(Of(report, "Ready").status);
  report.devices[2].resource = "nvidia.com/gpu";
  EXPECT_TRUE(Of(report, "Ready").status);
}

TEST(Conditions, TheTextOfALayoutIsShortAndPrintable) {
  EXPECT_EQ(DescribeLayout({.name = "all", .source = "label", .state = "success", .reason = ""}),
            "all");
  std::string reason = "0: held by \x1b[2J";
  for (int i = 0; i < 1000; ++i) reason += "ä";
  const std::string text =
      DescribeLayout({.name = "all", .source = "label", .state = "failed", .reason = reason});
  EXPECT_LE(text.size(), 1000u);
  EXPECT_TRUE(text.starts_with("all: 0: held by ?[2J"));
  EXPECT_TRUE(base::IsPrintable(text));
  EXPECT_TRUE(text.ends_with("ä..."));
}

TEST(Conditions, TheFirstStepThatFailedIsWhyANodeIsNotReady) {
  api::Report report = Sample();
  EXPECT_EQ(Of(report, "AcceleratorsReady").type, "missing") << "an agent without validation";
  report.validation = {{.name = "driver", .state = "passed"},
                       {.name = "device-nodes", .state = "passed"},
                       {.name = "fabric", .state = "skipped"}};
  Expect(report, "AcceleratorsReady", true, "AllStepsPassed");
  report.validation[2] = {.name = "fabric", .state = "waiting", .reason = "it joins"};
  Expect(report, "AcceleratorsReady", false, "FabricWaiting", "fabric: it joins");
  report.validation.push_back(
      {.name = "plugin", .state = "failed", .reason = "another one", .remedy = "remove it"});
  Expect(report, "AcceleratorsReady", false, "PluginFailed", "plugin: another one; remove it");
  report.validation[1] = {.name = "device-nodes", .state = "failed", .reason = "one is missing"};
  Expect(report, "AcceleratorsReady", false, "DeviceNodesFailed", "device-nodes: one is missing");
}

TEST(Conditions, ANodeWithoutAcceleratorsIsNotReadyForThem) {
  api::Report report = Sample();
  report.validation = {{.name = "driver", .state = "skipped"}};
  Expect(report, "AcceleratorsReady", false, "NoAccelerators");
}

}  // namespace
}  // namespace penstock::view
