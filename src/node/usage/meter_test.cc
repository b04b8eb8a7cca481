#include "node/usage/meter.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/usage/record.h"
#include "node/usage/record_files.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::usage {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

enum : device::QuantityId { kUtilization, kMemoryUsed, kPower, kEnergy };

/// A node with the devices G0 and G1, whose samples the test makes.
class MeterTest : public ::testing::Test {
 protected:
  MeterTest() {
    config_.paths.state_dir = folder_.path();
    inventory_.SetFacts(
        "acme", {device::testing::AcmeDevice(0, 2), device::testing::AcmeDevice(1, 2)}, "", {});
    executor_.Advance(1000s);
    Start("boot");
  }

  void Start(const std::string& boot) {
    on_samples_.Reset();
    meter_.reset();
    ledger_ = std::make_unique<ledger::Ledger>();
    meter_ = std::make_unique<Meter>(
        Meter::Node{.control = executor_,
                    .io = executor_,
                    .inventory = inventory_,
                    .ledger = *ledger_,
                    .samples = samples_,
                    .dialect_of = [this](std::string_view) { return &dialect_; },
                    .sample_soon = [this] { ++hurried_; },
                    .sample_now = [this] { ++at_once_; },
                    .proc_root = folder_ / "proc",
                    .name = "n1"},
        config_);
    on_samples_ = samples_.Subscribe([this](const auto&) { meter_->SamplesChanged(); });
    meter_->Serve(boot);
  }

  void Hand(const std::string& id, const std::string& device, base::WallTime since) {
    ledger::Lease lease{.id = id, .allocator = "local", .slots = {{device, device, "", {}}}};
    lease.since = since;
    lease.user = "eva";
    lease.labels = {{"experiment", "x"}};
    ASSERT_TRUE(ledger_->Add(lease).ok());
  }
  void Hand(const std::string& id, const std::string& device) {
    Hand(id, device, executor_.clock().Wall());
  }

  /// Ten seconds later, both devices report these values.
  void Sample(std::uint64_t percent, std::uint64_t joules) {
    executor_.Advance(10s);
    const base::WallTime at = executor_.clock().Wall();
    sample::Snapshot next;
    next.interval = 10s;
    for (const char* id : {"G0", "G1"}) {
      auto made = std::make_shared<sample::DeviceSample>();
      made->device = id;
      made->vendor = "acme";
      made->at = made->processes_at = at;
      made->values = {{{kUtilization, -1, percent}, at},
                      {{kMemoryUsed, -1, std::uint64_t{100}}, at},
                      {{kEnergy, -1, joules * 1000}, at}};
      next.devices[id] = std::move(made);
    }
    samples_.Set(std::move(next));
    executor_.RunUntilIdle();
  }

  std::vector<Record> Records() {
    executor_.Advance(3s);
    std::vector<Record> records;
    LineReader reader(RecordFiles(folder_ / "usage").List());
    while (reader.Read(1u << 20,
                       [&](std::string_view line) { records.push_back(*DecodeRecord(line)); })) {}
    return records;
  }

  api::UsageReport Sum(std::vector<std::string> by = {}) {
    base::Result<api::UsageReport> report = base::Error(base::Code::kUnknown, "not called");
    meter_->Sum({.by = std::move(by), .since = {}, .until = executor_.clock().Wall() + 1h},
                [&](auto answer) { report = std::move(answer); });
    executor_.RunUntilIdle();
    EXPECT_TRUE(report.ok()) << report.error().ToString();
    return report.ok() ? *report : api::UsageReport{};
  }

  os::TemporaryFolder folder_;
  base::ManualExecutor executor_;
  api::NodeConfig config_;
  device::testing::AcmeDialect dialect_;
  inventory::Inventory inventory_;
  std::unique_ptr<ledger::Ledger> ledger_;
  base::Published<sample::Snapshot> samples_;
  int hurried_ = 0, at_once_ = 0;
  std::unique_ptr<Meter> meter_;
  base::Subscription on_samples_;
};

TEST_F(MeterTest, ReportsWhatAHolderUsesAsSoonAsASampleComes) {
  Sample(0, 1000);
  Hand("r", "G0");
  executor_.RunUntilIdle();
  ASSERT_THAT(meter_->Get()->holders, SizeIs(1)) << "at once, not with the next sample";
  Sample(50, 3000);
  const auto holders = meter_->Get()->holders;
  ASSERT_THAT(holders, SizeIs(1));
  EXPECT_EQ(holders[0]->model, "Acme Small");
  EXPECT_EQ(holders[0]->utilization, 0.5);
  EXPECT_EQ(holders[0]->memory_used, base::Mebibytes(100));
  EXPECT_NEAR(holders[0]->energy_joules, 2000, 1e-6);
  EXPECT_NEAR(holders[0]->busy_seconds, 5, 1e-6);
}

