// Tests which quantities a device is asked for, and which of its values are accepted.
#include "node/sample/device_collector.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/sample/testing/sampler_fixture.h"

namespace penstock::node::sample::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using CollectionTest = SamplerTest;

TEST_F(CollectionTest, AsksEachQuantityAtItsPace) {
  Start();
  EXPECT_THAT(
      backend_.Take("at-A").at(0).request.quantities,
      ElementsAre(kUtilization, kMemoryUsed, kPower, kEnergy, kErrors, kClockMost, kLinkBytes));
  std::map<QuantityId, int> times;
  executor_.Advance(91s);
  for (const auto& one : backend_.Take("at-A"))
    for (const QuantityId id : one.request.quantities) ++times[id];
  EXPECT_EQ(times[kUtilization], 10);
  EXPECT_EQ(times[kErrors], 3) << "each half minute";
  EXPECT_EQ(times[kClockMost], 0) << "once is enough";
}

TEST_F(CollectionTest, WhatComesSlowlyComesNoSoonerThanTheInterval) {
  Start({.interval = 60s});
  executor_.Advance(2s);
  backend_.asked.clear();
  executor_.Advance(300s);
  for (const auto& one : backend_.Take("at-A"))
    EXPECT_THAT(one.request.quantities, Contains(kErrors));
}

TEST_F(CollectionTest, WhatStaysAndHasNotBeenSaidYetIsAskedForAgain) {
  backend_.values.erase(kClockMost);
  StartAndAdvance(32s);
  backend_.values[kClockMost] = std::uint64_t{1980};
  executor_.Advance(30s);
  EXPECT_EQ(Value("A", kClockMost), 1980);
}

TEST_F(CollectionTest, AsksForNothingThatIsNotWanted) {
  Start({.interval = 10s,
         .processes = false,
         .left_out = {{"acme", {"energy", "memory.used"}}, {"emca", {"utilization"}}}});
  for (const auto& one : backend_.asked) {
    EXPECT_THAT(one.request.quantities,
                AllOf(Not(Contains(kEnergy)), Not(Contains(kMemoryUsed)), Contains(kUtilization)));
    EXPECT_FALSE(one.request.processes);
  }
}

TEST_F(CollectionTest, WhatIsNotWantedAnyMoreIsDropped) {
  backend_.processes = {{.pid = 7}};
  Start();
  EXPECT_THAT(Of("A")->processes, SizeIs(1));
  sampler_.Configure({.interval = 10s,
                      .processes = false,
                      .left_out = {{"acme", {"energy"}}, {"emca", {"utilization"}}}});
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kEnergy), std::nullopt);
  EXPECT_EQ(Value("A", kUtilization), 40);
  EXPECT_THAT(Of("A")->processes, IsEmpty());
}

TEST_F(CollectionTest, WhatADeviceLacksIsAskedForOnceInASession) {
  backend_.unsupported = {kPower};
  Start();
  EXPECT_THAT(Of("A")->unsupported, ElementsAre(kPower));
  backend_.asked.clear();
  executor_.Advance(60s);
  for (const auto& one : backend_.asked) EXPECT_THAT(one.request.quantities, Not(Contains(kPower)));
  session_ = 2;  // the driver was reopened
  backend_.unsupported.clear();
  backend_.values[kPower] = std::uint64_t{300000};
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kPower), 300000);
  EXPECT_THAT(Of("A")->unsupported, IsEmpty());
}

TEST_F(CollectionTest, WhatADeviceLacksIsAskedForAgainWhenItIsDescribedAgain) {
  backend_.unsupported = {kUtilization};
  Start();
  backend_.unsupported.clear();
  architecture_ = "two";
  SetDevices({"A", "B"});
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kUtilization), 40);
}

TEST_F(CollectionTest, AValueOfWhatTurnsOutToBeLackingIsDropped) {
  Start();
  backend_.unsupported = {kUtilization};
  backend_.values.erase(kUtilization);
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kUtilization), std::nullopt);
}

