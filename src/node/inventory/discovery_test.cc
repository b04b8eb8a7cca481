#include "node/inventory/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/kinds.h"

namespace penstock::node::inventory {
namespace {

using device::HealthState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

/// A backend whose devices and failures the test sets; answers arrive through the executor, as
/// those of a worker do.
class ScriptedBackend final : public device::AsyncBackend {
 public:
  explicit ScriptedBackend(base::Executor& executor) : executor_(executor) {}

  void Listen(Events events) override { events_ = std::move(events); }
  void Open(Done<device::Driver> done) override {
    ++opened;
    Answer(done, !absent.empty()   ? base::Result<device::Driver>(Error(Code::kNotFound, absent))
                 : !silent.empty() ? base::Result<device::Driver>(Error(Code::kUnavailable, silent))
                                   : device::Driver{.vendor = "acme", .version = version});
  }
  void List(Done<std::vector<std::string>> done) override {
    std::vector<std::string> addresses;
    for (std::size_t i = 0; i < devices.size(); ++i) addresses.push_back(std::to_string(i));
    Answer(done, !absent.empty()
                     ? base::Result<std::vector<std::string>>(Error(Code::kNotFound, absent))
                 : !silent.empty()
                     ? base::Result<std::vector<std::string>>(Error(Code::kUnavailable, silent))
                     : addresses);
  }
  void Describe(const std::string& address, Done<device::Facts> done) override {
    ++described;
    if (hangs.contains(address)) return Hang(std::move(done));
    device::Facts facts;
    facts.vendor = "acme";
    if (!parts.contains(address.substr(0, address.find('/'))) && address.find('/') != address.npos)
      return Answer(done, base::Result<device::Facts>(Error(Code::kNotFound, "no such part")));
    if (address.find('/') != address.npos) {
      facts.id = address;
      facts.parent = devices[std::stoul(address)];
    } else {
      facts.id = devices[std::stoul(address)];
      facts.index = std::stoi(address);
      if (const auto found = parts.find(address); found != parts.end()) facts.parts = found->second;
    }
    Answer(done, lost.contains(address)
                     ? base::Result<device::Facts>(Error(Code::kDataLoss, "lost"))
                     : facts);
  }
  void TakeSample(const std::string&, const device::SampleRequest&, Done<device::Sample>) override {
  }
  void Read(const std::string& address, Done<device::Reading> done) override {
    read.push_back(address);
    if (hangs.contains(address)) return Hang(std::move(done));
    if (removed.contains(address))
      return Answer(done, base::Result<device::Reading>(Error(Code::kNotFound, "no such part")));
    if (unsent)
      return Answer(done, base::Result<device::Reading>(
                              Error(Code::kCancelled, "not asked: the worker was given up")));
    device::Reading reading;
    reading.reachable = !lost.contains(address);
    reading.facts_changed = changed.contains(address);
    if (counts)
      reading.evidence.push_back({.kind = std::string(device::kResetCounter) + "energy",
                                  .code = static_cast<std::int64_t>(read.size())});
    if (const auto of = parts.find(address); of != parts.end() && together)
      for (const std::string& part : of->second) reading.parts.push_back({part, {{.pid = 7}}});
    Answer(done, base::Result<device::Reading>(reading), takes);
  }
  void Stop() override { ++stopped; }
  int abandoned() const override { return abandoned_; }

  std::string version = "1.0", absent, silent;
  std::vector<std::string> devices{"A", "B", "C"};
  std::map<std::string, std::vector<std::string>> parts;  // of a device, by address: "0/1"
  std::set<std::string> hangs, lost, changed, removed;
  std::vector<std::string> read;
  bool together = false;   // parts are read with their device
  bool unsent = false;     // the next calls wait behind one that hangs
  bool counts = false;     // readings have a counter that grows
  base::Duration takes{};  // a reading
  int opened = 0, stopped = 0, described = 0, abandoned_ = 0;
  Events events_;

