#include "node/usage/usage_accumulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::usage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr device::Shape kFour{device::Sharing::kTimeSlicing, 4};
constexpr double kSlip = 1e-6;

ledger::Lease LeaseOf(const std::string& id, std::vector<ledger::Slot> slots,
                      std::vector<pid_t> pids = {}) {
  ledger::Lease lease;
  lease.id = id;
  lease.allocator = "local";
  lease.user = "eva";
  lease.slots = std::move(slots);
  for (const pid_t pid : pids) lease.processes.push_back({pid, 1, "eva", "train"});
  return lease;
}

ledger::Slot Whole(const std::string& device) { return {device, device, "", {}}; }
ledger::Slot Share(const std::string& device, int number) {
  return {device + "::" + std::to_string(number), device, "", kFour};
}

device::ProcessSample Process(std::int32_t pid, std::uint64_t mebibytes,
                              std::optional<double> percent) {
  return {.pid = pid, .memory = base::Mebibytes(mebibytes), .compute = percent};
}

/// A ledger, a clock, and samples ten seconds apart.
class UsageTest : public ::testing::Test {
 protected:
  void SetUp() override { Wait(1000s); }

  void Wait(base::Duration time) {
    now_.steady += time;
    now_.wall += std::chrono::duration_cast<base::WallTime::duration>(time);
  }
  void Follow() {
    accumulator_.Follow(ledger_.Get(), now_);
    Tick();
  }
  void Tick() {
    accumulator_.Tick(now_);
    for (Record& record : accumulator_.TakeRecords()) records_.push_back(std::move(record));
  }
  void Hand(ledger::Lease lease) {
    lease.since = now_.wall;
    const auto handed = ledger_.Add(lease);
    ASSERT_TRUE(handed.ok()) << handed.error().ToString();
    Follow();
  }
  void Release(const std::string& id) {
    ledger_.Release(id);
    Follow();
  }
  void Sample(const DeviceActivity& activity,
              const std::vector<device::ProcessSample>& processes = {},
              const std::string& device = "G0") {
    accumulator_.Take(device, activity, processes, 10s, now_);
    Tick();
  }
  void SampleAfter(base::Duration time, const DeviceActivity& figures,
                   const std::vector<device::ProcessSample>& processes = {}) {
    Wait(time);
    Sample(figures, processes);
  }
  HolderUsage Only() {
    const auto holders = accumulator_.Show(now_);
    EXPECT_THAT(holders, SizeIs(1));
    return holders.empty() ? HolderUsage{} : *holders.front();
  }
  HolderUsage Of(const std::string& lease) {
    for (const auto& usage : accumulator_.Show(now_))
      if (usage->holder->id == lease) return *usage;
    ADD_FAILURE() << lease << " is not shown";
    return {};
  }

  base::Timestamp now_;
  ledger::Ledger ledger_;
  UsageAccumulator accumulator_{[](const std::string&) { return "Acme"; }};
  std::vector<Record> records_;
};

TEST_F(UsageTest, AWholeDevicesFiguresAreItsHolders) {
  Sample({.watts = 100});
  Hand(LeaseOf("r", {Whole("G0")}, {7}));
  SampleAfter(10s,
              {.utilization = 0.5, .watts = 200, .memory = base::Mebibytes(300), .processes = true},
              {Process(7, 100, 50.0), Process(8, 1, {})});
  const HolderUsage usage = Only();
  EXPECT_EQ(usage.model, "Acme");
  EXPECT_FALSE(usage.shared);
  EXPECT_EQ(usage.utilization, 0.5);
  EXPECT_EQ(usage.memory_used, base::Mebibytes(300));
  EXPECT_NEAR(usage.busy_seconds, 5, kSlip);
  EXPECT_NEAR(usage.energy_joules, 2000, kSlip);
  EXPECT_NEAR(usage.measured_seconds, 10, kSlip);
  ASSERT_THAT(usage.processes, SizeIs(2));
  EXPECT_EQ(usage.processes[0].user, "eva");
  EXPECT_EQ(usage.processes[0].compute, 0.5);
  EXPECT_EQ(usage.processes[1].pid, 8);
}

