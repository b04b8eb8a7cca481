#include "node/health/monitor.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/inventory/testing/acme_inventory.h"

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
    Appear();
    monitor_.OnReading("G0", Good());
  }
  static device::Reading Good(bool reports = true) {
    device::Reading reading;
    reading.reports_recovery = reports;
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
  /// An answer with this evidence.
  static device::Reading Bad(Severity severity) {
    device::Reading reading = Good();
    reading.evidence = {Event(severity)};
    return reading;
  }
  static device::Reading Hung() {
    return SilentWith({.kind = "hang", .text = "a driver call about it hangs"});
  }
  static device::Reading SilentWith(Evidence evidence) {
    device::Reading reading = Silent();
    evidence.device = "G0";
    evidence.standing = true;
    reading.evidence = {evidence};
    return reading;
  }
  device::Health Now() { return inventory_.published().Get()->Find("G0")->health; }
  HealthState StateAfter(base::Duration time) {
    executor_.Advance(time);
    return Now().state;
  }
  void Appear() {
    inventory_.SetFacts("acme", {device::testing::AcmeDevice(0, 1)}, "", executor_.clock().Wall());
  }
  void Disappear() { inventory_.SetFacts("acme", {}, "away", executor_.clock().Wall()); }

  /// A fault, after which the device answers.
  void Fail(const device::Reading& then, Severity severity = Severity::kReset) {
    monitor_.OnEvidence(Event(severity));
    monitor_.OnReading("G0", then);
  }
  /// Lets a fault appear and end; returns the time until the device is healthy again.
  base::Duration Cure(Severity severity = Severity::kReset) {
    Fail(Good(), severity);
    base::Duration passed{};
    for (; Now().state != HealthState::kHealthy && passed < 1h; passed += 1s) executor_.Advance(1s);
    return passed;
  }
  void Configure(std::vector<api::HealthRule> policy, base::Duration probation = 10s) {
    api::HealthConfig config;
    config.probation = probation;
    config.policy = std::move(policy);
    monitor_.Configure(config);
  }

  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  bool in_use_ = false;
  Monitor monitor_{executor_,
                   inventory_,
                   device::testing::FindAcme,
                   {.probation = 10s, .in_use = [this](const std::string&) { return in_use_; }}};
  int reported_ = 0;  // snapshots in which the device's health changed
  device::Health last_reported_;
  base::Subscription on_inventory_ = inventory_.published().Subscribe([this](const auto& snapshot) {
    const inventory::Entry* entry = snapshot->Find("G0");
    if (entry == nullptr || entry->health == last_reported_) return;
    last_reported_ = entry->health;
    ++reported_;
  });
};

TEST_F(MonitorTest, ADeviceThatAnswersIsHealthyAtOnce) {
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, WarningsAreCountedAndChangeNothing) {
  monitor_.OnEvidence(Event(Severity::kWarn));
  EXPECT_EQ(Now().state, HealthState::kHealthy);
  ASSERT_EQ(monitor_.Counts().size(), 1u);
  EXPECT_EQ(monitor_.Counts()[0].count, 1u);
}

TEST_F(MonitorTest, WhatSpeaksAgainstADeviceNowIsNamed) {
  const auto concerns = [this] { return monitor_.statuses().at("G0").concerns; };
  EXPECT_TRUE(concerns().empty());
  monitor_.OnEvidence(Event(Severity::kWarn));
  EXPECT_TRUE(concerns().empty()) << "the fault is over immediately";
  EXPECT_EQ(monitor_.statuses().at("G0").warning, "");
  device::Reading reading = Good(false);
  reading.evidence = {Event(Severity::kWarn), Event(Severity::kIgnore)};
  for (Evidence& evidence : reading.evidence) evidence.standing = true;
  int changes = 0;
  monitor_.OnChange([&changes] { ++changes; });
  const std::uint64_t before = monitor_.generation();
  monitor_.OnReading("G0", reading);
  monitor_.OnReading("G0", reading);
  monitor_.OnChange(nullptr);
  EXPECT_EQ(changes, 1) << "the report shows a warning at once";
  EXPECT_EQ(monitor_.generation(), before + 1) << "and so does the cluster";
  monitor_.Note(false, "ServiceStopped", "a service was stopped");
  EXPECT_EQ(monitor_.generation(), before + 2);
  const Concern standing{"code", static_cast<int>(Severity::kWarn), Severity::kWarn};
  EXPECT_EQ(concerns(), std::vector{standing});
  EXPECT_NE(monitor_.statuses().at("G0").warning, "") << "as long as readings repeat it";
  EXPECT_EQ(Now().state, HealthState::kHealthy);
  monitor_.OnEvidence(Event(Severity::kReset));
  monitor_.OnReading("G0", reading);
  EXPECT_EQ(concerns(),
            (std::vector{Concern{"code", static_cast<int>(Severity::kReset), Severity::kReset},
                         standing}));
  reading = Good();
  reading.evidence = {Event(Severity::kReset)};
  reading.evidence[0].kind = "action";
  reading.evidence[0].standing = true;
  monitor_.OnReading("G0", reading);
  EXPECT_THAT(concerns(), ::testing::SizeIs(2))
      << "the driver reports that action is needed, and this is the event";
  monitor_.OnReading("G0", Good());
  EXPECT_TRUE(concerns().empty()) << "the driver reports that no action is needed";
}