 private:
  template <typename T>
  void Answer(Done<T> done, base::Result<T> result, base::Duration after = {}) {
    executor_.PostAfter(after,
                        [done = std::move(done), result = std::move(result)] { done(result); });
  }
  template <typename T>
  void Hang(Done<T> done) {
    executor_.PostAfter(5s, [this, done = std::move(done)] {
      abandoned_ = 1;
      done(Error(Code::kDeadlineExceeded, "no answer within 5s"));
      events_.ended(Error(Code::kDeadlineExceeded, "no answer within 5s"));
    });
  }
  base::Executor& executor_;
};

class DiscoveryTest : public ::testing::Test {
 protected:
  std::vector<std::string> Ids() const {
    std::vector<std::string> ids;
    for (const Entry& entry : inventory_.published().Get()->devices)
      if (entry.health.state != HealthState::kGone) ids.push_back(entry.facts->id);
    return ids;
  }
  std::vector<std::string> IdsAfter(base::Duration time) {
    executor_.Advance(time);
    return Ids();
  }
  void Start() {
    discovery_.Start();
    executor_.RunUntilIdle();
  }

  base::ManualExecutor executor_;
  ScriptedBackend backend_{executor_};
  Inventory inventory_;
  std::map<std::string, device::Reading> readings_;
  std::map<std::string, base::Duration> began_;  // before the reading was reported
  int reopened_ = 0, evidence_ = 0;
  std::shared_ptr<const DriverLocation> place_;
  Discovery discovery_{
      executor_,
      backend_,
      inventory_,
      {.vendor = "acme", .place = [this] { return place_; }},
      {.reading =
           [this](const std::string& id, const device::Reading& reading, base::Duration ago) {
             readings_[id] = reading;
             began_[id] = ago;
           },
       .evidence = [this](const device::Evidence&) { ++evidence_; },
       .described = [this](bool fresh) { reopened_ += fresh ? 1 : 0; }}};
};

TEST_F(DiscoveryTest, FindsAndReadsAllBeforeTheFirstLookIsDone) {
  bool looked = false;
  discovery_.OnFirstScan([&] { looked = readings_.size() == 3; });
  Start();
  EXPECT_TRUE(looked);
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "C"));
  EXPECT_EQ(inventory_.published().Get()->FindVendor("acme")->driver->version, "1.0");
}

TEST_F(DiscoveryTest, LooksAtAllDevicesAtOnceWhenEventsFail) {
  Start();
  backend_.lost = {"1"};
  backend_.events_.doubt();
  executor_.RunUntilIdle();
  EXPECT_FALSE(readings_["B"].reachable);
  EXPECT_TRUE(readings_["C"].reachable);
}

TEST_F(DiscoveryTest, SaysHowLongAgoAReadingBegan) {
  backend_.parts["1"] = {"1/0"};
  backend_.together = true;
  backend_.takes = 300ms;
  Start();
  executor_.Advance(1s);
  for (const char* id : {"A", "B", "1/0", "C"}) EXPECT_EQ(began_.at(id), 300ms) << id;
}

TEST_F(DiscoveryTest, DescribesAgainWhatAReadingSaysHasChanged) {
  Start();
  backend_.described = 0;
  executor_.Advance(10s);
  EXPECT_EQ(backend_.described, 0) << "facts are unchanged";
  backend_.changed = {"1"};
  executor_.Advance(5s);
  backend_.changed.clear();
  executor_.Advance(100ms);
  EXPECT_EQ(backend_.described, 3);
  executor_.Advance(10s);
  EXPECT_EQ(backend_.described, 3);
  // A device that always reports changed facts does not keep the agent busy.
  backend_.changed = {"1"};
  executor_.Advance(1min);
  EXPECT_LT(backend_.described, 2000);
}

TEST_F(DiscoveryTest, AnEventThatFactsChangedIsFollowedAtOnce) {
  const auto changed = [this] { backend_.events_.evidence({{.kind = "facts-changed"}}); };
  changed();  // not open yet
  Start();
  executor_.Advance(1s);
  backend_.described = 0;
  backend_.parts["1"] = {"1/0"};
  changed();
  EXPECT_THAT(IdsAfter(100ms), ElementsAre("A", "B", "1/0", "C"));
  EXPECT_EQ(backend_.described, 4);
  // One that arrives while the devices are described may be about what was described before it.
  changed();
  executor_.PostAfter(100ms, [&] {
    executor_.Post([&] {
      backend_.parts["1"] = {"1/0", "1/1"};
      changed();
    });
  });
  EXPECT_THAT(IdsAfter(300ms), ElementsAre("A", "B", "1/0", "1/1", "C"));
  EXPECT_EQ(evidence_, 0) << "no evidence for or against the device's health";
}

