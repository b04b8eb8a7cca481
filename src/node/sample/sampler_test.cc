#include "node/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"

namespace penstock::node::sample {
namespace {

using base::Code;
using base::Error;
using device::QuantityId;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;
using namespace std::chrono_literals;

enum : QuantityId { kUtilization, kMemoryUsed, kPower, kEnergy, kErrors, kClockMost, kLinkBytes };

/// Answers what the test sets, through the executor, as a worker does.
class ScriptedBackend final : public device::AsyncBackend {
 public:
  struct Asked {
    std::string address;
    device::SampleRequest request;
    base::TimePoint at;
  };

  explicit ScriptedBackend(base::Executor& executor) : executor_(executor) {}

  void TakeSample(const std::string& address, const device::SampleRequest& request, Done<device::Sample> done) override {
    asked.push_back({address, request, executor_.clock().Now()});
    most_at_once = std::max(most_at_once, ++at_once);
    const auto answer = [this, done = std::move(done), address, request] {
      --at_once;
      done(Answer(address, request));
    };
    const auto late = takes.find(address);
    late == takes.end() ? executor_.Post(answer) : void(executor_.PostAfter(late->second, answer));
  }
  base::Result<device::Sample> Answer(const std::string& address, const device::SampleRequest& request) const {
    if (const auto failure = failures.find(address); failure != failures.end()) return failure->second;
    device::Sample sample;
    for (const QuantityId id : request.quantities)
      if (const auto value = values.find(id); value != values.end()) sample.values.push_back({id, -1, value->second});
    sample.values.insert(sample.values.end(), unasked.begin(), unasked.end());
    for (const QuantityId id : request.quantities)
      if (std::find(unsupported.begin(), unsupported.end(), id) != unsupported.end()) sample.unsupported.push_back(id);
    if (request.processes) sample.processes = processes;
    return sample;
  }
  /// The requests to one device so far; forgets them.
  std::vector<Asked> Take(const std::string& address) {
    std::vector<Asked> taken;
    for (const Asked& one : asked)
      if (one.address == address) taken.push_back(one);
    std::erase_if(asked, [&](const Asked& one) { return one.address == address; });
    return taken;
  }

  void Open(Done<device::Driver>) override {}
  void List(Done<std::vector<std::string>>) override {}
  void Describe(const std::string&, Done<device::Facts>) override {}
  void Read(const std::string&, Done<device::Reading>) override {}
  void Stop() override {}
  int abandoned() const override { return 0; }
  void Listen(Events) override {}

  std::map<QuantityId, device::Number> values{{kUtilization, std::uint64_t{40}},
                                              {kMemoryUsed, std::uint64_t{512}},
                                              {kEnergy, std::uint64_t{1000}},
                                              {kErrors, std::uint64_t{0}},
                                              {kClockMost, std::uint64_t{1980}}};
  std::vector<device::Value> unasked;  // said in each answer
  std::vector<QuantityId> unsupported;
  std::vector<device::ProcessSample> processes;
  std::map<std::string, Error> failures;
  std::map<std::string, base::Duration> takes;
  std::vector<Asked> asked;
  int at_once = 0, most_at_once = 0;

 private:
  base::Executor& executor_;
};

class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() { SetDevices({"A", "B"}); }

  void SetDevices(const std::vector<std::string>& ids) {
    std::vector<device::Facts> facts;
    for (const std::string& id : ids) {
      device::Facts one;
      one.id = id;
      one.vendor = "acme";
      one.address = "at-" + id;
      one.index = static_cast<int>(facts.size());
      one.memory = base::Mebibytes(1024);
      one.architecture = architecture_;
      facts.push_back(one);
    }
    inventory_.SetFacts("acme", facts, "unplugged", executor_.clock().Wall());
  }

