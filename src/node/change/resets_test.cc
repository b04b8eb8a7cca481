#include "node/change/resets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/kinds.h"
#include "device/testing/acme.h"
#include "node/change/reset_plan.h"
#include "node/inventory/testing/acme_inventory.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::change {
namespace {

using api::ResetPolicy;
using device::HealthState;
using device::Severity;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

const base::WallTime kNow{1'000'000s};
using Devices = std::map<std::string, ResetCandidate>;

ResetPlan Plan(const Devices& devices) { return PlanResets(devices, ResetPolicy::kIdle, kNow); }

TEST(PlanResets, NeverIsNever) {
  const Devices devices{{"A", {.needs_reset = true, .together = {"A"}}}};
  EXPECT_THAT(PlanResets(devices, ResetPolicy::kNever, kNow).devices, IsEmpty());
  EXPECT_THAT(PlanResets(devices, ResetPolicy::kNever, kNow).why_not, IsEmpty());
  EXPECT_THAT(Plan(devices).devices, ElementsAre("A"));
}

TEST(PlanResets, AHeldDeviceWaitsForItsHolders) {
  const ResetPlan plan = Plan(
      {{"A", {.needs_reset = true, .free = false, .together = {"A"}}}, {"B", {.together = {"B"}}}});
  EXPECT_THAT(plan.devices, IsEmpty());
  EXPECT_EQ(plan.why_not.at("A"), "it will be reset when it is no longer in use");
  EXPECT_EQ(plan.why_not.size(), 1u);
}

TEST(PlanResets, ThoseThatAreResetTogetherMustAllBeFree) {
  Devices devices{{"A", {.needs_reset = true, .together = {"A", "B"}}},
                  {"B", {.free = false, .together = {"A", "B"}}}};
  EXPECT_EQ(Plan(devices).why_not.at("A"),
            "it can only be reset together with B, and waits until those are no longer in use");
  devices.at("B").present = false;
  EXPECT_EQ(Plan(devices).why_not.at("A"), "it can only be reset together with B, which is gone");
  devices.at("B") = {.together = {"A", "B"}};
  EXPECT_THAT(Plan(devices).devices, ElementsAre("A", "B"));
}

TEST(PlanResets, OneGroupAtATimeAndNoOneIsHeldBackByOneThatWaits) {
  const ResetPlan plan = Plan({{"A", {.needs_reset = true, .free = false, .together = {"A"}}},
                               {"B", {.needs_reset = true, .together = {"B", "C"}}},
                               {"C", {.needs_reset = true, .together = {"B", "C"}}},
                               {"D", {.needs_reset = true, .together = {"D"}}}});
  EXPECT_THAT(plan.devices, ElementsAre("B", "C"));
  EXPECT_FALSE(plan.why_not.contains("C"));
  EXPECT_TRUE(plan.why_not.contains("A"));
}

TEST(PlanResets, ThreeADayAndTenMinutesApart) {
  Devices devices{{"A", {.needs_reset = true, .before = {kNow - 9min}, .together = {"A"}}}};
  EXPECT_THAT(Plan(devices).why_not.at("A"), HasSubstr("the next reset is attempted 10m"));
  devices.at("A").before = {kNow - 11min};
  EXPECT_THAT(Plan(devices).devices, ElementsAre("A"));
  devices.at("A").before = {kNow - 20h, kNow - 10h, kNow - 1h};
  EXPECT_THAT(Plan(devices).devices, IsEmpty());
  EXPECT_EQ(
      Plan(devices).why_not.at("A"),
      "it was reset 3 times within a day and needs another reset: have the hardware inspected");
}

/// Completes a reset when the test says so.
class ScriptedActions final : public device::Actions {
 public:
  std::vector<std::string> ResetTogether(const device::Facts& device,
                                         const std::vector<const device::Facts*>&) const override {
    if (!together) return {device.id};
    return device.id < "G2" ? std::vector<std::string>{"G0", "G1"}
                            : std::vector<std::string>{"G2", "G3"};
  }
  void Reset(const std::vector<device::Facts>& devices,
             std::function<void(base::Status)> done) override {
    resets.emplace_back();
    for (const device::Facts& device : devices) resets.back().push_back(device.id);
    done_ = std::move(done);
  }
  void End(const base::Status& status) { std::exchange(done_, nullptr)(status); }

