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

TEST(Inventory, ReadingsThatSayTheSameArePublishedTogether) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {Gpu(0), Gpu(1)}, "", kNow);
  int reported = 0;
  const auto subscription = inventory.published().Subscribe([&](const auto&) { ++reported; });
  const auto read_at = [&](const char* id) {
    return inventory.published().Get()->Find(id)->read_at;
  };
  for (const char* id : {"GPU-0", "GPU-1"}) inventory.SetReading(id, {}, kNow + 1s);
  EXPECT_EQ(reported, 2) << "the first of each device";
  const std::uint64_t state = inventory.published().Get()->state_generation;
  for (const char* id : {"GPU-0", "GPU-1"}) inventory.SetReading(id, {}, kNow + 2s);
  EXPECT_EQ(reported, 2);
  inventory.PublishReadTimes();
  EXPECT_EQ(reported, 3);
  EXPECT_EQ(read_at("GPU-0"), kNow + 2s);
  EXPECT_EQ(read_at("GPU-1"), kNow + 2s);
  inventory.PublishReadTimes();
  EXPECT_EQ(reported, 3);
  EXPECT_EQ(inventory.published().Get()->state_generation, state) << "nothing is new but times";
  inventory.SetReading("GPU-0", {}, kNow + 3s);
  inventory.SetReading("GPU-1", {.reachable = false}, kNow + 3s);
  EXPECT_EQ(reported, 4) << "one that says something else";
  EXPECT_EQ(read_at("GPU-0"), kNow + 3s);
}

TEST(Inventory, PublishesNothingWhereNothingChanged) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {Gpu(0)}, "", kNow);
  inventory.SetHealth("GPU-0", HealthState::kHealthy, "", kNow);
  int reported = 0;
  auto subscription = inventory.published().Subscribe([&](const auto&) { ++reported; });
  inventory.SetHealth("GPU-0", HealthState::kHealthy, "", kNow + 5s);
  inventory.SetFacts("nvidia", {Gpu(0)}, "", kNow + 5s);
  EXPECT_EQ(reported, 0);
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

device::Facts At(device::Facts facts, std::uint32_t bus, const std::string& serial = "") {
  facts.pci = device::PciAddress{0, bus, 0, 0};
  facts.serial = serial;
  return facts;
}

TEST(Inventory, AReplacedGpuIsSaidAndTheOldOneDoesNotStay) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {At(Gpu(0), 7, "111"), At(Gpu(1), 8, "222")}, "", kNow);
  inventory.SetFacts("nvidia", {At(Gpu(1), 8, "222")}, "was unplugged", kNow + 1s);
  EXPECT_EQ(inventory.published().Get()->Find("GPU-0")->health.state, HealthState::kGone)
      << "no device has replaced it yet";
  inventory.SetFacts("nvidia", {At(Gpu(1), 8, "222"), At(Gpu(9), 7, "333")}, "", kNow + 2s);
  const auto snapshot = inventory.published().Get();
  EXPECT_EQ(snapshot->Find("GPU-0"), nullptr);
  ASSERT_NE(snapshot->Find("GPU-9"), nullptr);
  EXPECT_EQ(snapshot->Find("GPU-9")->replaced,
            "GPU at 0000:07:00.0 was replaced: serial 111, now 333");
  EXPECT_EQ(snapshot->Find("GPU-1")->replaced, "");
}

TEST(Inventory, AGpuThatWasReplacedWhileNoAgentRanIsSaid) {
  Inventory inventory;
  inventory.Recall({{"0000:07:00.0", {"GPU-0", ""}}, {"0000:08:00.0", {"GPU-1", "222"}}});
  inventory.SetFacts("nvidia", {At(Gpu(9), 7), At(Gpu(1), 8, "222")}, "", kNow);
  EXPECT_EQ(inventory.published().Get()->Find("GPU-9")->replaced,
            "GPU at 0000:07:00.0 was replaced: GPU-0, now GPU-9");
  EXPECT_EQ(inventory.published().Get()->Find("GPU-1")->replaced, "");
  EXPECT_EQ(inventory.occupancy().at("0000:07:00.0").id, "GPU-9");
}

TEST(Inventory, TheSameGpuBackInItsPlaceIsNotReplaced) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {At(Gpu(0), 7, "111")}, "", kNow);
  inventory.SetFacts("nvidia", {}, "the driver is gone", kNow + 1s);
  inventory.SetFacts("nvidia", {At(Gpu(0), 7, "111")}, "", kNow + 2s);
  EXPECT_EQ(inventory.published().Get()->Find("GPU-0")->replaced, "");
}

device::Facts GpuAt(int index, int place) {
  device::Facts facts = Gpu(index);
  facts.id = "GPU-at-" + std::to_string(place);
  facts.pci = device::PciAddress{.bus = static_cast<std::uint32_t>(place)};
  return facts;
}

TEST(Inventory, OneThatIsGoneHasNoIndexAndComesLast) {
  Inventory inventory;
  inventory.SetFacts("nvidia", {GpuAt(0, 0), GpuAt(1, 1), GpuAt(2, 2)}, "", kNow);
  inventory.SetFacts("nvidia", {GpuAt(0, 0), GpuAt(1, 2)}, "was unplugged", kNow);
  const auto snapshot = inventory.published().Get();
  EXPECT_EQ(snapshot->devices[1].facts->id, "GPU-at-2");
  EXPECT_EQ(snapshot->devices[2].facts->id, "GPU-at-1");
  EXPECT_LT(snapshot->devices[2].facts->index, 0);
}

TEST(Inventory, NumbersStayWithPlacesWhileOneIsAway) {
  Inventory inventory;
  const auto number = [&](const std::string& id) {
    return inventory.published().Get()->Find(id)->number;
  };
  inventory.SetFacts("nvidia", {GpuAt(0, 0), GpuAt(1, 1), GpuAt(2, 2)}, "", kNow);
  inventory.SetFacts("nvidia", {GpuAt(0, 0), GpuAt(1, 2)}, "was unplugged", kNow);
  EXPECT_EQ(number("GPU-at-1"), 1);
  EXPECT_EQ(number("GPU-at-2"), 2);
  // Meanwhile one device is added, and one replaces the missing one.
  inventory.SetFacts("nvidia", {GpuAt(0, 0), GpuAt(1, 2), GpuAt(2, 3)}, "", kNow);
  EXPECT_LT(number("GPU-at-3"), 0) << "its index currently refers to another address";
  device::Facts successor = GpuAt(1, 1);
  successor.id = "GPU-new";
  inventory.SetFacts("nvidia", {GpuAt(0, 0), successor, GpuAt(2, 2), GpuAt(3, 3)}, "", kNow);
  EXPECT_EQ(number("GPU-new"), 1);
  EXPECT_EQ(number("GPU-at-3"), 3) << "all devices are present: indices are the driver's again";
  EXPECT_EQ(inventory.published().Get()->devices.size(), 4u);
}

}  // namespace
}  // namespace penstock::node::inventory
