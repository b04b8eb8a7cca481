// Tests the steps and the journal of changes: with a kind of the test's own, and for moves, resets
// and reloads, an agent that is killed at every point of a change; divisions and parts on demand:
// killed_divisions_test.cc.
#include "node/change/device_changes.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/change/device_moves.h"
#include "node/change/driver_reloads.h"
#include "node/change/resets.h"
#include "node/change/testing/usable_devices.h"
#include "node/inventory/testing/acme_inventory.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::change {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ledger::Lease LeaseOf(const std::string& device, const std::string& allocator = "local") {
  return {.id = "lease-of-" + device,
          .allocator = allocator,
          .slots = {{.id = device, .device = device, .resource = "acme.com/gpu"}}};
}

// --- the machine, with a kind of the test's own

/// A change of the test, with steps that do what the test says.
class TestKind final : public ChangeKind {
 public:
  explicit TestKind(std::vector<ChangeStep> steps) : steps_(std::move(steps)) {}
  std::string_view name() const override { return "test"; }
  const std::vector<ChangeStep>& steps() const override { return steps_; }
  bool hides_devices() const override { return false; }
  bool includes_parts() const override { return true; }
  std::string Explain(const DeviceChange& change, const std::string&) const override {
    return "at " + change.step + ", waits for " + change.waits_for;
  }
  std::vector<DeviceChange> Due() override { return std::exchange(due, {}); }
  void Ended(const DeviceChange& change, const base::Status& result) override {
    ended.push_back(change.devices.front().id + ": " +
                    (result.ok() ? "done" : result.error().ToString()));
  }

  std::vector<DeviceChange> due;
  std::vector<std::string> ended;

 private:
  const std::vector<ChangeStep> steps_;
};

class DeviceChangesTest : public ::testing::Test {
 protected:
  DeviceChangesTest() {
    inventory::ReportHealthy(inventory_, inventory::AcmeDevices(2, 2), executor_.clock().Wall());
    offers_.Configure({}, {});
  }

  void Start(std::vector<DeviceChange> remembered = {}) {
    changes_ = std::make_unique<DeviceChanges>(
        executor_, executor_, DeviceChanges::Node{inventory_, ledger_, offers_},
        [this](auto done) { done(counts_); }, Journal(), std::move(remembered));
    kind_ = std::make_unique<TestKind>(std::vector<ChangeStep>{
        DeviceChanges::Withdraw(),
        {.name = "await release",
         .take = [this](const DeviceChange& change) { return changes_->AwaitUnused(change); }},
        {.name = "act",
         .take =
             [this](const DeviceChange& change) {
               acts_.push_back(change.devices.front().id + (change.taken_over ? " again" : ""));
               return act_;
             },
         .most = 10s,
         .recorded = true},
        {.name = "skipped after a failure",
         .take =
             [this](const DeviceChange&) {
               acts_.push_back("skipped");
               return StepResult(std::string());
             }},
        {.name = "tidy",
         .take =
             [this](const DeviceChange&) {
               acts_.push_back("tidied");
               return StepResult(std::string());
             },
         .finally = true}});
    changes_->Add(*kind_);
  }

  void Begin(const std::string& device) {
    kind_->due.push_back({.devices = {{.id = device, .allocator = changes_->AllocatorOf(device)}}});
    changes_->Wake();
    executor_.RunUntilIdle();
  }

  std::string Unusable(const std::string& device) {
    for (const share::Offer& offer : *offers_.Get())
      for (const share::OfferedSlot& slot : offer.slots)
        if (slot.slot.device == device) return slot.usable ? "" : slot.reason;
    return "not offered";
  }
  std::string Journal() const { return folder_ / "changes.json"; }
  std::vector<DeviceChange> Written() const {
    auto written = LoadChanges(Journal());
    return written.ok() ? *written : std::vector<DeviceChange>{};
  }

  os::TemporaryFolder folder_;
  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"kubelet", "local"}};
  std::set<std::string> counts_;  // the devices that the kubelet counts
  StepResult act_ = std::string();
  std::vector<std::string> acts_;
  std::unique_ptr<TestKind> kind_;
  std::unique_ptr<DeviceChanges> changes_;
  share::Turns turns_{executor_, inventory_, ledger_, offers_,
                      [this](const auto& now, const auto& before) {
                        if (changes_) changes_->Follow(now, before);
                      }};
};

