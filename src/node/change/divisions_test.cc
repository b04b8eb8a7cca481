// Tests how a layout is applied, on a device of the test's own that can be divided into four; with
// real processes and a simulated driver: tests/integration/divide_test.py.
#include "node/change/divisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/change/device_moves.h"
#include "node/change/driver_reloads.h"
#include "node/change/testing/divisible_node.h"

namespace penstock::node::change {
namespace {

using device::Facts;
using partition::DesiredParts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

api::Layout LayoutOf(const std::string& name, bool partitioned,
                     std::vector<api::LayoutParts> parts) {
  return {name, {{.all_devices = true, .partitioned = partitioned, .parts = std::move(parts)}}};
}

class DivisionsTest : public testing::DivisibleNode, public device::Actions {
 protected:
  DivisionsTest() {
    offers_.Configure({}, {});
    Describe();
  }

  std::vector<std::string> ResetTogether(const Facts& device,
                                         const std::vector<const Facts*>&) const override {
    return together_ ? std::vector<std::string>{device.id, "B"}
                     : std::vector<std::string>{device.id};
  }
  void Reset(const std::vector<Facts>&, std::function<void(base::Status)> done) override {
    ++resets_;
    backend_.Reset();
    done({});
  }

  /// Which has the mode of its beginning then.
  void ReloadDriver(std::function<void(base::Status)> done) override {
    ++reloads_;
    backend_.device.modes[0].current = backend_.device.modes[0].pending = "off";
    done(reloaded_);
  }

  void Start(std::vector<DeviceChange> under_way = {}, AppliedLayout applied = {},
             const std::string& boot = "boot") {
    divisions_.reset();
    MakeChanges(std::move(under_way));
    divisions_ =
        std::make_unique<Divisions>(executor_, executor_, NodeOfChanges(), VendorWith(this),
                                    folder_ / "layout.json", std::move(applied), boot);
    StartChanges();
  }

  /// The answer of a request: "done", "pending" or the error.
  std::string Apply(const api::Layout& layout, std::optional<base::Duration> wait = {},
                    const std::string& source = "user") {
    auto answer = std::make_shared<std::string>("pending");
    divisions_->Apply({.layout = layout, .source = source, .wait = wait}, nullptr,
                      [answer](const auto& result) {
                        *answer = result.ok() ? "done" : result.error().ToString();
                      });
    Settle();
    answers_.push_back(answer);
    return *answer;
  }

  /// As the driver does: a process on a part.
  void Use(const std::string& id, std::int32_t pid) {
    device::Reading reading;
    reading.processes = {{.pid = pid}};
    inventory_.SetReading(id, std::move(reading), executor_.clock().Wall());
    inventory_.PublishReadTimes();
  }
  std::string Offered(const std::string& id) {
    const auto desired = offers_.Desired();
    const auto found = desired->assignments.find(id);
    return found == desired->assignments.end() ? "no such device" : found->second.reason;
  }

  /// Clients that hold the device: until Wake with an empty text.
  void HaveClients() {
    divisions_->SetClients([this](const Facts&) {
      ++asked_;
      return clients_;
    });
  }
  bool together_ = false;
  int resets_ = 0, reloads_ = 0, asked_ = 0;
  base::Status reloaded_;  // the answer to a reload
  std::string clients_ = "in use by a client";
  std::vector<std::shared_ptr<std::string>> answers_;
  std::unique_ptr<Divisions> divisions_;
};

TEST_F(DivisionsTest, DividesADeviceAndMakesItWhole) {
  Start();
  EXPECT_EQ(Apply(LayoutOf("three", true, {{"1g", 3}})), "done");
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1", "1g at 2"));
  EXPECT_EQ(divisions_->state().state, "success");
  EXPECT_EQ(Offered("P1"), "");
  EXPECT_EQ(Apply(LayoutOf("whole", false, {})), "done");
  EXPECT_THAT(backend_.Parts(), IsEmpty());
  EXPECT_EQ(backend_.device.modes[0].current, "off");
}

TEST_F(DivisionsTest, ADeviceThatCannotBeDividedIsAsBeforeAndTriedAgain) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  backend_.failing["create"] = 1;
  EXPECT_THAT(Apply(LayoutOf("large", true, {{"4g", 1}})), HasSubstr("create does not work"));
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
  EXPECT_EQ(divisions_->state().state, "failed");
  EXPECT_EQ(Offered(backend_.parts[0].id), "");
  executor_.Advance(10s);
  EXPECT_THAT(backend_.Parts(), ElementsAre("4g at 0"));
  EXPECT_EQ(divisions_->state().state, "success");
}

TEST_F(DivisionsTest, OneThatCannotBecomeAsBeforeIsWithheldUntilItCan) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  backend_.failing["create"] = 4;
  EXPECT_THAT(Apply(LayoutOf("large", true, {{"4g", 1}})),
              HasSubstr("cannot be divided as before"));
  EXPECT_THAT(Offered(backend_.device.id), HasSubstr("being divided as large"));
  EXPECT_EQ(divisions_->state().state, "failed");
  executor_.Advance(2min);
  EXPECT_EQ(backend_.failing["create"], 0);
  EXPECT_THAT(backend_.Parts(), ElementsAre("4g at 0"));
  EXPECT_EQ(Offered(backend_.parts[0].id), "");
}