TEST_F(UsageTest, OfAnIntervalAHolderHasWhatIsLeftOfItWhenItComes) {
  Sample({.watts = 100, .joules = 1000});
  Wait(6s);
  Hand(LeaseOf("r", {Whole("G0")}));
  SampleAfter(4s, {.utilization = 1, .watts = 100, .joules = 2000});
  EXPECT_NEAR(Only().energy_joules, 400, kSlip);
  EXPECT_NEAR(Only().busy_seconds, 4, kSlip);
}

TEST_F(UsageTest, ACounterOfEnergyCountsMoreThanPower) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Sample({.watts = 1, .joules = 5000});
  SampleAfter(10s, {.watts = 1, .joules = 5700});
  EXPECT_NEAR(Only().energy_joules, 700, kSlip);
}

TEST_F(UsageTest, ACounterThatWasResetIsPassedOverByPower) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Sample({.watts = 30, .joules = 5000});
  SampleAfter(10s, {.watts = 30, .joules = 10});
  EXPECT_NEAR(Only().energy_joules, 300, kSlip);
  SampleAfter(10s, {.watts = 30, .joules = 210});
  EXPECT_NEAR(Only().energy_joules, 500, kSlip);
}

TEST_F(UsageTest, ACounterThatLeapsBeyondAllPowerIsNotBelieved) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Sample({.watts = 30, .joules = 0, .most_watts = 1000});
  SampleAfter(10s, {.watts = 30, .joules = 1e9, .most_watts = 1000});
  EXPECT_NEAR(Only().energy_joules, 300, kSlip);
}

TEST_F(UsageTest, ACounterThatIsMissingOnceReportsNextTime) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Sample({.watts = 30, .joules = 0});
  SampleAfter(10s, {.watts = 30});
  SampleAfter(10s, {.watts = 30, .joules = 900});
  EXPECT_NEAR(Only().energy_joules, 900, kSlip);
}

TEST_F(UsageTest, AGapIsNotInventedButACounterReportsOfIt) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Hand(LeaseOf("s", {Whole("G1")}));
  Sample({.utilization = 1, .watts = 30, .joules = 0});
  Sample({.utilization = 1, .watts = 30}, {}, "G1");
  Wait(31s);  // more than three intervals
  Sample({.utilization = 1, .watts = 30, .joules = 4000});
  Sample({.utilization = 1, .watts = 30}, {}, "G1");
  EXPECT_NEAR(Of("r").energy_joules, 4000, kSlip);
  EXPECT_EQ(Of("r").busy_seconds, 0);
  EXPECT_EQ(Of("r").measured_seconds, 0);
  EXPECT_EQ(Of("s").energy_joules, 0);
  EXPECT_NEAR(Of("r").seconds, 31, kSlip);
}

TEST_F(UsageTest, ADeviceThatDoesNotAnswerReportsOfTheTimeWhenItDoesAgain) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Sample({.utilization = 1, .watts = 30});
  SampleAfter(10s, {});
  EXPECT_EQ(Only().utilization, std::nullopt);
  SampleAfter(10s, {.utilization = 1, .watts = 30});
  EXPECT_NEAR(Only().energy_joules, 600, kSlip);
  EXPECT_NEAR(Only().measured_seconds, 20, kSlip);
}

TEST_F(UsageTest, ThoseWhoShareAreDistinguishedByTheirProcesses) {
  Hand(LeaseOf("a", {Share("G0", 0)}, {1, 2}));
  Hand(LeaseOf("b", {Share("G0", 1), Share("G0", 2)}, {3}));
  Sample({.watts = 0});
  SampleAfter(
      10s, {.utilization = 0.9, .watts = 100, .memory = base::Mebibytes(999), .processes = true},
      {Process(1, 10, 20.0), Process(2, 20, 10.0), Process(3, 5, 10.0), Process(99, 50, 50.0)});
  EXPECT_TRUE(Of("a").shared);
  EXPECT_EQ(Of("a").memory_used, base::Mebibytes(30));
  EXPECT_NEAR(*Of("a").utilization, 0.3, kSlip);
  EXPECT_NEAR(Of("a").energy_joules, 750, kSlip);
  EXPECT_NEAR(Of("b").energy_joules, 250, kSlip);
  EXPECT_NEAR(Of("b").busy_seconds, 1, kSlip);
  EXPECT_EQ(Of("b").slots, 2);
  EXPECT_EQ(Of("b").shape, kFour);
  EXPECT_THAT(Of("b").processes, SizeIs(1));
}