  void Start(Sampler::Options options = {.interval = 10s}) {
    sampler_.Configure(std::move(options));
    executor_.RunUntilIdle();
  }
  std::shared_ptr<const Snapshot> Get() const { return sampler_.published().Get(); }
  std::shared_ptr<const DeviceSample> Of(const std::string& id) const {
    const auto found = Get()->devices.find(id);
    return found == Get()->devices.end() ? nullptr : found->second;
  }
  std::optional<double> Value(const std::string& id, QuantityId quantity) const {
    const auto device = Of(id);
    const Latest* latest = device ? device->Find(quantity) : nullptr;
    return latest ? std::optional(device::ToDouble(latest->value.number)) : std::nullopt;
  }
  std::uint64_t Rejections(const std::string& key, const std::string& why) const {
    std::uint64_t count = 0;
    for (const Rejected& one : Get()->rejected)
      if (one.key == key && one.why == why) count += one.count;
    return count;
  }
  /// When a device was asked, in seconds from now on, over the time given.
  std::vector<double> TimesOver(const std::string& address, base::Duration time) {
    backend_.asked.clear();
    const auto from = executor_.clock().Now();
    executor_.Advance(time);
    std::vector<double> times;
    for (const auto& one : backend_.Take(address)) times.push_back(std::chrono::duration<double>(one.at - from).count());
    return times;
  }

  std::string architecture_ = "one";
  base::ManualExecutor executor_;
  device::testing::AcmeDialect dialect_;
  ScriptedBackend backend_{executor_};
  inventory::Inventory inventory_;
  std::optional<std::uint64_t> session_ = 1;
  std::vector<std::string> differ_;
  Sampler sampler_{executor_,
                   inventory_,
                   {{&dialect_, &backend_, [this] { return session_; }}},
                   {.processes_differ = [this](const std::string&, const std::string& device) { differ_.push_back(device); }}};
};

TEST_F(SamplerTest, CollectsAtOnceThenASecondLaterAndThenAtItsInterval) {
  Start();
  EXPECT_EQ(Value("A", kUtilization), 40);
  EXPECT_THAT(TimesOver("at-A", 32s), ElementsAre(1, 11, 21, 31)) << "what needs two samples has its value after a second";
}

TEST_F(SamplerTest, AsksEachQuantityAtItsPace) {
  Start();
  EXPECT_THAT(backend_.Take("at-A").at(0).request.quantities,
              ElementsAre(kUtilization, kMemoryUsed, kPower, kEnergy, kErrors, kClockMost, kLinkBytes));
  std::map<QuantityId, int> times;
  executor_.Advance(91s);
  for (const auto& one : backend_.Take("at-A"))
    for (const QuantityId id : one.request.quantities) ++times[id];
  EXPECT_EQ(times[kUtilization], 10);
  EXPECT_EQ(times[kErrors], 3) << "each half minute";
  EXPECT_EQ(times[kClockMost], 0) << "once is enough";
}

TEST_F(SamplerTest, WhatComesSlowlyComesNoSoonerThanTheInterval) {
  Start({.interval = 60s});
  executor_.Advance(2s);
  backend_.asked.clear();
  executor_.Advance(300s);
  for (const auto& one : backend_.Take("at-A")) EXPECT_THAT(one.request.quantities, Contains(kErrors));
}

TEST_F(SamplerTest, WhatStaysAndHasNotBeenSaidYetIsAskedForAgain) {
  backend_.values.erase(kClockMost);
  Start();
  executor_.Advance(32s);
  backend_.values[kClockMost] = std::uint64_t{1980};
  executor_.Advance(30s);
  EXPECT_EQ(Value("A", kClockMost), 1980);
}

TEST_F(SamplerTest, AsksForNothingThatIsNotWanted) {
  Start({.interval = 10s, .processes = false, .left_out = {{"acme", {"energy", "memory.used"}}, {"emca", {"utilization"}}}});
  for (const auto& one : backend_.asked) {
    EXPECT_THAT(one.request.quantities, AllOf(Not(Contains(kEnergy)), Not(Contains(kMemoryUsed)), Contains(kUtilization)));
    EXPECT_FALSE(one.request.processes);
  }
}

TEST_F(SamplerTest, WhatIsNotWantedAnyMoreIsDropped) {
  backend_.processes = {{.pid = 7}};
  Start();
  EXPECT_THAT(Of("A")->processes, SizeIs(1));
  sampler_.Configure({.interval = 10s, .processes = false, .left_out = {{"acme", {"energy"}}, {"emca", {"utilization"}}}});
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kEnergy), std::nullopt);
  EXPECT_EQ(Value("A", kUtilization), 40);
  EXPECT_THAT(Of("A")->processes, IsEmpty());
}