TEST_F(MeterTest, TellsOfEachChangeAndShowsItWhenAsked) {
  int changes = 0;
  auto on_change = meter_->OnChange([&changes] { ++changes; });
  const auto before = meter_->Get();
  Hand("r", "G0");
  EXPECT_GT(changes, 0);
  EXPECT_THAT(before->holders, IsEmpty());
  const auto now = meter_->Get();
  EXPECT_THAT(now->holders, SizeIs(1));
  EXPECT_EQ(meter_->Get(), now) << "made once for each change";
  on_change.Reset();
  changes = 0;
  ledger_->Release("r");
  EXPECT_EQ(changes, 0);
}

TEST_F(MeterTest, AsksForASampleWhenSomeoneComesOrGoes) {
  Sample(0, 0);
  Hand("r", "G0");
  EXPECT_EQ(hurried_, 0) << "the last sample was just now";
  executor_.Advance(5s);
  ledger_->Release("r");
  EXPECT_EQ(hurried_, 1);
}

TEST_F(MeterTest, WhereManyHaveEndedASampleIsWantedAtOnceAndEachIsWrittenWithIt) {
  Sample(0, 0);
  constexpr int kMany = 300;
  for (int i = 0; i < kMany; ++i) {
    Hand("r" + std::to_string(i), "G0");
    ledger_->Release("r" + std::to_string(i));
    EXPECT_TRUE(i > 100 || at_once_ == 0) << i;
  }
  EXPECT_GT(at_once_, 0);
  executor_.RunUntilIdle();
  EXPECT_THAT(meter_->Get()->holders, SizeIs(250))
      << "thousands are not published for each that comes";
  at_once_ = 0;
  Sample(0, 700);
  Hand("next", "G0");
  EXPECT_EQ(at_once_, 0);
  EXPECT_THAT(Records(), SizeIs(kMany));
}

TEST_F(MeterTest, WritesALineWhenAHolderEnds) {
  config_.telemetry.holder_labels = {"*"};
  meter_->Configure(config_);
  Sample(0, 0);
  Hand("r", "G0");
  Sample(100, 700);
  ledger_->Release("r");
  Sample(0, 700);
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_TRUE(records[0].ended);
  EXPECT_EQ(records[0].node, "n1");
  EXPECT_EQ(records[0].user, "eva");
  EXPECT_EQ(records[0].labels.at("experiment"), "x");
  EXPECT_EQ(records[0].energy_joules, 700);
  EXPECT_EQ(records[0].busy_seconds, 10);
  EXPECT_EQ(meter_->Get()->records.written, 1u);
}

TEST_F(MeterTest, AShorterTimeForThoseWhoEndedHoldsAtOnce) {
  config_.telemetry.keep_ended = 1h;
  meter_->Configure(config_);
  Sample(0, 0);
  Hand("r", "G0");
  ledger_->Release("r");
  Sample(0, 0);
  ASSERT_THAT(meter_->Get()->holders, SizeIs(1));
  config_.telemetry.keep_ended = 1min;
  meter_->Configure(config_);
  executor_.Advance(1min);
  EXPECT_THAT(meter_->Get()->holders, IsEmpty());
}

TEST_F(MeterTest, WritesCheckpointsOfThoseWhoGoOn) {
  Hand("r", "G0");
  Sample(0, 0);
  executor_.Advance(config_.usage.checkpoint);
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_FALSE(records[0].ended);
}

TEST_F(MeterTest, RecordsCanBeSwitchedOff) {
  config_.usage.records = false;
  meter_->Configure(config_);
  Hand("r", "G0");
  ledger_->Release("r");
  Sample(0, 0);
  EXPECT_THAT(Records(), IsEmpty());
  EXPECT_THAT(meter_->Get()->holders, SizeIs(1));
}

TEST_F(MeterTest, AHolderThatLivesThroughARestartIsOneRecord) {
  Hand("r", "G0");
  const base::WallTime since = executor_.clock().Wall();
  Sample(100, 0);
  Sample(100, 1000);
  Start("boot");
  Hand("r", "G0", since);
  Sample(100, 1500);
  ledger_->Release("r");
  Sample(0, 1500);
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].energy_joules, 1500);
  EXPECT_EQ(records[0].busy_seconds, 30 - 10) << "what no agent saw is not invented";
  EXPECT_EQ(records[0].seconds, 30);
}

