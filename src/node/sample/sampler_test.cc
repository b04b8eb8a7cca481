// Tests when devices are asked, and what is published.
#include "node/sample/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "node/sample/testing/sampler_fixture.h"

namespace penstock::node::sample::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(SamplerTest, CollectsAtOnceThenASecondLaterAndThenAtItsInterval) {
  Start();
  EXPECT_EQ(Value("A", kUtilization), 40);
  EXPECT_THAT(TimesOver("at-A", 32s), ElementsAre(1, 11, 21, 31))
      << "what needs two samples has its value after a second";
}

TEST_F(SamplerTest, AsksOneDeviceAtATime) {
  SetDevices({"A", "B", "C", "D"});
  for (const char* address : {"at-A", "at-B", "at-C", "at-D"}) backend_.takes[address] = 100ms;
  Start({.interval = 1s});
  executor_.Advance(20s);
  EXPECT_EQ(backend_.most_at_once, 1);
  EXPECT_THAT(TimesOver("at-D", 5s), SizeIs(5));
}

TEST_F(SamplerTest, PartsThatAreMeasuredWithTheirDeviceAreNotAskedAlone) {
  SetParts();
  backend_.together = {"at-A0", "at-A1"};
  Start();
  EXPECT_THAT(backend_.asked, SizeIs(2));
  EXPECT_EQ(Value("A0", kUtilization), 40);
  EXPECT_EQ(Value("A1", kErrors), 0) << "what is asked rarely, too";
  EXPECT_EQ(Of("A1")->collections, 1u);
  executor_.Advance(1s);
  EXPECT_THAT(backend_.asked, SizeIs(4)) << "again soon, as each new device";
  EXPECT_EQ(Of("A1")->collections, 2u);
}

TEST_F(SamplerTest, APartThatIsNotMeasuredWithItsDeviceIsAskedAloneForTheSame) {
  SetParts();
  backend_.together = {"at-A0"};
  Start();
  EXPECT_THAT(backend_.Take("at-A0"), IsEmpty());
  const auto device = backend_.Take("at-A"), part = backend_.Take("at-A1");
  ASSERT_THAT(device, SizeIs(1));
  ASSERT_THAT(part, SizeIs(1));
  EXPECT_EQ(part[0].request, device[0].request.parts.at(1));
  EXPECT_EQ(Value("A1", kErrors), 0);
  backend_.failures.emplace("at-A", Error(Code::kDataLoss, "does not answer"));
  backend_.asked.clear();
  executor_.Advance(10s);
  EXPECT_THAT(backend_.Take("at-A0"), Not(IsEmpty())) << "its device failed";
  EXPECT_EQ(Of("A0")->failures, 0u);
}

TEST_F(SamplerTest, WhatIsSaidOfPartsThatWereNotAskedForIsDropped) {
  struct Inventive final : device::AsyncBackend {
    explicit Inventive(ScriptedBackend& a_backend) : backend(a_backend) {}
    void TakeSample(const std::string& address, const device::SampleRequest& request,
                    Done<device::Sample> done) override {
      backend.TakeSample(address, request, [done](base::Result<device::Sample> sample) {
        for (const char* part : {"at-A0", "at-A0", "at-B", "", "at-nothing"}) {
          device::Sample& more = sample->parts.emplace_back();
          more.address = part;
          more.values = {{kUtilization, -1, std::uint64_t{99}}};
        }
        done(std::move(sample));
      });
    }
    void Open(Done<device::Driver>) override {}
    void List(Done<std::vector<std::string>>) override {}
    void Describe(const std::string&, Done<device::Facts>) override {}
    void Read(const std::string&, Done<device::Reading>) override {}
    void Stop() override {}
    int abandoned() const override { return 0; }
    void Listen(Events) override {}
    ScriptedBackend& backend;
  } inventive(backend_);
  SetParts();
  Sampler sampler(executor_, inventory_, {{&dialect_, &inventive, [] { return 1; }}});
  sampler.Configure({.interval = 10s});
  executor_.RunUntilIdle();
  const auto samples = sampler.published().Get();
  const auto use = [&samples](const char* id) {
    return device::ToDouble(samples->Find(id)->Find(kUtilization)->value.number);
  };
  EXPECT_EQ(use("A0"), 99) << "asked for";
  EXPECT_EQ(samples->Find("A0")->collections, 1u) << "once";
  EXPECT_EQ(use("B"), 40);
  EXPECT_EQ(samples->devices.size(), 4u);
}