TEST_F(SamplerTest, WhatADeviceLacksIsAskedForOnceInASession) {
  backend_.unsupported = {kPower};
  Start();
  EXPECT_THAT(Of("A")->unsupported, ElementsAre(kPower));
  backend_.asked.clear();
  executor_.Advance(60s);
  for (const auto& one : backend_.asked) EXPECT_THAT(one.request.quantities, Not(Contains(kPower)));
  session_ = 2;  // the driver was opened anew
  backend_.unsupported.clear();
  backend_.values[kPower] = std::uint64_t{300000};
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kPower), 300000);
  EXPECT_THAT(Of("A")->unsupported, IsEmpty());
}

TEST_F(SamplerTest, WhatADeviceLacksIsAskedForAgainWhenItIsDescribedAnew) {
  backend_.unsupported = {kUtilization};
  Start();
  backend_.unsupported.clear();
  architecture_ = "two";
  SetDevices({"A", "B"});
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kUtilization), 40);
}

TEST_F(SamplerTest, AValueOfWhatTurnsOutToBeLackingIsDropped) {
  Start();
  backend_.unsupported = {kUtilization};
  backend_.values.erase(kUtilization);
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kUtilization), std::nullopt);
}

TEST_F(SamplerTest, AsksOneDeviceAtATime) {
  SetDevices({"A", "B", "C", "D"});
  for (const char* address : {"at-A", "at-B", "at-C", "at-D"}) backend_.takes[address] = 100ms;
  Start({.interval = 1s});
  executor_.Advance(20s);
  EXPECT_EQ(backend_.most_at_once, 1);
  EXPECT_THAT(TimesOver("at-D", 5s), SizeIs(5));
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
  Sampler both(executor_, inventory_, {{&other, &slow, [] { return 1; }}, {&dialect_, &backend_, [] { return 1; }}});
  both.Configure({.interval = 1s});
  executor_.RunUntilIdle();
  backend_.asked.clear();
  executor_.Advance(13s);
  EXPECT_EQ(backend_.Take("at-A").size(), 13u);
  EXPECT_EQ(both.published().Get()->Find("E")->collections, 2u) << "a slow driver has a rest as long as it worked";
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
  Start();
  executor_.Advance(1s);
  backend_.failures.emplace("at-B", Error(Code::kDeadlineExceeded, "no answer within 5s"));
  executor_.Advance(10s);
  const auto left_alone = Of("B"), asked = Of("A");
  executor_.Advance(10s);
  EXPECT_EQ(Of("B"), left_alone);
  EXPECT_NE(Of("A"), asked);
}

TEST_F(SamplerTest, ASlowDeviceHoldsUpNoOthersValues) {
  Start();
  executor_.Advance(1s);
  backend_.takes["at-B"] = 5s;
  backend_.values[kUtilization] = std::uint64_t{77};
  executor_.Advance(10s + 300ms);
  EXPECT_EQ(Value("A", kUtilization), 77);
}

TEST_F(SamplerTest, EachValueHasItsOwnTime) {
  Start();
  const auto began = executor_.clock().Wall();
  executor_.Advance(12s);
  EXPECT_EQ(Of("A")->Find(kUtilization)->at, began + 11s);
  EXPECT_EQ(Of("A")->Find(kErrors)->at, began);
  EXPECT_EQ(Of("A")->at, began + 11s);
}