  bool together = false;
  std::vector<std::vector<std::string>> resets;
  std::function<void(base::Status)> done_;
};

class ResetsTest : public ::testing::Test {
 protected:
  ResetsTest() {
    inventory_.SetFacts("acme", inventory::AcmeDevices(4, 4), "", executor_.clock().Wall());
    for (int i = 0; i < 4; ++i) Look("G" + std::to_string(i));
    offers_.FollowServers("acme", servers_);
    resets_.SetPolicy(ResetPolicy::kIdle);
    changes_.Start();
    executor_.RunUntilIdle();
  }
  /// By default as a driver reads it that cannot report when a fault is over.
  void Look(const std::string& id, const device::Reading& reading = {}) {
    monitor_.OnReading(id, reading);
    inventory_.SetReading(id, reading, executor_.clock().Wall());
    inventory_.PublishReadTimes();
    executor_.RunUntilIdle();
  }
  void Break(const std::string& id, Severity severity = Severity::kReset) {
    monitor_.OnEvidence({.device = id, .kind = "code", .code = static_cast<int>(severity)});
    Look(id);
  }
  void EndReset(const base::Status& status) {
    actions_.End(status);
    executor_.RunUntilIdle();
  }
  /// Why the device is offered as unusable; empty: it is usable.
  std::string Unusable(const std::string& id) {
    for (const share::Offer& offer : *offers_.Get())
      for (const share::OfferedSlot& slot : offer.slots)
        if (slot.slot.device == id) return slot.usable ? "" : slot.reason;
    return "not offered";
  }
  /// All devices are read again meanwhile.
  std::size_t ResetsAfter(base::Duration time) {
    executor_.Advance(time / 2);
    for (int i = 0; i < 4; ++i) Look("G" + std::to_string(i));
    executor_.Advance(time - time / 2);
    return actions_.resets.size();
  }
  device::Health Of(const std::string& id) {
    return inventory_.published().Get()->Find(id)->health;
  }
  void Hold(const std::string& id) {
    ASSERT_TRUE(
        ledger_.Add({.id = "lease", .allocator = "local", .slots = {{.id = id, .device = id}}})
            .ok());
    executor_.RunUntilIdle();
  }

  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  health::Monitor monitor_{executor_, inventory_, device::testing::FindAcme, {.probation = 10s}};
  ScriptedActions actions_;
  int let_go_ = 0, taken_up_ = 0;
  bool closes_ = true;  // the driver, at once
  std::function<void()> closed_;
  std::vector<std::string> read_soon_;
  os::TemporaryFolder folder_;
  base::Published<device::SharedDevices> servers_;
  share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"local", "kubelet"}};
  std::set<std::string> counts_;  // the devices that the kubelet counts
  DeviceChanges changes_{executor_,
                         executor_,
                         {inventory_, ledger_, offers_},
                         [this](auto done) { done(counts_); },
                         folder_ / "changes.json",
                         {}};
  share::Turns turns_{
      executor_, inventory_, ledger_, offers_,
      [this](const auto& now, const auto& before) { changes_.Follow(now, before); }};
  Resets resets_{executor_, inventory_, ledger_, monitor_, changes_, [this](std::string_view) {
                   return Resets::Vendor{
                       .actions = &actions_,
                       .release =
                           [this](std::function<void()> done) {
                             ++let_go_;
                             closed_ = std::move(done);
                             if (closes_) closed_();
                           },
                       .reopen = [this] { ++taken_up_; },
                       .read_soon = [this](const std::string& id) { read_soon_.push_back(id); }};
                 }};
};

TEST_F(ResetsTest, ADeviceThatNeedsItIsWithdrawnResetAndUsedAgainAfterItsProbation) {
  Break("G0");
  EXPECT_THAT(Of("G0").reason, HasSubstr("reset in progress"));
  EXPECT_TRUE(actions_.resets.empty()) << "an allocation in progress at its start may still arrive";
  ASSERT_EQ(ResetsAfter(5s), 1u);
  EXPECT_THAT(actions_.resets[0], ElementsAre("G0"));
  EXPECT_EQ(let_go_, 1);
  EXPECT_EQ(taken_up_, 0);
  EndReset({});
  EXPECT_EQ(taken_up_, 1);
  Look("G0");
  EXPECT_THAT(Of("G0").reason, HasSubstr("on probation"));
  executor_.Advance(10s);
  EXPECT_EQ(Of("G0").state, HealthState::kHealthy);
  EXPECT_EQ(Of("G1").state, HealthState::kHealthy);
}

