#include "operator/repeated_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(RepeatedWrites, WaitLongerAndLonger) {
  RepeatedWrites repeated;
  base::TimePoint now{};
  const auto waits = [&] {
    const auto until = repeated.WaitsUntil("n1", 7, now);
    return until ? *until - now : base::Duration{};
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(waits(), 0s);
    repeated.Wrote("n1", 7, now);
  }
  std::vector<base::Duration> all;
  for (int i = 0; i < 11; ++i) {
    all.push_back(waits());
    now += all.back();
    EXPECT_EQ(waits(), 0s) << "after that time";
    repeated.Wrote("n1", 7, now);
  }
  EXPECT_THAT(all, ElementsAre(1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s, 300s));
}

TEST(RepeatedWrites, OtherContentAndOtherObjectsDoNotWait) {
  RepeatedWrites repeated;
  base::TimePoint now{};
  for (int i = 0; i < 5; ++i) repeated.Wrote("n1", 7, now);
  EXPECT_TRUE(repeated.WaitsUntil("n1", 7, now));
  EXPECT_FALSE(repeated.WaitsUntil("n1", 8, now));
  EXPECT_FALSE(repeated.WaitsUntil("n2", 7, now));
  EXPECT_THAT(repeated.Contested(now), ElementsAre("n1"));
  repeated.Wrote("n1", 8, now);
  EXPECT_THAT(repeated.Contested(now), IsEmpty());
}

TEST(RepeatedWrites, AreForgotten) {
  RepeatedWrites repeated;
  const base::TimePoint now{};
  for (int i = 0; i < 5; ++i) repeated.Wrote("n1", 7, now);
  EXPECT_TRUE(repeated.IsContested("n1", now + 9min));
  EXPECT_FALSE(repeated.IsContested("n1", now + 10min));
  for (int i = 0; i < 5; ++i) repeated.Wrote("n2", 7, now);
  repeated.Forget("n2");
  EXPECT_FALSE(repeated.IsContested("n2", now));
}

}  // namespace
}  // namespace penstock::cluster