TEST_F(MonitorTest, OneEventReportedByTwoSourcesIsCountedOnce) {
  Evidence event = Event(Severity::kWarn);
  event.source = device::EvidenceSource::kKernelLog;
  monitor_.OnEvidence(event);
  executor_.Advance(1s);
  event.source = device::EvidenceSource::kEvent;
  monitor_.OnEvidence(event);
  EXPECT_EQ(monitor_.Counts()[0].count, 1u);
  executor_.Advance(3s);
  monitor_.OnEvidence(event);
  EXPECT_EQ(monitor_.Counts()[0].count, 2u);
}

TEST_F(MonitorTest, AnEventTakesADeviceOutUntilTheDriverSaysWellForTheProbation) {
  monitor_.OnEvidence(Event(Severity::kReset));
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_EQ(Now().reason, "code 3");
  EXPECT_FALSE(monitor_.statuses().at("G0").probation_until);
  monitor_.OnReading("G0", Good());
  EXPECT_EQ(monitor_.statuses().at("G0").probation_until, executor_.clock().Wall() + 10s);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_THAT(Now().reason, HasSubstr("on probation"));
  EXPECT_EQ(StateAfter(9s), HealthState::kUnhealthy);
  EXPECT_EQ(StateAfter(1s), HealthState::kHealthy);
}

TEST_F(MonitorTest, ProbationBeginsAgainWithNewTrouble) {
  Fail(Good());
  executor_.Advance(9s);
  Fail(Good(), Severity::kGone);
  EXPECT_EQ(StateAfter(9s), HealthState::kUnhealthy);
  EXPECT_EQ(StateAfter(1s), HealthState::kHealthy);
}

TEST_F(MonitorTest, AShorterProbationCountsForThoseThatAreOnIt) {
  Fail(Good());
  executor_.Advance(2s);
  Configure({}, 1s);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, WithAnOldDriverSilenceProvesNoReset) {
  Fail(Good(false));
  for (const device::Reading& silent : {Silent(), Hung()}) {
    monitor_.OnReading("G0", silent);
    monitor_.OnDriverOpened("acme", {"1.0", ""});  // the agent's worker was restarted
    monitor_.OnReading("G0", Good(false));
    EXPECT_EQ(StateAfter(60s), HealthState::kUnhealthy);
  }
}

TEST_F(MonitorTest, WithAnOldDriverADeviceThatLeftTheListAndIsBackWasReset) {
  Fail(Good(false));
  Disappear();
  Appear();
  monitor_.OnReading("G0", Good(false));
  EXPECT_EQ(StateAfter(10s), HealthState::kHealthy);
}

TEST_F(MonitorTest, WithAnOldDriverAnotherLoadingOfItEndsWhatHappenedAndAnotherOpeningDoesNot) {
  const auto reopen = [this](const std::string& instance) {
    inventory_.SetVendor({"acme", nullptr, "unloaded"});
    Disappear();
    inventory_.SetVendor(inventory::AcmeVendor());
    Appear();
    monitor_.OnDriverOpened("acme", {"1.0", instance});
    monitor_.OnReading("G0", Good(false));
    executor_.Advance(10s);
  };
  monitor_.OnDriverOpened("acme", {"1.0", "77"});
  Fail(Good(false));
  reopen("77");  // only its library was unavailable
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  reopen("78");
  EXPECT_EQ(Now().state, HealthState::kHealthy);
}

TEST_F(MonitorTest, WithAnOldDriverCountersThatFellAndStayFallenProveAReset) {
  const auto read = [this](std::int64_t energy) {
    device::Reading reading = Good(false);
    reading.evidence.push_back(
        {.device = "G0", .kind = "reset-counter.energy", .code = energy, .standing = true});
    // Acme's codes are severities; this one is not.
    reading.evidence.back().code = energy;
    monitor_.OnReading("G0", reading);
  };
  Configure({{"reset-counter.energy", {}, "ignore"}});
  read(5000);
  monitor_.OnEvidence(Event(Severity::kReset));
  for (const std::int64_t nonsense : {0, 10, 5100, 0, 5200, 1}) read(nonsense);
  EXPECT_EQ(StateAfter(60s), HealthState::kUnhealthy) << "not three consecutive readings";
  for (const std::int64_t after : {20, 30, 40}) read(after);
  EXPECT_EQ(StateAfter(10s), HealthState::kHealthy);
  monitor_.OnEvidence(Event(Severity::kReset));
  for (const std::int64_t later : {50, 60, 70}) read(later);
  EXPECT_EQ(StateAfter(60s), HealthState::kUnhealthy) << "that reset happened before";
}