TEST_F(CollectionTest, EachValueHasItsOwnTime) {
  Start();
  const auto began = executor_.clock().Wall();
  executor_.Advance(12s);
  EXPECT_EQ(Of("A")->Find(kUtilization)->at, began + 11s);
  EXPECT_EQ(Of("A")->Find(kErrors)->at, began);
  EXPECT_EQ(Of("A")->at, began + 11s);
}

TEST_F(CollectionTest, ADeviceThatFailsIsLeftAloneLongerEachTimeAndKeepsItsValues) {
  Start();
  backend_.failures.emplace("at-A", Error(Code::kDataLoss, "GPU is lost"));
  EXPECT_THAT(TimesOver("at-A", 200s), ElementsAre(1, 11, 21, 41, 81, 161));
  EXPECT_EQ(Of("A")->problem, "GPU is lost");
  EXPECT_EQ(Of("A")->failures, 6u);
  EXPECT_EQ(Value("A", kUtilization), 40) << "with its age";
  EXPECT_THAT(TimesOver("at-B", 20s), SizeIs(2));
  backend_.failures.clear();
  executor_.Advance(130s);
  EXPECT_EQ(Of("A")->problem, "");
  EXPECT_THAT(TimesOver("at-A", 30s), SizeIs(3)) << "it answers again";
}

TEST_F(CollectionTest, ADeviceThatHangsIsLeftAloneForHalfAMinuteAlsoByTheNextWorker) {
  StartAndAdvance(1s);
  backend_.failures.emplace("at-A", Error(Code::kDeadlineExceeded, "no answer within 5s"));
  executor_.Advance(10s);
  session_ = 2;
  EXPECT_THAT(TimesOver("at-A", 29s), IsEmpty());
  EXPECT_THAT(TimesOver("at-A", 11s), SizeIs(1));
  EXPECT_THAT(TimesOver("at-A", 50s), IsEmpty()) << "twice as long";
  EXPECT_THAT(TimesOver("at-B", 20s), Not(IsEmpty()));
}

TEST_F(CollectionTest, ANewSessionForgetsWhatFailedInTheLastOne) {
  Start();
  backend_.failures.emplace("at-A", Error(Code::kDataLoss, "GPU is lost"));
  executor_.Advance(90s);
  backend_.failures.clear();
  session_ = 2;
  executor_.Advance(10s);
  EXPECT_EQ(Of("A")->problem, "");
}

TEST_F(CollectionTest, KeepsOutAndCountsWhatIsTooLarge) {
  Start();
  backend_.values[kUtilization] = std::uint64_t{255};
  backend_.values[kMemoryUsed] = std::uint64_t{2048};  // MiB; the device has 1024
  backend_.values[kPower] = std::numeric_limits<double>::quiet_NaN();
  executor_.Advance(1s);
  EXPECT_EQ(Value("A", kUtilization), 40);
  EXPECT_EQ(Value("A", kMemoryUsed), 512);
  EXPECT_EQ(Value("A", kPower), std::nullopt);
  EXPECT_EQ(Rejections("utilization", "too-large"), 2u);
  EXPECT_EQ(Rejections("memory.used", "too-large"), 2u);
  EXPECT_EQ(Rejections("power", "too-large"), 2u);
  backend_.values[kUtilization] = std::uint64_t{100};
  backend_.values[kMemoryUsed] = std::uint64_t{1024};
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kUtilization), 100);
  EXPECT_EQ(Value("A", kMemoryUsed), 1024);
  EXPECT_EQ(Rejections("utilization", "too-large"), 2u);
}

TEST_F(CollectionTest, TakesNonsenseFromProcesses) {
  backend_.processes = {{.pid = 7, .memory = base::Mebibytes(4096), .compute = 250, .encoder = 3}};
  Start();
  const device::ProcessSample process = Of("A")->processes.at(0);
  EXPECT_EQ(process.memory, std::nullopt);
  EXPECT_EQ(process.compute, std::nullopt);
  EXPECT_EQ(process.encoder, 3);
  EXPECT_EQ(Rejections("process.memory", "too-large"), 2u);
  EXPECT_EQ(Rejections("process.compute", "too-large"), 2u);
}