TEST_F(DiscoveryTest, HoweverManyEventsItIsDescribedAFewTimesASecond) {
  Start();
  backend_.described = 0;
  for (int i = 0; i < 1000; ++i) {
    for (int j = 0; j < 10; ++j) backend_.events_.evidence({{.kind = "facts-changed"}});
    executor_.Advance(1ms);
  }
  EXPECT_GE(backend_.described, 3 * 5) << "events do not postpone it";
  EXPECT_LE(backend_.described, 3 * 11);
  discovery_.Release([] {});
  backend_.described = 0;
  backend_.events_.evidence({{.kind = "facts-changed"}});
  executor_.Advance(10s);
  EXPECT_EQ(backend_.described, 0) << "the driver was released";
}

TEST_F(DiscoveryTest, AShorterPollCountsAtOnce) {
  Start();
  backend_.read.clear();
  discovery_.SetPoll(1s);
  executor_.Advance(1s);
  EXPECT_THAT(backend_.read, ElementsAre("0", "1", "2"));
}

TEST_F(DiscoveryTest, SaysWhyThereIsNoDriverAndFindsItWhenNudged) {
  backend_.absent = "no library";
  bool looked = false;
  discovery_.OnFirstScan([&] { looked = true; });
  Start();
  EXPECT_TRUE(looked);
  EXPECT_EQ(inventory_.published().Get()->FindVendor("acme")->reason, "no library");
  backend_.absent.clear();
  discovery_.Refresh();
  executor_.RunUntilIdle();
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "C"));
}

TEST_F(DiscoveryTest, TriesAgainByItselfWithBackOff) {
  backend_.absent = "no library";
  Start();
  executor_.Advance(20s);
  EXPECT_LE(backend_.opened, 6);
  backend_.absent.clear();
  EXPECT_THAT(IdsAfter(15s), ElementsAre("A", "B", "C"));
}

TEST_F(DiscoveryTest, ADriverThatGoesTakesItsDevicesAndBringsThemBack) {
  Start();
  backend_.absent = "unloaded";
  EXPECT_TRUE(IdsAfter(5s).empty());
  EXPECT_THAT(inventory_.published().Get()->devices[0].health.reason, HasSubstr("unloaded"));
  EXPECT_GE(backend_.stopped, 1);
  backend_.absent.clear();
  backend_.version = "2.0";
  EXPECT_THAT(IdsAfter(15s), ElementsAre("A", "B", "C"));
  EXPECT_EQ(inventory_.published().Get()->FindVendor("acme")->driver->version, "2.0");
  EXPECT_EQ(reopened_, 2);
}

TEST_F(DiscoveryTest, AHangLeavesOutOneDeviceAndTheOthersGoOn) {
  Start();
  backend_.hangs = {"1"};
  executor_.Advance(11s);
  EXPECT_EQ(readings_["B"].evidence.at(0).kind, "hang");
  readings_.clear();
  executor_.Advance(5s);
  EXPECT_TRUE(readings_["A"].reachable);
  EXPECT_TRUE(readings_["C"].reachable);
  EXPECT_EQ(readings_["B"].evidence.at(0).kind, "hang");
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "C"));
}

TEST_F(DiscoveryTest, CountersThatGrowAreNoChangeOfTheInventory) {
  backend_.counts = true;
  Start();
  const std::uint64_t state = inventory_.published().Get()->state_generation;
  const std::int64_t count = readings_.at("A").evidence.at(0).code;
  executor_.Advance(10s);
  EXPECT_GT(readings_.at("A").evidence.at(0).code, count) << "the monitor follows them";
  EXPECT_EQ(inventory_.published().Get()->state_generation, state);
}