TEST_F(DeviceChangesTest, WithdrawsWaitsForHolderAndKubeletActsAndOffersAgain) {
  Start();
  changes_->Start();
  ASSERT_TRUE(ledger_.Add(LeaseOf("G0", "kubelet")).ok());
  counts_ = {"G0", "G1"};
  Begin("G0");
  EXPECT_EQ(Unusable("G0"),
            "at await release, waits for held by a pod whose name is not known yet (lease-of-G0)");
  EXPECT_EQ(Unusable("G1"), "");
  ledger_.Release("lease-of-G0");
  executor_.Advance(1min);
  EXPECT_EQ(Unusable("G0"),
            "at await release, waits for the kubelet still lists it as allocatable");
  EXPECT_THAT(acts_, IsEmpty());
  counts_ = {"G1"};
  executor_.Advance(1s);
  EXPECT_THAT(acts_, ElementsAre("G0", "skipped", "tidied"));
  EXPECT_THAT(kind_->ended, ElementsAre("G0: done"));
  EXPECT_EQ(Unusable("G0"), "");
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(DeviceChangesTest, ARecordedStepBeginsOnlyOnceTheJournalNamesIt) {
  std::filesystem::create_directory(folder_ / "full");
  Start();
  changes_ = std::make_unique<DeviceChanges>(
      executor_, executor_, DeviceChanges::Node{inventory_, ledger_, offers_},
      [](auto done) { done(std::set<std::string>()); }, folder_ / "full/x/changes.json",
      std::vector<DeviceChange>{});
  changes_->Add(*kind_);
  changes_->Start();
  Begin("G0");
  executor_.Advance(50s);
  EXPECT_THAT(acts_, IsEmpty());
  EXPECT_THAT(Unusable("G0"), HasSubstr("the journal of changes is not written yet: "));
  std::filesystem::create_directory(folder_ / "full/x");
  executor_.Advance(10s);
  EXPECT_THAT(acts_, ElementsAre("G0", "skipped", "tidied"));

  std::filesystem::remove_all(folder_ / "full/x");
  Begin("G1");
  executor_.Advance(61s);
  EXPECT_THAT(acts_, ElementsAre("G0", "skipped", "tidied", "tidied"));
  EXPECT_THAT(kind_->ended.back(), HasSubstr("G1: UNAVAILABLE: the journal of changes"));
}

TEST_F(DeviceChangesTest, AStepThatFailsSkipsToWhatMustBeDoneAnyway) {
  Start();
  changes_->Start();
  act_ = base::Error(Code::kFailedPrecondition, "the driver refuses");
  Begin("G0");
  executor_.Advance(1s);
  EXPECT_THAT(acts_, ElementsAre("G0", "tidied"));
  EXPECT_THAT(kind_->ended, ElementsAre("G0: FAILED_PRECONDITION: the driver refuses"));
  EXPECT_EQ(Unusable("G0"), "") << "what becomes of it is for its kind to say";
}

TEST_F(DeviceChangesTest, AStepThatTakesTooLongNamesItselfAndWhatItWaitsFor) {
  Start();
  changes_->Start();
  act_ = std::string("the driver");
  Begin("G0");
  executor_.Advance(9s);
  EXPECT_THAT(kind_->ended, IsEmpty());
  executor_.Advance(2s);
  EXPECT_THAT(kind_->ended, ElementsAre("G0: DEADLINE_EXCEEDED: the step \"act\" did not end "
                                        "within 10s: the driver"));
}

TEST_F(DeviceChangesTest, OneChangeAtATimeOfADevice) {
  Start();
  changes_->Start();
  act_ = std::string("the driver");
  Begin("G0");
  executor_.Advance(1s);
  Begin("G0");
  EXPECT_EQ(Written().size(), 1u);
  EXPECT_EQ(changes_->Of("G1"), nullptr);
  Begin("G1");
  EXPECT_EQ(changes_->Of("G1")->step, "await release");
  EXPECT_EQ(Written().size(), 2u);
  EXPECT_EQ(changes_->OfKind("test", "G1"), changes_->Of("G1"));
  EXPECT_EQ(changes_->OfKind("move"), nullptr);
  EXPECT_EQ(changes_->Of("G7"), nullptr);
}

TEST_F(DeviceChangesTest, ChangesOfAnEarlierAgentAreContinuedAtTheirStep) {
  Start({{.kind = "test", .devices = {{.id = "G0"}}, .step = "act"}});
  EXPECT_NE(Unusable("G0"), "") << "withdrawn before anything is offered";
  executor_.Advance(1min);
  EXPECT_THAT(acts_, IsEmpty()) << "the devices were not all read yet";
  changes_->Start();
  executor_.Advance(1s);
  EXPECT_THAT(acts_, ElementsAre("G0 again", "skipped", "tidied"));
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(DeviceChangesTest, AFailureOutlivesTheAgent) {
  Start({{.kind = "test", .devices = {{.id = "G0"}}, .step = "tidy", .failure = "it broke"}});
  changes_->Start();
  executor_.Advance(1s);
  EXPECT_THAT(acts_, ElementsAre("tidied"));
  EXPECT_THAT(kind_->ended, ElementsAre("G0: ABORTED: it broke"));
}

TEST_F(DeviceChangesTest, WhatNoLongerMakesSenseIsAbandoned) {
  Start({{.kind = "partition", .devices = {{.id = "G0"}}, .step = "act"},
         {.kind = "test", .devices = {{.id = "G1"}}, .step = "of a newer version"},
         {.kind = "test", .devices = {{.id = "G8", .address = "0000:00:00.0"}}, .step = "withdraw"},
         {.kind = "test",
          .devices = {{.id = "G9",
                       .address = device::ToString(*device::testing::AcmeDevice(0, 2).pci)}},
          .step = "await release"},
         {.kind = "test",
          .devices = {{.id = "G0"}},
          .step = "act",
          .failure = "and yet it goes on"}});
  changes_->Start();
  executor_.Advance(1s);
  EXPECT_THAT(kind_->ended, ElementsAre("G8: NOT_FOUND: G8 is not there",
                                        "G9: ABORTED: G9 was replaced by another device"));
  EXPECT_EQ(Unusable("G0"), "");
  EXPECT_EQ(Unusable("G1"), "");
  EXPECT_THAT(Written(), IsEmpty());
}

TEST(ChangeJournal, OfANewerVersionOrCutShortIsSetAside) {
  const std::string text = EncodeChanges({{.kind = "move",
                                           .devices = {{"G0", "0000:01:00.0", "kubelet"}},
                                           .step = "withdraw",
                                           .failure = "no"}});
  const auto read = DecodeChanges(text, "changes.json");
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(EncodeChanges(*read), text);
  const os::TemporaryFolder folder;
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_EQ(DecodeChanges(text.substr(0, length), "changes.json").error().code(),
              Code::kDataLoss);
  std::ofstream(folder / "changes.json") << R"({"version": 2, "changes": [{"of": "later"}]})";
  const auto newer = LoadChanges(folder / "changes.json");
  ASSERT_TRUE(newer.ok());
  EXPECT_THAT(*newer, IsEmpty());
  EXPECT_TRUE(os::Exists(folder / "changes.json.newer"));
}

TEST(ChangeJournal, ReportsAllThatIsWrong) {
  const auto wrong = DecodeChanges(
      R"({"version": 1, "changes": [{"kind": "", "devices": [], "step": 3}, {"devices": [{}]}]})",
      "changes.json");
  ASSERT_FALSE(wrong.ok());
  for (const char* one : {"kind", "devices", "step", "id"})
    EXPECT_THAT(wrong.error().message(), HasSubstr(one));
}

// --- an agent that is killed at every point

/// What outlives an agent: the devices, who holds them, what the kubelet counts, and the disk.
struct Machine {
  os::TemporaryFolder folder;
  std::set<std::string> broken;     // need a reset
  std::set<std::string> counted;    // by the kubelet
  std::set<std::string> resetting;  // the driver works on them
  bool reset_works = true;
  bool reset_answers = true;                  // otherwise the call fails, whatever it did
  std::optional<std::string> assign_locally;  // the configuration says so of this device
  int resets = 0;
  bool mode_waits = false;  // for the driver to be loaded again
  int loads = 0;
  std::set<std::string> held;  // by local users, as an agent finds when it starts
  bool reset_while_held = false;
  bool reported = false;           // to the user, as complete
  bool kubelet_is_silent = false;  // neither reads its list nor says what it counts
  base::Duration step = 50ms;      // of time, where nothing is to be done

  /// The driver has done what it was asked for.
  void Complete() {
    if (reset_works && !resetting.empty()) {
      for (const std::string& id : resetting) broken.erase(id);
      if (resetting.size() == 3) mode_waits = false;  // it was loaded again
    }
    resetting.clear();
  }
};

/// An agent on this machine. Its executor dies with it.
class Agent final : private device::Actions {
 public:
  explicit Agent(Machine& machine) : machine_(machine) {
    inventory::ReportHealthy(inventory_, inventory::AcmeDevices(3, 4), executor_.clock().Wall());
    for (const std::string& id : machine.held) EXPECT_TRUE(ledger_.Add(LeaseOf(id)).ok());
    auto under_way = LoadChanges(machine.folder / "changes.json");
    auto manual = LoadManualAssignments(machine.folder / "doors.json");
    EXPECT_TRUE(under_way.ok() && manual.ok());
    changes_.emplace(
        executor_, executor_, DeviceChanges::Node{inventory_, ledger_, offers_},
        [this](auto done) {
          if (machine_.kubelet_is_silent) return done(base::Error(Code::kUnavailable, "no answer"));
          done(machine_.counted);
        },
        machine.folder / "changes.json", *under_way);
    moves_.emplace(
        executor_, executor_, DeviceMoves::Node{inventory_, ledger_, offers_, *changes_},
        kAllocators, [](bool) {}, machine.folder / "doors.json", *manual);
    const auto vendor = [this](std::string_view) {
      return Resets::Vendor{
          .actions = this,
          .release =
              [this](std::function<void()> done) { executor_.PostAfter(100ms, std::move(done)); },
          .reopen = [] {}};
    };
    resets_.emplace(executor_, inventory_, ledger_, monitor_, *changes_, vendor);
    resets_->SetPolicy(api::ResetPolicy::kIdle);
    reloads_.emplace(executor_, inventory_, ledger_, *changes_, vendor, [this](std::string_view) {
      return ReloadNeed{.known = true, .wanted = machine_.mode_waits, .ready = machine_.mode_waits};
    });
    reloads_->SetPolicy(api::ResetPolicy::kIdle);
    Configure();
    for (int i = 0; i < 3; ++i) Look("G" + std::to_string(i));
    changes_->Start();
  }
  ~Agent() override { changes_.reset(); }

  /// Runs one callback; where there is none, time passes, the kubelet reads its list, the driver
  /// completes a reset, and all devices are read. Returns whether anything is still under way.
  bool Turn() {
    if (executor_.RunOne()) {
      Check();
      return true;
    }
    if (!machine_.kubelet_is_silent) machine_.counted = UsableAt("kubelet");
    if (reset_done_) {
      machine_.Complete();
      std::exchange(reset_done_,
                    nullptr)(machine_.reset_works && machine_.reset_answers
                                 ? base::Status{}
                                 : base::Error(Code::kFailedPrecondition, "the driver refuses"));
    }
    executor_.Advance(machine_.step);
    for (int i = 0; i < 3; ++i) Look("G" + std::to_string(i));
    Check();
    const bool under_way = changes_->OfKind("move") != nullptr ||
                           changes_->OfKind("reset") != nullptr ||
                           changes_->OfKind(kReloadKind) != nullptr;
    return under_way || ++idle_ < 3;
  }

  void Configure() {
    api::NodeConfig config;
    if (machine_.assign_locally) config.assignments = {{{*machine_.assign_locally}, "local"}};
    offers_.Configure(config, moves_->Configure(config));
  }
  void Move(const std::string& device, const std::string& allocator) {
    moves_->Set(
        {{device}, allocator}, [](const DeviceMove&) {},
        [this](const auto& answer) { machine_.reported = answer.ok(); });
  }
  /// The kind of the change under way of a device; "": none.
  std::string ChangeOf(const std::string& device) const {
    const DeviceChange* change = changes_->Of(device);
    return change == nullptr ? "" : change->kind;
  }

  std::set<std::string> UsableAt(const std::string& allocator) {
    return testing::UsableDevices(offers_, allocator);
  }
  device::Health HealthOf(const std::string& id) {
    return inventory_.published().Get()->Find(id)->health;
  }
  void Live(base::Duration time) {
    const base::TimePoint end = executor_.clock().Now() + time;
    while (executor_.clock().Now() < end) (void)Turn();
  }

 private:
  /// What must hold at any time.
  void Check() {
    const auto local = UsableAt("local"), kubelet = UsableAt("kubelet");
    for (const std::string& id : local) {
      ASSERT_FALSE(kubelet.contains(id)) << id << " is offered twice";
      ASSERT_FALSE(machine_.counted.contains(id)) << id << " could be allocated by the kubelet";
    }
    for (const std::string& id : machine_.resetting)
      ASSERT_FALSE(local.contains(id) || kubelet.contains(id))
          << id << " is offered during a reset";
  }

  void Look(const std::string& id) {
    if (machine_.broken.contains(id) && !monitor_.NeedsReset(id) && machine_.resetting.empty())
      monitor_.OnEvidence(
          {.device = id, .kind = "code", .code = static_cast<int>(device::Severity::kReset)});
    const device::Reading reading;
    monitor_.OnReading(id, reading);
    inventory_.SetReading(id, reading, executor_.clock().Wall());
    inventory_.PublishReadTimes();
  }

  std::vector<std::string> ResetTogether(const device::Facts& device,
                                         const std::vector<const device::Facts*>&) const override {
    return device.id == "G2" ? std::vector<std::string>{"G2"}
                             : std::vector<std::string>{"G0", "G1"};
  }
  void Reset(const std::vector<device::Facts>& devices,
             std::function<void(base::Status)> done) override {
    ++machine_.resets;
    for (const device::Facts& device : devices) {
      machine_.resetting.insert(device.id);
      machine_.reset_while_held |= machine_.held.contains(device.id);
    }
    reset_done_ = std::move(done);
  }

  void ReloadDriver(std::function<void(base::Status)> done) override {
    ++machine_.loads;
    machine_.resetting = {"G0", "G1", "G2"};
    machine_.reset_while_held |= !machine_.held.empty();
    reset_done_ = std::move(done);
  }

  static inline const share::EnabledAllocators kAllocators{"kubelet", "local"};
  Machine& machine_;
  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  health::Monitor monitor_{executor_, inventory_, device::testing::FindAcme, {.probation = 2s}};
  share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, kAllocators};
  std::function<void(base::Status)> reset_done_;
  int idle_ = 0;
  std::optional<Resets> resets_;
  std::optional<DriverReloads> reloads_;
  std::optional<DeviceMoves> moves_;
  std::optional<DeviceChanges> changes_;
  share::Turns turns_{executor_, inventory_, ledger_, offers_,
                      [this](const auto& now, const auto& before) {
                        if (changes_) changes_->Follow(now, before);
                      }};
};

/// A change from its beginning to its end.
struct ChangeCase {
  const char* name;
  std::function<void(Machine&)> before;
  std::function<void(Machine&, Agent&)> begin;  // not called after a restart
  std::function<void(Machine&, Agent&)> expect;
  std::function<void(Machine&)> killed = [](Machine&) {};  // before the next agent starts
  /// All is as if the change had not begun, which may be so after a kill; null: never.
  std::function<bool(Machine&, Agent&)> is_old = nullptr;
};

bool IsNotMoved(Machine&, Agent& agent) {
  return agent.UsableAt("local").empty() &&
         agent.UsableAt("kubelet") == std::set<std::string>{"G0", "G1", "G2"};
}

void ExpectG1Moved(Machine&, Agent& agent) {
  EXPECT_THAT(agent.UsableAt("local"), ElementsAre("G1"));
  EXPECT_THAT(agent.UsableAt("kubelet"), ElementsAre("G0", "G2"));
}

/// So that an attempt ends after two minutes, which pass in few steps.
void SilenceKubelet(Machine& machine) {
  machine.kubelet_is_silent = true;
  machine.step = 10s;
}

/// Until the reset that is due was made, and the devices are past their probation.
void LiveThroughReset(Machine& machine, Agent& agent) {
  // After a kill between journal and reset, the next attempt is due ten minutes later.
  if (machine.resets == 0) agent.Live(11min);
  agent.Live(10s);
}

void ExpectReset(Machine& machine, Agent& agent) {
  LiveThroughReset(machine, agent);
  EXPECT_THAT(machine.broken, IsEmpty());
  EXPECT_GE(machine.resets, 1);
  EXPECT_LE(machine.resets, 2);
}

const ChangeCase kCases[] = {
    {"AMoveByHand", [](Machine&) {}, [](Machine&, Agent& agent) { agent.Move("G1", "local"); },
     ExpectG1Moved, [](Machine&) {}, IsNotMoved},
    {"AMoveByHandOfADeviceThatIsToBeReset", [](Machine& machine) { machine.broken = {"G1"}; },
     [](Machine&, Agent& agent) { agent.Move("G1", "local"); },
     [](Machine& machine, Agent& agent) {
       ExpectReset(machine, agent);
       ExpectG1Moved(machine, agent);
     },
     [](Machine&) {},
     [](Machine& machine, Agent& agent) {
       ExpectReset(machine, agent);
       return IsNotMoved(machine, agent);
     }},
    {"AMoveByTheConfiguration", [](Machine&) {},
     [](Machine& machine, Agent& agent) {
       machine.assign_locally = "1";
       agent.Configure();
     },
     ExpectG1Moved},
    {"AMoveByHandThatTheKubeletDoesNotAcknowledge", SilenceKubelet,
     [](Machine&, Agent& agent) { agent.Move("G1", "local"); },
     [](Machine& machine, Agent& agent) {
       EXPECT_TRUE(IsNotMoved(machine, agent));
       EXPECT_FALSE(machine.reported);
     }},
    {"AMoveByTheConfigurationThatTheKubeletDoesNotAcknowledge", SilenceKubelet,
     [](Machine& machine, Agent& agent) {
       machine.assign_locally = "1";
       agent.Configure();
     },
     [](Machine& machine, Agent& agent) {
       EXPECT_TRUE(IsNotMoved(machine, agent) || agent.UsableAt("local").contains("G1"))
           << "it serves at one of the two";
       machine.kubelet_is_silent = false;
       agent.Live(11min);
       ExpectG1Moved(machine, agent);
     }},
    {"AReset", [](Machine& machine) { machine.broken = {"G0"}; }, [](Machine&, Agent&) {},
     [](Machine& machine, Agent& agent) {
       ExpectReset(machine, agent);
       EXPECT_THAT(agent.UsableAt("kubelet"), ElementsAre("G0", "G1", "G2"));
     }},
    {"AResetThatFails",
     [](Machine& machine) {
       machine.broken = {"G0"};
       machine.reset_works = false;
     },
     [](Machine&, Agent&) {},
     [](Machine& machine, Agent& agent) {
       EXPECT_LE(machine.resets, 2) << "not again and again";
       EXPECT_THAT(agent.UsableAt("kubelet"), ElementsAre("G1", "G2"))
           << "only the broken device is withheld";
       EXPECT_THAT(agent.HealthOf("G0").reason, HasSubstr("the reset failed: "));
     }},
    {"AResetOfADeviceThatIsHeldAfterTheKill", [](Machine& machine) { machine.broken = {"G0"}; },
     [](Machine&, Agent&) {},
     [](Machine& machine, Agent&) {
       EXPECT_FALSE(machine.reset_while_held);
       EXPECT_LE(machine.resets, 1);
     },
     [](Machine& machine) { machine.held = {"G1"}; }},
    {"AReload", [](Machine& machine) { machine.mode_waits = true; }, [](Machine&, Agent&) {},
     [](Machine& machine, Agent& agent) {
       if (machine.mode_waits) agent.Live(11min);
       EXPECT_FALSE(machine.mode_waits);
       EXPECT_GE(machine.loads, 1);
       EXPECT_LE(machine.loads, 2);
       agent.Live(10s);
       EXPECT_THAT(agent.UsableAt("kubelet"), ElementsAre("G0", "G1", "G2"));
     }},
    {"AReloadThatWorksAlthoughItsCallFails",
     [](Machine& machine) {
       machine.mode_waits = true;
       machine.reset_answers = false;
     },
     [](Machine&, Agent&) {},
     [](Machine& machine, Agent& agent) {
       if (machine.mode_waits) agent.Live(11min);
       EXPECT_FALSE(machine.mode_waits);
       agent.Live(10s);
       EXPECT_THAT(agent.UsableAt("kubelet"), ElementsAre("G0", "G1", "G2"));
       agent.Live(30min);
       EXPECT_LE(machine.loads, 2) << "once, and once more after a kill";
     }},
    {"AReloadOfADriverWhoseDeviceIsHeldAfterTheKill",
     [](Machine& machine) { machine.mode_waits = true; }, [](Machine&, Agent&) {},
     [](Machine& machine, Agent&) {
       EXPECT_FALSE(machine.reset_while_held);
       EXPECT_LE(machine.loads, 1);
     },
     [](Machine& machine) { machine.held = {"G1"}; }},
};

void PrintTo(const ChangeCase& one, std::ostream* stream) { *stream << one.name; }

class KilledAtEveryPoint : public ::testing::TestWithParam<ChangeCase> {};

std::map<std::string, std::string> FilesOf(const os::TemporaryFolder& folder) {
  std::map<std::string, std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder / ""))
    files[file.path()] = os::ReadFile(file.path()).value_or("");
  return files;
}

