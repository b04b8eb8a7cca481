#include "api/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api {
namespace {

using ::testing::HasSubstr;

TEST(UsageReport, ReadsWhatItWrites) {
  UsageReport report{.query = {.by = {"namespace", "label:x"},
                               .since = base::ParseTime("2026-11-20T00:00:00.000Z"),
                               .until = base::ParseTime("2026-11-21T00:00:00.000Z")}};
  report.rows = {{{"ml", "a\"b"},
                  {.holders = 2,
                   .device_seconds = 1.5,
                   .busy_seconds = 1,
                   .measured_seconds = 1.25,
                   .energy_joules = 7,
                   .cpu_seconds = 0.5}}};
  report.total = report.rows[0].sum;
  report.damaged = 3;
  report.problem = "No space left on device";
  const auto back = ParseUsageReport(ToJson(report));
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(*back, report);
}

TEST(UsageReport, ReadsWhoIsIdle) {
  const std::vector<IdleHolder> idle = {{.lease = "r-1",
                                         .user = "eva",
                                         .command = "train",
                                         .device = "G0",
                                         .index = 3,
                                         .model = "A100",
                                         .slot = "G0::1",
                                         .since = base::ParseTime("2026-11-20T00:00:00.000Z"),
                                         .last_busy = base::ParseTime("2026-11-20T01:00:00.000Z"),
                                         .idle_seconds = 60,
                                         .memory_bytes = 5}};
  const auto back = ParseIdleHolders(ToJson(idle));
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(*back, idle);
}

TEST(UsageReport, NothingElseIsAnAnswer) {
  for (const char* text : {"", "{", "[]", "{}", R"({"usage":7})", R"({"idle":7})",
                           R"({"usage":{"rows":[7]}})", R"({"idle":[7]})"}) {
    EXPECT_FALSE(ParseUsageReport(text).ok()) << text;
    EXPECT_FALSE(ParseIdleHolders(text).ok()) << text;
  }
}

TEST(UsageReport, KeysAreKnownOrProposed) {
  EXPECT_TRUE(CheckUsageKeys({"namespace", "day", "label:team.example/x"}).ok());
  EXPECT_TRUE(CheckUsageKeys({}).ok());
  EXPECT_THAT(CheckUsageKeys({"usr"}).error().message(), HasSubstr("did you mean \"user\""));
  EXPECT_FALSE(CheckUsageKeys({"label:"}).ok());
}

}  // namespace
}  // namespace penstock::api