TEST_F(DivisionsTest, WhatIsHeldStaysAndIsNamedOrWaitedFor) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  Hold("P1");
  EXPECT_THAT(Apply(LayoutOf("large", true, {{"4g", 1}})),
              ::testing::AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("P1")));
  EXPECT_EQ(divisions_->applied().layout.name, "two") << "nothing was changed";
  EXPECT_EQ(Apply(LayoutOf("three", true, {{"1g", 3}})), "done");
  EXPECT_THAT(backend_.Parts(), ::testing::Contains("1g at 0"));
  EXPECT_EQ(Apply(LayoutOf("large", true, {{"4g", 1}}), 1h), "pending");
  EXPECT_EQ(divisions_->state().state, "failed");
  EXPECT_THAT(divisions_->state().reason, HasSubstr("P1"));
  End("P1");
  EXPECT_EQ(*answers_.back(), "done");
  EXPECT_THAT(backend_.Parts(), ElementsAre("4g at 0"));
}

TEST_F(DivisionsTest, AnIdleServerOfAPartEndsFirst) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  Serve({{"P1", {.set = "P1", .ready = true, .servers = {77}}}});
  Use("P1", 77);
  EXPECT_EQ(Apply(LayoutOf("large", true, {{"4g", 1}})), "pending");
  EXPECT_THAT(divisions_->state().devices.front().reason,
              HasSubstr("the sharing server of P1 has not exited yet (0 clients)"));
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
  EXPECT_THAT(Offered("P1"), HasSubstr("being divided")) << "so that the server ends";
  Serve({});
  EXPECT_EQ(*answers_.back(), "pending") << "the driver's list of processes is an old one";
  inventory_.SetReading("P1", {}, executor_.clock().Wall());
  Wake();
  EXPECT_EQ(*answers_.back(), "done");
  EXPECT_THAT(backend_.Parts(), ElementsAre("4g at 0"));
}

TEST_F(DivisionsTest, AHolderThatComesWhileTheReleaseIsAwaitedIsNamedAtOnce) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  for (const bool waits : {false, true}) {
    Serve({{"P1", {.set = "P1", .ready = true, .servers = {77}}}});  // so that it is awaited
    EXPECT_EQ(Apply(LayoutOf("large", true, {{"4g", 1}}),
                    waits ? std::optional<base::Duration>(1h) : std::nullopt),
              "pending");
    Hold("P1");
    if (!waits) {
      EXPECT_THAT(*answers_.back(), HasSubstr("FAILED_PRECONDITION: 0: "));
      EXPECT_THAT(*answers_.back(), HasSubstr("held by P1"));
    } else {
      EXPECT_EQ(*answers_.back(), "pending");
    }
    EXPECT_EQ(divisions_->state().devices.front().state, "waiting");
    EXPECT_THAT(divisions_->state().reason, HasSubstr("held by P1"));
    EXPECT_EQ(Offered("P2"), "") << "it serves meanwhile";
    Serve({});
    if (!waits) { ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done"); }
    End("P1");
  }
  EXPECT_EQ(*answers_.back(), "done") << "without a pause";
  EXPECT_THAT(backend_.Parts(), ElementsAre("4g at 0"));
}

TEST_F(DivisionsTest, AKubeletThatDoesNotTakeNoteIsTheReasonAndNothingIsDestroyed) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  ASSERT_THAT(counted_, UnorderedElementsAre("P1", "P2"));
  kubelet_is_stuck_ = true;
  EXPECT_EQ(Apply(LayoutOf("large", true, {{"4g", 1}})), "pending");
  executor_.Advance(1min);
  EXPECT_EQ(divisions_->state().devices.front().reason,
            "the kubelet still lists it as allocatable");
  executor_.Advance(1min);
  EXPECT_THAT(*answers_.back(),
              HasSubstr("the step \"await release\" did not end within 2m: the kubelet still lists "
                        "it as allocatable"));
  EXPECT_EQ(divisions_->state().state, "failed");
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
  EXPECT_EQ(Offered("P1"), "") << "it serves meanwhile";
  executor_.Advance(1h);
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
  kubelet_is_stuck_ = false;
  executor_.Advance(30min);
  EXPECT_THAT(backend_.Parts(), ElementsAre("4g at 0")) << "it was tried again";
  EXPECT_EQ(divisions_->state().state, "success");
}