TEST_F(ResetsTest, Xid48With63Or94DrainsFirst) {
  Hold("G0");
  Break("G0");  // 48, with the warnings 63 and 94 next to it
  Break("G0", Severity::kWarn);
  EXPECT_EQ(ResetsAfter(10min), 0u);
  EXPECT_EQ(Of("G0").state, HealthState::kUnhealthy);
  EXPECT_THAT(Of("G0").reason, HasSubstr("it will be reset when it is no longer in use"));
  ledger_.Release("lease");
  EXPECT_EQ(ResetsAfter(5s), 1u);
}

TEST_F(ResetsTest, AnIdleServerEndsFirstAndOneWithClientsIsWaitedFor) {
  const auto serve = [this](int clients) {
    const device::SharedDevice server{
        .set = "acme.com/gpu", .ready = true, .clients = clients, .servers = {77}};
    servers_.Set(device::SharedDevices{{"G0", server}, {"G1", server}});
    device::Reading reading;
    reading.processes = {{.pid = 77}};
    monitor_.OnReading("G0", reading);
    inventory_.SetReading("G0", reading, executor_.clock().Wall());
    inventory_.PublishReadTimes();
    executor_.RunUntilIdle();
  };
  serve(1);
  monitor_.OnEvidence({.device = "G0", .kind = "code", .code = static_cast<int>(Severity::kReset)});
  serve(1);
  executor_.Advance(1min);
  EXPECT_THAT(Of("G0").reason, HasSubstr("it will be reset when it is no longer in use"));
  serve(0);
  executor_.Advance(10s);
  serve(0);
  EXPECT_THAT(Of("G0").reason, HasSubstr("the sharing server of acme.com/gpu has not exited yet"));
  EXPECT_THAT(actions_.resets, IsEmpty());
  servers_.Set(device::SharedDevices{});
  changes_.Wake();
  executor_.RunUntilIdle();
  EXPECT_THAT(actions_.resets, IsEmpty()) << "the driver's list of processes is an old one";
  Look("G0");
  EXPECT_THAT(actions_.resets, ElementsAre(ElementsAre("G0")));
}

TEST_F(ResetsTest, SomeoneOutsideOnItIsWaitedForToo) {
  ledger_.SetAttributed({.outside = {{"G0", {{.pid = 7}}}}});
  Break("G0");
  EXPECT_EQ(ResetsAfter(1min), 0u);
  ledger_.SetAttributed({});
  EXPECT_EQ(ResetsAfter(5s), 1u);
}

TEST_F(ResetsTest, ThoseThatAreResetWithItAreUnusableMeanwhileAndBackAfterwards) {
  actions_.together = true;
  Break("G1");
  EXPECT_EQ(Unusable("G0"), "reset in progress together with G1: a new reading is awaited");
  EXPECT_EQ(Unusable("G2"), "");
  ASSERT_EQ(ResetsAfter(5s), 1u);
  EXPECT_THAT(actions_.resets.at(0), ElementsAre("G0", "G1"));
  EndReset({});
  Look("G0");
  Look("G1");
  executor_.Advance(10s);
  EXPECT_EQ(Of("G0").state, HealthState::kHealthy);
  EXPECT_EQ(Of("G1").state, HealthState::kHealthy);
  EXPECT_EQ(monitor_.statuses().at("G0").relapses, 0);
}

TEST_F(ResetsTest, WhoeverComesWhileItIsWithdrawnKeepsIt) {
  actions_.together = true;
  Break("G1");
  Hold("G0");
  EXPECT_EQ(ResetsAfter(5s), 0u);
  EXPECT_EQ(Of("G0").state, HealthState::kHealthy) << "the device had no fault";
  EXPECT_THAT(Of("G1").reason,
              HasSubstr("together with G0, and waits until those are no longer in use"));
  EXPECT_TRUE(monitor_.ResetsOf("G1").empty());
}

