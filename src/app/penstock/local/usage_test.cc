#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/penstock/local/usage_show.h"
#include "app/penstock/local/usage_time.h"

namespace penstock::app {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const base::WallTime kAskedAt = base::ParseTime("2026-11-21T12:00:00.000Z");

std::string When(const std::string& text) {
  const auto when = ParseWhen(text, kAskedAt);
  return when.ok() ? base::FormatTime(*when) : "";
}

TEST(When, IsATimeOrHowLongAgo) {
  EXPECT_EQ(When("2026-11-20"), "2026-11-20T00:00:00.000Z");
  EXPECT_EQ(When("2026-11-20T03:04:05Z"), "2026-11-20T03:04:05.000Z");
  EXPECT_EQ(When("2026-11-20T03:04:05.678Z"), "2026-11-20T03:04:05.000Z");
  EXPECT_EQ(When("2026-11-20T03:04:05+01:30"), "2026-11-20T01:34:05.000Z");
  EXPECT_EQ(When("2026-11-20 03:04:05-08:00"), "2026-11-20T11:04:05.000Z");
  EXPECT_EQ(When("24h"), "2026-11-20T12:00:00.000Z");
  EXPECT_EQ(When("90m"), "2026-11-21T10:30:00.000Z");
  EXPECT_EQ(When("7d"), "2026-11-14T12:00:00.000Z");
  EXPECT_EQ(When("2w"), "2026-11-07T12:00:00.000Z");
  EXPECT_EQ(When("0d"), "2026-11-21T12:00:00.000Z");
}

TEST(When, NothingElseIs) {
  for (const char* text : {"",
                           "now",
                           "7",
                           "d",
                           "-7d",
                           "-1h",
                           "1.5d",
                           "99999999999d",
                           "2026-13-01",
                           "2026-02-30",
                           "2026-1-1",
                           "2026-11-20T",
                           "2026-11-20T03:04",
                           "2026-11-20T25:00:00Z",
                           "2026-11-20T03:04:05",
                           "2026-11-20T03:04:05+1:00",
                           "2026-11-20x",
                           "20261120",
                           "9999-01-01",
                           "1969-12-31",
                           "2026-11-20T03:04:05.Z x"})
    EXPECT_EQ(ParseWhen(text, kAskedAt).error().code(), base::Code::kInvalidArgument) << text;
}

api::UsageReport Report() {
  api::UsageReport report{.query = {.by = {"namespace", "label:experiment"},
                                    .since = kAskedAt - 24h,
                                    .until = kAskedAt}};
  report.rows = {
      {{"", "lr=\"0,1\""},
       {.holders = 1, .device_seconds = 3600, .energy_joules = 3.6e6, .cpu_seconds = 1800}},
      {{"ml", ""},
       {.holders = 2,
        .device_seconds = 5400,
        .busy_seconds = 100,
        .measured_seconds = 400,
        .energy_joules = 0,
        .cpu_seconds = 0}}};
  report.total = {.holders = 3,
                  .device_seconds = 9000,
                  .busy_seconds = 100,
                  .measured_seconds = 400,
                  .energy_joules = 3.6e6,
                  .cpu_seconds = 1800};
  return report;
}

TEST(Usage, IsShownInHoursAndKilowattHours) {
  EXPECT_EQ(ShowUsage(Report(), {}),
            "NAMESPACE  EXPERIMENT  HOLDERS  GPU-HOURS  UTIL   ENERGY-KWH  CPU-HOURS\n"
            "-          lr=\"0,1\"    1        1.00       -      1.000       0.50\n"
            "ml         -           2        1.50       25.0%  0.000       0.00\n"
            "total      -           3        2.50       25.0%  1.000       0.50\n");
  EXPECT_EQ(ShowUsage({}, {}), "no devices were held in this period\n");
}

TEST(Usage, IsCsvThatASpreadsheetReads) {
  EXPECT_EQ(
      UsageCsv(Report()),
      "namespace,label:experiment,holders,gpu_hours,utilization_ratio,energy_kwh,cpu_hours\r\n"
      ",\"lr=\"\"0,1\"\"\",1,1.000000,,1.000000,0.500000\r\n"
      "ml,,2,1.500000,0.2500,0.000000,0.000000\r\n");
}

TEST(Usage, TheIdleAreNamed) {
  const std::vector<api::IdleHolder> idle = {{.namespace_name = "ml",
                                              .pod = "train",
                                              .container = "main",
                                              .device = "G0",
                                              .index = 0,
                                              .slot = "G0::1",
                                              .since = kAskedAt - 3h,
                                              .idle_seconds = 7200,
                                              .memory_bytes = 1u << 30},
                                             {.user = "eva",
                                              .command = "sleep\x1b[2J",
                                              .device = "G1",
                                              .index = 1,
                                              .slot = "G1",
                                              .since = kAskedAt - 1h,
                                              .idle_seconds = 60},
                                             {.user = "ann",
                                              .device = "MIG-1",
                                              .number = "0:1",
                                              .slot = "MIG-1",
                                              .since = kAskedAt - 1h,
                                              .idle_seconds = 60}};
  const std::string table = ShowIdle(idle, {}, kAskedAt);
  EXPECT_THAT(table, HasSubstr("0      G0::1  2h    3h    1 GiB   ml/train/main\n"));
  EXPECT_THAT(table, HasSubstr("eva: sleep?[2J\n"));
  EXPECT_EQ(ShowIdle({}, {}, kAskedAt), "no held devices are idle\n");
  EXPECT_THAT(table, HasSubstr("0:1    MIG-1  1m    1h"));
  EXPECT_THAT(IdleCsv(idle), HasSubstr("G0,0,G0::1,ml,train,main,,,,"));
  EXPECT_THAT(IdleCsv(idle), HasSubstr("\nMIG-1,0:1,MIG-1,"));
}

}  // namespace
}  // namespace penstock::app