TEST_F(DivisionsTest, ADeviceThatIsBeingMovedIsDividedAfterThat) {
  MakeChanges({});
  DeviceMoves moves(executor_, executor_, {inventory_, ledger_, offers_, *changes_},
                    {"kubelet", "local"}, [](bool) {}, folder_ / "doors.json", {});
  offers_.Configure({}, moves.Configure({}));
  divisions_ = std::make_unique<Divisions>(executor_, executor_, NodeOfChanges(), VendorWith(this),
                                           folder_ / "layout.json", AppliedLayout{}, "boot");
  StartChanges();
  kubelet_is_stuck_ = true;
  std::string moved = "pending";
  moves.Set(
      {{backend_.device.id}, "local"}, [](const DeviceMove&) {},
      [&](const auto& answer) { moved = answer.ok() ? "done" : answer.error().ToString(); });
  Wake();
  ASSERT_EQ(changes_->OfKind("move"), changes_->Of(backend_.device.id));
  EXPECT_THAT(Apply(LayoutOf("two", true, {{"1g", 2}})),
              HasSubstr("another change of it is under way: move"));
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}}), 1h), "pending");
  executor_.Advance(1min);
  EXPECT_EQ(backend_.device.modes[0].current, "off");
  kubelet_is_stuck_ = false;
  executor_.Advance(2s);
  EXPECT_EQ(moved, "done");
  EXPECT_EQ(*answers_.back(), "done");
  EXPECT_EQ(offers_.Desired()->assignments.at("P1").allocator, "local");
  divisions_.reset();
  changes_.reset();
}

TEST_F(DivisionsTest, AServerOfAPartThatStaysIsLeftAlone) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  Serve({{"P1", {.set = "P1", .ready = true, .servers = {77}}}});
  Use("P1", 77);
  EXPECT_EQ(Apply(LayoutOf("three", true, {{"1g", 3}})), "done");
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1", "1g at 2"));
}

TEST_F(DivisionsTest, ClientsOfAServerAreHolders) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  Serve({{"P1", {.set = "P1", .ready = true, .clients = 1, .servers = {77}}}});
  Use("P1", 78);
  ledger_.SetAttributed({.outside = {{"P1", {{78, 1, "ann", "python"}}}}});
  EXPECT_THAT(Apply(LayoutOf("large", true, {{"4g", 1}})), HasSubstr("held by a process of ann"));
  // A server with several devices: a client of one keeps it for all.
  ledger_.SetAttributed({});
  Serve({{"P1", {.set = "acme.com/1g", .ready = true, .clients = 1, .servers = {77}}},
         {"Q1", {.set = "acme.com/1g", .ready = true, .clients = 1, .servers = {77}}}});
  EXPECT_THAT(Apply(LayoutOf("large", true, {{"4g", 1}})),
              HasSubstr("held by 1 clients of the sharing server of acme.com/1g"));
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
}

TEST_F(DivisionsTest, AWaitForHoldersEndsAndALaterLayoutEndsIt) {
  Start();
  Hold(backend_.device.id);
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}}), 1min), "pending");
  executor_.Advance(1min);
  EXPECT_THAT(*answers_.back(), HasSubstr("DEADLINE_EXCEEDED"));
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}}), 1h), "pending");
  EXPECT_EQ(Apply(LayoutOf("whole", false, {})), "done");
  EXPECT_THAT(*answers_[1], HasSubstr("CANCELLED"));
}

TEST_F(DivisionsTest, AModeThatNeedsAResetGetsOne) {
  backend_.device.modes[0].effect = device::ModeEffect::kAfterReset;
  Describe();
  Start();
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  EXPECT_EQ(resets_, 1);
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
}

TEST_F(DivisionsTest, AModeStaysPendingWhereARequestForItAloneExcludesTheReset) {
  backend_.device.modes[0].effect = device::ModeEffect::kAfterReset;
  Describe();
  Start();
  const auto apply = [&](bool skip_reset) {
    std::string answer = "pending";
    divisions_->Apply({.layout = LayoutOf("two", true, {{"1g", 2}}),
                       .source = "user",
                       .mode_only = true,
                       .skip_reset = skip_reset},
                      nullptr, [&](const auto& result) {
                        answer = result.ok() ? result->front().state : result.error().ToString();
                      });
    Settle();
    return answer;
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(apply(true), "divided");
    EXPECT_EQ(divisions_->state().state, "success");
    EXPECT_EQ(resets_, 0);
    EXPECT_EQ(backend_.device.modes[0].current, "off");
    EXPECT_EQ(backend_.device.modes[0].pending, "on");
  }
  EXPECT_EQ(apply(false), "divided");
  EXPECT_EQ(resets_, 1);
  EXPECT_EQ(backend_.device.modes[0].current, "on");
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre());
}