TEST_F(CollectionTest, IgnoresWhatNoOneAskedFor) {
  backend_.unasked = {{kPower, -1, std::uint64_t{5}}, {4711, -1, std::uint64_t{5}}};
  Start({.interval = 10s, .left_out = {{"acme", {"power"}}, {"emca", {"utilization"}}}});
  EXPECT_EQ(Value("A", kPower), std::nullopt);
  EXPECT_EQ(Value("A", 4711), std::nullopt);
}

TEST_F(CollectionTest, ACounterThatFallsIsKeptOutUntilItStaysFallen) {
  Start();
  backend_.values[kEnergy] = std::uint64_t{10};
  executor_.Advance(1s);
  backend_.values[kEnergy] = std::uint64_t{20};
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kEnergy), 1000);
  EXPECT_EQ(Rejections("energy", "went-back"), 4u) << "two devices, twice";
  backend_.values[kEnergy] = std::uint64_t{30};
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kEnergy), 30) << "three readings agree";
  EXPECT_EQ(Rejections("energy", "went-back"), 4u);
}

TEST_F(CollectionTest, ACounterThatFallsNowAndThenStaysOut) {
  StartAndAdvance(1s);
  std::uint64_t count = 1000;
  for (int i = 0; i < 20; ++i) {
    backend_.values[kEnergy] = i % 3 == 2 ? ++count : std::uint64_t{5};
    executor_.Advance(10s);
    EXPECT_GE(Value("A", kEnergy), 1000);
  }
  backend_.values[kEnergy] = count;
  executor_.Advance(10s);
  std::uint64_t falling = 900;
  for (int i = 0; i < 20; ++i) {
    backend_.values[kEnergy] = --falling;
    executor_.Advance(10s);
    EXPECT_GE(Value("A", kEnergy), 1000) << "readings that do not agree";
  }
}

TEST_F(CollectionTest, ACounterMayFallWithANewSession) {
  Start();
  session_ = 2;
  backend_.values[kEnergy] = std::uint64_t{10};
  executor_.Advance(1s);
  EXPECT_EQ(Value("A", kEnergy), 10);
  EXPECT_EQ(Rejections("energy", "went-back"), 0u);
}

TEST_F(CollectionTest, AGaugeMayFall) {
  Start();
  backend_.values[kUtilization] = std::uint64_t{0};
  executor_.Advance(1s);
  EXPECT_EQ(Value("A", kUtilization), 0);
}

TEST_F(CollectionTest, WhatIsNoMoreThereIsDroppedAfterItWasAskedForThreeTimes) {
  Start();
  backend_.values.erase(kUtilization);
  executor_.Advance(11s);
  EXPECT_EQ(Value("A", kUtilization), 40);
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kUtilization), std::nullopt);
  EXPECT_EQ(Value("A", kErrors), 0) << "asked for less often";
  EXPECT_EQ(Value("A", kClockMost), 1980) << "asked for once";
}

TEST_F(CollectionTest, RemembersALittle) {
  Start({.interval = 1s});
  for (int i = 0; i < 200; ++i) {
    backend_.values[kUtilization] = static_cast<std::uint64_t>(i % 100);
    executor_.Advance(1s);
  }
  const auto device = Of("A");
  ASSERT_EQ(device->history.at(0).name, "utilization");
  EXPECT_THAT(device->history.at(0).values, SizeIs(120));
  EXPECT_FLOAT_EQ(device->history.at(0).values.back(), 0.99F);
  EXPECT_FLOAT_EQ(device->history.at(0).values.front(), 0.80F);
  ASSERT_EQ(device->history.at(1).name, "memoryUsed");
  EXPECT_FLOAT_EQ(device->history.at(1).values.back(), 512.0F * 1048576);
  backend_.failures.emplace("at-A", Error(Code::kDataLoss, "GPU is lost"));
  executor_.Advance(1s);
  EXPECT_TRUE(std::isnan(Of("A")->history.at(0).values.back()));
}

}  // namespace
}  // namespace penstock::node::sample::testing