TEST_F(ResetsTest, AFailedResetSaysWhyInTheDriversWordsAndIsTriedThreeTimesADay) {
  Break("G0");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ResetsAfter(5s), static_cast<std::size_t>(i + 1));
    EndReset(
        base::Error(base::Code::kFailedPrecondition, "nvidia-smi: it is in use by another client"));
    Look("G0");
    EXPECT_EQ(Of("G0").state, HealthState::kUnhealthy);
    EXPECT_THAT(Of("G0").reason,
                HasSubstr("the reset failed: nvidia-smi: it is in use by another client"));
    executor_.Advance(9min);
    Look("G0");
    EXPECT_EQ(ResetsAfter(1min), static_cast<std::size_t>(i + 1)) << "not immediately";
    executor_.Advance(1min);
    Look("G0");
  }
  executor_.Advance(1h);
  Look("G0");
  EXPECT_EQ(actions_.resets.size(), 3u);
  EXPECT_THAT(Of("G0").reason, HasSubstr("it was reset 3 times within a day"));
  EXPECT_EQ(monitor_.Resets().at(0).result, "refused");
  EXPECT_EQ(monitor_.Resets().at(0).count, 3u);
  EXPECT_EQ(monitor_.Notices().back().reason, "DeviceResetFailed");
  executor_.Advance(24h);
  Look("G0");
  EXPECT_EQ(ResetsAfter(5s), 4u);
}

TEST_F(ResetsTest, AProcessThatOnlyANewReadingShowsPreventsTheReset) {
  Break("G0");
  executor_.Advance(1s);
  EXPECT_TRUE(actions_.resets.empty()) << "the last reading is older than the withdrawal";
  device::Reading reading;
  reading.processes = {{.pid = 7}};
  monitor_.OnReading("G0", reading);
  inventory_.SetReading("G0", reading, executor_.clock().Wall());
  inventory_.PublishReadTimes();
  executor_.RunUntilIdle();
  EXPECT_EQ(ResetsAfter(0s), 0u);
  EXPECT_TRUE(monitor_.ResetsOf("G0").empty());
}

TEST_F(ResetsTest, AnErrorWhileItIsWithdrawnDelaysTheResetAndDoesNotEndIt) {
  counts_ = {"G0"};
  Break("G0");
  executor_.Advance(1s);
  monitor_.OnEvidence({.device = "G0", .kind = "code", .code = static_cast<int>(Severity::kReset)});
  executor_.RunUntilIdle();
  ASSERT_NE(changes_.Of("G0"), nullptr);
  EXPECT_EQ(Unusable("G1"), "");
  counts_.clear();
  EXPECT_EQ(ResetsAfter(5s), 1u);
}

TEST_F(ResetsTest, AKubeletThatDoesNotTakeNoteIsTheReasonAndNoAttemptIsCounted) {
  counts_ = {"G0"};
  Break("G0");
  EXPECT_EQ(ResetsAfter(1min), 0u);
  EXPECT_THAT(Of("G0").reason, HasSubstr("reset in progress: the kubelet still lists it"));
  EXPECT_EQ(ResetsAfter(2min), 0u);
  EXPECT_THAT(Of("G0").reason,
              HasSubstr("the reset could not begin: the step \"await release\" did not end within "
                        "2m: the kubelet still lists it as allocatable"));
  EXPECT_TRUE(monitor_.ResetsOf("G0").empty());
  EXPECT_EQ(changes_.Of("G0"), nullptr);
  counts_.clear();
  EXPECT_EQ(ResetsAfter(5min), 0u) << "not at once";
  EXPECT_EQ(ResetsAfter(5min), 0u) << "not read since the second withdrawal";
  EXPECT_EQ(ResetsAfter(5s), 1u);
}

/// The call of a reset fails that worked, as of a program that is killed after it has reset the
/// device.
class ResetsWithoutAnAnswer : public ResetsTest {
 protected:
  void ResetInVain() {
    ASSERT_EQ(ResetsAfter(5s), 1u);
    EndReset(base::Error(base::Code::kDeadlineExceeded, "nvidia-smi was killed"));
    EXPECT_EQ(monitor_.Resets().at(0).result, "failed");
  }
  void ExpectRecoveredWithoutAnotherReset(const device::Reading& reading) {
    for (int i = 0; i < 3; ++i) {
      executor_.Advance(1s);
      Look("G0", reading);
    }
    EXPECT_THAT(Of("G0").reason, HasSubstr("on probation"));
    executor_.Advance(10s);
    EXPECT_EQ(Of("G0").state, HealthState::kHealthy);
    executor_.Advance(1h);
    EXPECT_EQ(actions_.resets.size(), 1u);
    EXPECT_EQ(Unusable("G0"), "");
  }
};

TEST_F(ResetsWithoutAnAnswer, AreNotMadeAgainWhereTheDriverReportsRecovery) {
  Break("G0");
  ResetInVain();
  device::Reading reading;
  reading.reports_recovery = true;
  ExpectRecoveredWithoutAnotherReset(reading);
}