TEST_F(DivisionsTest, AModeThatTakesEffectWhenTheDriverIsLoadedAgainIsRequestedAndAwaited) {
  dialect_.by_mode = true;
  backend_.device.modes.push_back({"memory",
                                   "1",
                                   "1",
                                   {"1", "4"},
                                   device::ModeScope::kLinkedDevices,
                                   device::ModeEffect::kAfterDriverReload});
  Describe();
  Start();
  const auto layout = [](const std::string& name, const std::string& memory) {
    return api::Layout{name, {{.all_devices = true, .modes = {{"cut", "on"}, {"memory", memory}}}}};
  };
  backend_.failing["set-mode"] = 1;
  EXPECT_THAT(Apply(layout("four", "4")), HasSubstr("set-mode does not work"));
  EXPECT_EQ(Offered(backend_.device.id), "");
  EXPECT_EQ(Apply(layout("four", "4"), 1h), "pending");
  const device::Mode& cut = backend_.device.modes[0];
  device::Mode& memory = backend_.device.modes[1];
  EXPECT_EQ(memory.pending, "4");
  EXPECT_EQ(cut.current, "off") << "it may not fit yet";
  EXPECT_EQ(divisions_->state().state, "failed");
  EXPECT_THAT(divisions_->state().reason,
              HasSubstr("4 was requested and takes effect when the driver is loaded again"));
  EXPECT_EQ(Offered(backend_.device.id), "") << "it serves on until then";
  inventory_.SetFacts(backend_.device.vendor, {}, "the driver was unloaded",
                      executor_.clock().Wall());
  Wake();
  EXPECT_EQ(divisions_->state().state, "failed") << "of a device that is away nothing new is known";
  memory.current = "4";
  Describe();
  Wake();
  EXPECT_EQ(divisions_->state().state, "success");
  EXPECT_EQ(cut.current, "on");
  EXPECT_EQ(*answers_.back(), "done");
}

/// The argument: whether the program that loads the driver fails, although it is loaded.
class ReloadedDivisions : public DivisionsTest, public ::testing::WithParamInterface<bool> {};

// As where another device waits for it.
TEST_P(ReloadedDivisions, WhatADriverLosesThatIsLoadedAgainIsDividedAgain) {
  if (GetParam()) reloaded_ = base::Error(base::Code::kDeadlineExceeded, "modprobe was killed");
  dialect_.by_mode = true;
  divisions_.reset();
  MakeChanges({});
  divisions_ = std::make_unique<Divisions>(executor_, executor_, NodeOfChanges(), VendorWith(this),
                                           folder_ / "layout.json", AppliedLayout{}, "boot");
  ReloadNeed need{.known = true};
  DriverReloads reloads(
      executor_, inventory_, ledger_, *changes_,
      [this](std::string_view) {
        return Resets::Vendor{.actions = this,
                              .release = [](const std::function<void()>& done) { done(); },
                              .reopen = [this] { Describe(); },
                              .read_soon = {}};
      },
      [&need](std::string_view) { return need; });
  reloads.SetPolicy(api::ResetPolicy::kIdle);
  StartChanges();
  const device::Mode& cut = backend_.device.modes[0];
  ASSERT_EQ(Apply({"on", {{.all_devices = true, .modes = {{"cut", "on"}}}}}), "done");
  ASSERT_EQ(cut.current, "on");
  need = {.known = true, .wanted = true, .ready = true};
  Wake();
  for (int i = 0; i < 10; ++i) {
    executor_.Advance(2s);
    inventory_.SetReading(backend_.device.id, {}, executor_.clock().Wall());
    inventory_.PublishReadTimes();
    Wake();
    if (reloads_ == 1) need = {.known = true};
  }
  EXPECT_EQ(reloads_, 1);
  EXPECT_EQ(cut.current, "on");
  EXPECT_EQ(divisions_->state().state, "success");
  divisions_.reset();
  changes_.reset();
}

INSTANTIATE_TEST_SUITE_P(Answers, ReloadedDivisions, ::testing::Bool(), [](const auto& fails) {
  return fails.param ? "TheCallFails" : "TheCallSucceeds";
});

TEST_F(DivisionsTest, PartsAreCreatedAtExactPlaces) {
  Start();
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  const api::Layout exact{
      "exact",
      {{.ids = {backend_.device.id},
        .partitioned = true,
        .parts = {{"1g", 1, api::LayoutPlace{1, 1}}, {"1g", 1, api::LayoutPlace{3, 1}}}}}};
  const std::string kept = backend_.parts[backend_.parts[0].placement->start == 1 ? 0 : 1].id;
  EXPECT_EQ(Apply(exact), "done");
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 1", "1g at 3"));
  EXPECT_TRUE(std::ranges::any_of(backend_.parts, [&](const auto& one) { return one.id == kept; }));
  Start({}, *LoadAppliedLayout(folder_ / "layout.json"), "the next boot");
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 1", "1g at 3"));
  EXPECT_EQ(Apply(exact), "done");
  EXPECT_THAT(Apply({"exact", {{.ids = {"other"}, .partitioned = true}}}),
              HasSubstr("device other is not on this machine"));
}