TEST_F(SamplerTest, VendorsDoNotWaitForEachOther) {
  struct OtherDialect final : device::testing::AcmeDialect {
    std::string_view vendor() const override { return "emca"; }
  } other;
  ScriptedBackend slow(executor_);
  slow.takes["at-E"] = 4s;
  device::Facts facts;
  facts.id = "E";
  facts.vendor = "emca";
  facts.address = "at-E";
  inventory_.SetFacts("emca", {facts}, "", executor_.clock().Wall());
  Sampler both(executor_, inventory_,
               {{&other, &slow, [] { return 1; }}, {&dialect_, &backend_, [] { return 1; }}});
  both.Configure({.interval = 1s});
  executor_.RunUntilIdle();
  backend_.asked.clear();
  executor_.Advance(13s);
  EXPECT_EQ(backend_.Take("at-A").size(), 13u);
  EXPECT_EQ(both.published().Get()->Find("E")->collections, 2u)
      << "a slow driver has a rest as long as it worked";
}

TEST_F(SamplerTest, PublishesOnceInARound) {
  Start();
  const auto before = Get()->generation;
  const auto device = Of("A");
  executor_.Advance(1s);
  EXPECT_EQ(Get()->generation, before + 1);
  EXPECT_NE(Of("A"), device);
  EXPECT_EQ(Get()->rounds.at("acme").count, 2u);
}

TEST_F(SamplerTest, WhatDidNotChangeIsTheSameObject) {
  StartAndAdvance(1s);
  backend_.failures.emplace("at-B", Error(Code::kDeadlineExceeded, "no answer within 5s"));
  executor_.Advance(10s);
  const auto left_alone = Of("B"), asked = Of("A");
  executor_.Advance(10s);
  EXPECT_EQ(Of("B"), left_alone);
  EXPECT_NE(Of("A"), asked);
}

TEST_F(SamplerTest, ASlowDeviceHoldsUpNoOthersValues) {
  StartAndAdvance(1s);
  backend_.takes["at-B"] = 5s;
  backend_.values[kUtilization] = std::uint64_t{77};
  executor_.Advance(10s + 300ms);
  EXPECT_EQ(Value("A", kUtilization), 77);
}

TEST_F(SamplerTest, WhatWasNotSentBlamesNoOne) {
  StartAndAdvance(2s);
  backend_.failures.emplace("at-A", Error(Code::kCancelled, "not asked: the worker was given up"));
  executor_.Advance(10s);
  EXPECT_EQ(Of("A")->failures, 0u);
  EXPECT_EQ(Of("A")->problem, "");
}

TEST_F(SamplerTest, ResumesSoonWhenAWorkerIsRestarted) {
  StartAndAdvance(1s);
  session_ = std::nullopt;
  EXPECT_THAT(TimesOver("at-A", 20s), IsEmpty());
  session_ = 2;
  EXPECT_THAT(TimesOver("at-A", 2s), Not(IsEmpty()));
}

TEST_F(SamplerTest, WhatAnotherSessionSaysIsOfNoOneKnowsWhichDevice) {
  StartAndAdvance(1s);
  backend_.takes["at-A"] = 1s;
  backend_.values[kUtilization] = std::uint64_t{99};
  executor_.Advance(10s + 500ms);
  session_ = 2;
  executor_.Advance(600ms);
  EXPECT_EQ(Value("A", kUtilization), 40);
  EXPECT_EQ(Of("A")->failures, 0u);
}