TEST_F(MeterTest, AfterABadEndThePageBeginsAtNothingAndStaysBelowTheRecord) {
  const auto energy = [this] { return meter_->Get()->holders.at(0)->energy_joules; };
  const base::WallTime since = executor_.clock().Wall();
  Hand("r", "G0", since);
  Sample(100, 0);
  Sample(100, 1000);
  EXPECT_EQ(energy(), 1000);

  meter_.reset();
  std::filesystem::remove(folder_ / "usage-end.json");
  Start("boot");
  Hand("r", "G0", since);
  executor_.RunUntilIdle();
  EXPECT_EQ(energy(), 0)
      << "what the page showed last is not known: it may have been more than was kept";
  Sample(100, 1500);
  EXPECT_EQ(energy(), 500);

  Start("boot");  // after a clean end the page continues with its last value, without a jump by the
                  // usage that it did not show
  Hand("r", "G0", since);
  executor_.RunUntilIdle();
  EXPECT_EQ(energy(), 500);
  Sample(100, 1700);
  EXPECT_EQ(energy(), 700);
  ledger_->Release("r");
  Sample(0, 1700);
  EXPECT_EQ(energy(), 700);
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].energy_joules, 1700);
}

TEST_F(MeterTest, WhoDidNotComeBackHasEnded) {
  Hand("r", "G0");
  Sample(100, 0);
  Start("boot");
  EXPECT_THAT(Records(), IsEmpty()) << "allocators may still find it";
  executor_.Advance(1min);
  ASSERT_THAT(Records(), SizeIs(1));
  EXPECT_TRUE(Records()[0].ended);
}

TEST_F(MeterTest, AfterARebootNoOneIsLeft) {
  Hand("r", "G0");
  Sample(100, 0);
  Start("another boot");
  ASSERT_THAT(Records(), SizeIs(1));
  EXPECT_EQ(Records()[0].busy_seconds, 0);
}

TEST_F(MeterTest, WhatANewerAgentKeptIsSetAsideAndRecordsGoOn) {
  meter_.reset();
  folder_.Write("usage.json", R"({"version": 99})");
  Start("boot");
  Hand("r", "G0");
  Sample(0, 0);
  ledger_->Release("r");
  Sample(0, 0);
  EXPECT_THAT(Records(), SizeIs(1));
  EXPECT_EQ(meter_->Get()->records.problem, "");
  EXPECT_EQ(*os::ReadFile(folder_ / "usage.json.newer"), R"({"version": 99})");
}

TEST_F(MeterTest, SumsWhatIsWrittenWhatWaitsAndWhatRuns) {
  Hand("written", "G0");
  Sample(100, 0);
  Sample(100, 100);
  ledger_->Release("written");
  Sample(0, 100);
  EXPECT_THAT(Records(), SizeIs(1));
  Hand("runs", "G1");
  Hand("waits", "G0");
  Sample(100, 200);
  ledger_->Release("waits");
  Sample(100, 200);
  const auto report = Sum({"lease"});
  ASSERT_THAT(report.rows, SizeIs(3));
  EXPECT_EQ(report.total.holders, 3u);
  EXPECT_NEAR(report.rows[2].sum.energy_joules, 100, 1) << report.rows[2].by[0];
  EXPECT_EQ(report.damaged, 0u);
  EXPECT_EQ(Sum({"lease"}), report) << "asking changes nothing";
}

TEST_F(MeterTest, OneQuestionAtATimeAndOnlyWithKeysThatThereAre) {
  base::Result<api::UsageReport> first = base::Error(base::Code::kUnknown, ""), second = first,
                                 odd = first;
  meter_->Sum({.by = {"nmespace"}}, [&](auto answer) { odd = std::move(answer); });
  EXPECT_EQ(odd.error().code(), base::Code::kInvalidArgument);
  EXPECT_THAT(odd.error().message(), ::testing::HasSubstr("\"namespace\""));
  meter_->Sum({}, [&](auto answer) { first = std::move(answer); });
  meter_->Sum({}, [&](auto answer) { second = std::move(answer); });
  EXPECT_EQ(second.error().code(), base::Code::kUnavailable);
  executor_.RunUntilIdle();
  EXPECT_TRUE(first.ok());
}

TEST_F(MeterTest, DamagedLinesAreCounted) {
  folder_.Write("usage/usage-000001.jsonl", "rubbish\n{}\n");
  EXPECT_EQ(Sum().damaged, 2u);
}

TEST_F(MeterTest, ListsWhoHoldsAndDoesNotUse) {
  config_.usage.idle_after = 60s;
  meter_->Configure(config_);
  Hand("idle", "G0");
  for (int i = 0; i < 3; ++i) Sample(0, 0);
  Hand("later", "G1");
  for (int i = 0; i < 3; ++i) Sample(0, 0);
  const auto idle = meter_->Idle();
  ASSERT_THAT(idle, SizeIs(1));
  EXPECT_EQ(idle[0].lease, "idle");
  EXPECT_EQ(idle[0].index, 0);
  EXPECT_NEAR(idle[0].idle_seconds, 60, 1e-6);
  EXPECT_EQ(idle[0].memory_bytes, 100u << 20);
}

}  // namespace
}  // namespace penstock::node::usage