/// kill -9: what was not written to disk by now is lost. The kubelet counts no device of a plugin
/// whose connection has ended.
void Kill(Machine& machine, std::optional<Agent>& agent) {
  const auto files = FilesOf(machine.folder);
  agent.reset();
  machine.counted.clear();
  for (const auto& [path, text] : FilesOf(machine.folder)) std::filesystem::remove(path);
  for (const auto& [path, text] : files) std::ofstream(path) << text;
}

TEST_P(KilledAtEveryPoint, EndsInTheOldOrTheNewState) {
  const ChangeCase& one = GetParam();
  bool completed = false;
  int old_ends = 0, new_ends = 0;  // after a kill
  for (int point = 0; !completed; ++point) {
    SCOPED_TRACE("killed after " + std::to_string(point) + " callbacks");
    Machine machine;
    one.before(machine);
    std::optional<Agent> agent(std::in_place, machine);
    machine.counted = agent->UsableAt("kubelet");
    one.begin(machine, *agent);
    completed = true;
    for (int turn = 0; turn < point && completed; ++turn) completed = agent->Turn();
    completed = !completed;  // there was nothing left to kill
    if (!completed) {
      Kill(machine, agent);
      machine.Complete();
      one.killed(machine);
      agent.emplace(machine);
    }
    for (int turn = 0; turn < 10'000 && agent->Turn(); ++turn) {}
    const bool is_old =
        !completed && !machine.reported && one.is_old && one.is_old(machine, *agent);
    if (!is_old) one.expect(machine, *agent);
    if (HasFailure()) return;
    if (!completed) ++(is_old ? old_ends : new_ends);
    ASSERT_LT(point, 1000);
  }
  EXPECT_GT(old_ends + new_ends, 5);
  EXPECT_GT(new_ends, 0) << "what was written is lost";
  EXPECT_EQ(old_ends > 0, one.is_old != nullptr);
}

INSTANTIATE_TEST_SUITE_P(Changes, KilledAtEveryPoint, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

// --- two kinds that want one device

/// The kinds of the changes of G1, one after another, until none is under way.
std::vector<std::string> ChangesOfG1(Agent& agent, const std::function<void()>& during_first) {
  std::vector<std::string> kinds;
  for (int turn = 0; turn < 10'000; ++turn) {
    const std::string now = agent.ChangeOf("G1");
    if (!now.empty() && (kinds.empty() || kinds.back() != now)) {
      kinds.push_back(now);
      if (kinds.size() == 1) during_first();
    }
    if (!agent.Turn()) break;
  }
  return kinds;
}

TEST(TwoKinds, AMoveWaitsForAReset) {
  Machine machine;
  machine.broken = {"G0"};  // and G1 is reset with it
  Agent agent(machine);
  machine.counted = agent.UsableAt("kubelet");
  EXPECT_THAT(ChangesOfG1(agent, [&] { agent.Move("G1", "local"); }), ElementsAre("reset", "move"));
  EXPECT_EQ(machine.resets, 1);
  EXPECT_TRUE(machine.reported);
  agent.Live(10s);
  ExpectG1Moved(machine, agent);
}

TEST(TwoKinds, AResetWaitsForAMove) {
  Machine machine;
  Agent agent(machine);
  machine.counted = agent.UsableAt("kubelet");
  agent.Move("G1", "local");
  EXPECT_THAT(ChangesOfG1(agent, [&] { machine.broken = {"G0"}; }), ElementsAre("move", "reset"));
  EXPECT_EQ(machine.resets, 1);
  EXPECT_TRUE(machine.reported);
  agent.Live(10s);
  ExpectG1Moved(machine, agent);
}

}  // namespace
}  // namespace penstock::node::change