TEST_F(SamplerTest, AsksNoOneWhoIsGoneOrLostAndForgetsTheGone) {
  Start();
  SetDevices({"A"});
  executor_.RunUntilIdle();
  EXPECT_EQ(Of("B"), nullptr) << "at once";
  inventory_.SetReading("A", {.reachable = false}, executor_.clock().Wall());
  EXPECT_THAT(TimesOver("at-A", 30s), IsEmpty());
  EXPECT_EQ(Value("A", kUtilization), 40) << "lost, and still there";
  inventory_.SetReading("A", {.reachable = true}, executor_.clock().Wall());
  EXPECT_THAT(TimesOver("at-A", 10s), SizeIs(1));
  EXPECT_THAT(backend_.Take("at-B"), IsEmpty());
}

TEST_F(SamplerTest, CountsGoOnWhenADeviceComesBack) {
  StartAndAdvance(30s);
  const std::uint64_t before = Of("B")->collections;
  SetDevices({"A"});
  executor_.RunUntilIdle();
  SetDevices({"A", "B"});
  executor_.Advance(10s);
  EXPECT_GT(Of("B")->collections, before);
}

TEST_F(SamplerTest, ANewDeviceIsAskedSoon) {
  StartAndAdvance(5s);
  SetDevices({"A", "B", "C"});
  executor_.RunUntilIdle();
  EXPECT_EQ(Value("C", kUtilization), 40);
}

TEST_F(SamplerTest, ALostDeviceHurriesNoOne) {
  SetDevices({"A", "B", "C"});
  inventory_.SetReading("C", {.reachable = false}, executor_.clock().Wall());
  StartAndAdvance(1s);
  backend_.asked.clear();
  for (int i = 0; i < 20; ++i) {
    inventory_.SetReading("C", {.reachable = false}, executor_.clock().Wall());
    executor_.Advance(500ms);
  }
  EXPECT_THAT(backend_.Take("at-A"), SizeIs(1));
}