TEST_F(DiscoveryTest, PartsThatOnlyTheirDeviceKnowsFollowIt) {
  backend_.parts["1"] = {"1/0", "1/1"};
  Start();
  EXPECT_THAT(backend_.read, ElementsAre("0", "1", "1/0", "1/1", "2"));
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "1/0", "1/1", "C"));

  // Another program removes one between two readings.
  backend_.parts["1"] = {"1/1"};
  backend_.removed = {"1/0"};
  executor_.Advance(6s);
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "1/1", "C"));
  const int described = backend_.described;
  executor_.Advance(60s);
  EXPECT_EQ(backend_.described, described) << "nothing else changed";
}

TEST_F(DiscoveryTest, PartsThatAreReadWithTheirDeviceNeedNoCall) {
  backend_.parts["1"] = {"1/0", "1/1"};
  backend_.together = true;
  Start();
  EXPECT_THAT(backend_.read, ElementsAre("0", "1", "2"));
  for (const char* part : {"1/0", "1/1"}) {
    EXPECT_TRUE(readings_.at(part).reachable);
    EXPECT_THAT(readings_.at(part).processes, SizeIs(1));
  }
  EXPECT_THAT(readings_.at("B").parts, IsEmpty()) << "each device has its own";
  EXPECT_THAT(inventory_.published().Get()->Find("1/1")->reading->processes, SizeIs(1));

  // One that the driver does not return with its device is asked for.
  backend_.parts["1"] = {"1/1"};
  backend_.removed = {"1/0"};
  backend_.read.clear();
  executor_.Advance(5s);
  EXPECT_THAT(backend_.read, ElementsAre("0", "1", "1/0", "1/1", "2"));
  executor_.Advance(6s);
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "1/1", "C"));

  // An event about a part concerns that part alone.
  backend_.read.clear();
  discovery_.ReadSoon("1/1");
  executor_.Advance(200ms);
  EXPECT_THAT(backend_.read, ElementsAre("1/1"));
}

TEST_F(DiscoveryTest, APartWhoseCallsHangIsNotReadWithItsDevice) {
  backend_.parts["1"] = {"1/0", "1/1"};
  backend_.together = true;
  backend_.hangs = {"1/0"};  // when it is described
  Start();
  executor_.Advance(11s);
  EXPECT_EQ(readings_.count("1/0"), 0u) << "it is not known yet";
  EXPECT_TRUE(readings_.at("1/1").reachable);
  EXPECT_TRUE(readings_.at("C").reachable);
}

TEST_F(DiscoveryTest, APartThatAnswersAgainIsReadWhileAnotherOneHangs) {
  backend_.parts["1"] = {"1/0", "1/1", "1/2"};
  backend_.together = true;
  Start();
  const auto hang = [this](const std::string& part) {
    backend_.hangs = {part};
    backend_.changed = {"1"};  // so that it is described, which a part does not share
    executor_.Advance(11s);
    backend_.changed.clear();
  };
  hang("1/0");
  EXPECT_EQ(readings_.at("1/0").evidence.at(0).kind, "hang");
  EXPECT_TRUE(readings_.at("1/1").reachable);
  backend_.hangs.clear();
  backend_.abandoned_ = 0;  // its call returned
  executor_.Advance(31s);
  EXPECT_TRUE(readings_.at("1/0").reachable);

  hang("1/1");
  for (const char* other : {"B", "1/0", "1/2", "C"})
    EXPECT_TRUE(readings_.at(other).reachable) << other;
  EXPECT_EQ(readings_.at("1/1").evidence.at(0).kind, "hang");
  backend_.hangs.clear();
  backend_.abandoned_ = 0;
  executor_.Advance(31s);
  EXPECT_TRUE(readings_.at("1/1").reachable);
  backend_.read.clear();
  executor_.Advance(5s);
  EXPECT_THAT(backend_.read, ElementsAre("0", "1", "2")) << "each part with its device again";
}