TEST_F(DivisionsTest, PartsThatTheDriverPlacesOtherwiseAreNotCreatedAgain) {
  Start();
  backend_.shift = 1;
  const api::Layout exact{"exact",
                          {{.ids = {backend_.device.id},
                            .partitioned = true,
                            .parts = {{"1g", 1, api::LayoutPlace{1, 1}}}}}};
  EXPECT_THAT(Apply(exact),
              HasSubstr("1g at slice 2 (P1) was just created, and is not as desired"));
  EXPECT_EQ(backend_.made, 1);
  EXPECT_THAT(backend_.Parts(), IsEmpty()) << "as before";
}

TEST_F(DivisionsTest, SeveralDevicesAreNotResetForOne) {
  backend_.device.modes[0].effect = device::ModeEffect::kAfterReset;
  together_ = true;
  Describe();
  Start();
  EXPECT_THAT(Apply(LayoutOf("two", true, {{"1g", 2}})), HasSubstr("several devices together"));
  EXPECT_EQ(resets_, 0);
  EXPECT_EQ(backend_.device.modes[0].current, "off");
}

TEST_F(DivisionsTest, WhatOthersChangedStaysAndWhatARebootDestroyedIsMadeAgain) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  backend_.parts.pop_back();
  Describe();
  Wake();
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  EXPECT_EQ(divisions_->state().devices[0].state, "changed");
  const auto kept = LoadAppliedLayout(folder_ / "layout.json");
  ASSERT_TRUE(kept.ok());
  Start({}, *kept);
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0")) << "the same boot";
  bool restored = false;
  Start({}, *kept, "another boot");
  divisions_->WhenRestored(1min, [&] { restored = true; });
  executor_.RunUntilIdle();
  EXPECT_TRUE(restored);
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
}

TEST_F(DivisionsTest, TheKubeletDoesNotWaitForeverForADeviceThatFails) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  backend_.parts.clear();
  Describe();
  ready_ = false;
  Start({}, *LoadAppliedLayout(folder_ / "layout.json"), "another boot");
  bool restored = false;
  const auto latest = executor_.clock().Wall() + 1min;
  divisions_->WhenRestored(1min, [&] { restored = true; });
  executor_.RunUntilIdle();
  EXPECT_FALSE(restored);
  EXPECT_EQ(divisions_->restored_by(), latest);
  executor_.Advance(1min);
  EXPECT_TRUE(restored);
  EXPECT_EQ(divisions_->restored_by(), std::nullopt);
}

TEST_F(DivisionsTest, TheNextAgentFinishesWhatIsInTheJournal) {
  Start();
  ready_ = false;  // the change waits
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "pending");
  const auto journal = LoadChanges(folder_ / "changes.json");
  const auto kept = LoadAppliedLayout(folder_ / "layout.json");
  ASSERT_TRUE(journal.ok() && kept.ok());
  ASSERT_EQ(journal->size(), 1u);
  ready_ = true;
  Start(*journal, *kept);
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
  EXPECT_EQ(divisions_->state().state, "success");
}

TEST_F(DivisionsTest, ALayoutAppliedWhileAnotherIsUnderWayIsTheLast) {
  Start();
  ready_ = false;  // the change waits
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "pending");
  EXPECT_EQ(Apply(LayoutOf("large", true, {{"4g", 1}}), kStanding), "pending");
  EXPECT_THAT(*answers_[0], HasSubstr("CANCELLED"));
  ready_ = true;
  Wake();
  EXPECT_THAT(backend_.Parts(), ElementsAre("4g at 0"));
  EXPECT_EQ(*answers_[1], "done");
}

TEST_F(DivisionsTest, ALayoutThatReplacedAnotherDoesAlsoAfterARestart) {
  Start();
  ready_ = false;
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "pending");
  EXPECT_EQ(Apply(LayoutOf("large", true, {{"4g", 1}}), kStanding), "pending");
  const auto journal = LoadChanges(folder_ / "changes.json");
  const auto kept = LoadAppliedLayout(folder_ / "layout.json");
  ASSERT_TRUE(journal.ok() && kept.ok());
  ready_ = true;
  Start(*journal, *kept);
  EXPECT_THAT(backend_.Parts(), ElementsAre("4g at 0"));
  EXPECT_EQ(divisions_->state().devices[0].state, "divided");
}

