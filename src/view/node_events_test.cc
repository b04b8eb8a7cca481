#include "view/node_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::view {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

api::Report ThreeDevices() {
  api::Report report;
  report.vendors = {{.vendor = "nvidia", .driver = "550.54.15"}};
  for (int i = 0; i < 3; ++i)
    report.devices.push_back({.id = "GPU-" + std::to_string(i),
                              .vendor = "nvidia",
                              .model = "NVIDIA A100",
                              .index = i,
                              .health_state = "healthy"});
  report.allocators = {{.name = "kubelet", .state = "open", .resources = {"nvidia.com/gpu"}}};
  report.configuration = {.origin = "defaults", .since = "2026-11-21T03:41:00.000Z"};
  return report;
}

class ReportEventsTest : public testing::Test {
 protected:
  std::vector<std::string> Next() {
    std::vector<std::string> reported;
    for (const NodeEvent& event : events_.Next(report_)) {
      reported.push_back((event.warning ? "Warning " : "Normal ") + event.reason);
      message_ = event.message;
    }
    return reported;
  }

  ReportEvents events_;
  api::Report report_ = ThreeDevices();
  std::string message_;
};

TEST_F(ReportEventsTest, WhatWasSoBeforeIsNotReported) {
  report_.devices[1].health_state = "unhealthy";
  report_.configuration.problem = "line 3";
  report_.allocators[0].state = "stepped-back";
  EXPECT_THAT(Next(), IsEmpty());
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(ReportEventsTest, ADeviceFallsIllAndRecovers) {
  Next();
  report_.devices[1].health_state = "unhealthy";
  report_.devices[1].health_reason = "XID 79";
  EXPECT_THAT(Next(), ElementsAre("Warning DeviceUnhealthy"));
  EXPECT_EQ(message_, "NVIDIA A100 1, GPU-1 is unhealthy: XID 79");
  EXPECT_THAT(Next(), IsEmpty());
  report_.devices[1].health_state = "unknown";
  EXPECT_THAT(Next(), IsEmpty());
  report_.devices[1].health_state = "healthy";
  EXPECT_THAT(Next(), ElementsAre("Normal DeviceRecovered"));
}

TEST_F(ReportEventsTest, ADeviceGoesAndComesBack) {
  Next();
  report_.devices[0].health_state = "gone";
  EXPECT_THAT(Next(), ElementsAre("Warning DeviceGone"));
  report_.devices[0].health_state = "healthy";
  EXPECT_THAT(Next(), ElementsAre("Normal DeviceBack"));
}

TEST_F(ReportEventsTest, ADriverThatGoesIsOneEventWhateverManyDevicesItTakesAlong) {
  Next();
  report_.vendors[0] = {.vendor = "nvidia", .reason = "the library is not there"};
  for (auto& device : report_.devices) device.health_state = "gone";
  EXPECT_THAT(Next(), ElementsAre("Warning DriverMissing"));
  EXPECT_THAT(message_, HasSubstr("the library is not there"));
  report_ = ThreeDevices();
  EXPECT_THAT(Next(), ElementsAre("Normal DriverLoaded"));
}

TEST_F(ReportEventsTest, AnotherPluginServesAndGoes) {
  Next();
  report_.allocators[0] = {.name = "kubelet",
                           .state = "stepped-back",
                           .reason = "nvidia-device-plugin (pid 7) serves nvidia.com/gpu"};
  EXPECT_THAT(Next(), ElementsAre("Warning OtherPluginServes"));
  EXPECT_THAT(message_, HasSubstr("pid 7"));
  report_.allocators[0].state = "waiting";
  EXPECT_THAT(Next(), IsEmpty());
  report_ = ThreeDevices();
  EXPECT_THAT(Next(), ElementsAre("Normal KubeletDoorOpen"));
}

TEST_F(ReportEventsTest, AnotherPluginThatIsFoundAfterTheFirstLookIsReported) {
  report_.allocators[0].state = "waiting";
  Next();
  report_.allocators[0].state = "stepped-back";
  EXPECT_THAT(Next(), ElementsAre("Warning OtherPluginServes"));
}

TEST_F(ReportEventsTest, AConfigurationIsAppliedOrRefused) {
  Next();
  report_.configuration.problem = "line 3: unknown key";
  report_.configuration.problem_origin = "ConfigMap x/y, key z";
  EXPECT_THAT(Next(), ElementsAre("Warning ConfigurationRefused"));
  EXPECT_EQ(message_,
            "ConfigMap x/y, key z: line 3: unknown key; the previous configuration stays in force");
  report_.configuration = {.origin = "ConfigMap x/y, key z", .since = "2026-11-21T03:42:00.000Z"};
  EXPECT_THAT(Next(), ElementsAre("Normal ConfigurationApplied"));
  report_.configuration.since = "2026-11-21T03:43:00.000Z";
  EXPECT_THAT(Next(), ElementsAre("Normal ConfigurationApplied")) << "the same key was edited";
  report_.configuration.remarks = {"flags.x: is passed over", "sharing.y: is passed over"};
  EXPECT_THAT(Next(), ElementsAre("Normal ConfigurationAppliedWithRemarks"));
  EXPECT_EQ(message_,
            "ConfigMap x/y, key z is in force; flags.x: is passed over; sharing.y: is passed over");
}

TEST_F(ReportEventsTest, AnAgentRestartedReportsWhatChangedMeanwhile) {
  api::Report before = ThreeDevices();
  before.devices[1].health_state = "unhealthy";
  before.configuration.since = "2026-11-20T00:00:00Z";
  events_.Remember(before);
  report_.devices[2].health_state = "unhealthy";
  EXPECT_THAT(Next(), ElementsAre("Normal DeviceRecovered", "Warning DeviceUnhealthy"));
}

TEST_F(ReportEventsTest, MessagesFitIntoAnEvent) {
  Next();
  report_.devices[0].health_state = "unhealthy";
  report_.devices[0].health_reason = std::string(5000, 'x');
  Next();
  EXPECT_LE(message_.size(), 1024u);
}

TEST_F(ReportEventsTest, ARecoveryReportsHowOftenItWasNone) {
  Next();
  report_.devices[1].health_state = "unhealthy";
  report_.devices[1].health_reason = "XID 79";
  Next();
  report_.devices[1].probation_until = "2026-11-21T04:00:00.000Z";
  report_.devices[1].health_reason = "looks well, and is on probation";
  EXPECT_THAT(Next(), IsEmpty()) << "the device is not healthy yet";
  report_.devices[1].health_state = "healthy";
  report_.devices[1].relapses = 3;
  EXPECT_THAT(Next(), ElementsAre("Normal DeviceRecovered"));
  EXPECT_EQ(message_,
            "NVIDIA A100 1, GPU-1 passed its probation without faults and is healthy again, after "
            "3 relapses");
}

TEST_F(ReportEventsTest, AServerThatStartsIsNoTroubleAndOneThatDiesIsReportedOnce) {
  Next();
  report_.servers = {
      {.set = "nvidia.com/gpu", .kind = "mps", .state = "waiting", .reason = "is being started"}};
  EXPECT_THAT(Next(), IsEmpty());
  report_.servers[0] = {.set = "nvidia.com/gpu", .kind = "mps", .state = "ready", .clients = 2};
  EXPECT_THAT(Next(), ElementsAre("Normal SharingServerReady"));
  report_.servers[0].clients = 3;
  EXPECT_THAT(Next(), IsEmpty());
  for (const char* reason : {"has died", "is being started", "has died again"}) {
    report_.servers[0].state = "waiting";
    report_.servers[0].reason = reason;
    EXPECT_THAT(Next(), std::string(reason) == "has died"
                            ? testing::Matcher<std::vector<std::string>>(
                                  ElementsAre("Warning SharingServerNotReady"))
                            : testing::Matcher<std::vector<std::string>>(IsEmpty()));
  }
  report_.servers[0].state = "ready";
  EXPECT_THAT(Next(), ElementsAre("Normal SharingServerReady"));
  report_.servers[0].state = "ending";
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(ReportEventsTest, AServerThatNeverStartsIsReportedOnce) {
  Next();
  report_.servers = {
      {.set = "nvidia.com/gpu", .kind = "mps", .state = "waiting", .reason = "is being started"}};
  Next();
  report_.servers[0].reason = "there is no nvidia-cuda-mps-control";
  EXPECT_THAT(Next(), ElementsAre("Warning SharingServerNotReady"));
  EXPECT_THAT(message_, HasSubstr("there is no nvidia-cuda-mps-control"));
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(ReportEventsTest, NoticesAreReportedOnceAlsoThoseOfTheFirstLook) {
  const std::vector<node::health::Notice> first = {
      {.number = 0,
       .device = "GPU-9",
       .reason = "DeviceReplaced",
       .message = "GPU at 0000:07:00.0 was replaced: serial 1, now 2"}};
  auto events = events_.Next(report_, first);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0], (NodeEvent{false, "DeviceReplaced", first[0].message}));
  EXPECT_THAT(events_.Next(report_, first), IsEmpty());
  auto more = first;
  more.push_back({.number = 1,
                  .warning = true,
                  .device = "GPU-9",
                  .reason = "DeviceResetFailed",
                  .message = "in use"});
  events = events_.Next(report_, more);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, "DeviceResetFailed");
  EXPECT_TRUE(events[0].warning);
}

