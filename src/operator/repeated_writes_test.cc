#include "operator/repeated_writes.h"

#include <vector>

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
  EXPECT_THAT(repeated.Contested(now), ElementsAre(testing::Key("n1")));
  repeated.Wrote("n1", 8, now);
  EXPECT_THAT(repeated.Contested(now), IsEmpty());
}

TEST(RepeatedWrites, AreContestedUntilTheyHaveStayed) {
  RepeatedWrites repeated;
  base::TimePoint now{};
  const auto contested = [&] {
    const auto until = repeated.ContestedUntil("n1", now);
    return until ? *until - now : base::Duration{};
  };
  for (int i = 0; i < 3; ++i) repeated.Wrote("n1", 7, now);
  EXPECT_EQ(contested(), 0s) << "a user took something back";
  std::vector<base::Duration> all;
  for (int i = 0; i < 8; ++i) {
    now = repeated.WaitsUntil("n1", 7, now).value_or(now);
    repeated.Wrote("n1", 7, now);
    all.push_back(contested());
  }
  EXPECT_THAT(all, ElementsAre(32s, 34s, 38s, 46s, 62s, 94s, 158s, 286s));
  now += 285s;
  EXPECT_THAT(repeated.Contested(now), ElementsAre(testing::Key("n1")));
  now += 1s;
  EXPECT_EQ(contested(), 0s);
  EXPECT_THAT(repeated.Contested(now), IsEmpty());
}

TEST(RepeatedWrites, AreForgotten) {
  RepeatedWrites repeated;
  const base::TimePoint now{};
  const auto slowed = [&](const std::string& name, base::TimePoint at) {
    RepeatedWrites again = repeated;
    again.Wrote(name, 7, at);
    return again.WaitsUntil(name, 7, at).has_value();
  };
  for (int i = 0; i < 5; ++i) repeated.Wrote("n1", 7, now);
  EXPECT_TRUE(slowed("n1", now + 9min));
  EXPECT_FALSE(slowed("n1", now + 10min));
  for (int i = 0; i < 5; ++i) repeated.Wrote("n2", 7, now);
  repeated.Forget("n2");
  EXPECT_FALSE(slowed("n2", now));
}

}  // namespace
}  // namespace penstock::cluster