TEST_F(UsageTest, WhatOutsidersComputeIsNoOnesHere) {
  Hand(LeaseOf("a", {Share("G0", 0)}, {1}));
  ledger_.SetAttributed({.outside = {{"G0", {{99, 1, "bob", "miner"}}}}});
  Follow();
  Sample({.watts = 0});
  SampleAfter(10s, {.watts = 100, .processes = true}, {Process(1, 1, 25.0), Process(99, 1, 75.0)});
  EXPECT_NEAR(Only().energy_joules, 250, kSlip);
}

TEST_F(UsageTest, WhoOnlyDrawsOnADeviceIsNotOneOfItsHoldersProcesses) {
  Hand(LeaseOf("a", {Whole("G0")}, {1}));
  ledger_.SetAttributed({.graphics = {{"G0", {{99, 1, "root", "Xorg"}}}}});
  Follow();
  Sample({.utilization = 0.5, .processes = true}, {Process(1, 1, 25.0), Process(99, 1, 5.0)});
  ASSERT_THAT(Only().processes, SizeIs(1));
  EXPECT_EQ(Only().processes[0].pid, 1);
}

TEST_F(UsageTest, OfTwoProcessesWithOneNumberTheYoungerLives) {
  Hand(LeaseOf("a", {Share("G0", 0)}, {1}));
  ledger::Lease young = LeaseOf("b", {Share("G0", 1)}, {1});
  young.processes[0].start = 50;
  Hand(young);
  Sample({.processes = true}, {Process(1, 7, 10.0)});
  EXPECT_THAT(Of("a").processes, IsEmpty());
  EXPECT_EQ(Of("b").memory_used, base::Mebibytes(7));
}

TEST_F(UsageTest, ADriverThatDoesNotReportComputeLeavesUtilizationOpen) {
  Hand(LeaseOf("a", {Share("G0", 0)}, {1}));
  Sample({.watts = 0, .processes = true});
  SampleAfter(10s, {.watts = 100, .processes = true}, {Process(1, 7, {})});
  EXPECT_EQ(Only().utilization, std::nullopt);
  EXPECT_EQ(Only().measured_seconds, 0);
  EXPECT_NEAR(Only().energy_joules, 1000, kSlip);
}

TEST_F(UsageTest, WhatHasEndedIsClosedByTheNextSample) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Sample({.watts = 100, .joules = 0});
  Wait(4s);
  Release("r");
  EXPECT_THAT(records_, IsEmpty());
  EXPECT_TRUE(Only().until);
  SampleAfter(1s, {.utilization = 0.5, .watts = 100, .joules = 500});
  ASSERT_THAT(records_, SizeIs(1));
  EXPECT_TRUE(records_[0].ended);
  EXPECT_NEAR(records_[0].energy_joules, 400, kSlip);
  EXPECT_NEAR(records_[0].busy_seconds, 2, kSlip);
  EXPECT_NEAR(records_[0].seconds, 4, kSlip);
  EXPECT_NEAR(Only().energy_joules, 400, kSlip);
  EXPECT_EQ(Only().utilization, std::nullopt);
}

TEST_F(UsageTest, OneThatLivedBetweenTwoSamplesIsSeen) {
  Sample({.watts = 100, .joules = 0});
  Wait(2s);
  Hand(LeaseOf("r", {Whole("G0")}));
  Wait(3s);
  Release("r");
  SampleAfter(5s, {.utilization = 0.8, .watts = 100, .joules = 1000});
  ASSERT_THAT(records_, SizeIs(1));
  EXPECT_NEAR(records_[0].energy_joules, 300, kSlip);
  EXPECT_NEAR(records_[0].busy_seconds, 2.4, kSlip);
}

