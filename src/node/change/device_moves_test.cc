// Tests moves of devices between allocators, with real offers and a simulated kubelet.
#include "node/change/device_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/change/manual_assignments.h"
#include "node/inventory/testing/acme_inventory.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::change {
namespace {

using namespace std::chrono_literals;
using ledger::Lease;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::NodeConfig Assign(std::vector<std::string> devices, const std::string& allocator) {
  api::NodeConfig config;
  config.assignments = {{std::move(devices), allocator}};
  return config;
}

/// An executor whose wall clock a test can set.
class SetExecutor final : public base::Executor {
 public:
  const base::Clock& clock() const override { return set_; }
  void Post(std::function<void()> function) override { executor_.Post(std::move(function)); }
  base::TimerId PostAfter(base::Duration delay, std::function<void()> function) override {
    return executor_.PostAfter(delay, std::move(function));
  }
  void Cancel(base::TimerId timer) override { executor_.Cancel(timer); }

  void RunUntilIdle() { executor_.RunUntilIdle(); }
  void Advance(base::Duration by) { executor_.Advance(by); }
  void SetWallBack(base::Duration by) { set_.back += by; }

 private:
  struct Set final : base::Clock {
    explicit Set(const base::Clock& its_own) : own(its_own) {}
    base::TimePoint Now() const override { return own.Now(); }
    base::WallTime Wall() const override { return own.Wall() - back; }
    const base::Clock& own;
    base::Duration back{};
  };
  base::ManualExecutor executor_;
  Set set_{executor_.clock()};
};

class DeviceMovesTest : public ::testing::Test {
 protected:
  DeviceMovesTest() {
    inventory::ReportHealthy(inventory_, inventory::AcmeDevices(3, 4), executor_.clock().Wall());
    Start({});
  }

  /// Starts the module as an agent does.
  void Start(const api::NodeConfig& config) {
    turns_.reset();
    changes_.reset();
    moves_.reset();
    offers_ =
        std::make_unique<share::Offers>(inventory_, ledger_, device::testing::FindAcme, open_);
    auto remembered = LoadManualAssignments(Path());
    ASSERT_TRUE(remembered.ok()) << remembered.error().ToString();
    auto under_way = LoadChanges(folder_ / "changes.json");
    ASSERT_TRUE(under_way.ok()) << under_way.error().ToString();
    changes_ = std::make_unique<DeviceChanges>(
        executor_, executor_, DeviceChanges::Node{inventory_, ledger_, *offers_},
        [this](auto done) { Ask(std::move(done)); }, folder_ / "changes.json", *under_way);
    moves_ = std::make_unique<DeviceMoves>(
        executor_, executor_, DeviceMoves::Node{inventory_, ledger_, *offers_, *changes_}, open_,
        [this](bool awaits) { awaits_ = awaits; }, Path(), *remembered);
    turns_.emplace(executor_, inventory_, ledger_, *offers_,
                   [this](const auto& now, const auto& before) {
                     changes_->Follow(now, before);
                     if (on_turn_) on_turn_();
                   });
    changes_->Start();
    Configure(config);
    executor_.RunUntilIdle();
  }

  void Configure(const api::NodeConfig& config) {
    offers_->Configure(config, moves_->Configure(config));
    executor_.RunUntilIdle();
  }

  void Ask(std::function<void(base::Result<std::set<std::string>>)> done) {
    ++asked_;
    if (silent_) return done(base::Error(Code::kUnavailable, "no kubelet"));
    done(counts_);
  }

  /// Makes a request; its answers go into told_ and answer_.
  void Set(MoveRequest request) {
    reported_.clear();
    answer_.reset();
    moves_->Set(
        request,
        [this](const DeviceMove& move) {
          reported_.push_back(move.device + " " + std::string(ToString(move.state)) + " " +
                              move.reason);
        },
        [this](const auto& answer) { answer_ = answer; });
    executor_.RunUntilIdle();
  }

