// Tests when parts are created and removed, on a device of the test's own that can be divided into
// four; with real processes and a simulated driver: tests/integration/on_demand_test.py.
#include "node/change/parts_on_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/change/testing/divisible_node.h"

namespace penstock::node::change {
namespace {

using device::Facts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

class PartsOnDemandTest : public testing::DivisibleNode {
 protected:
  PartsOnDemandTest() {
    config_.parts_on_demand = {"0"};
    offers_.Configure(config_, {});
    backend_.device.modes[0].current = backend_.device.modes[0].pending = "on";
    Describe();
  }

  /// An agent that takes over what the files say.
  void Start() {
    on_demand_.reset();
    changes_.reset();
    executor_.RunUntilIdle();
    MakeChanges(*LoadChanges(folder_ / "changes.json"));
    on_demand_ =
        std::make_unique<PartsOnDemand>(executor_, executor_, NodeOfChanges(), VendorWith(nullptr),
                                        folder_ / "parts.json", Noted(), boot_);
    on_demand_->SetDevices(config_.parts_on_demand);
    on_demand_->OnChange([this] { ++changed_; });
    StartChanges();
  }

  /// What parts.json says.
  OnDemandParts Noted() const { return *LoadOnDemandParts(folder_ / "parts.json", boot_); }

  /// What the request waits for, or the error.
  std::string Prepare(const std::string& ticket, const std::string& profile = "1g",
                      std::size_t count = 1, const std::set<std::string>& kept_back = {}) {
    const auto prepared =
        on_demand_->Prepare({.ticket = ticket,
                             .profile = profile,
                             .model = "",
                             .count = count,
                             .missing = count,
                             .kept_back = kept_back},
                            Error(Code::kFailedPrecondition, "there are no such parts"));
    executor_.RunUntilIdle();
    return prepared.ok() ? *prepared : prepared.error().ToString();
  }

  /// The request is served with what was created for it.
  void Serve(const std::string& ticket, const std::string& part) {
    Hold(part);
    on_demand_->Release(ticket);
    executor_.RunUntilIdle();
  }

  api::NodeConfig config_;
  std::string boot_ = "boot";
  int changed_ = 0;
  std::unique_ptr<PartsOnDemand> on_demand_;
};

TEST_F(PartsOnDemandTest, CreatesAPartForARequestAndRemovesItAfterItsHolder) {
  Start();
  EXPECT_THAT(Prepare("q-1"), HasSubstr("1g is being created on GPU 0"));
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  EXPECT_FALSE(on_demand_->IsPreparing("q-1"));
  EXPECT_GT(changed_, 0) << "the queue is tried again";
  EXPECT_EQ(offers_.Desired()->assignments.at("P1").allocator, "local");
  EXPECT_THAT(on_demand_->ReservedForOthers("q-2"), ElementsAre("P1"));
  EXPECT_THAT(on_demand_->ReservedForOthers("q-1"), IsEmpty());
  EXPECT_TRUE(Noted().contains("P1"));
  Serve("q-1", "P1");
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  EXPECT_THAT(on_demand_->ReservedForOthers("q-2"), IsEmpty());
  End("P1");
  EXPECT_THAT(backend_.Parts(), IsEmpty());
  EXPECT_THAT(Noted(), IsEmpty());
}

TEST_F(PartsOnDemandTest, ARequestThatLeavesLeavesNothing) {
  Start();
  Prepare("q-1", "1g", 2);
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1"));
  on_demand_->Release("q-1");
  executor_.RunUntilIdle();
  EXPECT_THAT(backend_.Parts(), IsEmpty());
}

TEST_F(PartsOnDemandTest, CreatesAllThatARequestLacksOrNothing) {
  Start();
  Prepare("q-1", "1g", 3);
  EXPECT_THAT(Prepare("q-2", "1g", 2), HasSubstr("GPU 0 (G0): room for 1 of 2"));
  EXPECT_EQ(backend_.parts.size(), 3u);
  EXPECT_THAT(Prepare("q-2", "4g"), HasSubstr("no room beside 1g at slice 0, held by "
                                              "a request that is about to be served"));
  EXPECT_THAT(Prepare("q-3", "1g", 5), HasSubstr("FAILED_PRECONDITION: requested 5 parts 1g, and "
                                                 "of those there can be 4"));
  EXPECT_THAT(Prepare("q-4", "9g"), HasSubstr("NOT_FOUND"));
}

TEST_F(PartsOnDemandTest, ForeseesRoomOnceHoldersHaveEnded) {
  Start();
  Prepare("q-1", "1g", 4);
  for (const char* part : {"P1", "P2", "P3", "P4"}) Hold(part);
  on_demand_->Release("q-1");
  const auto foresee = on_demand_->Foresee();
  ledger::Snapshot then = *ledger_.Get();
  const auto slots_of = [&](const std::string& profile, std::size_t count) {
    return foresee(
        {.ticket = "", .profile = profile, .model = "", .count = count, .missing = count}, then);
  };
  EXPECT_THAT(slots_of("1g", 1), IsEmpty());
  const auto end = [&](const std::string& id) {
    then.leases.EraseIf([&](const ledger::Lease& lease) { return lease.id == id; });
  };
  end("P3");
  EXPECT_THAT(slots_of("1g", 2), IsEmpty());
  const auto one = slots_of("1g", 1);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].ancestors.front().device, "G0");
  then.leases.push_back({.id = "planned", .slots = one});
  EXPECT_THAT(slots_of("1g", 1), IsEmpty()) << "the one before has the room";
  for (const char* part : {"P1", "P2", "P4"}) end(part);
  EXPECT_EQ(slots_of("1g", 3).size(), 3u);
  EXPECT_THAT(slots_of("4g", 1), IsEmpty());
  end("planned");
  EXPECT_EQ(slots_of("4g", 1).size(), 1u);
  then.outside["P1"] = {{.pid = 7}};
  EXPECT_THAT(slots_of("4g", 1), IsEmpty()) << "a process is left on a part without a lease";
  EXPECT_EQ(backend_.parts.size(), 4u) << "nothing was done";
}