TEST_F(UsageTest, ASampleThatNeverComesIsNotWaitedForIndefinitely) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Release("r");
  ASSERT_EQ(accumulator_.due(), now_.steady + UsageAccumulator::kPatience);
  Wait(UsageAccumulator::kPatience);
  Tick();
  EXPECT_THAT(records_, SizeIs(1));
}

TEST_F(UsageTest, EndedHoldersAreShownForASetTime) {
  accumulator_.Configure({.keep_ended = 60s});
  Hand(LeaseOf("r", {Whole("G0")}));
  Release("r");
  Sample({.watts = 1});
  Wait(59s);
  Tick();
  EXPECT_THAT(accumulator_.Show(now_), SizeIs(1));
  EXPECT_EQ(accumulator_.due(), now_.steady + 1s);
  Wait(1s);
  Tick();
  EXPECT_THAT(accumulator_.Show(now_), IsEmpty());
  EXPECT_EQ(accumulator_.due(), std::nullopt);
}

TEST_F(UsageTest, WhoEndedFirstIsForgottenFirstWhicheverSampleCameFirst) {
  accumulator_.Configure({.keep_ended = 60s});
  Hand(LeaseOf("first", {Whole("G0")}));
  Hand(LeaseOf("second", {Whole("G1")}));
  Release("first");
  Wait(1s);
  Release("second");
  Sample({.watts = 1}, {}, "G1");
  Sample({.watts = 1}, {}, "G0");
  EXPECT_EQ(accumulator_.due(), now_.steady + 59s);
  Wait(59s);
  Tick();
  EXPECT_EQ(Only().holder->id, "second");
}

TEST_F(UsageTest, ATimeThatIsSetLaterHoldsForThoseThatHaveEndedToo) {
  accumulator_.Configure({.keep_ended = 1h});
  Hand(LeaseOf("r", {Whole("G0")}));
  Release("r");
  Sample({.watts = 1});
  Wait(2s);
  accumulator_.Configure({.keep_ended = 3s});
  Tick();
  EXPECT_THAT(accumulator_.Show(now_), SizeIs(1));
  EXPECT_EQ(accumulator_.due(), now_.steady + 1s);
  Wait(1s);
  Tick();
  EXPECT_THAT(accumulator_.Show(now_), IsEmpty());
}

TEST_F(UsageTest, OfTooManyThatEndedTheFirstAreForgottenAndCounted) {
  accumulator_.Configure({.most_ended = 2});
  for (const char* id : {"a", "b", "c"}) {
    Hand(LeaseOf(id, {Whole("G0")}));
    Release(id);
    SampleAfter(1s, {.watts = 1});
  }
  EXPECT_THAT(accumulator_.Show(now_), SizeIs(2));
  EXPECT_EQ(accumulator_.forgotten(), 1u);
  EXPECT_THAT(records_, SizeIs(3));
}

TEST_F(UsageTest, OfManyThatWaitForASampleTheLastAreShownAndTheFirstOfTooManyAreRecordedWithoutIt) {
  accumulator_.Configure({.most_ended = 2, .most_waiting = 3});
  Sample({.watts = 100, .joules = 0});
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    Hand(LeaseOf(id, {Whole("G0")}));
    Wait(1s);
    Release(id);
  }
  const auto shown = accumulator_.Show(now_);
  ASSERT_THAT(shown, SizeIs(2));
  EXPECT_EQ(shown[0]->holder->id, "d");
  EXPECT_EQ(shown[1]->holder->id, "e");
  EXPECT_EQ(accumulator_.waiting(), 3u);
  ASSERT_THAT(records_, SizeIs(2));
  EXPECT_EQ(records_[1].lease, "b");
  EXPECT_EQ(records_[1].measured_seconds, 0);
  Sample({.utilization = 1, .watts = 100, .joules = 500});
  EXPECT_EQ(accumulator_.waiting(), 0u);
  ASSERT_THAT(records_, SizeIs(5));
  for (std::size_t i = 2; i < records_.size(); ++i) {
    EXPECT_NEAR(records_[i].energy_joules, 100, kSlip) << records_[i].lease;
    EXPECT_NEAR(records_[i].busy_seconds, 1, kSlip) << records_[i].lease;
  }
}