TEST_F(DiscoveryTest, PartsOfADeviceThatHangsStayWhatTheyAre) {
  backend_.parts["1"] = {"1/0"};
  Start();
  backend_.hangs = {"1"};
  backend_.parts.clear();  // the next worker, which does not ask the device, knows no parts
  executor_.Advance(11s);
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "1/0", "C"));
  const int described = backend_.described;
  executor_.Advance(6s);
  EXPECT_EQ(backend_.described, described);
  const auto snapshot = inventory_.published().Get();
  EXPECT_FALSE(snapshot->Find("1/0")->reading->reachable);
  EXPECT_TRUE(snapshot->Find("A")->reading->reachable);
}

TEST_F(DiscoveryTest, AHungDeviceIsAskedAgainOnlyAfterTheWorkerThatHungHasEnded) {
  Start();
  backend_.hangs = {"1"};
  executor_.Advance(11s);
  backend_.read.clear();
  executor_.Advance(300s);
  EXPECT_EQ(std::count(backend_.read.begin(), backend_.read.end(), "1"), 0);
  backend_.hangs.clear();
  backend_.abandoned_ = 0;
  executor_.Advance(6s);
  EXPECT_TRUE(readings_["B"].reachable);
}

TEST_F(DiscoveryTest, AHangAtTheFirstLookKeepsNoOneElseWaiting) {
  backend_.hangs = {"0"};
  bool looked = false;
  discovery_.OnFirstScan([&] { looked = true; });
  Start();
  executor_.Advance(6s);
  EXPECT_TRUE(looked);
  EXPECT_THAT(Ids(), ElementsAre("B", "C"));
}

TEST_F(DiscoveryTest, ADeviceThatCannotBeDescribedAnyMoreIsStillKnown) {
  Start();
  backend_.lost = {"2"};
  backend_.events_.ended(Error(Code::kUnavailable, "worker died"));
  EXPECT_THAT(IdsAfter(10s), ElementsAre("A", "B", "C"));
  EXPECT_FALSE(readings_["C"].reachable);
}

TEST_F(DiscoveryTest, ADeviceThatCannotBeDescribedIsLoggedOnceForEachReason) {
  Start();
  backend_.devices = {"A", "B", "C", "D"};
  backend_.lost = {"3"};
  testing::internal::CaptureStderr();
  executor_.Advance(60s);
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string line = "cannot read the facts of a device";
  const auto first = log.find(line);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(line, first + 1), std::string::npos) << log;
  backend_.lost.clear();
  EXPECT_THAT(IdsAfter(10s), ElementsAre("A", "B", "C", "D"));
}

TEST_F(DiscoveryTest, ADriverThatDoesNotAnswerHasTakenNoDeviceAway) {
  Start();
  backend_.silent = "8 workers hang in the driver";
  EXPECT_THAT(IdsAfter(10s), ElementsAre("A", "B", "C"));
  for (const char* id : {"A", "B", "C"})
    EXPECT_EQ(readings_[id].evidence.at(0).kind, "driver-silent") << id;
  const VendorEntry* vendor = inventory_.published().Get()->FindVendor("acme");
  EXPECT_NE(vendor->driver, nullptr);
  EXPECT_EQ(vendor->reason, backend_.silent);
  EXPECT_EQ(discovery_.session(), std::nullopt);
  backend_.silent.clear();
  executor_.Advance(15s);
  for (const char* id : {"A", "B", "C"}) EXPECT_TRUE(readings_[id].reachable) << id;
  EXPECT_EQ(inventory_.published().Get()->FindVendor("acme")->reason, "");
}

TEST_F(DiscoveryTest, AHangIsOfTheDeviceAndNotOfItsNumber) {
  Start();
  backend_.hangs = {"1"};
  executor_.Advance(11s);
  ASSERT_EQ(readings_["B"].evidence.at(0).kind, "hang");
  // A is removed: B has its number now, and C has B's.
  backend_.devices = {"B", "C"};
  backend_.hangs.clear();
  backend_.lost = {"0"};
  EXPECT_THAT(IdsAfter(10s), ElementsAre("A", "B", "C"))
      << "one listed device has no id, so no device is known to be gone";
  EXPECT_TRUE(readings_["C"].reachable) << "C has the index of the device that hung";
  EXPECT_FALSE(readings_["A"].reachable);
  EXPECT_FALSE(readings_["B"].reachable);
  backend_.lost.clear();
  EXPECT_THAT(IdsAfter(10s), ElementsAre("B", "C"));
  EXPECT_EQ(readings_["B"].evidence.at(0).kind, "hang")
      << "also under its new index while its worker hangs";
  backend_.abandoned_ = 0;
  executor_.Advance(1min);
  EXPECT_TRUE(readings_["B"].reachable);
}

