#include "node/health/recovery.h"

#include <utility>

#include <gtest/gtest.h>

namespace penstock::node::health {
namespace {

using namespace std::chrono_literals;

constexpr Recovery::Terms kTerms{10s, 10min};
const base::TimePoint kStart{100h};

/// Stays without faults until the probation is over; returns that time.
base::TimePoint Recover(Recovery& recovery, base::TimePoint now) {
  for (base::Duration left = recovery.OnHealthy(now, kTerms); left > 0s;
       left = recovery.OnHealthy(now, kTerms))
    now += left;
  return now;
}

TEST(Recovery, EachRelapseDoublesTheProbationUpToTheMost) {
  Recovery recovery;
  base::TimePoint now = kStart;
  for (const auto expected : {10s, 20s, 40s, 80s, 160s, 320s, 600s, 600s}) {
    recovery.OnFault(now);
    const base::TimePoint well = Recover(recovery, now);
    EXPECT_EQ(well - now, expected);
    now = well + 1min;
  }
  EXPECT_EQ(recovery.relapses(now), 7);
}

TEST(Recovery, WellForLongEnoughForgetsAll) {
  Recovery recovery;
  recovery.OnFault(kStart);
  base::TimePoint now = Recover(recovery, kStart) + 59min;
  recovery.OnFault(now);
  EXPECT_EQ(recovery.relapses(now), 1);
  now = Recover(recovery, now) + 61min;
  EXPECT_EQ(recovery.relapses(now), 0);
  recovery.OnFault(now);
  EXPECT_EQ(recovery.relapses(now), 0);
  EXPECT_EQ(recovery.Probation(kTerms), 10s);
}

TEST(Recovery, LongProbationsAreWatchedForLonger) {
  Recovery recovery;
  const Recovery::Terms slow{30min, 1h};
  recovery.OnFault(kStart);
  recovery.OnHealthy(kStart, slow);
  EXPECT_EQ(recovery.OnHealthy(kStart + 30min, slow), 0s);
  recovery.OnFault(kStart + 30min + 4h);
  EXPECT_EQ(recovery.relapses(kStart + 30min + 4h), 1);
}

TEST(Recovery, ComingAndGoingIsNoRelapseAndReportedInSteps) {
  Recovery recovery;
  base::TimePoint now = kStart;
  int changes = 0, reported = 0;
  for (int i = 0; i < 5'000; ++i, now += 2s) {
    recovery.OnFault(now);
    EXPECT_GT(recovery.OnHealthy(now + 1s, kTerms), 0s);
    if (std::exchange(reported, recovery.Flaps()) != recovery.Flaps()) ++changes;
  }
  EXPECT_EQ(recovery.relapses(now), 0);
  EXPECT_EQ(recovery.Flaps(), 3'000);
  EXPECT_LE(changes, 7);
}

TEST(Recovery, ATroubleWithinTheProbationBeginsItAgain) {
  Recovery recovery;
  recovery.OnFault(kStart);
  recovery.OnHealthy(kStart, kTerms);
  recovery.OnFault(kStart + 9s);
  EXPECT_EQ(recovery.OnHealthy(kStart + 9s, kTerms), 10s);
}

TEST(Recovery, WhatIsForgivenLeavesNoTrace) {
  Recovery recovery;
  recovery.OnFault(kStart);
  const base::TimePoint now = Recover(recovery, kStart) + 1min;
  recovery.OnFault(now);
  recovery.Forgive();
  EXPECT_EQ(recovery.OnHealthy(now, kTerms), 0s);
  EXPECT_EQ(recovery.relapses(now), 0);
}

TEST(Recovery, IsTheSameAfterARestart) {
  Recovery before, after;
  before.OnFault(kStart);
  base::TimePoint now = Recover(before, kStart) + 1min;
  before.OnFault(now);
  now = Recover(before, now) + 10min;
  const base::TimePoint other_clock{5h};
  after.Recall(before.Remember(now), other_clock);
  after.OnFault(other_clock + 1min);
  EXPECT_EQ(after.relapses(other_clock + 1min), 2);
  after.Recall(before.Remember(now), other_clock);
  after.OnFault(other_clock + 51min);
  EXPECT_EQ(after.relapses(other_clock + 51min), 0) << "the observation continues where it stopped";
}

}  // namespace
}  // namespace penstock::node::health