TEST_F(UsageTest, OneThatHasEndedKeepsNoProcessesAndItsLastSampleKnowsThem) {
  for (const char* id : {"a", "b"})
    Hand(LeaseOf(id, {Share("G0", id[0] - 'a')}, {id[0] - 'a' + 1}));
  Sample({.watts = 100, .processes = true}, {Process(1, 100, 30), Process(2, 100, 10)});
  Wait(4s);
  Release("a");
  EXPECT_THAT(Of("a").holder->processes, IsEmpty());
  EXPECT_THAT(Of("b").holder->processes, SizeIs(1));
  SampleAfter(1s, {.watts = 100, .processes = true}, {Process(1, 100, 80), Process(2, 100, 10)});
  ASSERT_THAT(records_, SizeIs(1));
  EXPECT_NEAR(records_[0].busy_seconds, 4 * 0.8, kSlip);
}

TEST_F(UsageTest, TheSameContainerAgainReplacesTheOneThatEnded) {
  ledger::Lease pod = LeaseOf("k-1", {Whole("G0")});
  pod.allocator = "kubelet";
  pod.pod = "train-0";
  Hand(pod);
  Release("k-1");
  Sample({.watts = 1});
  pod.id = "k-2";
  pod.pod.clear();
  Hand(pod);
  EXPECT_THAT(accumulator_.Show(now_), SizeIs(2)) << "nobody knows yet who it is";
  ledger::Lease named = *ledger_.Get()->FindLease("k-2");
  named.pod = "train-0";
  ASSERT_TRUE(ledger_.Update(named).ok());
  Follow();
  EXPECT_EQ(Only().holder->id, "k-2");
}

TEST_F(UsageTest, EachDeviceOfALeaseHasItsOwnAccount) {
  Hand(LeaseOf("r", {Whole("G0"), Whole("G1")}));
  accumulator_.SetGroup("r", 90s, base::Mebibytes(5));
  accumulator_.SetGroup("r", 60s, base::Mebibytes(3));  // neither value decreases
  const auto holders = accumulator_.Show(now_);
  ASSERT_THAT(holders, SizeIs(2));
  EXPECT_EQ(holders[0]->cpu_seconds, 90);
  EXPECT_EQ(holders[1]->host_memory_peak, base::Mebibytes(5));
  EXPECT_EQ(ToRecord(*holders[0], now_.wall).cpu_seconds, 90);
  EXPECT_EQ(ToRecord(*holders[1], now_.wall).cpu_seconds, std::nullopt) << "of the lease: once";
}

TEST_F(UsageTest, OnlyLabelsThatAreWantedAreShown) {
  ledger::Lease lease = LeaseOf("r", {Whole("G0")});
  lease.labels = {{"experiment", "x"}, {"secret", "y"}};
  Hand(lease);
  EXPECT_THAT(Only().holder->labels, IsEmpty());
  accumulator_.Configure({.labels = {"exp*"}});
  EXPECT_THAT(Only().holder->labels,
              ElementsAre(std::pair<const std::string, std::string>("experiment", "x")));
}

TEST_F(UsageTest, IdleIsWhoHoldsAndDoesNotUse) {
  accumulator_.Configure({.idle_after = 60s, .idle_below = 0.05});
  Hand(LeaseOf("r", {Whole("G0")}, {7}));
  for (int i = 0; i < 6; ++i) {
    SampleAfter(10s, {.utilization = i == 0 ? 0.5 : 0.04, .processes = true},
                {Process(7, 100, 1.0)});
    EXPECT_FALSE(Only().idle);
  }
  SampleAfter(10s, {.utilization = 0.0, .processes = true}, {Process(7, 100, 0.0)});
  EXPECT_TRUE(Only().idle);
  EXPECT_EQ(now_.wall - Only().last_busy, 60s);
  SampleAfter(10s, {.utilization = 0.0, .processes = true}, {Process(7, 100, 6.0)});
  EXPECT_FALSE(Only().idle) << "a process was active";
}

