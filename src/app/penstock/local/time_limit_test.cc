// Tests the parser of a run's time limit.
#include "app/penstock/local/time_limit.h"

#include <gtest/gtest.h>

namespace penstock::app {
namespace {

using namespace std::chrono_literals;

TEST(TimeLimit, ReadsSlurmsSpellings) {
  EXPECT_EQ(*ParseTimeLimit("90"), 90min);
  EXPECT_EQ(*ParseTimeLimit("90:30"), 90min + 30s);
  EXPECT_EQ(*ParseTimeLimit("2:00:00"), 2h);
  EXPECT_EQ(*ParseTimeLimit("01:02:03"), 1h + 2min + 3s);
  EXPECT_EQ(*ParseTimeLimit("1-12"), 36h);
  EXPECT_EQ(*ParseTimeLimit("1-12:30"), 36h + 30min);
  EXPECT_EQ(*ParseTimeLimit("2-00:00:05"), 48h + 5s);
}

TEST(TimeLimit, ReadsDurations) {
  EXPECT_EQ(*ParseTimeLimit("90m"), 90min);
  EXPECT_EQ(*ParseTimeLimit("2h30m"), 150min);
  EXPECT_EQ(*ParseTimeLimit("1500ms"), 1500ms);
}

TEST(TimeLimit, IsTenYearsAtMost) {
  EXPECT_EQ(*ParseTimeLimit("3650-00"), 3650 * 24h);
  EXPECT_EQ(*ParseTimeLimit("87600:00:00"), 3650 * 24h);
  // These overflow a 64-bit count of nanoseconds; an undetected overflow would turn some of them
  // into a short time.
  for (const char* text : {"5124096:00:00", "315360000:00:00", "87600:00:01", "3650-00:00:01",
                           "3650-315360000:315360000:315360000", "0:0:315360001", "2562048:0:0",
                           "87601h", "5256001"}) {
    const auto time = ParseTimeLimit(text);
    ASSERT_FALSE(time.ok()) << text << " is " << time->count() << " ns";
  }
  for (const char* text : {"5124096:00:00", "315360000:00:00"})
    EXPECT_NE(ParseTimeLimit(text).error().message().find("too long"), std::string::npos) << text;
}

TEST(TimeLimit, SaysWhatIsWrong) {
  for (const char* text : {"", "-1", "1-", "1:2:3:4", "1:2:x", "two hours", "0", "0:00", "10ms",
                           "999999999", "99999-00", "4000-00", "1e3", "99999999999999999999"}) {
    const auto time = ParseTimeLimit(text);
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_EQ(time.error().code(), base::Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace penstock::app