TEST_F(DivisionsTest, PartsThatStayAreNotDestroyedInPlaceOfOneThatGotAHolder) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  backend_.before_describe = [this] {
    (void)ledger_.Add({.id = "lease",
                       .allocator = "local",
                       .slots = {{.id = "P2", .device = "P2", .resource = "acme.com/gpu"}}});
  };
  EXPECT_THAT(Apply(LayoutOf("one", true, {{"1g", 1}})), HasSubstr("ABORTED"));
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
  EXPECT_EQ(Offered("P1"), "");
}

TEST_F(DivisionsTest, ALayoutFollowsTheDevicesThatItSelectedAndNotTheirIndices) {
  Start();
  ASSERT_EQ(Apply({"first", {{.devices = {0}, .partitioned = true, .parts = {{"1g", 2}}}}}),
            "done");
  backend_.parts.clear();
  backend_.device.index = 3;
  Describe();
  Start({}, *LoadAppliedLayout(folder_ / "layout.json"), "another boot");
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
  EXPECT_EQ(divisions_->state().state, "success");
}

TEST_F(DivisionsTest, WhatWasRefusedCanBeAccepted) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  divisions_->Refuse("two", "label", "the file cannot be read");
  executor_.RunUntilIdle();
  EXPECT_EQ(divisions_->state().state, "failed");
  divisions_->Accept();
  executor_.RunUntilIdle();
  EXPECT_EQ(divisions_->state().state, "success");
}

TEST_F(DivisionsTest, AnImpossibleLayoutThatWaitsReplacesNone) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  EXPECT_THAT(Apply(LayoutOf("many", true, {{"1g", 9}}), 1h), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_EQ(divisions_->applied().layout.name, "two");
}

TEST_F(DivisionsTest, LayoutsThatCannotBeAreRefused) {
  Start();
  EXPECT_THAT(Apply(LayoutOf("odd", true, {{"2g", 1}})), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(Apply(LayoutOf("many", true, {{"1g", 5}})), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(Apply({"none", {{.devices = {7}, .partitioned = true}}}),
              HasSubstr("INVALID_ARGUMENT"));
  EXPECT_EQ(divisions_->state().layout, "");
  divisions_->Refuse("odd", "label", "there is no such layout");
  executor_.RunUntilIdle();
  EXPECT_EQ(divisions_->state().state, "failed");
  EXPECT_EQ(divisions_->state().reason, "there is no such layout");
}

TEST(AppliedLayouts, AreKeptAsTheyAre) {
  AppliedLayout applied{
      .layout = {"mixed",
                 {{.models = {{0x10de, 0x20b0, {}}, {0x10de, 0x2330, {{0x10de, 0x1464}}}},
                   .devices = {0, 3},
                   .partitioned = true,
                   .parts = {{"1g.5gb", 2}}},
                  {.ids = {"A"},
                   .partitioned = true,
                   .parts = {{"1g.5gb", 1, api::LayoutPlace{6, 1}, {}, true},
                             {"1c.3g.20gb", 2, {}, api::LayoutPlace{0, 4}}}},
                  {.all_devices = true}}},
      .source = "label",
      .label = "mixed",
      .mode_only = true,
      .skip_reset = true,
      .selected = {{"A", 0}, {"C", 1}},
      .boot = "b",
      .achieved = {"A", "B"}};
  EXPECT_EQ(*DecodeAppliedLayout(EncodeAppliedLayout(applied), "f"), applied);
  EXPECT_EQ(*api::DecodeLayout(api::EncodeLayout(applied.layout), "l"), applied.layout);
  for (const char* text :
       {"", "{}", "[]", R"({"version": 1, "layout": 7})",
        R"({"version": 1, "layout": {"rules": [{"devices": ["x"]}]}})",
        R"({"version": 1, "layout": {"rules": [{"parts": [{"profile": "", "count": 0}]}]}})"})
    EXPECT_FALSE(DecodeAppliedLayout(text, "f").ok()) << text;
  EXPECT_EQ(DecodeAppliedLayout(R"({"version": 2})", "f").error().code(),
            Code::kFailedPrecondition);
  EXPECT_FALSE(DecodeDivision("{}").ok());
}

TEST(DivisionRecords, HaveTheModeThatTakesEffectLater) {
  const DivisionRecord record{.layout = "l",
                              .desired = {.mode = "cut",
                                          .value = "on",
                                          .by_mode = true,
                                          .later = "memory",
                                          .later_value = "4"},
                              .before = {}};
  const auto read = DecodeDivision(EncodeDivision(record));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->desired, record.desired);
}

TEST(DivisionRecords, HaveThePlacesOfPartsWithinParts) {
  const auto within = [](const char* profile, int start, int size) {
    return DesiredParts{.profile = profile,
                        .placement = device::Placement{start, size},
                        .outer = device::Placement{0, 8}};
  };
  const DivisionRecord record{
      .layout = "l",
      .desired = {"mig", "enabled", {{"1g.5gb", 7}}},
      .before = {"mig", "enabled", {within("3c.7g.40gb", 0, 3), within("2c.7g.40gb", 3, 2)}},
      .kept = {"MIG-1"}};
  const auto read = DecodeDivision(EncodeDivision(record));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->before, record.before);
  EXPECT_EQ(read->desired, record.desired);
  // As a version without these places wrote it.
  const auto older = DecodeDivision(
      R"({"before":{"mode":"mig","parts":[{"count":2,"outer":{"size":8,"start":0},)"
      R"("profile":"2c.7g.40gb"}],"value":"enabled"},"desired":{"mode":"mig",)"
      R"("value":"disabled"},"layout":"l","modeOnly":false,"resets":false,"skipReset":false,)"
      R"("version":1})");
  ASSERT_TRUE(older.ok()) << older.error().message();
  EXPECT_EQ(older->before.parts,
            (std::vector<DesiredParts>{
                {.profile = "2c.7g.40gb", .count = 2, .outer = device::Placement{0, 8}}}));
}