  /// Ids of the devices that an allocator offers.
  std::vector<std::string> At(const std::string& allocator) {
    std::vector<std::string> ids;
    for (const auto& offer : *offers_->Get())
      for (const auto& slot : offer.slots)
        if (offer.allocator == allocator) ids.push_back(slot.slot.id);
    return ids;
  }

  void Hold(const std::string& device, const std::string& allocator = "kubelet") {
    Lease lease;
    lease.id = "lease-of-" + device;
    lease.allocator = allocator;
    lease.slots = {{device, device, "acme.com/gpu", {}}};
    if (allocator == "kubelet") {
      lease.namespace_name = "ml";
      lease.pod = "train";
    }
    ASSERT_TRUE(ledger_.Add(lease).ok());
    executor_.RunUntilIdle();
  }
  void GiveBack(const std::string& device) {
    ledger_.Release("lease-of-" + device);
    executor_.RunUntilIdle();
  }

  std::string Reason(const std::string& device) {
    return offers_->Desired()->assignments.at(device).reason;
  }
  std::string Path() const { return folder_ / "doors.json"; }

  os::TemporaryFolder folder_;
  const share::EnabledAllocators open_{"kubelet", "local"};
  SetExecutor executor_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  std::unique_ptr<share::Offers> offers_;
  std::unique_ptr<DeviceChanges> changes_;
  std::set<std::string> counts_;  // the devices that the kubelet counts
  bool silent_ = false, awaits_ = false;
  int asked_ = 0;
  std::vector<std::string> reported_;
  std::optional<base::Result<std::vector<DeviceMove>>> answer_;
  std::unique_ptr<DeviceMoves> moves_;
  std::function<void()> on_turn_;
  std::optional<share::Turns> turns_;
};

TEST_F(DeviceMovesTest, AConfigurationMovesADeviceOnceTheKubeletCountsItNoMore) {
  counts_ = {"G0", "G1", "G2"};
  std::vector<std::string> seen;
  on_turn_ = [&] {
    std::string now = "-";
    for (const char* allocator : {"kubelet", "local"})
      for (const std::string& id : At(allocator)) now = id == "G1" ? allocator : now;
    if (seen.empty() || seen.back() != now) seen.push_back(now);
  };
  Configure(Assign({"1"}, "local"));
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2"));
  EXPECT_THAT(At("local"), IsEmpty());
  EXPECT_EQ(Reason("G1"), "being moved to local users: the kubelet still lists it as allocatable");
  executor_.Advance(1min);
  EXPECT_THAT(At("local"), IsEmpty());
  EXPECT_GT(asked_, 10);
  counts_ = {"G0", "G2"};
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1"));
  EXPECT_EQ(Reason("G1"), "");
  EXPECT_THAT(seen, ElementsAre("-", "local"))
      << "never offered by both, and never back at the first";
  const int asked = asked_;
  executor_.Advance(1h);
  EXPECT_EQ(asked_, asked) << "the agent no longer waits for the kubelet";
}

TEST_F(DeviceMovesTest, FactsThatChangeWhatARuleMeansMoveNothingBeforeItMayBe) {
  Configure(Assign({"1"}, "local"));
  executor_.Advance(1s);
  ASSERT_THAT(At("local"), ElementsAre("G1"));
  counts_ = {"G0", "G2"};
  auto first = device::testing::AcmeDevice(0, 4), second = device::testing::AcmeDevice(1, 4),
       third = device::testing::AcmeDevice(2, 4);
  first.index = 1;
  second.index = 0;
  inventory_.SetFacts("acme", {first, second, third}, "", executor_.clock().Wall());
  EXPECT_THAT(At("local"), ElementsAre("G1")) << "only the device's index changed";
  executor_.RunUntilIdle();
  EXPECT_THAT(At("local"), IsEmpty());
  EXPECT_THAT(At("kubelet"), ElementsAre("G1", "G2"))
      << "G1 had no other holder, and G0 waits for the kubelet's acknowledgement";
}

TEST_F(DeviceMovesTest, WhatIsHeldStaysHeldAndComesToTheNewAllocatorAfterwards) {
  Hold("G1");
  Configure(Assign({"1"}, "local"));
  executor_.Advance(1h);
  EXPECT_THAT(At("local"), IsEmpty());
  EXPECT_EQ(Reason("G1"), "being moved to local users: held by pod ml/train");
  EXPECT_FALSE(awaits_) << "the kubelet is not queried every second for days";
  GiveBack("G1");
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1"));
}

TEST_F(DeviceMovesTest, AConfigurationThatIsTakenBackPutsTheDeviceBackAtOnce) {
  Hold("G1");
  Configure(Assign({"1"}, "local"));
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2"));
  Configure({});
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
}

TEST_F(DeviceMovesTest, AMoveByHandReportsEachStepAndIsAnswered) {
  counts_ = {"G0", "G1"};
  Set({{"0", "G2"}, "local"});
  EXPECT_THAT(reported_, ElementsAre("G0 waiting the kubelet still lists it as allocatable",
                                     "G2 waiting the kubelet still lists it as allocatable"));
  executor_.Advance(10ms);
  EXPECT_THAT(At("local"), ElementsAre("G2"));
  EXPECT_FALSE(answer_);
  counts_ = {"G1"};
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G0", "G2"));
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_THAT(**answer_,
              ElementsAre(DeviceMove{"G0", 0, "kubelet", "local", MoveState::kOffered, ""},
                          DeviceMove{"G2", 2, "kubelet", "local", MoveState::kOffered, ""}));
  EXPECT_THAT(reported_,
              ElementsAre("G0 waiting the kubelet still lists it as allocatable",
                          "G2 waiting the kubelet still lists it as allocatable",
                          "G2 acknowledged ", "G2 offered ", "G0 acknowledged ", "G0 offered "));
  EXPECT_EQ(moves_->manual().size(), 2u);
}

TEST_F(DeviceMovesTest, ToNoAllocatorAndBackToTheConfiguration) {
  Set({{"1"}, "none"});
  executor_.Advance(1s);
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_EQ((*answer_)->at(0).state, MoveState::kAcknowledged);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2"));
  Set({{"1"}, "none"});
  EXPECT_EQ((*answer_)->at(0).state, MoveState::kUnchanged);
  Set({{"1"}, "default"});
  EXPECT_EQ((*answer_)->at(0), (DeviceMove{"G1", 1, "none", "kubelet", MoveState::kOffered, ""}));
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
  EXPECT_TRUE(moves_->manual().empty());
}

TEST_F(DeviceMovesTest, WhatIsHeldIsRefusedAndNothingChanges) {
  Hold("G1");
  Set({{"0", "1"}, "local"});
  ASSERT_TRUE(answer_ && !answer_->ok());
  EXPECT_EQ(answer_->error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(answer_->error().message(),
            "GPU 1 (G1) is held by pod ml/train: stop the holder first, or wait with --wait");
  executor_.Advance(1s);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
  EXPECT_FALSE(os::Exists(Path()));
}

TEST_F(DeviceMovesTest, ADryRunSaysWhatWouldBeAndChangesNothing) {
  Hold("G1");
  Set({{"0", "1"}, "local", std::nullopt, true});
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_THAT(**answer_,
              ElementsAre(DeviceMove{"G0", 0, "kubelet", "local", MoveState::kWouldMove, ""},
                          DeviceMove{"G1", 1, "kubelet", "local", MoveState::kWouldMove,
                                     "held by pod ml/train"}));
  Set({{"2"}, "kubelet", std::nullopt, true});
  EXPECT_EQ((*answer_)->at(0).state, MoveState::kUnchanged);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
}

TEST_F(DeviceMovesTest, RefusesWhatIsNotThere) {
  Set({{"7"}, "local"});
  EXPECT_EQ(answer_->error().code(), Code::kNotFound);
  Set({{"1", "G1"}, "local"});
  EXPECT_EQ(answer_->error().code(), Code::kInvalidArgument);
}

TEST_F(DeviceMovesTest, WaitsNoLongerWhereTheClockIsSetBack) {
  Hold("G1");
  Set({{"1"}, "local", 10min});
  executor_.SetWallBack(1h);
  executor_.Advance(11min);
  EXPECT_TRUE(answer_.has_value());
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2")) << "a held device does not move";
}

TEST_F(DeviceMovesTest, WaitsForHoldersAndLooksForTheirEndMeanwhile) {
  Hold("G1");
  Set({{"1"}, "local", 10min});
  EXPECT_THAT(reported_, ElementsAre("G1 waiting held by pod ml/train"));
  EXPECT_TRUE(awaits_);
  executor_.Advance(5min);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2")) << "no other holder can get it";
  GiveBack("G1");
  executor_.Advance(1s);
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_THAT(At("local"), ElementsAre("G1"));
  EXPECT_FALSE(awaits_);
  executor_.Advance(1h);
  EXPECT_THAT(At("local"), ElementsAre("G1")) << "its deadline for moving back has passed";
}

TEST_F(DeviceMovesTest, WhatIsStillHeldAfterTheWaitGoesBack) {
  Hold("G1");
  Set({{"0", "1"}, "local", 10min});
  executor_.Advance(1min);
  EXPECT_THAT(At("local"), ElementsAre("G0"));
  executor_.Advance(10min);
  ASSERT_TRUE(answer_ && !answer_->ok());
  EXPECT_EQ(answer_->error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(answer_->error().message(),
            "GPU 1 (G1) is still held by pod ml/train and stays assigned to the kubelet");
  EXPECT_THAT(At("kubelet"), ElementsAre("G1", "G2"));
  EXPECT_THAT(At("local"), ElementsAre("G0"));
  EXPECT_EQ(moves_->manual().size(), 1u);
}

TEST_F(DeviceMovesTest, TheLastWordAboutADeviceCounts) {
  Hold("G1");
  Set({{"1"}, "local", 10min});
  std::optional<base::Result<std::vector<DeviceMove>>> second;
  moves_->Set(
      {{"1"}, "kubelet"}, [](const DeviceMove&) {}, [&](const auto& answer) { second = answer; });
  executor_.RunUntilIdle();
  ASSERT_TRUE(answer_ && !answer_->ok());
  EXPECT_EQ(answer_->error().code(), Code::kCancelled);
  ASSERT_TRUE(second && second->ok());
  EXPECT_EQ((*second)->at(0).state, MoveState::kUnchanged);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
}

TEST_F(DeviceMovesTest, AKubeletThatDoesNotAnswerIsNamedAndAskedAgain) {
  silent_ = true;
  Set({{"1"}, "local"});
  executor_.Advance(1min);
  EXPECT_THAT(Reason("G1"), HasSubstr("cannot read the kubelet's allocatable devices"));
  silent_ = false;
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1"));
}

constexpr char kNotAcknowledged[] =
    "the kubelet did not acknowledge its withdrawal within 2m (the kubelet still lists it as "
    "allocatable): make sure that the kubelet runs, and restart it if it does";

TEST_F(DeviceMovesTest, WhatTheKubeletDoesNotLetGoServesOnAndIsTriedAgainAsTheConfigurationSays) {
  counts_ = {"G0", "G1", "G2"};
  Configure(Assign({"1"}, "local"));
  executor_.Advance(119s);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2"));
  for (int attempt = 0; attempt < 3; ++attempt) {
    executor_.Advance(1s);
    EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
    EXPECT_EQ(Reason("G1"),
              std::string("it stays assigned to the kubelet and was to move to local users: ") +
                  kNotAcknowledged + "; the move is tried again every 10m");
    executor_.Advance(10min - 1s);
    EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2")) << "for ten minutes";
    executor_.Advance(1s);
    EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2"));
    EXPECT_EQ(Reason("G1"),
              "being moved to local users: the kubelet still lists it as allocatable");
    executor_.Advance(2min - 1s);
  }
  counts_ = {"G0", "G2"};
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1"));
  EXPECT_EQ(Reason("G1"), "");
}

TEST_F(DeviceMovesTest, WhatTheKubeletDoesNotLetGoIsTheKubeletsForTheNextAgentToo) {
  counts_ = {"G0", "G1", "G2"};
  Configure(Assign({"1"}, "local"));
  for (int i = 0; i < 2; ++i) {
    executor_.Advance(3min);
    ASSERT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
    Start(Assign({"1"}, "local"));
    EXPECT_THAT(At("local"), IsEmpty());
    EXPECT_EQ(Reason("G1"),
              "being moved to local users: the kubelet still lists it as allocatable");
    EXPECT_TRUE(moves_->manual().empty());
  }
  counts_ = {"G0", "G2"};
  executor_.Advance(1min);
  EXPECT_THAT(At("local"), ElementsAre("G1"));
  Start({});
  EXPECT_THAT(At("local"), IsEmpty());
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
}

TEST_F(DeviceMovesTest, AConfigurationThatChangesItsMindOrComesAgainDoesNotWait) {
  counts_ = {"G0", "G1", "G2"};
  Configure(Assign({"1"}, "local"));
  executor_.Advance(3min);
  ASSERT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
  Configure({});
  EXPECT_EQ(Reason("G1"), "");
  executor_.Advance(1h);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
  Configure(Assign({"1"}, "local"));
  executor_.Advance(3min);
  ASSERT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
  counts_ = {"G0", "G2"};
  Configure(Assign({"1"}, "local"));
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1"));
}

TEST_F(DeviceMovesTest, ARequestFailsForADeviceThatTheKubeletDoesNotLetGo) {
  counts_ = {"G0", "G1", "G2"};
  for (const auto& wait : {std::optional<base::Duration>(), std::optional<base::Duration>(1h)}) {
    Set({{"1"}, "local", wait});
    executor_.Advance(2min);
    ASSERT_TRUE(answer_ && !answer_->ok());
    EXPECT_EQ(answer_->error().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(answer_->error().message(),
              std::string("GPU 1 (G1) stays assigned to the kubelet: ") + kNotAcknowledged);
    EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
    EXPECT_EQ(Reason("G1"), "");
    EXPECT_TRUE(moves_->manual().empty());
  }
  counts_.clear();
  executor_.Advance(1h);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2")) << "the answer was that it stays";
  Set({{"1"}, "local"});
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1"));
}

TEST_F(DeviceMovesTest, ARequestDoesNotWaitForTheNextAttemptOfTheConfiguration) {
  counts_ = {"G0", "G1", "G2"};
  Configure(Assign({"1"}, "local"));
  executor_.Advance(3min);
  Set({{"1"}, "none"});
  executor_.Advance(2min);
  ASSERT_TRUE(answer_ && !answer_->ok());
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
  EXPECT_THAT(Reason("G1"), HasSubstr("was to move to local users"));
  counts_ = {"G0", "G2"};
  Set({{"1"}, "default"});
  executor_.Advance(1s);
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_THAT(At("local"), ElementsAre("G1"));
}

TEST_F(DeviceMovesTest, OnlyTheTimeWithoutAHolderCounts) {
  counts_ = {"G0", "G1", "G2"};
  Configure(Assign({"1"}, "local"));
  for (int i = 0; i < 3; ++i) {
    executor_.Advance(1min);
    Hold("G1");  // an allocation that was under way
    executor_.Advance(1h);
    EXPECT_EQ(Reason("G1"), "being moved to local users: held by pod ml/train");
    GiveBack("G1");
  }
  executor_.Advance(119s);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2"));
  executor_.Advance(1s);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
}

TEST_F(DeviceMovesTest, AnAgentRestartedKeepsWhatWasMovedByHand) {
  Set({{"1"}, "local"});
  executor_.Advance(1s);
  Start({});
  EXPECT_THAT(At("local"), ElementsAre("G1"));
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2"));
}

TEST_F(DeviceMovesTest, AMoveGoesOnInTheNextAgentAndKeepsItsTime) {
  Hold("G1");
  Set({{"1"}, "local", 10min});
  executor_.Advance(1min);
  Start({});
  EXPECT_THAT(At("local"), IsEmpty());
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2"));
  EXPECT_EQ(Reason("G1"), "being moved to local users: held by pod ml/train");
  executor_.Advance(10min);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
  Start({});
  EXPECT_TRUE(moves_->manual().empty());
}

TEST_F(DeviceMovesTest, ADamagedFileAndANewerOneAreSetAside) {
  ASSERT_TRUE(os::WriteFileAtomically(Path(), "{\"version\":1,").ok());
  Start({});
  EXPECT_TRUE(os::Exists(Path() + ".damaged"));
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1", "G2"));
  ASSERT_TRUE(os::WriteFileAtomically(Path(), R"({"version":2,"devices":[],"more":1})").ok());
  const auto newer = LoadManualAssignments(Path());
  ASSERT_TRUE(newer.ok()) << newer.error().ToString();
  EXPECT_THAT(*newer, IsEmpty());
  EXPECT_TRUE(os::Exists(Path() + ".newer"));
}

TEST(AllocatorsFile, ReadsWhatItWrites) {
  const ManualAssignments devices = {
      {"G0", {.allocator = "none"}},
      {"G1",
       {.allocator = "local",
        .transfer = ManualAssignment::Transfer{"kubelet", "none", base::WallTime(1700000000s)}}},
      {"G2", {.transfer = ManualAssignment::Transfer{"", std::nullopt, std::nullopt}}},
  };
  const auto read = DecodeManualAssignments(EncodeManualAssignments(devices), "doors.json");
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(*read, devices);
  for (const char* text : {"", "[]", "{}", R"({"version":1})", R"({"version":1,"devices":[{}]})",
                           R"({"version":1,"devices":[{"device":"G0","door":"back"}]})"})
    EXPECT_EQ(DecodeManualAssignments(text, "doors.json").error().code(), Code::kDataLoss) << text;
}

TEST_F(DeviceMovesTest, ADeviceThatIsReplacedOnItsWayEndsTheRequest) {
  Hold("G1");
  Set({{"1"}, "local", 10min});
  ASSERT_FALSE(answer_);
  auto other = device::testing::AcmeDevice(1, 4);
  other.id = "another";
  inventory_.SetFacts("acme",
                      {device::testing::AcmeDevice(0, 4), other, device::testing::AcmeDevice(2, 4)},
                      "", executor_.clock().Wall());
  executor_.Advance(1s);
  ASSERT_TRUE(answer_ && !answer_->ok());
  EXPECT_EQ(answer_->error().code(), Code::kAborted);
  EXPECT_EQ(answer_->error().message(), "G1 was replaced by another device");
}

/// G1 is divided into two parts.
class MovesOfParts : public DeviceMovesTest {
 protected:
  MovesOfParts() {
    auto devices = inventory::AcmeDevices(3, 4);
    for (const char* id : {"G1.0", "G1.1"}) {
      device::Facts part = devices[1];
      part.id = id;
      part.index = -1;
      part.parent = "G1";
      part.memory.count = devices[1].memory.count / 2;
      devices.push_back(part);
    }
    inventory::ReportHealthy(inventory_, devices, executor_.clock().Wall());
    executor_.RunUntilIdle();
  }
};

TEST_F(MovesOfParts, PartsFollowTheirDevice) {
  ASSERT_THAT(At("kubelet"), ElementsAre("G0", "G1.0", "G1.1", "G2"));
  counts_ = {"G1.1"};
  Set({{"1"}, "local"});
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1.0")) << "each on its own";
  EXPECT_FALSE(answer_);
  counts_ = {};
  executor_.Advance(1s);
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_EQ((*answer_)->size(), 3u);
  EXPECT_THAT(At("local"), ElementsAre("G1.0", "G1.1"));
  EXPECT_EQ(moves_->manual().size(), 1u) << "the parts are not assigned by themselves";
  Set({{"1"}, "default"});
  executor_.Advance(1s);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1.0", "G1.1", "G2"));
}

TEST_F(MovesOfParts, APartCanBelongToAnotherAllocatorThanTheRest) {
  Set({{"G1.0"}, "local"});
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1.0"));
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1.1", "G2"));
}

TEST_F(MovesOfParts, APartThatIsHeldIsNamedOrStaysAfterTheWait) {
  Hold("G1.1");
  Set({{"1"}, "local"});
  ASSERT_TRUE(answer_ && !answer_->ok());
  EXPECT_THAT(answer_->error().message(), HasSubstr("G1.1 is held by pod ml/train"));
  Set({{"1"}, "local", 10min});
  executor_.Advance(11min);
  ASSERT_TRUE(answer_ && !answer_->ok());
  EXPECT_EQ(answer_->error().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(At("local"), ElementsAre("G1.0"));
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1.1", "G2"));
  GiveBack("G1.1");
  executor_.Advance(1h);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G1.1", "G2"));
  Set({{"1"}, "local"});
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1.0", "G1.1"))
      << "the next request is for all parts again";
}

TEST_F(MovesOfParts, PartsStayWhereTheyAreWhileTheDriverIsGone) {
  Set({{"1"}, "local"});
  executor_.Advance(1s);
  counts_ = {"G1", "G1.0", "G1.1"};  // the kubelet would not give them back
  auto devices = std::vector<device::Facts>();
  for (const auto& entry : inventory_.published().Get()->devices) devices.push_back(*entry.facts);
  inventory_.SetFacts("acme", {}, "the driver is gone", executor_.clock().Wall());
  executor_.Advance(1min);
  inventory::ReportHealthy(inventory_, devices, executor_.clock().Wall());
  EXPECT_THAT(At("local"), ElementsAre("G1.0", "G1.1"));
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1.0", "G1.1"));
}

TEST_F(MovesOfParts, AfterARestartPartsAreWithTheirDeviceFromTheBeginning) {
  Set({{"1"}, "none"});
  executor_.Advance(1s);
  // The next agent has no devices yet when it gets its configuration.
  const auto manual = LoadManualAssignments(Path());
  inventory::Inventory inventory;
  share::Offers offers(inventory, ledger_, device::testing::FindAcme, open_);
  std::optional<DeviceChanges> changes(
      std::in_place, executor_, executor_, DeviceChanges::Node{inventory, ledger_, offers},
      [this](auto done) { Ask(std::move(done)); }, folder_ / "other.json",
      std::vector<DeviceChange>{});
  DeviceMoves moves(
      executor_, executor_, DeviceMoves::Node{inventory, ledger_, offers, *changes}, open_,
      [](bool) {}, folder_ / "other-doors.json", *manual);
  offers.Configure({}, moves.Configure({}));
  std::vector<device::Facts> devices;
  for (const auto& entry : inventory_.published().Get()->devices) devices.push_back(*entry.facts);
  inventory::ReportHealthy(inventory, devices, executor_.clock().Wall());
  EXPECT_EQ(offers.Desired()->assignments.at("G1.0").allocator, "");
  EXPECT_EQ(offers.Desired()->assignments.at("G0").allocator, "kubelet");
  EXPECT_TRUE(moves.manual().at("G1").with_parts);
  changes.reset();
}

TEST_F(MovesOfParts, DefaultOfAPartIsWhereItsDeviceIs) {
  Set({{"1"}, "local"});
  executor_.Advance(1s);
  Set({{"G1.0"}, "kubelet"});
  executor_.Advance(1s);
  ASSERT_THAT(At("local"), ElementsAre("G1.1"));
  Set({{"G1.0"}, "default"});
  executor_.Advance(1s);
  EXPECT_EQ((*answer_)->at(0).to, "local");
  EXPECT_THAT(At("local"), ElementsAre("G1.0", "G1.1"));
  Set({{"G1.0"}, "default", std::nullopt, true});
  EXPECT_EQ((*answer_)->at(0).state, MoveState::kUnchanged);
}

TEST_F(MovesOfParts, ADeviceDoesNotWaitForAPartThatMoves) {
  Hold("G1.1");
  Set({{"G1.1"}, "local", 30min});
  std::optional<base::Result<std::vector<DeviceMove>>> second;
  Configure(Assign({"G1"}, "none"));
  executor_.Advance(1s);
  EXPECT_THAT(At("kubelet"), ElementsAre("G0", "G2")) << "G1.0 has moved";
  EXPECT_FALSE(answer_);
  GiveBack("G1.1");
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1.1"));
}

TEST_F(MovesOfParts, ARuleOfTheConfigurationSelectsThePartsWithTheirDevice) {
  Configure(Assign({"1"}, "local"));
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1.0", "G1.1"));
  Configure(Assign({"G1.0"}, "local"));
  executor_.Advance(1s);
  EXPECT_THAT(At("local"), ElementsAre("G1.0"));
}

TEST(DeviceMovesAtTheStart, ADeviceThatIsMissingMovesOnWhenItAppears) {
  const os::TemporaryFolder folder;
  base::ManualExecutor executor;
  inventory::Inventory inventory;
  ledger::Ledger ledger;
  const share::EnabledAllocators enabled{"kubelet", "local"};
  share::Offers offers(inventory, ledger, device::testing::FindAcme, enabled);
  std::set<std::string> counts{"G1"};
  std::optional<DeviceChanges> changes(
      std::in_place, executor, executor, DeviceChanges::Node{inventory, ledger, offers},
      [&](auto done) { done(counts); }, folder / "changes.json",
      std::vector<DeviceChange>{{.kind = "move",
                                 .devices = {{.id = "G1", .allocator = "kubelet"}},
                                 .step = "await release"}});
  const base::WallTime until = executor.clock().Wall() + 1h;
  DeviceMoves moves(
      executor, executor, DeviceMoves::Node{inventory, ledger, offers, *changes}, enabled,
      [](bool) {}, folder / "doors.json",
      {{"G1",
        {.allocator = "local",
         .transfer = ManualAssignment::Transfer{.from = "kubelet", .until = until}}}});
  share::Turns turns(executor, inventory, ledger, offers,
                     [&](const auto& now, const auto& before) { changes->Follow(now, before); });
  offers.Configure({}, moves.Configure({}));
  changes->Start();
  executor.Advance(1min);
  EXPECT_EQ(changes->OfKind("move"), nullptr);
  inventory::ReportHealthy(inventory, inventory::AcmeDevices(3, 4), executor.clock().Wall());
  EXPECT_EQ(offers.Desired()->assignments.at("G1").allocator, "") << "also before the next turn";
  executor.Advance(1s);
  EXPECT_EQ(offers.Desired()->assignments.at("G1").reason,
            "being moved to local users: the kubelet still lists it as allocatable");
  counts.clear();
  executor.Advance(1s);
  EXPECT_EQ(offers.Desired()->assignments.at("G1").allocator, "local");
  changes.reset();
}

}  // namespace
}  // namespace penstock::node::change
