#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/share/turns.h"

namespace penstock::node::share {
namespace {

using device::HealthState;
using device::testing::AcmeDevice;
using testing::IsEmpty;
using namespace std::chrono_literals;

const base::WallTime kNow{1'000s};

/// An inventory that gets what Discovery and the health monitor report, in their order.
class OffersTest : public testing::Test {
 protected:
  void Appear() {
    inventory_.SetFacts("acme", {AcmeDevice(0, 2), AcmeDevice(1, 2)}, "", kNow);
    executor_.RunUntilIdle();
  }

  void Read(int index, HealthState state = HealthState::kHealthy, const std::string& reason = "") {
    const std::string id = AcmeDevice(index, 2).id;
    inventory_.SetHealth(id, state, reason, kNow);
    executor_.RunUntilIdle();
    inventory_.SetReading(id, {.reachable = state == HealthState::kHealthy}, kNow);
    executor_.RunUntilIdle();
  }

  /// Calls this for each turn from now on.
  void Follow(const std::function<void(const NodeDevices&, const NodeDevices&)>& follow) {
    executor_.RunUntilIdle();
    follow_ = follow;
  }
  void Configure(const api::NodeConfig& config) {
    offers_.Configure(config, {});
    executor_.RunUntilIdle();
  }

  std::vector<OfferedSlot> PciOccupancy() {
    const auto offers = offers_.Get();
    return offers->empty() ? std::vector<OfferedSlot>{} : offers->at(0).slots;
  }

  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  base::Published<device::SharedDevices> servers_;  // outlives the offers that follow it
  Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"kubelet"}};
  base::ManualExecutor executor_;
  Turns::Follow follow_;
  Turns turns_{executor_, inventory_, ledger_, offers_,
               [this](const auto& now, const auto& before) {
                 if (follow_) follow_(now, before);
               }};
};

TEST_F(OffersTest, ADeviceIsOfferedOnceItWasLookedAtAndNeverAsUnusableBefore) {
  bool shown_unusable = false;
  Follow([&](const NodeDevices& now, const NodeDevices&) {
    for (const Offer& offer : *now.offers)
      for (const OfferedSlot& slot : offer.slots) shown_unusable |= !slot.usable;
  });
  Appear();
  EXPECT_THAT(PciOccupancy(), IsEmpty());
  Read(1);
  ASSERT_EQ(PciOccupancy().size(), 1u);
  EXPECT_EQ(PciOccupancy()[0].slot.device, AcmeDevice(1, 2).id);
  Read(0);
  EXPECT_EQ(PciOccupancy().size(), 2u);
  EXPECT_FALSE(shown_unusable);
}

TEST_F(OffersTest, ADeviceWhoseFirstLookHangsIsOfferedAsUnusable) {
  Appear();
  Read(0, HealthState::kUnknown, "a driver call for this device hangs");
  ASSERT_EQ(PciOccupancy().size(), 1u);
  EXPECT_FALSE(PciOccupancy()[0].usable);
  EXPECT_EQ(PciOccupancy()[0].reason, "a driver call for this device hangs");
}

TEST_F(OffersTest, ADeviceOfWhichBadIsHeardBeforeTheFirstLookIsOfferedAsUnusable) {
  Appear();
  inventory_.SetHealth(AcmeDevice(0, 2).id, HealthState::kUnhealthy, "on fire", kNow);
  ASSERT_EQ(PciOccupancy().size(), 1u);
  EXPECT_FALSE(PciOccupancy()[0].usable);
}

TEST_F(OffersTest, ADeviceThatWasOfferedDoesNotVanishWhenItIsGoneAndBack) {
  Appear();
  Read(0);
  Read(1);
  std::size_t fewest = 2;
  Follow([&](const NodeDevices& now, const NodeDevices&) {
    fewest = std::min(fewest, now.offers->empty() ? 0 : now.offers->at(0).slots.size());
  });
  inventory_.SetFacts("acme", {}, "the driver is gone", kNow + 1s);
  executor_.RunUntilIdle();
  EXPECT_FALSE(PciOccupancy()[0].usable);
  Appear();
  EXPECT_FALSE(PciOccupancy()[0].usable) << "back, and not read yet";
  device::Facts changed = AcmeDevice(1, 2);
  changed.model = "described again";
  inventory_.SetFacts("acme", {AcmeDevice(0, 2), changed}, "", kNow + 2s);
  Read(0);
  EXPECT_TRUE(PciOccupancy()[0].usable);
  EXPECT_EQ(fewest, 2u);
}

api::NodeConfig Shared(api::ShareStrategy strategy, int replicas) {
  api::NodeConfig config;
  config.sharing.rules.emplace_back();
  config.sharing.rules[0].strategy = strategy;
  config.sharing.rules[0].replicas = replicas;
  return config;
}

TEST_F(OffersTest, ATurnHasTheAssignmentsThatItsOffersFollowFrom) {
  Appear();
  Read(0);
  Read(1);
  int turns = 0;
  Follow([&](const NodeDevices& now, const NodeDevices& before) {
    ++turns;
    EXPECT_NE(now.offers, before.offers);
    for (const OfferedSlot& slot : now.offers->at(0).slots)
      EXPECT_EQ(slot.slot.shape, now.desired->assignments.at(slot.slot.device).shape);
  });
  Configure(Shared(api::ShareStrategy::kTimeSlicing, 4));
  EXPECT_EQ(PciOccupancy().size(), 8u);
  offers_.Configure(Shared(api::ShareStrategy::kTimeSlicing, 3), {});
  Configure(Shared(api::ShareStrategy::kTimeSlicing, 2));
  Configure(Shared(api::ShareStrategy::kTimeSlicing, 2));
  EXPECT_EQ(turns, 2) << "one for changes together, and none for no change";
}

TEST_F(OffersTest, WhatIsAskedBetweenTurnsIsAsNewAsItsInputs) {
  Appear();
  Read(0);
  ASSERT_TRUE(PciOccupancy()[0].usable);
  inventory_.SetHealth(AcmeDevice(0, 2).id, HealthState::kUnhealthy, "on fire", kNow);
  EXPECT_FALSE(PciOccupancy()[0].usable);
  offers_.SetWithdrawals({{AcmeDevice(0, 2).id, {"being moved", false}}});
  EXPECT_THAT(PciOccupancy(), IsEmpty());
  EXPECT_EQ(offers_.Desired()->assignments.at(AcmeDevice(0, 2).id).reason, "being moved");
}

TEST_F(OffersTest, ServersThatAreStartedForNewRequestsAreFoundInTheOffers) {
  Appear();
  Read(1);
  offers_.FollowServers("acme", servers_);
  // As in the agent: servers are requested in a turn, and answer at once.
  Follow([&](const NodeDevices& now, const NodeDevices& before) {
    if (now.desired == before.desired) return;
    device::SharedDevices servers;
    for (const auto& set : SetsOf(now.desired->assignments, *now.inventory, *now.ledger))
      for (const auto& member : set.members)
        servers[member.device->id] = {
            .set = set.name, .ready = true, .isolation = device::Isolation::kMemoryPerProcess};
    servers_.Set(std::move(servers));
  });
  Configure(Shared(api::ShareStrategy::kServer, 2));
  ASSERT_EQ(PciOccupancy().size(), 2u);
  EXPECT_TRUE(PciOccupancy()[1].usable) << PciOccupancy()[1].reason;
  EXPECT_EQ(PciOccupancy()[1].isolation, device::Isolation::kMemoryPerProcess);
}

TEST_F(OffersTest, AFollowerMayAllocateAtOnce) {
  Appear();
  Read(0);
  Follow([&](const NodeDevices& now, const NodeDevices&) {
    if (!ledger_.Get()->leases.empty() || now.offers->empty()) return;
    EXPECT_TRUE(
        ledger_
            .Add({.id = "r-1", .allocator = "local", .slots = {now.offers->at(0).slots.at(0).slot}})
            .ok());
  });
  Read(0, HealthState::kUnhealthy, "on fire");
  ASSERT_EQ(ledger_.Get()->leases.size(), 1u);
  Read(0);
  EXPECT_FALSE(PciOccupancy()[0].usable) << "held at the other allocator";
}

TEST_F(OffersTest, ReadingsAloneChangeNoOffer) {
  Appear();
  Read(0);
  Read(1);
  const auto offers = offers_.Get();
  const auto desired = offers_.Desired();
  for (int i = 0; i < 10; ++i) Read(i % 2);
  EXPECT_EQ(offers_.Get(), offers);
  EXPECT_EQ(offers_.Desired(), desired);
}

TEST_F(OffersTest, AFollowerKnowsATurnInWhichOnlyTimesOfReadingsDiffer) {
  Appear();
  Read(0);
  std::vector<bool> only_times;
  Follow([&](const NodeDevices& now, const NodeDevices& before) {
    only_times.push_back(OnlyReadTimesDiffer(now, before));
  });
  inventory_.SetReading(AcmeDevice(0, 2).id, {}, kNow + 5s);
  inventory_.PublishReadTimes();
  executor_.RunUntilIdle();
  EXPECT_EQ(only_times, std::vector{true});
  EXPECT_EQ(inventory_.published().Get()->Find(AcmeDevice(0, 2).id)->read_at, kNow + 5s);
  Read(1);
  EXPECT_THAT(only_times, testing::Contains(false));
  only_times.clear();
  Configure(Shared(api::ShareStrategy::kTimeSlicing, 4));
  EXPECT_EQ(only_times, std::vector{false});
}

}  // namespace
}  // namespace penstock::node::share
