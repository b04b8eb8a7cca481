#include "node/share/offers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"

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
  void Appear() { inventory_.SetFacts("acme", {AcmeDevice(0, 2), AcmeDevice(1, 2)}, "", kNow); }

  void Read(int index, HealthState state = HealthState::kHealthy, const std::string& reason = "") {
    const std::string id = AcmeDevice(index, 2).id;
    inventory_.SetHealth(id, state, reason, kNow);
    inventory_.SetReading(id, {.reachable = state == HealthState::kHealthy}, kNow);
  }

  std::vector<OfferedSlot> PciOccupancy() {
    const auto offers = offers_.published().Get();
    return offers->empty() ? std::vector<OfferedSlot>{} : offers->at(0).slots;
  }

  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  base::Published<device::SharedDevices> servers_;  // outlives the offers that follow it
  Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"kubelet"}};
};

TEST_F(OffersTest, ADeviceIsOfferedOnceItWasLookedAtAndNeverAsUnusableBefore) {
  bool shown_unusable = false;
  const auto subscription = offers_.published().Subscribe([&](const auto& offers) {
    for (const Offer& offer : *offers)
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
  const auto subscription = offers_.published().Subscribe([&](const auto& offers) {
    fewest = std::min(fewest, offers->empty() ? 0 : offers->at(0).slots.size());
  });
  inventory_.SetFacts("acme", {}, "the driver is gone", kNow + 1s);
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

TEST_F(OffersTest, ASubscriberOfOffersFindsTheRequestsThatTheyFollowFrom) {
  Appear();
  Read(0);
  Read(1);
  int reported = 0;
  const auto subscription = offers_.published().Subscribe([&](const auto& offers) {
    ++reported;
    for (const OfferedSlot& slot : offers->at(0).slots)
      EXPECT_EQ(slot.slot.shape, offers_.desired().Get()->assignments.at(slot.slot.device).shape);
  });
  offers_.Configure(Shared(api::ShareStrategy::kTimeSlicing, 4));
  EXPECT_EQ(PciOccupancy().size(), 8u);
  offers_.Configure(Shared(api::ShareStrategy::kTimeSlicing, 2));
  offers_.Configure(Shared(api::ShareStrategy::kTimeSlicing, 2));
  EXPECT_EQ(reported, 2);
}

TEST_F(OffersTest, ServersThatAreStartedForNewRequestsAreFoundInTheOffers) {
  Appear();
  Read(1);
  offers_.FollowServers("acme", servers_);
  // As in the agent: a subscriber to assignments requests servers, which answer at once.
  const auto subscription = offers_.desired().Subscribe([&](const auto& desired) {
    device::SharedDevices now;
    for (const auto& set :
         SetsOf(desired->assignments, *inventory_.published().Get(), *ledger_.Get()))
      for (const auto& member : set.members)
        now[member.device->id] = {
            .set = set.name, .ready = true, .isolation = device::Isolation::kMemoryPerProcess};
    servers_.Set(std::move(now));
  });
  offers_.Configure(Shared(api::ShareStrategy::kServer, 2));
  ASSERT_EQ(PciOccupancy().size(), 2u);
  EXPECT_TRUE(PciOccupancy()[1].usable) << PciOccupancy()[1].reason;
  EXPECT_EQ(PciOccupancy()[1].isolation, device::Isolation::kMemoryPerProcess);
}

TEST_F(OffersTest, ASubscriberMayHandAtOnce) {
  Appear();
  Read(0);
  const auto subscription = offers_.published().Subscribe([&](const auto& offers) {
    if (!ledger_.Get()->leases.empty() || offers->empty()) return;
    EXPECT_TRUE(
        ledger_.Add({.id = "r-1", .allocator = "local", .slots = {offers->at(0).slots.at(0).slot}})
            .ok());
  });
  inventory_.SetHealth(AcmeDevice(0, 2).id, HealthState::kUnhealthy, "on fire", kNow);
  ASSERT_EQ(ledger_.Get()->leases.size(), 1u);
  inventory_.SetHealth(AcmeDevice(0, 2).id, HealthState::kHealthy, "", kNow);
  EXPECT_FALSE(PciOccupancy()[0].usable) << "held at the other allocator";
}

TEST_F(OffersTest, ReadingsAloneNotifyNoSubscriber) {
  Appear();
  Read(0);
  Read(1);
  int reported = 0;
  const auto subscription = offers_.published().Subscribe([&](const auto&) { ++reported; });
  for (int i = 0; i < 10; ++i) Read(i % 2);
  EXPECT_EQ(reported, 0);
}

}  // namespace
}  // namespace penstock::node::share