TEST_F(MonitorTest, ADriverThatDoesNotAnswerBlamesNoDevice) {
  const device::Reading silent =
      SilentWith({.kind = "driver-silent", .text = "8 workers hang in the driver"});
  monitor_.OnReading("G0", silent);
  EXPECT_EQ(Now().state, HealthState::kUnknown);
  EXPECT_EQ(Now().reason, "8 workers hang in the driver");
  monitor_.OnReading("G0", Good());
  EXPECT_EQ(Now().state, HealthState::kHealthy) << "without a probation";
  // During a probation it starts over: there were no readings in between.
  Fail(Good());
  executor_.Advance(5s);
  monitor_.OnReading("G0", silent);
  EXPECT_EQ(StateAfter(60s), HealthState::kUnknown);
  monitor_.OnReading("G0", Good());
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_EQ(StateAfter(10s), HealthState::kHealthy);
}

TEST_F(MonitorTest, OneEventReportedTwiceIsAsBadAsTheWorseOfTheTwoWords) {
  for (const bool worse_first : {false, true}) {
    const Severity severities[] = {worse_first ? Severity::kReset : Severity::kWarn,
                                   worse_first ? Severity::kWarn : Severity::kReset};
    Evidence event = Event(Severity::kWarn);
    event.kind = worse_first ? "one" : "another";
    event.code = 145;
    Configure({{event.kind, {145}, std::string(ToString(severities[0]))}});
    event.source = device::EvidenceSource::kEvent;
    monitor_.OnEvidence(event);
    Configure({{event.kind, {145}, std::string(ToString(severities[1]))}});
    EXPECT_TRUE(worse_first || Now().state == HealthState::kHealthy);
    event.source = device::EvidenceSource::kKernelLog;
    monitor_.OnEvidence(event);
    EXPECT_TRUE(worse_first || Now().state == HealthState::kUnhealthy);
    const auto counts = monitor_.Counts();
    const auto count = std::find_if(counts.begin(), counts.end(), [&](const EvidenceCount& one) {
      return one.kind == event.kind;
    });
    ASSERT_NE(count, counts.end());
    EXPECT_EQ(count->count, 1u);
    EXPECT_EQ(count->severity, Severity::kReset);
  }
}

TEST_F(MonitorTest,
       WhatHappenedBeforeAnyoneListenedIsJudgedWithTheNextLookAndByTheDriverWhereItCanReport) {
  monitor_.OnEvidence(Event(Severity::kReset), 1h);
  EXPECT_EQ(Now().state, HealthState::kHealthy) << "not before the device was read";
  monitor_.OnReading("G0", Good(true));
  EXPECT_EQ(Now().state, HealthState::kHealthy) << "the driver reports recovery";
  EXPECT_TRUE(monitor_.Remember().devices.empty());
  monitor_.OnEvidence(Event(Severity::kReset), 1h);
  monitor_.OnReading("G0", Good(false));
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_EQ(monitor_.Counts()[0].count, 2u);
  EXPECT_TRUE(monitor_.CountsWithin(2h).empty()) << "it was not reported then";
}

TEST_F(MonitorTest, WhatSilencesADeviceIsOverOnceItAnswers) {
  Evidence lost = Event(Severity::kGone);
  lost.kind = "silencing";
  monitor_.OnEvidence(lost);
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  monitor_.OnReading("G0", Good(false));  // it disappeared and returned between two readings
  EXPECT_EQ(StateAfter(10s), HealthState::kHealthy);
}

TEST_F(MonitorTest, StandingEvidenceHoldsAsLongAsItStands) {
  monitor_.OnReading("G0", Bad(Severity::kGone));
  EXPECT_EQ(StateAfter(60s), HealthState::kUnhealthy);
  monitor_.OnReading("G0", Good());
  EXPECT_EQ(StateAfter(10s), HealthState::kHealthy);
}