// A call of the driver takes effect, and then fails, as when its worker dies.

/// From one division to another.
struct Transition {
  const char* name;
  std::optional<api::Layout> before;  // nothing: a whole device
  api::Layout wanted;
  std::vector<std::string> parts;    // which that means
  std::map<std::string, int> calls;  // that it takes
  bool by_mode = false;              // the parts come with the mode
  bool with_reset = false;           // the mode takes effect with one
};

const Transition kTransitions[] = {
    {.name = "AWholeDevice",
     .wanted = LayoutOf("three", true, {{"1g", 3}}),
     .parts = {"1g at 0", "1g at 1", "1g at 2"},
     .calls = {{"set-mode", 1}, {"create", 3}}},
    {.name = "AWholeDeviceThatIsReset",
     .wanted = LayoutOf("two", true, {{"1g", 2}}),
     .parts = {"1g at 0", "1g at 1"},
     .calls = {{"set-mode", 1}, {"create", 2}},
     .with_reset = true},
    {.name = "AWholeDeviceWhosePartsComeWithItsMode",
     .wanted = {"on", {{.all_devices = true, .modes = {{"cut", "on"}}}}},
     .calls = {{"set-mode", 1}},
     .by_mode = true},
    {.name = "PartsThatMakePlaceForOne",
     .before = LayoutOf("three", true, {{"1g", 3}}),
     .wanted = LayoutOf("large", true, {{"4g", 1}}),
     .parts = {"4g at 0"},
     .calls = {{"destroy", 3}, {"create", 1}}},
    {.name = "PartsOfWhichSomeStay",
     .before = LayoutOf("two", true, {{"1g", 2}}),
     .wanted = LayoutOf("exact", true,
                        {{"1g", 1, api::LayoutPlace{1, 1}},
                         {"1g", 1, api::LayoutPlace{2, 1}},
                         {"1g", 1, api::LayoutPlace{3, 1}}}),
     .parts = {"1g at 1", "1g at 2", "1g at 3"},
     .calls = {{"destroy", 1}, {"create", 2}}},
    {.name = "ADeviceThatBecomesWhole",
     .before = LayoutOf("two", true, {{"1g", 2}}),
     .wanted = LayoutOf("whole", false, {}),
     .calls = {{"destroy", 2}, {"set-mode", 1}}},
};

/// A call of a transition that fails after its effect, by the calls before it: the next three fail
/// so, too, if `again`.
struct LateFailure {
  Transition transition;
  std::string call;
  int before;
  bool again;
  Code code;
};
void PrintTo(const LateFailure& one, std::ostream* stream) { *stream << one.transition.name; }

std::vector<LateFailure> LateFailures() {
  std::vector<LateFailure> all;
  for (const Transition& transition : kTransitions)
    for (const auto& [call, count] : transition.calls)
      for (int before = 0; before < count; ++before)
        for (const bool again : {false, true})
          for (const Code code : {Code::kUnavailable, Code::kUnknown})
            all.push_back({transition, call, before, again, code});
  return all;
}

std::string NameOfLateFailure(const ::testing::TestParamInfo<LateFailure>& info) {
  const LateFailure& one = info.param;
  std::string name = one.transition.name + ("_" + one.call) + std::to_string(one.before + 1) +
                     (one.again ? "AndMore" : "") +
                     (one.code == Code::kUnknown ? "Refused" : "Unanswered");
  std::erase(name, '-');
  return name;
}