TEST_F(DiscoveryTest, AHangDoesNotStayWithANumberThatIsAnotherDevicesInTheNextConnection) {
  Start();
  backend_.hangs = {"1"};
  executor_.Advance(5s);  // B is asked
  backend_.devices = {"A", "C", "D"};
  backend_.hangs.clear();
  executor_.Advance(6s);  // as many devices as before, but others
  EXPECT_THAT(IdsAfter(1s), ElementsAre("A", "C", "D"));
  EXPECT_TRUE(readings_["C"].reachable);
  EXPECT_TRUE(readings_["D"].reachable);
}

TEST_F(DiscoveryTest, SeesAddedAndRemovedDevices) {
  Start();
  backend_.devices = {"A", "B", "C", "D"};
  EXPECT_THAT(IdsAfter(5s), ElementsAre("A", "B", "C", "D"));
  backend_.devices = {"A", "C", "D"};
  EXPECT_THAT(IdsAfter(5s), ElementsAre("A", "C", "D"));
  EXPECT_THAT(inventory_.published().Get()->Find("B")->health.reason,
              HasSubstr("no longer present"));
}

TEST_F(DiscoveryTest, NudgesDuringALookMakeOneMore) {
  discovery_.Start();
  for (int i = 0; i < 5; ++i) {
    discovery_.Refresh();
    discovery_.ReadSoon("A");
  }
  executor_.RunUntilIdle();
  backend_.read.clear();
  executor_.Advance(5s);
  EXPECT_THAT(backend_.read, ElementsAre("0", "1", "2"));
  backend_.read.clear();
  discovery_.Refresh();
  discovery_.Refresh();
  discovery_.ReadSoon("B");
  executor_.RunUntilIdle();
  EXPECT_LE(backend_.read.size(), 6u);
  EXPECT_GE(backend_.read.size(), 3u);
}

TEST_F(DiscoveryTest, AnswersOfAnEndedConnectionAreDropped) {
  discovery_.Start();
  backend_.events_.ended(Error(Code::kUnavailable, "worker died"));
  executor_.RunUntilIdle();
  EXPECT_TRUE(Ids().empty());
  EXPECT_THAT(IdsAfter(2s), ElementsAre("A", "B", "C"));
}

TEST_F(DiscoveryTest, SomeoneElsesCallThatHangsBlamesNoDeviceOfOurs) {
  Start();
  backend_.unsent = true;
  executor_.Advance(5s);  // a reading waits behind that call
  backend_.events_.ended(Error(Code::kDeadlineExceeded, "\"sample 1\" did not answer within 5s"));
  backend_.unsent = false;
  executor_.Advance(2s);
  EXPECT_EQ(backend_.opened, 2);
  for (const char* id : {"A", "B", "C"}) EXPECT_TRUE(readings_[id].reachable) << id;
}

TEST_F(DiscoveryTest, ASessionLastsAsLongAsItsAddressesMeanSomething) {
  EXPECT_EQ(discovery_.session(), std::nullopt);
  discovery_.Start();
  EXPECT_EQ(discovery_.session(), std::nullopt) << "no facts were read yet";
  executor_.RunUntilIdle();
  const auto first = discovery_.session();
  ASSERT_TRUE(first);
  executor_.Advance(20s);
  EXPECT_EQ(discovery_.session(), first);
  backend_.events_.ended(Error(Code::kUnavailable, "worker died"));
  EXPECT_EQ(discovery_.session(), std::nullopt);
  executor_.Advance(2s);
  ASSERT_TRUE(discovery_.session());
  EXPECT_NE(discovery_.session(), first);
  discovery_.Release([] {});
  EXPECT_EQ(discovery_.session(), std::nullopt);
}

