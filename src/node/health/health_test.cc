#include "node/health/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::health {
namespace {

using device::Evidence;
using device::HealthState;
using device::Severity;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// Judges the code as the severity's number.
class NumberDialect final : public device::Dialect {
 public:
  std::string_view vendor() const override { return "acme"; }
  std::string_view resource() const override { return "acme.com/gpu"; }
  device::Edits ForContainer(std::span<const device::Facts* const>, const device::Driver&) const override { return {}; }
  device::Edits ForProcess(std::span<const device::Facts* const>, const device::Driver&) const override { return {}; }
  device::Verdict Judge(const Evidence& evidence) const override { return {static_cast<Severity>(evidence.code), "code " + std::to_string(evidence.code)}; }
  std::vector<std::string> DriverPaths(const device::Paths&) const override { return {}; }
  std::optional<Evidence> FromKernelLog(std::string_view) const override { return std::nullopt; }
};

class MonitorTest : public ::testing::Test {
 protected:
  MonitorTest() {
    device::Facts facts;
    facts.id = "A";
    facts.vendor = "acme";
    facts.pci = device::PciAddress{0, 7, 0, 0};
    inventory_.SetFacts("acme", {facts}, "", executor_.clock().Wall());
    monitor_.OnReading("A", Good());
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
    evidence.device = "A";
    evidence.kind = "code";
    evidence.code = static_cast<int>(severity);
    return evidence;
  }
  device::Health Now() { return inventory_.published().Get()->Find("A")->health; }

  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  NumberDialect dialect_;
  Monitor monitor_{executor_, inventory_, [this](std::string_view) { return &dialect_; }, {.probation = 10s}};
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
  monitor_.OnReading("A", Good());
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_THAT(Now().reason, HasSubstr("on probation"));
  executor_.Advance(9s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  executor_.Advance(1s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, ProbationBeginsAnewWithNewTrouble) {
  monitor_.OnEvidence(Event(Severity::kReset));
  monitor_.OnReading("A", Good());
  executor_.Advance(9s);
  monitor_.OnEvidence(Event(Severity::kGone));
  monitor_.OnReading("A", Good());
  executor_.Advance(9s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  executor_.Advance(1s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, WithAnOldDriverOnlyAnAbsenceOrAReloadEndsWhatHappened) {
  monitor_.OnEvidence(Event(Severity::kReset));
  monitor_.OnReading("A", Good(false));
  executor_.Advance(60s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  monitor_.OnReading("A", Silent());
  monitor_.OnReading("A", Good(false));
  executor_.Advance(10s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, StandingEvidenceHoldsAsLongAsItStands) {
  device::Reading bad = Good();
  bad.evidence.push_back(Event(Severity::kGone));
  monitor_.OnReading("A", bad);
  executor_.Advance(60s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  monitor_.OnReading("A", Good());
  executor_.Advance(10s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, ADeviceWhoseCallHangsIsUnknown) {
  device::Reading hung = Silent();
  hung.evidence.push_back({.device = "A", .kind = "hang", .text = "a driver call about it hangs", .standing = true});
  monitor_.OnReading("A", hung);
  EXPECT_EQ(Now().state, HealthState::kUnknown);
  EXPECT_EQ(Now().reason, "a driver call about it hangs");
}

TEST_F(MonitorTest, FindsTheDeviceByTheKernelLogsAddressWithoutFunction) {
  Evidence evidence = Event(Severity::kGone);
  evidence.device.clear();
  evidence.pci = device::ParsePciAddress("0000:07:00");
  EXPECT_EQ(monitor_.OnEvidence(evidence), "A");
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  evidence.pci = device::ParsePciAddress("0000:08:00");
  EXPECT_EQ(monitor_.OnEvidence(evidence), "");
}

}  // namespace
}  // namespace penstock::node::health