TEST_F(ResetsWithoutAnAnswer, AreNotMadeAgainWhereACounterShowsThatTheyWorked) {
  const auto counted = [](int value) {
    device::Reading reading;
    reading.evidence = {
        {.device = "G0", .kind = std::string(device::kResetCounter) + "energy", .code = value}};
    return reading;
  };
  Break("G0");
  Look("G0", counted(1));
  ResetInVain();
  ExpectRecoveredWithoutAnotherReset(counted(0));
}

TEST_F(ResetsWithoutAnAnswer, AreMadeAgainWhereNothingShowsThatTheyWorked) {
  Break("G0");
  ResetInVain();
  Look("G0");
  EXPECT_EQ(Of("G0").state, HealthState::kUnhealthy);
  EXPECT_THAT(Of("G0").reason, HasSubstr("the reset failed: nvidia-smi was killed"));
  EXPECT_EQ(ResetsAfter(9min), 1u);
  executor_.Advance(1min);
  Look("G0");
  ASSERT_EQ(ResetsAfter(5s), 2u);
  EndReset({});
  Look("G0");
  executor_.Advance(10s);
  EXPECT_EQ(Of("G0").state, HealthState::kHealthy);
  EXPECT_EQ(Of("G0").reason, "");
}

TEST_F(ResetsTest, OneThatDoesNotEndIsAFailureAndWhatItSaysLaterCountsForNone) {
  Break("G0");
  ASSERT_EQ(ResetsAfter(5s), 1u);
  ResetsAfter(59min);
  EXPECT_EQ(taken_up_, 0);
  EXPECT_EQ(changes_.Of("G0")->waits_for, "the driver is resetting it");
  ResetsAfter(1min);
  EXPECT_EQ(taken_up_, 1);
  EXPECT_EQ(changes_.Of("G0"), nullptr);
  Look("G0");
  EXPECT_THAT(Of("G0").reason,
              HasSubstr("the reset failed: the step \"reset\" did not end within 1h: the driver is "
                        "resetting it"));
  EXPECT_EQ(monitor_.ResetsOf("G0").size(), 1u);
  EndReset({});
  EXPECT_EQ(Of("G0").state, HealthState::kUnhealthy);
  executor_.Advance(10min);
  Look("G0");
  ASSERT_EQ(ResetsAfter(5s), 2u);
  EndReset({});
  Look("G0");
  executor_.Advance(10s);
  EXPECT_EQ(Of("G0").state, HealthState::kHealthy);
}

TEST_F(ResetsTest, ADriverThatDoesNotCloseIsNotResetAndWhereItClosesLaterNeither) {
  closes_ = false;
  Break("G0");
  EXPECT_EQ(ResetsAfter(5s), 0u);
  EXPECT_EQ(ResetsAfter(1h), 0u);
  EXPECT_EQ(taken_up_, 1);
  EXPECT_THAT(Of("G0").reason,
              HasSubstr("the reset could not begin: the step \"reset\" did not end "
                        "within 1h: "));
  EXPECT_TRUE(monitor_.ResetsOf("G0").empty());
  const auto late = closed_;
  counts_ = {"G0"};  // the kubelet, when it is tried again
  ResetsAfter(11min);
  ASSERT_NE(changes_.Of("G0"), nullptr);
  late();
  EXPECT_THAT(actions_.resets, IsEmpty());
}

TEST_F(ResetsTest, AProgramThatIsMissingIsTheReason) {
  Break("G0");
  ASSERT_EQ(ResetsAfter(5s), 1u);
  EndReset(base::Error(base::Code::kNotFound, "there is no nvidia-smi"));
  Look("G0");
  EXPECT_THAT(Of("G0").reason, HasSubstr("the reset failed: there is no nvidia-smi"));
  EXPECT_EQ(monitor_.ResetsOf("G0").size(), 1u);
}

TEST_F(ResetsTest, ADeviceThatIsNotReadAfterItsResetIsUnusableAndSaysSo) {
  actions_.together = true;
  Break("G1");
  ASSERT_EQ(ResetsAfter(5s), 1u);
  EndReset({});
  Look("G1");
  EXPECT_THAT(Unusable("G0"), HasSubstr("not read yet"));
  executor_.Advance(61s);
  EXPECT_EQ(changes_.Of("G0"), nullptr);
  EXPECT_THAT(Unusable("G0"), HasSubstr("not read yet"));
  EXPECT_EQ(monitor_.Resets().at(0).result, "done");
}