TEST_F(DiscoveryTest, AnUnhealthyDeviceIsReadTwiceASecondAndTheOthersAreNot) {
  Start();
  inventory_.SetHealth("B", HealthState::kUnhealthy, "an error", executor_.clock().Wall());
  executor_.Advance(5s);  // takes effect from the next look on
  backend_.read.clear();
  executor_.Advance(10s);
  EXPECT_GE(std::count(backend_.read.begin(), backend_.read.end(), "1"), 19);
  EXPECT_EQ(std::count(backend_.read.begin(), backend_.read.end(), "0"), 2);
  inventory_.SetHealth("B", HealthState::kHealthy, "", executor_.clock().Wall());
  executor_.Advance(1s);
  backend_.read.clear();
  executor_.Advance(10s);
  EXPECT_EQ(std::count(backend_.read.begin(), backend_.read.end(), "1"), 2);
}

TEST_F(DiscoveryTest, HowOftenSoonIsSaidDoesNotMatter) {
  Start();
  backend_.read.clear();
  backend_.described = 0;
  for (int i = 0; i < 1000; ++i) {
    for (int j = 0; j < 10; ++j) discovery_.ReadSoon("B");
    executor_.Advance(1ms);
  }
  EXPECT_THAT(std::count(backend_.read.begin(), backend_.read.end(), "1"),
              ::testing::AllOf(::testing::Ge(9), ::testing::Le(12)));
  EXPECT_EQ(std::count(backend_.read.begin(), backend_.read.end(), "0"), 0);
  EXPECT_EQ(backend_.described, 0);
}

TEST_F(DiscoveryTest, ADriverThatIsElsewhereIsOpenedThereAndHasATimeOfItsOwn) {
  const auto entry = [&] { return *inventory_.published().Get()->FindVendor("acme"); };
  place_ = std::make_shared<const DriverLocation>(DriverLocation{.instance = "1"});
  Start();
  const base::WallTime since = entry().since;
  EXPECT_EQ(entry().place, place_);
  executor_.Advance(10s);
  discovery_.Restart();
  executor_.RunUntilIdle();
  EXPECT_EQ(backend_.opened, 2);
  EXPECT_EQ(reopened_, 2);
  EXPECT_EQ(entry().since, since) << "it is the same driver";
  backend_.silent = "does not answer";
  executor_.Advance(10s);
  backend_.silent.clear();
  executor_.Advance(20s);
  EXPECT_EQ(entry().since, since) << "it was there all the time";
  place_ =
      std::make_shared<const DriverLocation>(DriverLocation{.container = true, .instance = "2"});
  discovery_.Restart();
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "C")) << "until it is known what is there";
  executor_.RunUntilIdle();
  EXPECT_TRUE(entry().place->container);
  EXPECT_GT(entry().since, since);
  discovery_.Release([] {});
  const int opened = backend_.opened;
  discovery_.Restart();
  executor_.Advance(60s);
  EXPECT_EQ(backend_.opened, opened);
}

TEST_F(DiscoveryTest, ADriverThatWasGoneIsNewWhenItIsBack) {
  Start();
  const base::WallTime since = inventory_.published().Get()->FindVendor("acme")->since;
  backend_.absent = "no library";
  executor_.Advance(10s);
  backend_.absent.clear();
  executor_.Advance(20s);
  EXPECT_GT(inventory_.published().Get()->FindVendor("acme")->since, since);
}

TEST_F(DiscoveryTest, SaysWhyADriverContainerIsNotUsed) {
  backend_.absent = "no library";
  place_ =
      std::make_shared<const DriverLocation>(DriverLocation{.unused = "that folder is anyone's"});
  Start();
  EXPECT_EQ(inventory_.published().Get()->FindVendor("acme")->reason,
            "no library; that folder is anyone's");
}