TEST_F(MonitorTest, ADeviceWhoseCallHangsIsUnknown) {
  monitor_.OnReading("G0", Hung());
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

TEST_F(MonitorTest, Issue111ATransientXidDoesNotMarkAGpuIndefinitely) {
  EXPECT_EQ(Cure(), 10s);
  EXPECT_EQ(Now().reason, "");
}

TEST_F(MonitorTest, ADrainLastsUntilTheWorkHasEndedAlsoWhereTheDriverSaysNothing) {
  for (const bool reports : {true, false}) {
    in_use_ = true;
    Fail(Good(reports), Severity::kDrain);
    EXPECT_EQ(StateAfter(60s), HealthState::kUnhealthy);
    EXPECT_THAT(Now().reason, HasSubstr("no new work until its running work has ended"));
    in_use_ = false;
    monitor_.OnReading("G0", Good(reports));
    const base::Duration probation = reports ? 10s : 20s;  // the second one is a relapse
    EXPECT_EQ(StateAfter(probation), HealthState::kHealthy);
  }
}

TEST_F(MonitorTest, AnOldDriversUsersAreReportedWhatEndsIt) {
  Fail(Good(false));
  EXPECT_EQ(
      Now().reason,
      "code 3; the driver does not report its recovery: reset the device or reload the driver");
}

TEST_F(MonitorTest, AMilderEventDoesNotBecomeTheReason) {
  const device::Reading lost = SilentWith({.kind = "lost", .code = 4});
  monitor_.OnReading("G0", lost);
  EXPECT_EQ(Now().reason, "code 4");
  monitor_.OnEvidence(Event(Severity::kReset));  // milder: it explains less
  monitor_.OnReading("G0", lost);
  EXPECT_EQ(Now().reason, "code 4");
}

/// The event "code 79" and what readings then show, "code 15", which is as severe.
class CauseTest : public MonitorTest {
 protected:
  CauseTest() {
    Configure(alike_);
    event_.kind = "silencing";
    event_.code = 79;
  }
  void Read(const device::Reading& reading) {
    monitor_.OnReading("G0", reading);
    executor_.Advance(500ms);
  }
  const std::vector<api::HealthRule> alike_{{"silencing", {79}, "gone"}, {"lost", {15}, "gone"}};
  Evidence event_ = Event(Severity::kGone);
  const device::Reading lost_ = SilentWith({.kind = "lost", .code = 15});
};

TEST_F(CauseTest, AnEventIsTheReasonThatItsConsequenceWasBefore) {
  Read(lost_);
  EXPECT_EQ(Now().reason, "code 15");
  monitor_.OnEvidence(event_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Now().reason, HasSubstr("code 79"));
    Read(lost_);
  }
}

TEST_F(CauseTest, AnEventStaysTheReasonWhenItsConsequenceIsSeen) {
  monitor_.OnEvidence(event_);
  Read(lost_);
  EXPECT_THAT(Now().reason, HasSubstr("code 79"));
  executor_.Advance(1s);
  monitor_.OnEvidence(Event(Severity::kGone));  // as severe, and later
  Read(lost_);
  EXPECT_THAT(Now().reason, HasSubstr("code 79"));
  Read(Good());
  EXPECT_THAT(Now().reason, HasSubstr("code 79; recovered"));
  Read(lost_);
  EXPECT_THAT(Now().reason, HasSubstr("code 79")) << "it was not healthy in between";
}

TEST_F(CauseTest, AMoreSevereFaultReplacesAnEventAndItsConsequence) {
  for (const bool consequence_first : {true, false}) {
    Configure({{"silencing", {79}, "reset"}, {"lost", {15}, "reset"}}, 0s);
    if (consequence_first) Read(lost_);
    monitor_.OnEvidence(event_);
    Read(lost_);
    EXPECT_THAT(Now().reason, HasSubstr("code 79"));
    Fail(lost_, Severity::kGone);
    EXPECT_THAT(Now().reason, HasSubstr("code 4;"));
    Read(Good());
    ASSERT_EQ(Now().state, HealthState::kHealthy);
  }
}

/// The device answered when this reading was taken, and the event was reported before it.
TEST_F(CauseTest, AReadingThatBeganBeforeAnEventEndsNothing) {
  for (const base::Duration probation : {0s, 10s}) {
    Configure(alike_, probation);
    executor_.Advance(1s);
    monitor_.OnEvidence(event_);
    executor_.Advance(5ms);
    monitor_.OnReading("G0", Good(), 6ms);
    EXPECT_FALSE(monitor_.HasReading("G0"));
    EXPECT_EQ(Now().state, HealthState::kUnhealthy);
    EXPECT_EQ(Now().reason, "code 79");
    Read(lost_);
    EXPECT_THAT(Now().reason, HasSubstr("code 79; the driver does not report its recovery"));
    monitor_.OnReading("G0", Good(), 6ms);
    EXPECT_EQ(StateAfter(2 * probation), HealthState::kHealthy) << "the second one is a relapse";
  }
}

TEST_F(CauseTest, AStormOfOneEventOutdatesNoReadings) {
  monitor_.OnEvidence(event_);
  for (int i = 0; i < 100; ++i) {
    executor_.Advance(20ms);
    monitor_.OnEvidence(event_);
    monitor_.OnReading("G0", lost_, 10ms);
    EXPECT_TRUE(monitor_.HasReading("G0"));
  }
}