TEST_F(PartsOnDemandTest, ForeseesNothingWhereNoDeviceIsSetAside) {
  config_.parts_on_demand.clear();
  Start();
  EXPECT_FALSE(on_demand_->Foresee());
}

TEST_F(PartsOnDemandTest, DoesNotTouchWhatItIsNotMeantTo) {
  backend_.device.modes[0].current = backend_.device.modes[0].pending = "off";
  Describe();
  Start();
  EXPECT_THAT(Prepare("q-1"), HasSubstr("its mode cut is not on"));
  EXPECT_EQ(backend_.device.modes[0].current, "off");
  backend_.device.modes[0].current = backend_.device.modes[0].pending = "on";
  backend_.CreatePart("0", {.profile = "1g", .placement = {{1, 1}}, .within = {}, .outer = false},
                      [](const auto&) {});
  Describe();
  Prepare("q-1");
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 1", "1g at 0"));
  on_demand_->Release("q-1");
  executor_.RunUntilIdle();
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 1")) << "another program's";
  EXPECT_THAT(Prepare("q-2", "1g", 1, {backend_.device.id}), HasSubstr("ahead in the queue"));
}

TEST_F(PartsOnDemandTest, APartThatAnotherProgramCreatesMeanwhileIsNotOurs) {
  Start();
  // Between the plan and the look before it is carried out.
  backend_.before_describe = [this] {
    backend_.CreatePart("0", {.profile = "1g", .placement = {{0, 1}}, .within = {}, .outer = false},
                        [](const auto&) {});
  };
  Prepare("q-1");
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  EXPECT_THAT(Prepare("q-1"), HasSubstr("another program has created parts"));
  executor_.Advance(2s);
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0")) << "it is not removed";
  EXPECT_THAT(Prepare("q-1"), HasSubstr("is being created"));
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0", "1g at 1"));
}

