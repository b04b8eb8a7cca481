#include "node/health/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"

namespace penstock::node::health {
namespace {

using device::Evidence;
using device::HealthState;
using device::Severity;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class MonitorTest : public ::testing::Test {
 protected:
  MonitorTest() {
    inventory_.SetFacts("acme", {device::testing::AcmeDevice(0, 1)}, "", executor_.clock().Wall());
    monitor_.OnReading("G0", Good());
  }
  static device::Reading Good(bool tells = true) {
    device::Reading reading;
    reading.tells_recovery = tells;
    return reading;
  }
  static device::Reading Silent() {
    device::Reading reading;
    reading.reachable = false;
    return reading;
  }
  static Evidence Event(Severity severity) {
    Evidence evidence;
    evidence.device = "G0";
    evidence.kind = "code";
    evidence.code = static_cast<int>(severity);
    return evidence;
  }
  device::Health Now() { return inventory_.published().Get()->Find("G0")->health; }

  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  Monitor monitor_{executor_, inventory_, device::testing::FindAcme, {.probation = 10s}};
};

TEST_F(MonitorTest, ADeviceThatAnswersIsHealthyAtOnce) { EXPECT_EQ(Now().state, HealthState::kHealthy); }

TEST_F(MonitorTest, WarningsAreCountedAndChangeNothing) {
  monitor_.OnEvidence(Event(Severity::kWarn));
  EXPECT_EQ(Now().state, HealthState::kHealthy);
  ASSERT_EQ(monitor_.Counts().size(), 1u);
  EXPECT_EQ(monitor_.Counts()[0].count, 1u);
}

TEST_F(MonitorTest, OneEventToldTwiceIsCountedOnce) {
  monitor_.OnEvidence(Event(Severity::kWarn));
  executor_.Advance(1s);
  monitor_.OnEvidence(Event(Severity::kWarn));
  EXPECT_EQ(monitor_.Counts()[0].count, 1u);
  executor_.Advance(3s);
  monitor_.OnEvidence(Event(Severity::kWarn));
  EXPECT_EQ(monitor_.Counts()[0].count, 2u);
}

TEST_F(MonitorTest, AnEventTakesADeviceOutUntilTheDriverSaysWellForTheProbation) {
  monitor_.OnEvidence(Event(Severity::kReset));
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_EQ(Now().reason, "code 3");
  monitor_.OnReading("G0", Good());
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_THAT(Now().reason, HasSubstr("on probation"));
  executor_.Advance(9s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  executor_.Advance(1s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, ProbationBeginsAnewWithNewTrouble) {
  monitor_.OnEvidence(Event(Severity::kReset));
  monitor_.OnReading("G0", Good());
  executor_.Advance(9s);
  monitor_.OnEvidence(Event(Severity::kGone));
  monitor_.OnReading("G0", Good());
  executor_.Advance(9s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  executor_.Advance(1s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, AShorterProbationCountsForThoseThatAreOnIt) {
  monitor_.OnEvidence(Event(Severity::kReset));
  monitor_.OnReading("G0", Good());
  executor_.Advance(2s);
  monitor_.SetProbation(1s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, WithAnOldDriverOnlyAnAbsenceOrAReloadEndsWhatHappened) {
  monitor_.OnEvidence(Event(Severity::kReset));
  monitor_.OnReading("G0", Good(false));
  executor_.Advance(60s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  monitor_.OnReading("G0", Silent());
  monitor_.OnReading("G0", Good(false));
  executor_.Advance(10s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, WhatSilencesADeviceIsOverOnceItAnswers) {
  Evidence lost = Event(Severity::kGone);
  lost.kind = "silencing";
  monitor_.OnEvidence(lost);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  monitor_.OnReading("G0", Good(false));  // it came and went between two looks
  executor_.Advance(10s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, StandingEvidenceHoldsAsLongAsItStands) {
  device::Reading bad = Good();
  bad.evidence.push_back(Event(Severity::kGone));
  monitor_.OnReading("G0", bad);
  executor_.Advance(60s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  monitor_.OnReading("G0", Good());
  executor_.Advance(10s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, ADeviceWhoseCallHangsIsUnknown) {
  device::Reading hung = Silent();
  hung.evidence.push_back({.device = "G0", .kind = "hang", .text = "a driver call about it hangs", .standing = true});
  monitor_.OnReading("G0", hung);
  EXPECT_EQ(Now().state, HealthState::kUnknown);
  EXPECT_EQ(Now().reason, "a driver call about it hangs");
}

TEST_F(MonitorTest, FindsTheDeviceByTheKernelLogsAddressWithoutFunction) {
  Evidence evidence = Event(Severity::kGone);
  evidence.device.clear();
  evidence.pci = device::ParsePciAddress("0000:07:00");
  EXPECT_EQ(monitor_.OnEvidence(evidence), "G0");
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  evidence.pci = device::ParsePciAddress("0000:08:00");
  EXPECT_EQ(monitor_.OnEvidence(evidence), "");
}

}  // namespace
}  // namespace penstock::node::health
