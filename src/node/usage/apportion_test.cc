#include "node/usage/apportion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::usage {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using namespace std::chrono_literals;

base::TimePoint At(base::Duration time) { return base::TimePoint(time); }
const base::TimePoint kBegin = At(100s), kEnd = At(110s);

TEST(Apportion, OneWhoWasThereAllTheTimeHasItAll) {
  EXPECT_THAT(Apportion(kBegin, kEnd, std::vector<Occupancy>{{At(1s), At(110s), 0}}),
              ElementsAre(1.0));
  EXPECT_THAT(Apportion(kBegin, kEnd, std::vector<Occupancy>{{At(1s), At(110s), 0.7}}),
              ElementsAre(1.0));
}

TEST(Apportion, WhenNoOneWasThereItIsNoOnes) {
  EXPECT_THAT(Apportion(kBegin, kEnd, std::vector<Occupancy>{{At(104s), At(106s), 0}}),
              ElementsAre(DoubleEq(0.2)));
  EXPECT_THAT(Apportion(kBegin, kEnd, std::vector<Occupancy>{{At(1s), At(100s), 1}}),
              ElementsAre(0.0));
  EXPECT_THAT(Apportion(kEnd, kBegin, std::vector<Occupancy>{{At(1s), At(200s), 1}}),
              ElementsAre(0.0));
}

TEST(Apportion, OneAfterTheOtherHaveTheirTimes) {
  EXPECT_THAT(Apportion(kBegin, kEnd,
                        std::vector<Occupancy>{{At(1s), At(103s), 0}, {At(103s), At(110s), 1}}),
              ElementsAre(DoubleEq(0.3), DoubleEq(0.7)));
}

TEST(Apportion, ThoseWhoShareHaveItAsTheyComputeAndEvenlyWhileNoOneDoes) {
  EXPECT_THAT(Apportion(kBegin, kEnd,
                        std::vector<Occupancy>{{At(1s), At(110s), 0.6}, {At(1s), At(110s), 0.2}}),
              ElementsAre(DoubleEq(0.75), DoubleEq(0.25)));
  EXPECT_THAT(
      Apportion(kBegin, kEnd, std::vector<Occupancy>{{At(1s), At(110s), 0}, {At(1s), At(110s), 0}}),
      ElementsAre(0.5, 0.5));
  // The second one comes in the middle: the first has the first half alone.
  EXPECT_THAT(Apportion(kBegin, kEnd,
                        std::vector<Occupancy>{{At(1s), At(110s), 0}, {At(105s), At(110s), 0}}),
              ElementsAre(DoubleEq(0.75), DoubleEq(0.25)));
}

TEST(Apportion, WhatOthersComputeIsNotTheHolders) {
  EXPECT_THAT(Apportion(kBegin, kEnd, std::vector<Occupancy>{{At(1s), At(110s), 0.2}}, 0.6),
              ElementsAre(DoubleEq(0.25)));
}

TEST(Apportion, OverlapIsNeverNegative) {
  EXPECT_EQ(Overlap(kBegin, kEnd, {At(95s), At(103s), 0}), 3s);
  EXPECT_EQ(Overlap(kBegin, kEnd, {At(95s), At(99s), 0}), 0s);
}

}  // namespace
}  // namespace penstock::node::usage