TEST_F(SamplerTest, SomeoneWhoLooksHurriesItForAFewSeconds) {
  StartAndAdvance(5s);
  sampler_.RequestSoon();
  executor_.RunUntilIdle();
  EXPECT_EQ(Of("A")->at, executor_.clock().Wall());
  EXPECT_EQ(Get()->interval, 1s);
  EXPECT_THAT(TimesOver("at-A", 14s), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(Get()->interval, 10s);
}

TEST_F(SamplerTest, HurryingOftenIsOnceASecond) {
  StartAndAdvance(5s);
  backend_.asked.clear();
  for (int i = 0; i < 100; ++i) {
    sampler_.RequestSoon();
    executor_.Advance(50ms);
  }
  EXPECT_THAT(backend_.Take("at-A"), SizeIs(AllOf(Ge(5u), Le(6u))));
}

TEST_F(SamplerTest, WhereManyWaitItComesATenthOfASecondAfterTheLastTime) {
  StartAndAdvance(5s);
  backend_.asked.clear();
  for (int i = 0; i < 100; ++i) {
    sampler_.RequestNow();
    executor_.Advance(20ms);
  }
  EXPECT_THAT(backend_.Take("at-A"), SizeIs(AllOf(Ge(20u), Le(21u))));
}

TEST_F(SamplerTest, HurryMakesNothingSlower) {
  Start({.interval = 200ms});
  sampler_.RequestSoon();
  EXPECT_THAT(TimesOver("at-A", 2s), SizeIs(10));
}

TEST_F(SamplerTest, AnotherIntervalCountsAtOnce) {
  Start({.interval = 60s});
  executor_.Advance(20s);
  sampler_.Configure({.interval = 5s});
  EXPECT_THAT(TimesOver("at-A", 11s), ElementsAre(0, 5, 10));
  sampler_.Configure({.interval = 60s});
  EXPECT_THAT(TimesOver("at-A", 58s), IsEmpty());
}

TEST_F(SamplerTest, AClockThatIsSteppedChangesStampsAlone) {
  struct Stepped final : base::Clock {
    explicit Stepped(const base::Clock& a_clock) : clock(a_clock) {}
    base::TimePoint Now() const override { return clock.Now(); }
    base::WallTime Wall() const override { return clock.Wall() + by; }
    const base::Clock& clock;
    base::Duration by{};
  };
  struct Executor final : base::Executor {
    explicit Executor(base::ManualExecutor& an_executor) : executor(an_executor) {}
    const base::Clock& clock() const override { return stepped; }
    void Post(std::function<void()> function) override { executor.Post(std::move(function)); }
    base::TimerId PostAfter(base::Duration delay, std::function<void()> function) override {
      return executor.PostAfter(delay, std::move(function));
    }
    void Cancel(base::TimerId timer) override { executor.Cancel(timer); }
    base::ManualExecutor& executor;
    Stepped stepped{executor.clock()};
  } executor(executor_);
  Sampler sampler(executor, inventory_, {{&dialect_, &backend_, [this] { return session_; }}});
  sampler.Configure({.interval = 10s});
  executor_.Advance(1s);
  for (const base::Duration step : {base::Duration(-24h), base::Duration(48h)}) {
    executor.stepped.by = step;
    EXPECT_THAT(TimesOver("at-A", 30s), ElementsAre(10, 20, 30));
    EXPECT_EQ(sampler.published().Get()->Find("A")->at, executor.clock().Wall());
    EXPECT_EQ(sampler.published().Get()->rounds.at("acme").took, 0s);
  }
}

TEST_F(SamplerTest, ReportsOfProcessesThatAReadingDoesNotKnowOnce) {
  StartAndAdvance(1s);
  inventory_.SetReading("A", {}, executor_.clock().Wall());
  EXPECT_THAT(differ_, IsEmpty()) << "no reading to differ from";
  backend_.processes = {{.pid = 7}};
  executor_.Advance(30s);
  EXPECT_THAT(differ_, ElementsAre("A"));
  backend_.processes = {{.pid = 7}, {.pid = 8}};
  executor_.Advance(10s);
  EXPECT_THAT(differ_, ElementsAre("A", "A"));
  inventory_.SetReading("A", {.processes = {{.pid = 8, .memory = {}}, {.pid = 7, .memory = {}}}},
                        executor_.clock().Wall());
  executor_.Advance(10s);
  EXPECT_THAT(differ_, SizeIs(2));
  backend_.processes.clear();
  executor_.Advance(30s);
  EXPECT_THAT(differ_, SizeIs(3)) << "they have ended, told once";
}

TEST_F(SamplerTest, ADeviceWhoseSampleHungIsNotAskedWhileAWorkerHangs) {
  Start();
  backend_.failures.emplace("at-B",
                            base::Error(base::Code::kDeadlineExceeded, "no answer within 5s"));
  executor_.Advance(10s);
  backend_.abandoned_ = 1;
  EXPECT_TRUE(TimesOver("at-B", 30min).empty());
  EXPECT_FALSE(TimesOver("at-A", 1min).empty());
  EXPECT_EQ(Of("B")->problem, "no answer within 5s");
  backend_.abandoned_ = 0;
  backend_.failures.clear();
  EXPECT_FALSE(TimesOver("at-B", 1min).empty());
  EXPECT_EQ(Of("B")->problem, "");
}

TEST_F(SamplerTest, ReportsHowItWent) {
  backend_.takes["at-A"] = 30ms;
  StartAndAdvance(1s);
  EXPECT_EQ(Of("A")->took, 30ms);
  EXPECT_EQ(Of("A")->collections, 2u - 1u);
  EXPECT_EQ(Get()->rounds.at("acme").took, 30ms);
}

TEST_F(SamplerTest, NothingRunsAfterItsEnd) {
  auto sampler = std::make_unique<Sampler>(
      executor_, inventory_,
      std::vector<Sampler::Source>{{&dialect_, &backend_, [this] { return session_; }}});
  backend_.takes["at-A"] = 1s;
  sampler->Configure({.interval = 1s});
  executor_.RunUntilIdle();
  sampler.reset();
  backend_.asked.clear();
  SetDevices({"A"});
  executor_.Advance(10s);
  EXPECT_THAT(backend_.asked, IsEmpty());
}

}  // namespace
}  // namespace penstock::node::sample::testing
