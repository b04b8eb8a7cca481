#include "node/metrics/bit_window.h"

#include <gtest/gtest.h>

namespace penstock::node::metrics {
namespace {

using namespace std::chrono_literals;

TEST(BitWindow, CountsSamplesInWhichABitWasSet) {
  BitWindow window;
  const base::TimePoint begin{};
  window.AddSample("G0", base::WallTime(1s), 0b101, begin);
  window.AddSample("G0", base::WallTime(2s), 0b100, begin + 1s);
  window.AddSample("G1", base::WallTime(1s), 0b001, begin);
  EXPECT_EQ(window.Count("G0", 1), 1u);
  EXPECT_EQ(window.Count("G0", 4), 2u);
  EXPECT_EQ(window.Count("G1", 4), 0u);
  EXPECT_EQ(window.Count("G2", 1), 0u);
}

TEST(BitWindow, TheSameSampleCountsOnce) {
  BitWindow window;
  window.AddSample("G0", base::WallTime(1s), 1, base::TimePoint{});
  window.AddSample("G0", base::WallTime(1s), 1, base::TimePoint{} + 1s);
  EXPECT_EQ(window.Count("G0", 1), 1u);
}

TEST(BitWindow, WhatIsOlderThanTheWindowIsForgotten) {
  BitWindow window;
  window.SetWindow(10s);
  window.AddSample("G0", base::WallTime(1s), 1, base::TimePoint{});
  window.AddSample("G0", base::WallTime(2s), 1, base::TimePoint{} + 10s);
  EXPECT_EQ(window.Count("G0", 1), 2u);
  window.AddSample("G0", base::WallTime(3s), 0, base::TimePoint{} + 11s);
  EXPECT_EQ(window.Count("G0", 1), 1u);
  for (int i = 0; i < 10'000; ++i)
    window.AddSample("G0", base::WallTime(10s + i * 1ms), 1, base::TimePoint{} + 12s);
  EXPECT_LE(window.Count("G0", 1), 4097u) << "however often somebody looks";
}

TEST(BitRises, CountsHowOftenABitBecameSet) {
  BitRises rises;
  int second = 0;
  const auto see = [&](std::uint64_t bits) {
    rises.AddSample("G0", base::WallTime(std::chrono::seconds(++second)), bits);
  };
  see(0b001);
  EXPECT_EQ(rises.Count("G0", 1), 0u) << "it was so before anybody looked";
  see(0b101);
  see(0b101);
  EXPECT_EQ(rises.Count("G0", 4), 1u) << "it stays so";
  see(0b000);
  see(0b101);
  EXPECT_EQ(rises.Count("G0", 1), 1u);
  EXPECT_EQ(rises.Count("G0", 4), 2u);
  rises.AddSample("G0", base::WallTime(std::chrono::seconds(second)), 0b111);
  EXPECT_EQ(rises.Count("G0", 2), 0u) << "the same sample again";
  EXPECT_EQ(rises.Count("G1", 1), 0u);
}

}  // namespace
}  // namespace penstock::node::metrics
