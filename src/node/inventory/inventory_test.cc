#include "node/inventory/inventory.h"

#include <gtest/gtest.h>

namespace penstock::node::inventory {
namespace {

using device::HealthState;
using namespace std::chrono_literals;

const base::WallTime kNow{1'000s};

device::Facts Gpu(int index) {
  device::Facts facts;
  facts.id = "GPU-" + std::to_string(index);
  facts.vendor = "nvidia";
  facts.index = index;
  return facts;
}

TEST(Inventory, OrdersDevicesByIndexAndBeginsWithUnknownHealth) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {Gpu(1), Gpu(0)}, "", kNow);
  const auto snapshot = inventory.published().Get();
  ASSERT_EQ(snapshot->devices.size(), 2u);
  EXPECT_EQ(snapshot->devices[0].facts->id, "GPU-0");
  EXPECT_EQ(snapshot->devices[0].health.state, HealthState::kUnknown);
}

TEST(Inventory, AHealthChangeLeavesFactsAlone) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {Gpu(0)}, "", kNow);
  const auto before = inventory.published().Get();
  inventory.SetHealth("GPU-0", HealthState::kHealthy, "", kNow + 1s);
  const auto after = inventory.published().Get();
  EXPECT_EQ(after->facts_generation, before->facts_generation);
  EXPECT_GT(after->state_generation, before->state_generation);
  EXPECT_EQ(after->Find("GPU-0")->facts, before->Find("GPU-0")->facts);
}

TEST(Inventory, PublishesNothingWhereNothingChanged) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {Gpu(0)}, "", kNow);
  inventory.SetHealth("GPU-0", HealthState::kHealthy, "", kNow);
  int told = 0;
  auto subscription = inventory.published().Subscribe([&](const auto&) { ++told; });
  inventory.SetHealth("GPU-0", HealthState::kHealthy, "", kNow + 5s);
  inventory.SetFacts("nvidia", {Gpu(0)}, "", kNow + 5s);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(inventory.published().Get()->Find("GPU-0")->health.since, kNow);
}

TEST(Inventory, ADeviceThatLeftIsGoneAndComesBackUnknown) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {Gpu(0), Gpu(1)}, "", kNow);
  inventory.SetFacts("nvidia", {Gpu(0)}, "was unplugged", kNow + 1s);
  const auto snapshot = inventory.published().Get();
  EXPECT_EQ(snapshot->Find("GPU-1")->health.state, HealthState::kGone);
  EXPECT_EQ(snapshot->Find("GPU-1")->health.reason, "was unplugged");
  inventory.SetFacts("nvidia", {Gpu(0), Gpu(1)}, "", kNow + 2s);
  EXPECT_EQ(inventory.published().Get()->Find("GPU-1")->health.state, HealthState::kUnknown);
}

TEST(Inventory, ABetterReasonDoesNotMakeAStateYounger) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {Gpu(0)}, "", kNow);
  inventory.SetHealth("GPU-0", HealthState::kUnhealthy, "XID 79", kNow + 1s);
  inventory.SetHealth("GPU-0", HealthState::kUnhealthy, "XID 79, and lost", kNow + 9s);
  EXPECT_EQ(inventory.published().Get()->Find("GPU-0")->health.since, kNow + 1s);
}

}  // namespace
}  // namespace penstock::node::inventory