class LateFailuresOfCalls : public DivisionsTest,
                            public ::testing::WithParamInterface<LateFailure> {
 protected:
  /// All that is there is offered, and nothing else.
  void ExpectAllOffered() {
    std::set<std::string> there;
    for (const Facts& part : backend_.parts) there.insert(part.id);
    if (there.empty()) there.insert(backend_.device.id);
    EXPECT_EQ(testing::UsableDevices(offers_), there);
  }
};

TEST_P(LateFailuresOfCalls, EndInTheWantedDivision) {
  const LateFailure& late = GetParam();
  dialect_.by_mode = late.transition.by_mode;
  if (late.transition.with_reset) backend_.device.modes[0].effect = device::ModeEffect::kAfterReset;
  Describe();
  Start();
  if (late.transition.before) { ASSERT_EQ(Apply(*late.transition.before), "done"); }
  const std::vector<std::string> before = backend_.Parts();
  std::deque<bool>& fails = backend_.fails_after[late.call];
  fails.assign(static_cast<std::size_t>(late.before), false);
  fails.insert(fails.end(), late.again ? 4 : 1, true);
  backend_.late_failure = late.code;

  EXPECT_THAT(Apply(late.transition.wanted), HasSubstr("the worker closed its sockets"));
  EXPECT_EQ(divisions_->state().state, "failed");
  EXPECT_THAT(divisions_->state().reason, HasSubstr("the worker closed its sockets"));
  if (!late.again) {
    EXPECT_THAT(backend_.Parts(), ::testing::UnorderedElementsAreArray(before)) << "as before";
    ExpectAllOffered();
  }
  for (int i = 0; i < 20; ++i) {
    executor_.Advance(1min);
    Wake();
  }
  EXPECT_THAT(fails, IsEmpty()) << "such calls were made";
  EXPECT_EQ(divisions_->state().state, "success");
  EXPECT_THAT(backend_.Parts(), ::testing::UnorderedElementsAreArray(late.transition.parts));
  const device::Mode& mode = backend_.device.modes[0];
  EXPECT_EQ(mode.current, late.transition.wanted.name == "whole" ? "off" : "on");
  EXPECT_EQ(mode.pending, mode.current);
  ExpectAllOffered();
}

INSTANTIATE_TEST_SUITE_P(Calls, LateFailuresOfCalls, ::testing::ValuesIn(LateFailures()),
                         NameOfLateFailure);

// Programs of the cluster that hold the device.

TEST_F(DivisionsTest, ClientsAreStoppedWhileADeviceIsDividedAsALabelSays) {
  Start();
  HaveClients();
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}}), kStanding, "label"), "pending");
  EXPECT_THAT(divisions_->stops_clients_of(), ElementsAre(backend_.device.id));
  EXPECT_THAT(backend_.Parts(), IsEmpty());
  EXPECT_EQ(divisions_->state().devices[0].reason, clients_);
  clients_.clear();
  Wake();
  EXPECT_EQ(*answers_.back(), "done");
  EXPECT_THAT(divisions_->stops_clients_of(), IsEmpty());
}

TEST_F(DivisionsTest, NoClientIsStoppedForWhatIsThereNorForAUser) {
  Start();
  HaveClients();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}}), kStanding, "label"), "done");
  EXPECT_EQ(asked_, 0);
}

TEST_F(DivisionsTest, ClientsRunAgainAfterAFailure) {
  Start();
  ASSERT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}})), "done");
  HaveClients();
  clients_.clear();
  std::vector<std::size_t> stopped;
  divisions_->OnState([&] { stopped.push_back(divisions_->stops_clients_of().size()); });
  backend_.failing["create"] = 4;  // and it cannot become as before at first
  EXPECT_THAT(Apply(LayoutOf("large", true, {{"4g", 1}}), kStanding, "label"),
              HasSubstr("cannot be divided as before"));
  EXPECT_THAT(divisions_->stops_clients_of(), IsEmpty());
  ASSERT_FALSE(stopped.empty());
  EXPECT_EQ(stopped.back(), 0u) << "it is reported";
}

TEST_F(DivisionsTest, TheNextAgentKeepsClientsStoppedUntilItHasFinished) {
  Start();
  HaveClients();
  EXPECT_EQ(Apply(LayoutOf("two", true, {{"1g", 2}}), kStanding, "label"), "pending");
  const auto journal = LoadChanges(folder_ / "changes.json");
  const auto kept = LoadAppliedLayout(folder_ / "layout.json");
  ASSERT_TRUE(journal.ok() && kept.ok());
  ready_ = false;
  Start(*journal, *kept);
  EXPECT_THAT(divisions_->stops_clients_of(), ElementsAre(backend_.device.id));
  ready_ = true;
  Wake();
  EXPECT_EQ(divisions_->state().state, "success");
  EXPECT_THAT(divisions_->stops_clients_of(), IsEmpty());
}

}  // namespace
}  // namespace penstock::node::change
