#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/share/offers.h"

namespace penstock::node::share {
namespace {

using device::HealthState;
using device::testing::AcmeDevice;
using testing::IsEmpty;
using namespace std::chrono_literals;

const base::WallTime kNow{1'000s};

/// An inventory that is told what Discovery and the health monitor tell it, in their order.
class OffersTest : public testing::Test {
 protected:
  void Appear() { inventory_.SetFacts("acme", {AcmeDevice(0, 2), AcmeDevice(1, 2)}, "", kNow); }

  void Read(int index, HealthState state = HealthState::kHealthy, const std::string& reason = "") {
    const std::string id = AcmeDevice(index, 2).id;
    inventory_.SetHealth(id, state, reason, kNow);
    inventory_.SetReading(id, {.reachable = state == HealthState::kHealthy}, kNow);
  }

  std::vector<OfferedSlot> Slots() {
    const auto offers = offers_.published().Get();
    return offers->empty() ? std::vector<OfferedSlot>{} : offers->at(0).slots;
  }

  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  Offers offers_{inventory_, ledger_, device::testing::FindAcme, {.kubelet = true}};
};

TEST_F(OffersTest, ADeviceIsOfferedOnceItWasLookedAtAndNeverAsUnusableBefore) {
  bool shown_unusable = false;
  const auto subscription = offers_.published().Subscribe([&](const auto& offers) {
    for (const Offer& offer : *offers)
      for (const OfferedSlot& slot : offer.slots) shown_unusable |= !slot.usable;
  });
  Appear();
  EXPECT_THAT(Slots(), IsEmpty());
  Read(1);
  ASSERT_EQ(Slots().size(), 1u);
  EXPECT_EQ(Slots()[0].slot.device, AcmeDevice(1, 2).id);
  Read(0);
  EXPECT_EQ(Slots().size(), 2u);
  EXPECT_FALSE(shown_unusable);
}

TEST_F(OffersTest, ADeviceWhoseFirstLookHangsIsOfferedAsUnusable) {
  Appear();
  Read(0, HealthState::kUnknown, "a driver call about it hangs");
  ASSERT_EQ(Slots().size(), 1u);
  EXPECT_FALSE(Slots()[0].usable);
  EXPECT_EQ(Slots()[0].reason, "a driver call about it hangs");
}

TEST_F(OffersTest, ADeviceOfWhichBadIsHeardBeforeTheFirstLookIsOfferedAsUnusable) {
  Appear();
  inventory_.SetHealth(AcmeDevice(0, 2).id, HealthState::kUnhealthy, "on fire", kNow);
  ASSERT_EQ(Slots().size(), 1u);
  EXPECT_FALSE(Slots()[0].usable);
}

TEST_F(OffersTest, ADeviceThatWasOfferedDoesNotVanishWhenItIsGoneAndBack) {
  Appear();
  Read(0);
  Read(1);
  std::size_t fewest = 2;
  const auto subscription = offers_.published().Subscribe(
      [&](const auto& offers) { fewest = std::min(fewest, offers->empty() ? 0 : offers->at(0).slots.size()); });
  inventory_.SetFacts("acme", {}, "the driver is gone", kNow + 1s);
  EXPECT_FALSE(Slots()[0].usable);
  Appear();
  EXPECT_FALSE(Slots()[0].usable) << "back, and not looked at yet";
  device::Facts changed = AcmeDevice(1, 2);
  changed.model = "described anew";
  inventory_.SetFacts("acme", {AcmeDevice(0, 2), changed}, "", kNow + 2s);
  Read(0);
  EXPECT_TRUE(Slots()[0].usable);
  EXPECT_EQ(fewest, 2u);
}

}  // namespace
}  // namespace penstock::node::share