TEST_F(PartsOnDemandTest, AFailureIsRememberedForAMomentAndLeavesNothing) {
  Start();
  backend_.failing["create"] = 1;
  Prepare("q-1");
  EXPECT_FALSE(on_demand_->IsPreparing("q-1"));
  EXPECT_THAT(Prepare("q-1"), HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(Prepare("q-1"), HasSubstr("create does not work"));
  const PartsRequest again{.ticket = "", .profile = "1g", .model = "", .count = 1, .missing = 1};
  EXPECT_EQ(on_demand_->Foresee()(again, *ledger_.Get()).size(), 1u)
      << "no run ends for what the next attempt may serve";
  const int before = changed_;
  executor_.Advance(2s);
  EXPECT_GT(changed_, before);
  EXPECT_THAT(Prepare("q-1"), HasSubstr("is being created"));
  EXPECT_EQ(backend_.parts.size(), 1u);
}

TEST_F(PartsOnDemandTest, WhatWasCreatedBeforeAFailureIsRemovedToo) {
  Start();
  int creations = 0;
  backend_.before_create = [&] {
    if (++creations == 2) backend_.failing["create"] = 1;
  };
  Prepare("q-1", "1g", 3);
  executor_.Advance(2s);
  EXPECT_THAT(backend_.Parts(), IsEmpty());
}

TEST_F(PartsOnDemandTest, WhatCannotBeRemovedIsTriedAgainAndServesMeanwhile) {
  Start();
  Prepare("q-1");
  Serve("q-1", "P1");
  backend_.failing["destroy"] = 1;
  End("P1");
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  EXPECT_EQ(offers_.Desired()->assignments.at("P1").allocator, "local");
  executor_.Advance(2s);
  EXPECT_THAT(backend_.Parts(), IsEmpty());
}

TEST_F(PartsOnDemandTest, APartThatBecomesIdleServesTheNextRequest) {
  Start();
  Prepare("q-1");
  Serve("q-1", "P1");
  ledger_.Release("P1");  // and in the same turn:
  Prepare("q-2");
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  EXPECT_THAT(on_demand_->ReservedForOthers("q-9"), ElementsAre("P1"));
  EXPECT_EQ(backend_.made, 1);
}

TEST_F(PartsOnDemandTest, TheNextAgentRemovesWhatNoOneHolds) {
  Start();
  Prepare("q-1", "1g", 2);
  Hold("P2");
  Start();
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 1"));
  End("P2");
  EXPECT_THAT(backend_.Parts(), IsEmpty());
}

TEST_F(PartsOnDemandTest, TheNextAgentFindsWhatWasCreatedJustBeforeTheCrash) {
  Start();
  backend_.answers = false;  // the part is created, and the agent ends before it learns that
  Prepare("q-1");
  ASSERT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  ASSERT_THAT(Noted(), IsEmpty());
  backend_.answers = true;
  Describe();
  Start();
  EXPECT_THAT(backend_.Parts(), IsEmpty());
}

/// Which belong to local users, of whose devices the agent keeps the list itself.
TEST_F(PartsOnDemandTest, PartsDoNotWaitForTheKubelet) {
  Start();
  kubelet_is_silent_ = true;
  Prepare("q-1");
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  Serve("q-1", "P1");
  End("P1");
  EXPECT_THAT(backend_.Parts(), IsEmpty());
}

/// The part may have been the kubelet's: whose it was is not known any more.
TEST_F(PartsOnDemandTest, ARemovalThatTheNextAgentContinuesWaitsForTheKubeletForTwoMinutes) {
  Start();
  Prepare("q-1");
  Serve("q-1", "P1");
  DivisibleNode::Serve({{"P1", {.set = "P1", .ready = true, .servers = {77}}}});
  End("P1");
  ASSERT_EQ(changes_->Of("P1")->step, "await release");
  kubelet_is_silent_ = true;
  on_demand_.reset();
  changes_.reset();
  servers_.Set(device::SharedDevices{});
  Start();
  executor_.Advance(1min);
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  EXPECT_EQ(offers_.Desired()->assignments.at("P1").reason,
            "an unused part of it is being removed: cannot read the kubelet's allocatable devices "
            "(no answer)");
  executor_.Advance(1min);
  EXPECT_EQ(offers_.Desired()->assignments.at("P1").reason, "") << "it serves for a moment";
  executor_.Advance(2s);
  EXPECT_THAT(backend_.Parts(), IsEmpty());
}

TEST_F(PartsOnDemandTest, PartsThatAResetDestroyedAreForgotten) {
  Start();
  Prepare("q-1");
  Serve("q-1", "P1");
  ledger_.Release("P1");
  ready_ = false;
  backend_.parts.clear();
  Describe();
  Wake();
  EXPECT_FALSE(Noted().empty()) << "its driver is away";
  ready_ = true;
  Wake();
  EXPECT_THAT(Noted(), IsEmpty());
}

TEST_F(PartsOnDemandTest, IsPreparingUntilThePartsAreOffered) {
  Start();
  ready_ = false;
  Prepare("q-1");
  EXPECT_TRUE(on_demand_->IsPreparing("q-1"));
  std::vector<bool> preparing;
  backend_.before_create = [&] { preparing.push_back(on_demand_->IsPreparing("q-1")); };
  on_demand_->OnChange([&] { preparing.push_back(on_demand_->IsPreparing("q-1")); });
  ready_ = true;
  Wake();
  EXPECT_THAT(preparing, ElementsAre(true, false));
}

TEST_F(PartsOnDemandTest, ARequestThatCannotUseWhatWasCreatedIsNotServedSoAgain) {
  Start();
  Prepare("q-1");
  ASSERT_EQ(backend_.made, 1);
  EXPECT_THAT(Prepare("q-1"), HasSubstr("there are no such parts")) << "why_not";
  EXPECT_THAT(backend_.Parts(), IsEmpty());
  EXPECT_THAT(Prepare("q-1"), HasSubstr("was of no use"));
  EXPECT_EQ(backend_.made, 1);
}

TEST_F(PartsOnDemandTest, ACallWithoutAnAnswerMayHaveCreatedAPart) {
  Start();
  backend_.fails_after["create"] = {true};  // and the driver is away for a while
  backend_.before_create = [this] { ready_ = false; };
  Prepare("q-1");
  ASSERT_THAT(backend_.Parts(), ElementsAre("1g at 0"));
  EXPECT_FALSE(on_demand_->IsPreparing("q-1")) << "it can be served elsewhere";
  EXPECT_THAT(Prepare("q-1"), HasSubstr("the worker closed its sockets"));
  executor_.Advance(5min);
  ready_ = true;
  Wake();
  EXPECT_THAT(backend_.Parts(), IsEmpty()) << "it was found and removed";
}

TEST_F(PartsOnDemandTest, OneThatCannotBeRemovedIsNotInTheWayOfOthers) {
  Start();
  Prepare("q-1");
  Serve("q-1", "P1");
  backend_.failing["destroy"] = 1000;
  End("P1");
  EXPECT_THAT(Prepare("q-2", "1g", 2), HasSubstr("is being created"));
  EXPECT_THAT(backend_.Parts(), UnorderedElementsAre("1g at 0", "1g at 1", "1g at 2"));
}

TEST_F(PartsOnDemandTest, ADeviceWithAnOuterPartWithoutPartsServes) {
  Facts outer;
  outer.vendor = "acme";
  outer.id = outer.address = "outer";
  outer.parent = backend_.device.id;
  outer.profile = "1g";
  outer.placement = device::Placement{3, 1};
  outer.withheld = "there is nothing in it";
  backend_.parts.push_back(outer);
  Describe();
  Start();
  Prepare("q-1");
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 3", "1g at 0"));
  on_demand_->Release("q-1");
  executor_.RunUntilIdle();
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 3"));
}

TEST_F(PartsOnDemandTest, AfterAnotherBootNothingIsOurs) {
  Start();
  Prepare("q-1");
  Serve("q-1", "P1");
  ledger_.Release("P1");
  boot_ = "the next boot";
  Start();
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0")) << "another program's, with the same id";
}

TEST_F(PartsOnDemandTest, WhatWasBegunBeforeAnotherBootIsNotDone) {
  Start();
  backend_.answers = false;
  Prepare("q-1");
  backend_.answers = true;
  backend_.parts.clear();
  boot_ = "the next boot";
  Describe();
  Start();
  EXPECT_THAT(backend_.Parts(), IsEmpty());
  EXPECT_EQ(backend_.made, 1);
}

TEST_F(PartsOnDemandTest, ARequestWhosePlaceIsLostIsPlacedAgain) {
  Start();
  ready_ = false;
  EXPECT_THAT(Prepare("q-1"), HasSubstr("is being created"));
  backend_.device.modes[0].current = backend_.device.modes[0].pending = "off";
  Describe();
  EXPECT_THAT(Prepare("q-1"), HasSubstr("its mode cut is not on"));
  EXPECT_FALSE(on_demand_->IsPreparing("q-1"));
}

TEST_F(PartsOnDemandTest, SaysWhichDevicesCouldServeAndHowMuchThatIs) {
  backend_.device.memory = base::Mebibytes(40960);
  backend_.device.profiles[0].capacity.memory = base::Mebibytes(10240);
  Describe();
  Start();
  EXPECT_THAT(on_demand_->CouldServe("1g", ""), ElementsAre(backend_.device.id));
  EXPECT_EQ(on_demand_->FractionOf("1g"), 0.25);
  EXPECT_EQ(on_demand_->FractionOf("9g"), 0);
  Prepare("q-1");
  EXPECT_THAT(on_demand_->CouldServe("1g", ""), UnorderedElementsAre(backend_.device.id, "P1"));
  EXPECT_THAT(on_demand_->CouldServe("9g", ""), IsEmpty());
}

}  // namespace
}  // namespace penstock::node::change