TEST_F(DiscoveryTest, WhatIsLetGoOfIsNotTouchedAndItsDevicesStay) {
  Start();
  backend_.abandoned_ = 1;  // the worker dies some time after it was stopped
  bool released = false;
  discovery_.Release([&] { released = true; });
  executor_.Advance(1s);
  EXPECT_FALSE(released);
  backend_.abandoned_ = 0;
  executor_.Advance(100ms);
  EXPECT_TRUE(released);
  backend_.read.clear();
  const int opened = backend_.opened;
  discovery_.Refresh();
  discovery_.ReadSoon("A");
  backend_.events_.doubt();
  executor_.Advance(60s);
  EXPECT_EQ(backend_.opened, opened);
  EXPECT_TRUE(backend_.read.empty());
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "C"));
  discovery_.Reopen();
  executor_.RunUntilIdle();
  EXPECT_THAT(backend_.read, ElementsAre("0", "1", "2"));
  EXPECT_EQ(reopened_, 2);
}

TEST_F(DiscoveryTest, Issue231OneDeviceWhoseCallsFailTouchesNoOther) {
  Start();
  backend_.lost = {"1"};
  executor_.Advance(5s);
  EXPECT_FALSE(readings_["B"].reachable);
  EXPECT_TRUE(readings_["A"].reachable);
  EXPECT_TRUE(readings_["C"].reachable);
  // Also where it can no longer even be described.
  backend_.events_.ended(Error(Code::kUnavailable, "worker died"));
  EXPECT_THAT(IdsAfter(10s), ElementsAre("A", "B", "C"));
  EXPECT_TRUE(readings_["C"].reachable);
}

TEST_F(DiscoveryTest, Issue1223ADriverThatFailsAsAWholeLeavesNoDeviceAndIsTriedWithBackOff) {
  Start();
  const int opened = backend_.opened;
  backend_.absent = "NVML does not answer";
  discovery_.Refresh();
  executor_.RunUntilIdle();
  EXPECT_TRUE(Ids().empty()) << "at once";
  executor_.Advance(5min);
  EXPECT_LE(backend_.opened - opened, 26) << "every 15 s at most";
  backend_.absent.clear();
  EXPECT_THAT(IdsAfter(16s), ElementsAre("A", "B", "C"));
}

TEST_F(DiscoveryTest, ReportsADriverAsAbsentUntilItIsTakenBack) {
  Start();
  bool released = false, described = false;
  discovery_.GiveUp("the driver is being replaced", [&] { released = true; });
  EXPECT_TRUE(released);
  EXPECT_EQ(Ids(), std::vector<std::string>());
  const auto snapshot = inventory_.published().Get();
  EXPECT_EQ(snapshot->FindVendor("acme")->driver, nullptr);
  EXPECT_EQ(snapshot->FindVendor("acme")->reason, "the driver is being replaced");
  EXPECT_EQ(snapshot->Find("A")->health.state, HealthState::kGone);
  EXPECT_EQ(snapshot->Find("A")->health.reason, "the driver is being replaced");
  const int opened = backend_.opened;
  // Nothing else of the agent opens it meanwhile.
  discovery_.Refresh();
  discovery_.Release([] {});
  discovery_.Reopen();
  discovery_.DescribeNow([&] { described = true; });
  EXPECT_EQ(IdsAfter(10min), std::vector<std::string>());
  EXPECT_EQ(backend_.opened, opened);
  EXPECT_TRUE(described);
  backend_.version = "2.0";
  discovery_.TakeBack();
  executor_.RunUntilIdle();
  EXPECT_THAT(Ids(), ElementsAre("A", "B", "C"));
  EXPECT_EQ(inventory_.published().Get()->FindVendor("acme")->driver->version, "2.0");
}

TEST_F(DiscoveryTest, TakesBackADriverThatIsNoLongerThere) {
  Start();
  backend_.abandoned_ = 1;
  bool released = false;
  discovery_.GiveUp("the driver is being replaced", [&] { released = true; });
  executor_.Advance(4s);
  EXPECT_FALSE(released);  // a call of the driver hangs
  executor_.Advance(2s);
  EXPECT_TRUE(released);
  backend_.absent = "no driver is loaded";
  discovery_.TakeBack();
  executor_.RunUntilIdle();
  EXPECT_EQ(inventory_.published().Get()->FindVendor("acme")->reason, "no driver is loaded");
}

}  // namespace
}  // namespace penstock::node::inventory