TEST_F(SamplerTest, ADeviceThatFailsIsLeftAloneLongerEachTimeAndKeepsItsValues) {
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

TEST_F(SamplerTest, ADeviceThatHangsIsLeftAloneForHalfAMinuteAlsoByTheNextWorker) {
  Start();
  executor_.Advance(1s);
  backend_.failures.emplace("at-A", Error(Code::kDeadlineExceeded, "no answer within 5s"));
  executor_.Advance(10s);
  session_ = 2;
  EXPECT_THAT(TimesOver("at-A", 29s), IsEmpty());
  EXPECT_THAT(TimesOver("at-A", 11s), SizeIs(1));
  EXPECT_THAT(TimesOver("at-A", 50s), IsEmpty()) << "twice as long";
  EXPECT_THAT(TimesOver("at-B", 20s), Not(IsEmpty()));
}

TEST_F(SamplerTest, ANewSessionForgetsWhatFailedInTheLastOne) {
  Start();
  backend_.failures.emplace("at-A", Error(Code::kDataLoss, "GPU is lost"));
  executor_.Advance(90s);
  backend_.failures.clear();
  session_ = 2;
  executor_.Advance(10s);
  EXPECT_EQ(Of("A")->problem, "");
}

TEST_F(SamplerTest, WhatWasNotSentBlamesNobody) {
  Start();
  executor_.Advance(2s);
  backend_.failures.emplace("at-A", Error(Code::kCancelled, "not asked: the worker was given up"));
  executor_.Advance(10s);
  EXPECT_EQ(Of("A")->failures, 0u);
  EXPECT_EQ(Of("A")->problem, "");
}

TEST_F(SamplerTest, ResumesSoonWhenAWorkerIsStartedAnew) {
  Start();
  executor_.Advance(1s);
  session_ = std::nullopt;
  EXPECT_THAT(TimesOver("at-A", 20s), IsEmpty());
  session_ = 2;
  EXPECT_THAT(TimesOver("at-A", 2s), Not(IsEmpty()));
}

TEST_F(SamplerTest, WhatAnotherSessionSaysIsOfNobodyKnowsWhichDevice) {
  Start();
  executor_.Advance(1s);
  backend_.takes["at-A"] = 1s;
  backend_.values[kUtilization] = std::uint64_t{99};
  executor_.Advance(10s + 500ms);
  session_ = 2;
  executor_.Advance(600ms);
  EXPECT_EQ(Value("A", kUtilization), 40);
  EXPECT_EQ(Of("A")->failures, 0u);
}

TEST_F(SamplerTest, AsksNobodyWhoIsGoneOrLostAndForgetsTheGone) {
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
  Start();
  executor_.Advance(30s);
  const std::uint64_t before = Of("B")->collections;
  SetDevices({"A"});
  executor_.RunUntilIdle();
  SetDevices({"A", "B"});
  executor_.Advance(10s);
  EXPECT_GT(Of("B")->collections, before);
}

TEST_F(SamplerTest, ANewDeviceIsAskedSoon) {
  Start();
  executor_.Advance(5s);
  SetDevices({"A", "B", "C"});
  executor_.RunUntilIdle();
  EXPECT_EQ(Value("C", kUtilization), 40);
}

TEST_F(SamplerTest, ALostDeviceHurriesNobody) {
  SetDevices({"A", "B", "C"});
  inventory_.SetReading("C", {.reachable = false}, executor_.clock().Wall());
  Start();
  executor_.Advance(1s);
  backend_.asked.clear();
  for (int i = 0; i < 20; ++i) {
    inventory_.SetReading("C", {.reachable = false}, executor_.clock().Wall());
    executor_.Advance(500ms);
  }
  EXPECT_THAT(backend_.Take("at-A"), SizeIs(1));
}

TEST_F(SamplerTest, KeepsOutAndCountsWhatIsTooLarge) {
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

TEST_F(SamplerTest, TakesNonsenseFromProcesses) {
  backend_.processes = {{.pid = 7, .memory = base::Mebibytes(4096), .compute = 250, .encoder = 3}};
  Start();
  const device::ProcessSample process = Of("A")->processes.at(0);
  EXPECT_EQ(process.memory, std::nullopt);
  EXPECT_EQ(process.compute, std::nullopt);
  EXPECT_EQ(process.encoder, 3);
  EXPECT_EQ(Rejections("process.memory", "too-large"), 2u);
  EXPECT_EQ(Rejections("process.compute", "too-large"), 2u);
}

TEST_F(SamplerTest, IgnoresWhatNobodyAskedFor) {
  backend_.unasked = {{kPower, -1, std::uint64_t{5}}, {4711, -1, std::uint64_t{5}}};
  Start({.interval = 10s, .left_out = {{"acme", {"power"}}, {"emca", {"utilization"}}}});
  EXPECT_EQ(Value("A", kPower), std::nullopt);
  EXPECT_EQ(Value("A", 4711), std::nullopt);
}

TEST_F(SamplerTest, ACounterThatFallsIsKeptOutUntilItStaysFallen) {
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

TEST_F(SamplerTest, ACounterThatFallsNowAndThenStaysOut) {
  Start();
  executor_.Advance(1s);
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

TEST_F(SamplerTest, ACounterMayFallWithANewSession) {
  Start();
  session_ = 2;
  backend_.values[kEnergy] = std::uint64_t{10};
  executor_.Advance(1s);
  EXPECT_EQ(Value("A", kEnergy), 10);
  EXPECT_EQ(Rejections("energy", "went-back"), 0u);
}

TEST_F(SamplerTest, AGaugeMayFall) {
  Start();
  backend_.values[kUtilization] = std::uint64_t{0};
  executor_.Advance(1s);
  EXPECT_EQ(Value("A", kUtilization), 0);
}

TEST_F(SamplerTest, WhatIsNoMoreThereIsDroppedAfterItWasAskedForThreeTimes) {
  Start();
  backend_.values.erase(kUtilization);
  executor_.Advance(11s);
  EXPECT_EQ(Value("A", kUtilization), 40);
  executor_.Advance(10s);
  EXPECT_EQ(Value("A", kUtilization), std::nullopt);
  EXPECT_EQ(Value("A", kErrors), 0) << "asked for less often";
  EXPECT_EQ(Value("A", kClockMost), 1980) << "asked for once";
}

TEST_F(SamplerTest, RemembersALittle) {
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

TEST_F(SamplerTest, SomebodyWhoLooksHurriesItForAFewSeconds) {
  Start();
  executor_.Advance(5s);
  sampler_.Hurry();
  executor_.RunUntilIdle();
  EXPECT_EQ(Of("A")->at, executor_.clock().Wall());
  EXPECT_EQ(Get()->interval, 1s);
  EXPECT_THAT(TimesOver("at-A", 14s), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(Get()->interval, 10s);
}

TEST_F(SamplerTest, HurryingOftenIsOnceASecond) {
  Start();
  executor_.Advance(5s);
  backend_.asked.clear();
  for (int i = 0; i < 100; ++i) {
    sampler_.Hurry();
    executor_.Advance(50ms);
  }
  EXPECT_THAT(backend_.Take("at-A"), SizeIs(AllOf(Ge(5u), Le(6u))));
}

TEST_F(SamplerTest, HurryMakesNothingSlower) {
  Start({.interval = 200ms});
  sampler_.Hurry();
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

TEST_F(SamplerTest, TellsOfProcessesThatAReadingDoesNotKnowOnce) {
  Start();
  executor_.Advance(1s);
  inventory_.SetReading("A", {}, executor_.clock().Wall());
  EXPECT_THAT(differ_, IsEmpty()) << "no reading to differ from";
  backend_.processes = {{.pid = 7}};
  executor_.Advance(30s);
  EXPECT_THAT(differ_, ElementsAre("A"));
  backend_.processes = {{.pid = 7}, {.pid = 8}};
  executor_.Advance(10s);
  EXPECT_THAT(differ_, ElementsAre("A", "A"));
  inventory_.SetReading("A", {.processes = {{.pid = 8, .memory = {}}, {.pid = 7, .memory = {}}}}, executor_.clock().Wall());
  executor_.Advance(10s);
  EXPECT_THAT(differ_, SizeIs(2));
  backend_.processes.clear();
  executor_.Advance(30s);
  EXPECT_THAT(differ_, SizeIs(3)) << "they have ended, told once";
}

TEST_F(SamplerTest, TellsHowItWent) {
  backend_.takes["at-A"] = 30ms;
  Start();
  executor_.Advance(1s);
  EXPECT_EQ(Of("A")->took, 30ms);
  EXPECT_EQ(Of("A")->collections, 2u - 1u);
  EXPECT_EQ(Get()->rounds.at("acme").took, 30ms);
}

TEST_F(SamplerTest, NothingRunsAfterItsEnd) {
  auto sampler =
      std::make_unique<Sampler>(executor_, inventory_, std::vector<Sampler::Source>{{&dialect_, &backend_, [this] { return session_; }}});
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
}  // namespace penstock::node::sample