TEST_F(MonitorTest, WhatALookShowedIsNoReasonOnceItIsOver) {
  monitor_.OnEvidence(Event(Severity::kReset));
  const device::Reading lost = SilentWith({.kind = "lost", .code = 4});
  monitor_.OnReading("G0", lost);
  EXPECT_EQ(Now().reason, "code 4");
  monitor_.OnReading("G0", Good(false));
  EXPECT_THAT(Now().reason, HasSubstr("code 3; the driver does not report its recovery"));
}

TEST_F(MonitorTest, EachRelapseDoublesTheProbationAndAQuietTimeForgets) {
  EXPECT_EQ(Cure(), 10s);
  EXPECT_EQ(Cure(), 20s);
  EXPECT_EQ(Cure(), 40s);
  EXPECT_EQ(monitor_.statuses().at("G0").relapses, 2);
  executor_.Advance(61min);
  EXPECT_EQ(monitor_.statuses().at("G0").relapses, 0);
  EXPECT_EQ(Cure(), 10s);
}

TEST_F(MonitorTest, AGpuThatFlapsEverySecondIsReportedOfAFewTimesAndStaysUnhealthy) {
  reported_ = 0;
  const device::Reading bad = Bad(Severity::kReset);
  for (int i = 0; i < 600; ++i) {
    monitor_.OnReading("G0", bad);
    EXPECT_EQ(StateAfter(500ms), HealthState::kUnhealthy);
    monitor_.OnReading("G0", Good());
    EXPECT_EQ(StateAfter(500ms), HealthState::kUnhealthy);
  }
  EXPECT_LE(reported_, 12);
  EXPECT_THAT(Now().reason,
              HasSubstr("code 3; it fails and recovers repeatedly (300 or more times)"));
  ASSERT_EQ(monitor_.Transitions().size(), 1u);
  EXPECT_EQ(monitor_.Transitions()[0].count, 1u);
  EXPECT_FALSE(monitor_.statuses().at("G0").probation_until);
  EXPECT_EQ(StateAfter(10s), HealthState::kHealthy) << "the device is not withheld indefinitely";
}

TEST_F(MonitorTest, ASlowFlapIsDampedByTheProbation) {
  reported_ = 0;
  const device::Reading bad = Bad(Severity::kReset);
  for (int i = 0; i < 24 * 60; ++i) {  // for a day, healthy for 50 s of each minute
    monitor_.OnReading("G0", bad);
    executor_.Advance(10s);
    monitor_.OnReading("G0", Good());
    executor_.Advance(50s);
  }
  EXPECT_LE(reported_, 40);
}

TEST_F(MonitorTest, AGpuThatKeepsLeavingTheBusIsNotBelievedAtOnce) {
  const auto leave = [this](bool with_its_driver) {
    if (with_its_driver) inventory_.SetVendor({"acme", nullptr, "unloaded"});
    Disappear();
    executor_.Advance(500ms);
    inventory_.SetVendor(inventory::AcmeVendor());
    Appear();
    monitor_.OnReading("G0", Good());
    executor_.Advance(500ms);
  };
  for (int i = 0; i < 10; ++i) {
    leave(true);
    EXPECT_EQ(Now().state, HealthState::kHealthy)
        << "a reloaded driver is not a fault of the device";
  }
  leave(false);
  leave(false);
  EXPECT_EQ(Now().state, HealthState::kHealthy);
  for (int i = 0; i < 100; ++i) {
    leave(false);
    EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  }
  EXPECT_THAT(
      Now().reason,
      HasSubstr("it disappeared 3 or more times within an hour; it fails and recovers repeatedly"));
  EXPECT_EQ(StateAfter(10s), HealthState::kHealthy);
}

TEST_F(MonitorTest, APolicyOverridesTheVendorsWordAndTheLastRuleCounts) {
  Configure({{"code", {1}, "drain"},
             {"code", {3}, "warn"},
             {"code", {3, 4}, "default"},
             {"code", {4}, "ignore"}});
  monitor_.OnEvidence(Event(Severity::kGone));
  EXPECT_EQ(Now().state, HealthState::kHealthy);
  monitor_.OnEvidence(Event(Severity::kWarn));
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_EQ(Now().reason, "code 1");
  monitor_.OnReading("G0", Good());
  executor_.Advance(10s);
  monitor_.OnEvidence(Event(Severity::kReset));
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
}

TEST_F(MonitorTest, WhatIsIgnoredFromNowOnHoldsNoDeviceBackAnyMore) {
  Fail(Good(false), Severity::kGone);
  EXPECT_EQ(StateAfter(60s), HealthState::kUnhealthy);
  Configure({{"code", {}, "ignore"}});
  EXPECT_EQ(Now().state, HealthState::kHealthy) << "at once, without a probation";
  Configure({});
  EXPECT_EQ(Now().state, HealthState::kHealthy) << "an ignored error does not count later";
  EXPECT_EQ(monitor_.statuses().at("G0").relapses, 0);
}