TEST_F(ReportEventsTest, AStepOfTheValidationFailsAndPassesAgain) {
  report_.validation = {{.name = "driver", .state = "passed"},
                        {.name = "plugin", .state = "waiting"}};
  EXPECT_THAT(Next(), IsEmpty());
  report_.validation[1].state = "passed";
  EXPECT_THAT(Next(), IsEmpty()) << "it was not failed before";
  report_.validation[0] = {
      .name = "driver", .state = "failed", .reason = "it is gone", .remedy = "load it"};
  report_.validation[1].state = "waiting";
  EXPECT_THAT(Next(), ElementsAre("Warning ValidationFailed"));
  EXPECT_EQ(message_, "the step driver failed: it is gone; load it");
  report_.validation[0].state = "waiting";
  EXPECT_THAT(Next(), IsEmpty());
  report_.validation[0] = {.name = "driver", .state = "passed", .reason = "nvidia 550"};
  report_.validation[1].state = "passed";
  EXPECT_THAT(Next(), ElementsAre("Normal ValidationPassed"));
  EXPECT_EQ(message_, "the step driver passed again: nvidia 550");
}

TEST_F(ReportEventsTest, AStepThatFailedBeforeTheAgentStartedIsReportedWhenItPasses) {
  report_.validation = {{.name = "driver", .state = "failed"}};
  events_.Remember(report_);
  EXPECT_THAT(Next(), IsEmpty());
  report_.validation[0].state = "passed";
  EXPECT_THAT(Next(), ElementsAre("Normal ValidationPassed"));
}

}  // namespace
}  // namespace penstock::view