TEST_F(UsageTest, OneWhoseUseCannotBeReportedIsNotIdle) {
  accumulator_.Configure({.idle_after = 60s});
  Hand(LeaseOf("r", {Whole("G0")}));
  SampleAfter(100s, {.watts = 10});
  EXPECT_FALSE(Only().idle);
}

TEST_F(UsageTest, AClockThatIsSetHarmsNothing) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Sample({.utilization = 1, .watts = 10});
  Wait(10s);
  now_.wall -= 24h;
  Sample({.utilization = 1, .watts = 10});
  Wait(10s);
  now_.wall += 48h;
  Sample({.utilization = 1, .watts = 10});
  EXPECT_NEAR(Only().busy_seconds, 20, kSlip);
  EXPECT_NEAR(Only().energy_joules, 200, kSlip);
  EXPECT_NEAR(Only().seconds, 20, kSlip);
  EXPECT_EQ(Only().last_busy, now_.wall);
}

TEST_F(UsageTest, OneThatLivesThroughARestartIsOneHolder) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Sample({.utilization = 1, .watts = 10, .joules = 100});
  SampleAfter(10s, {.utilization = 1, .watts = 10, .joules = 300});
  const base::WallTime since = Only().since;
  auto kept = accumulator_.Keep(now_);
  const auto energy = accumulator_.KeepEnergy();

  Wait(20s);
  now_.wall += 7h;  // the clock was set meanwhile
  UsageAccumulator next([](const std::string&) { return "Acme"; });
  next.Recall(kept, energy);
  next.Follow(ledger_.Get(), now_);
  next.EndOrphans();
  Wait(10s);
  next.Take("G0", {.utilization = 1, .watts = 10, .joules = 900}, {}, 10s, now_);
  const auto usage = next.Show(now_);
  ASSERT_THAT(usage, SizeIs(1));
  EXPECT_NEAR(usage[0]->energy_joules, 800, kSlip)
      << "the counter tells of the time without an agent, too";
  EXPECT_NEAR(usage[0]->busy_seconds, 10, kSlip);
  EXPECT_NEAR(usage[0]->seconds, 40, kSlip);
  EXPECT_EQ(usage[0]->since, since);
  EXPECT_THAT(next.TakeRecords(), IsEmpty());
}

TEST_F(UsageTest, WhatEndedWithoutAnAgentEndedWhenItWasLastKept) {
  Hand(LeaseOf("r", {Whole("G0")}));
  Wait(10s);
  const auto kept = accumulator_.Keep(now_);
  const base::WallTime last = now_.wall;
  Wait(100s);
  UsageAccumulator next([](const std::string&) { return ""; });
  next.Recall(kept, {});
  EXPECT_THAT(next.Keep(now_), SizeIs(1))
      << "until it is clear who is still there, nothing is forgotten";
  next.EndOrphans();
  const auto records = next.TakeRecords();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_TRUE(records[0].ended);
  EXPECT_EQ(records[0].until, last);
  EXPECT_NEAR(records[0].seconds, 10, kSlip);
  EXPECT_THAT(next.Keep(now_), IsEmpty());
}

TEST_F(UsageTest, AContainerIsKnownAgainByItsNames) {
  ledger::Lease pod = LeaseOf("k-1", {Share("G0", 2)});
  pod.allocator = "kubelet";
  pod.pod = "train-0";
  pod.pod_uid = "u";
  Hand(pod);
  Wait(10s);
  auto kept = accumulator_.Keep(now_);
  kept[0].record.energy_joules = 77;
  ledger_.Release("k-1");
  pod.id = "pod-u-main";
  ASSERT_TRUE(ledger_.Add(pod).ok());
  UsageAccumulator next([](const std::string&) { return ""; });
  next.Recall(kept, {});
  next.Follow(ledger_.Get(), now_);
  ASSERT_THAT(next.Show(now_), SizeIs(1));
  EXPECT_EQ(next.Show(now_)[0]->energy_joules, 77);
}

}  // namespace
}  // namespace penstock::node::usage