TEST_F(MonitorTest, AnotherErrorStillHoldsADeviceBackWhenOneIsIgnored) {
  monitor_.OnEvidence(Event(Severity::kGone));
  Fail(Good(false));
  Configure({{"code", {4}, "ignore"}});
  EXPECT_EQ(Now().state, HealthState::kUnhealthy);
  EXPECT_THAT(Now().reason, HasSubstr("code 3"));
}

TEST_F(MonitorTest, ACallThatHangsIsNoOnesToIgnore) {
  Configure({{"hang", {}, "ignore"}});
  monitor_.OnReading("G0", Hung());
  EXPECT_EQ(Now().state, HealthState::kUnknown);
}

TEST_F(MonitorTest, WhatWasHeardWithinAWindowIsCountedByItself) {
  Evidence event = Event(Severity::kWarn);
  event.kind = "xid";
  event.code = 13;
  monitor_.OnEvidence(event);
  executor_.Advance(10s);
  monitor_.OnEvidence(event);
  event.code = 31;
  monitor_.OnEvidence(event);
  executor_.Advance(1s);
  ASSERT_EQ(monitor_.CountsWithin(5s).size(), 2u);
  EXPECT_EQ(monitor_.CountsWithin(5s)[0].count, 1u);
  EXPECT_EQ(monitor_.CountsWithin(1min)[0].count, 2u);
  EXPECT_EQ(monitor_.Counts()[0].last, executor_.clock().Wall() - 1s);
  executor_.Advance(1h);
  EXPECT_TRUE(monitor_.CountsWithin(5s).empty());
}

