#include "node/usage/sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::usage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr double kSumSlip = 1e-6;

base::WallTime At(const std::string& time) {
  return base::ParseTime("2026-11-" + time + ":00.000Z");
}

/// A holder that used half of one device, 100 W, and one processor, from `since` to `until`.
Record Line(const std::string& lease, const std::string& since, const std::string& until,
            bool ended = true) {
  const double seconds = std::chrono::duration<double>(At(until) - At(since)).count();
  return {.ended = ended,
          .node = "n",
          .lease = lease,
          .namespace_name = "ml",
          .user = "eva",
          .device = "G0",
          .since = At(since),
          .until = At(until),
          .seconds = seconds,
          .measured_seconds = seconds,
          .busy_seconds = seconds / 2,
          .energy_joules = seconds * 100,
          .cpu_seconds = seconds};
}

api::UsageReport Sum(std::vector<std::string> by, const std::vector<Record>& records,
                     const std::string& since = "01T00:00", const std::string& until = "30T00:00") {
  Sums sums({.by = std::move(by), .since = At(since), .until = At(until)});
  for (const Record& record : records) sums.Add(record);
  return *sums.Finish();
}

TEST(Sums, AddUpByKeys) {
  Record other = Line("c", "10T00:00", "10T01:00");
  other.namespace_name = "web";
  const auto report = Sum(
      {"namespace"}, {Line("a", "10T00:00", "10T01:00"), Line("b", "10T00:00", "10T02:00"), other});
  ASSERT_THAT(report.rows, SizeIs(2));
  EXPECT_THAT(report.rows[0].by, ElementsAre("ml"));
  EXPECT_EQ(report.rows[0].sum.holders, 2u);
  EXPECT_NEAR(report.rows[0].sum.device_seconds, 3 * 3600, kSumSlip);
  EXPECT_NEAR(report.rows[0].sum.energy_joules, 3 * 360'000, kSumSlip);
  EXPECT_NEAR(report.rows[0].sum.busy_seconds, 1.5 * 3600, kSumSlip);
  EXPECT_NEAR(report.rows[0].sum.cpu_seconds, 3 * 3600, kSumSlip);
  EXPECT_NEAR(report.total.device_seconds, 4 * 3600, kSumSlip);
  EXPECT_EQ(report.total.holders, 3u);
}

TEST(Sums, CheckpointsAreNotCountedTwice) {
  const std::vector<Record> lines = {Line("a", "10T00:00", "10T01:00", false),
                                     Line("a", "10T00:00", "10T02:00", false),
                                     Line("a", "10T00:00", "10T03:00")};
  EXPECT_NEAR(Sum({}, lines).total.energy_joules, 3 * 360'000, kSumSlip);
  EXPECT_EQ(Sum({}, lines).total.holders, 1u);
  EXPECT_NEAR(Sum({}, {lines[0], lines[1]}).total.energy_joules, 2 * 360'000, kSumSlip);
  EXPECT_NEAR(Sum({}, {lines[1], lines[1]}).total.energy_joules, 2 * 360'000, kSumSlip)
      << "one who runs, after its own checkpoint";
}

TEST(Sums, ARunAcrossMidnightBelongsToBothDays) {
  const auto report = Sum({"day"}, {Line("a", "10T22:00", "12T06:00")});
  ASSERT_THAT(report.rows, SizeIs(3));
  EXPECT_THAT(report.rows[0].by, ElementsAre("2026-11-10"));
  EXPECT_NEAR(report.rows[0].sum.device_seconds, 2 * 3600, kSumSlip);
  EXPECT_NEAR(report.rows[1].sum.device_seconds, 24 * 3600, kSumSlip);
  EXPECT_NEAR(report.rows[2].sum.device_seconds, 6 * 3600, kSumSlip);
  EXPECT_NEAR(report.rows[2].sum.energy_joules, 6 * 360'000, kSumSlip);
}

TEST(Sums, CheckpointsReportOnWhichDayItWas) {
  Record busy = Line("a", "10T22:00", "10T23:30", false);
  Record end = Line("a", "10T22:00", "11T01:00");
  end.energy_joules = busy.energy_joules;  // no further energy was consumed
  const auto report = Sum({"day"}, {busy, end});
  EXPECT_NEAR(report.rows[0].sum.energy_joules, 1.5 * 360'000, kSumSlip);
  EXPECT_EQ(report.rows[1].sum.energy_joules, 0);
}

TEST(Sums, OfATimeOnlyWhatFallsIntoIt) {
  const auto report =
      Sum({}, {Line("a", "10T00:00", "10T10:00"), Line("b", "09T00:00", "10T02:00")}, "10T04:00",
          "10T06:00");
  EXPECT_NEAR(report.total.device_seconds, 2 * 3600, kSumSlip);
  EXPECT_EQ(report.total.holders, 1u);
  EXPECT_THAT(Sum({"user"}, {Line("a", "10T00:00", "10T10:00")}, "10T10:00", "10T11:00").rows,
              IsEmpty());
}

TEST(Sums, AShareIsAPartOfADevice) {
  Record share = Line("a", "10T00:00", "10T01:00");
  share.slots = 1;
  share.shares = 4;
  EXPECT_NEAR(Sum({}, {share}).total.device_seconds, 900, kSumSlip);
  EXPECT_NEAR(Sum({}, {share}).total.busy_seconds, 1800, kSumSlip);
}

TEST(Sums, DevicesOfALeaseAreOneHolder) {
  Record second = Line("a", "10T00:00", "10T01:00");
  second.device = "G1";
  second.cpu_seconds.reset();
  const auto report = Sum({}, {Line("a", "10T00:00", "10T01:00"), second});
  EXPECT_EQ(report.total.holders, 1u);
  EXPECT_NEAR(report.total.device_seconds, 7200, kSumSlip);
  EXPECT_NEAR(report.total.cpu_seconds, 3600, kSumSlip);
}

TEST(Sums, LabelsAreKeysToo) {
  Record labelled = Line("a", "10T00:00", "10T01:00");
  labelled.labels = {{"experiment", "x"}};
  const auto report =
      Sum({"label:experiment", "user"}, {labelled, Line("b", "10T00:00", "10T01:00")});
  ASSERT_THAT(report.rows, SizeIs(2));
  EXPECT_THAT(report.rows[0].by, ElementsAre("", "eva"));
  EXPECT_THAT(report.rows[1].by, ElementsAre("x", "eva"));
}

TEST(Sums, AClockThatWasSetBackMakesNothingNegative) {
  Record odd = Line("a", "10T05:00", "10T06:00");
  odd.until = At("10T04:00");  // the clock was set back by two hours meanwhile
  const auto report = Sum({"day"}, {odd});
  EXPECT_NEAR(report.total.device_seconds, 3600, kSumSlip);
  ASSERT_THAT(report.rows, SizeIs(1));
}

TEST(Sums, MoreRowsThanAnyoneReadsAreRefused) {
  Sums sums({.by = {"lease"}, .since = At("01T00:00"), .until = At("30T00:00")});
  for (std::size_t i = 0; i <= Sums::kMaxRows; ++i)
    sums.Add(Line("r" + std::to_string(i), "10T00:00", "10T01:00"));
  EXPECT_EQ(sums.Finish().error().code(), base::Code::kResourceExhausted);
}

}  // namespace
}  // namespace penstock::node::usage