/// G0 has a part.
class ResetsOfParts : public ResetsTest {
 protected:
  ResetsOfParts() {
    auto devices = inventory::AcmeDevices(4, 4);
    for (const char* id : {"G0.0", "G0.1"}) {
      device::Facts part = devices[0];
      part.id = id;
      part.index = -1;
      part.parent = "G0";
      part.memory = base::Mebibytes(1);
      devices.push_back(part);
    }
    inventory_.SetFacts("acme", devices, "", executor_.clock().Wall());
    LookAtParts();
  }
  void LookAtParts() {
    Look("G0.0");
    Look("G0.1");
  }
};

TEST_F(ResetsOfParts, APartIsResetWithItsDevice) {
  Break("G0.0");
  EXPECT_THAT(Unusable("G0.0"), HasSubstr("; reset in progress: a new reading is awaited"));
  EXPECT_THAT(Unusable("G0.1"), HasSubstr("reset in progress together with G0"));
  executor_.Advance(1s);
  LookAtParts();
  ASSERT_EQ(ResetsAfter(5s), 1u);
  EXPECT_THAT(actions_.resets[0], ElementsAre("G0"));
  EndReset(base::Error(base::Code::kFailedPrecondition, "no"));
  Look("G0");
  LookAtParts();
  EXPECT_THAT(Of("G0.0").reason, HasSubstr("; the reset failed: no"));
  EXPECT_EQ(ResetsAfter(1s), 1u);
  executor_.Advance(10min);
  LookAtParts();
  executor_.Advance(1s);
  LookAtParts();
  ASSERT_EQ(ResetsAfter(5s), 2u);
  EndReset({});
  Look("G0");
  LookAtParts();
  executor_.Advance(10s);
  EXPECT_EQ(Of("G0.0").state, HealthState::kHealthy);
  EXPECT_EQ(Unusable("G0.0"), "");
  EXPECT_EQ(Unusable("G0.1"), "");
}

TEST_F(ResetsOfParts, AProcessOnAnotherPartPreventsTheReset) {
  Break("G0.0");
  executor_.Advance(1s);
  device::Reading reading;
  reading.processes = {{.pid = 7}};
  monitor_.OnReading("G0.1", reading);
  inventory_.SetReading("G0.1", reading, executor_.clock().Wall());
  inventory_.PublishReadTimes();
  Look("G0.0");
  EXPECT_EQ(ResetsAfter(1min), 0u);
  EXPECT_THAT(Of("G0.0").reason, HasSubstr("it will be reset when it is no longer in use"));
}

TEST_F(ResetsTest, OneThatCannotBeginDoesNotHoldUpOthers) {
  counts_ = {"G0"};  // the kubelet never takes note
  Break("G0");
  Break("G1");
  EXPECT_EQ(ResetsAfter(1min), 0u);
  EXPECT_EQ(ResetsAfter(90s), 0u) << "one at a time";
  ASSERT_EQ(ResetsAfter(5s), 1u);
  EXPECT_THAT(actions_.resets[0], ElementsAre("G1"));
  EXPECT_THAT(Of("G0").reason, HasSubstr("the reset could not begin: "));
  EXPECT_THAT(Of("G0").reason, HasSubstr("the reset is attempted again at "));
}

TEST_F(ResetsTest, AsksForTheReadingThatItNeeds) {
  actions_.together = true;
  Break("G1");
  EXPECT_THAT(read_soon_, ElementsAre("G0", "G1"));
  executor_.Advance(1s);
  EXPECT_EQ(read_soon_.size(), 2u);
}

TEST_F(ResetsTest, NeitherADrainNorAGoneDeviceIsReset) {
  Break("G0", Severity::kDrain);
  Break("G1", Severity::kGone);
  EXPECT_EQ(ResetsAfter(1min), 0u);
}

TEST_F(ResetsTest, ByDefaultNothingIsReset) {
  resets_.SetPolicy(ResetPolicy::kNever);
  Break("G0");
  EXPECT_EQ(ResetsAfter(1h), 0u);
  EXPECT_EQ(let_go_, 0);
  resets_.SetPolicy(ResetPolicy::kIdle);
  executor_.RunUntilIdle();
  EXPECT_EQ(ResetsAfter(5s), 1u) << "once the configuration allows it";
}

}  // namespace
}  // namespace penstock::node::change