TEST_F(MonitorTest, AStormOfOneErrorIsCountedExactlyAndReportedOnce) {
  reported_ = 0;
  for (int i = 0; i < 10'000; ++i) {
    Evidence event = Event(Severity::kReset);
    event.source = device::EvidenceSource::kKernelLog;
    monitor_.OnEvidence(event);
    event.source = device::EvidenceSource::kEvent;  // the same events
    monitor_.OnEvidence(event);
  }
  EXPECT_EQ(monitor_.Counts()[0].count, 10'000u);
  EXPECT_EQ(reported_, 1);
}

TEST_F(MonitorTest, AStormOfManyErrorsIsCountedExactlyInBoundedMemory) {
  reported_ = 0;
  Configure({{"xid", {}, "reset"}});
  for (int i = 0; i < 10'000; ++i) {
    Evidence event = Event(Severity::kReset);
    event.kind = "xid";
    event.code = 1'000 + i;
    monitor_.OnEvidence(event);
  }
  std::uint64_t sum = 0;
  for (const EvidenceCount& count : monitor_.Counts()) sum += count.count;
  EXPECT_EQ(sum, 10'000u);
  EXPECT_LE(monitor_.Counts().size(), 257u);
  EXPECT_LE(monitor_.Remember().devices.at("G0").faults.size(), 33u);
  EXPECT_EQ(reported_, 1) << "the first reason stays";
}

TEST_F(MonitorTest, Issue519TransitionsAndTheirReasonsAreThereForMetricsAndEvents) {
  EXPECT_TRUE(monitor_.Transitions().empty()) << "the first reading is not a transition";
  Cure();
  ASSERT_EQ(monitor_.Transitions().size(), 2u);
  EXPECT_EQ(monitor_.Transitions()[0].to, HealthState::kHealthy);
  EXPECT_EQ(monitor_.Transitions()[1].to, HealthState::kUnhealthy);
  EXPECT_EQ(monitor_.Transitions()[1].count, 1u);
  const HealthStatus status = monitor_.statuses().at("G0");
  EXPECT_THAT(status.changed_because, HasSubstr("code 3"));
  EXPECT_EQ(status.changed, Now().since);
}

TEST_F(MonitorTest, AReplacedGpuIsReported) {
  device::Facts other = device::testing::AcmeDevice(0, 1);
  other.id = "G9";
  inventory_.SetFacts("acme", {}, "was unplugged", executor_.clock().Wall());
  inventory_.SetFacts("acme", {other}, "", executor_.clock().Wall());
  ASSERT_EQ(monitor_.Notices().size(), 1u);
  EXPECT_EQ(monitor_.Notices()[0].reason, "DeviceReplaced");
  EXPECT_EQ(monitor_.Notices()[0].device, "G9");
  EXPECT_EQ(monitor_.Notices()[0].message, "GPU at 0000:07:00.0 was replaced: G0, now G9");
}

TEST_F(MonitorTest, AResetEndsWhatHappenedAndIsFollowedByAProbation) {
  monitor_.OnEvidence(Event(Severity::kReset));
  EXPECT_FALSE(monitor_.NeedsReset("G0")) << "not before it was read";
  monitor_.OnReading("G0", Good(false));
  EXPECT_TRUE(monitor_.NeedsReset("G0"));
  monitor_.BeginReset({{"G0", "is being reset"}});
  monitor_.OnReading("G0", Good(false));
  EXPECT_EQ(Now().reason, "is being reset");
  EXPECT_TRUE(monitor_.statuses().at("G0").resetting);
  monitor_.EndReset({"G0"}, {});
  monitor_.OnReading("G0", Good(false));
  EXPECT_THAT(Now().reason, HasSubstr("on probation"));
  EXPECT_EQ(StateAfter(10s), HealthState::kHealthy);
  EXPECT_EQ(monitor_.ResetsOf("G0").size(), 1u);
  ASSERT_EQ(monitor_.Resets().size(), 1u);
  EXPECT_EQ(monitor_.Resets()[0].result, "done");
  EXPECT_EQ(monitor_.Notices().back().reason, "DeviceReset");
  executor_.Advance(25h);
  EXPECT_TRUE(monitor_.ResetsOf("G0").empty());
}

TEST_F(MonitorTest, NeitherADrainNorAGoneDeviceNorAHangAsksForAReset) {
  in_use_ = true;
  Fail(Good(false), Severity::kDrain);
  EXPECT_FALSE(monitor_.NeedsReset("G0"));
  monitor_.OnEvidence(Event(Severity::kReset));
  Fail(Good(false), Severity::kGone);
  EXPECT_FALSE(monitor_.NeedsReset("G0"));
  monitor_.OnReading("G0", Hung());
  EXPECT_FALSE(monitor_.NeedsReset("G0"));
}

/// A second agent that starts where the first one ended, on the same machine.
/// G0 is divided into "1", which the part "1/0" fills, and "2", with the parts "2/0" and "2/1".
class PartsTest : public MonitorTest {
 protected:
  PartsTest() {
    Divide({"1/0", "2", "2/0", "2/1"});
    monitor_.OnReading("G0", Good());
  }
  void Divide(const std::vector<std::string>& parts) {
    std::vector<device::Facts> devices{device::testing::AcmeDevice(0, 1)};
    for (const std::string& part : parts) {
      device::Facts facts = devices[0];
      facts.id = "P" + part;
      facts.index = -1;
      facts.part = part;
      facts.parent = part == "2/0" || part == "2/1" ? "P2" : "G0";
      facts.memory = base::Mebibytes(1);
      devices.push_back(facts);
    }
    inventory_.SetFacts("acme", devices, "away", executor_.clock().Wall());
    for (const std::string& part : parts) monitor_.OnReading("P" + part, Good());
  }
  std::string Counted(Severity severity, const std::string& part) {
    Evidence event = Event(severity);
    event.part = part;
    return monitor_.OnEvidence(event);
  }
  HealthState StateOf(const std::string& id) {
    return inventory_.published().Get()->Find(id)->health.state;
  }
};

TEST_F(PartsTest, AnErrorOfAPartTakesThatPartAloneOut) {
  EXPECT_EQ(Counted(Severity::kDrain, "1/0"), "P1/0");
  EXPECT_EQ(StateOf("P1/0"), HealthState::kUnhealthy);
  for (const char* other : {"G0", "P2", "P2/0", "P2/1"})
    EXPECT_EQ(StateOf(other), HealthState::kHealthy) << other;
  EXPECT_EQ(Counted(Severity::kWarn, "1"), "P1/0") << "the part that fills it";
  EXPECT_EQ(Counted(Severity::kWarn, "2"), "P2") << "and so its parts";
  EXPECT_EQ(Counted(Severity::kWarn, "2/1"), "P2/1");
  EXPECT_EQ(Counted(Severity::kWarn, ""), "G0");
}

TEST_F(PartsTest, AnErrorOfAPartThatThereIsNotIsTheDevices) {
  for (const char* part : {"3", "1/1", "2/7", "/", "1/", "x", "11"})
    EXPECT_EQ(Counted(Severity::kDrain, part), "G0") << part;
  Divide({"2", "2/0", "2/1"});
  EXPECT_EQ(Counted(Severity::kDrain, "1/0"), "G0") << "it was removed";
}

// A driver that reports whether the device needs a reset says so of the device; the other parts
// stay in use until then.
TEST_F(PartsTest, ThatTheWholeNeedsAResetIsForItsDriverToReport) {
  EXPECT_EQ(Counted(Severity::kReset, "1/0"), "P1/0");
  EXPECT_EQ(StateOf("G0"), HealthState::kHealthy);
  monitor_.OnReading("G0", Bad(Severity::kReset));
  EXPECT_EQ(StateOf("G0"), HealthState::kUnhealthy);
  monitor_.OnReading("G0", Good());
  EXPECT_EQ(Counted(Severity::kGone, "1/0"), "G0");
}

TEST_F(PartsTest, WithADriverThatDoesNotReportItAResetIsOfTheWhole) {
  monitor_.OnReading("G0", Good(false));
  EXPECT_EQ(Counted(Severity::kDrain, "1/0"), "P1/0");
  EXPECT_EQ(Counted(Severity::kReset, "1/0"), "G0");
  EXPECT_EQ(StateOf("G0"), HealthState::kUnhealthy);
}

TEST_F(PartsTest, TheSitesPolicyDecidesWhatIsOfTheWhole) {
  monitor_.OnReading("G0", Good(false));
  Configure({{.kind = "code", .codes = {static_cast<int>(Severity::kReset)}, .action = "drain"}});
  EXPECT_EQ(Counted(Severity::kReset, "1/0"), "P1/0");
  EXPECT_EQ(StateOf("G0"), HealthState::kHealthy);
}

// A program that provokes errors on its part takes no other part out, and its flood is bounded.
TEST_F(PartsTest, AFloodOfErrorsOfOnePartConcernsNoOther) {
  for (int i = 0; i < 5000; ++i) {
    Evidence event = Event(i % 2 == 0 ? Severity::kDrain : Severity::kReset);
    event.kind = "code " + std::to_string(i);
    event.part = "2/0";
    EXPECT_EQ(monitor_.OnEvidence(event), "P2/0");
  }
  EXPECT_LE(monitor_.Counts().size(), 300u);
  for (const char* other : {"G0", "P1/0", "P2", "P2/1"})
    EXPECT_EQ(StateOf(other), HealthState::kHealthy) << other;
}

class RestartTest : public MonitorTest {
 protected:
  void Restart() {
    other_.Recall(monitor_.Remember());
    others_.SetFacts("acme", {device::testing::AcmeDevice(0, 1)}, "", executor_.clock().Wall());
  }
  device::Health Then() { return others_.published().Get()->Find("G0")->health; }
  inventory::Inventory others_;
  Monitor other_{executor_, others_, device::testing::FindAcme, {.probation = 10s}};
};

TEST_F(RestartTest, DoesNotMakeABadGpuHealthy) {
  Fail(Good(false));
  const base::WallTime when = executor_.clock().Wall();
  executor_.Advance(1h);
  Restart();
  other_.OnDriverOpened("acme", {"1.0", ""});
  other_.OnReading("G0", Good(false));
  EXPECT_EQ(Then().state, HealthState::kUnhealthy);
  EXPECT_THAT(Then().reason, HasSubstr("code 3"));
  EXPECT_EQ(Then().since, when) << "the time does not change";
}

TEST_F(RestartTest, WithADriverThatReportsTheProbationBeginsAgain) {
  monitor_.OnEvidence(Event(Severity::kReset));
  Restart();
  other_.OnReading("G0", Good(true));
  EXPECT_THAT(Then().reason, HasSubstr("on probation"));
  executor_.Advance(10s);
  EXPECT_EQ(Then().state, HealthState::kHealthy);
}

TEST_F(RestartTest, ADriverOfAnotherVersionWasLoadedInBetween) {
  monitor_.OnDriverOpened("acme", {"1.0", ""});
  Fail(Good(false));
  Restart();
  other_.OnDriverOpened("acme", {"2.0", ""});
  other_.OnReading("G0", Good(false));
  executor_.Advance(10s);
  EXPECT_EQ(Then().state, HealthState::kHealthy);
}

TEST_F(RestartTest, SoWasOneOfTheSameVersionWhoseModuleWasLoadedInBetween) {
  monitor_.OnDriverOpened("acme", {"1.0", "77"});
  Fail(Good(false));
  Restart();
  other_.OnDriverOpened("acme", {"1.0", "78"});
  other_.OnReading("G0", Good(false));
  executor_.Advance(10s);
  EXPECT_EQ(Then().state, HealthState::kHealthy);
}

TEST_F(RestartTest, RelapsesAndResetsAreStillKnown) {
  Cure();
  Cure();
  monitor_.OnEvidence(Event(Severity::kReset));
  monitor_.BeginReset({{"G0", "is being reset"}});
  monitor_.EndReset({"G0"}, {});
  Restart();
  EXPECT_EQ(other_.ResetsOf("G0").size(), 1u);
  EXPECT_EQ(other_.statuses().at("G0").relapses, 2);
}

TEST_F(RestartTest, WhatIsIgnoredByThenIsNotHeldBack) {
  Fail(Good(false));
  api::HealthConfig config;
  config.policy = {{"code", {3}, "ignore"}};
  other_.Configure(config);
  Restart();
  other_.OnReading("G0", Good(false));
  executor_.Advance(10s);
  EXPECT_EQ(Then().state, HealthState::kHealthy);
}

}  // namespace
}  // namespace penstock::node::health
