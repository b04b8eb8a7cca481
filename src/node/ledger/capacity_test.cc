#include "node/ledger/capacity.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace penstock::node::ledger {
namespace {

using device::Shape;
using device::Sharing;

constexpr Shape kFour{Sharing::kTimeSlicing, 4}, kServedFour{Sharing::kServer, 4};

Slot Whole(const std::string& device) { return {device, device, "acme.com/gpu", {}}; }

Slot Share(const std::string& device, int number, const Shape& shape) {
  return {device + "::" + std::to_string(number), device, "acme.com/gpu", shape};
}

/// "G.1.0" is a part of "G.1", which is a part of "G".
Slot Part(const std::string& id, std::uint64_t mebibytes, std::uint64_t of = 80) {
  Slot slot = Whole(id);
  slot.capacity = {base::Mebibytes(mebibytes), 0};
  for (auto dot = id.rfind('.'); dot != std::string::npos; dot = id.rfind('.', dot - 1)) {
    slot.ancestors.push_back({id.substr(0, dot), {base::Mebibytes(of), 0}});
    if (dot == 0) break;
  }
  return slot;
}

Lease LeaseOf(const std::string& id, std::vector<Slot> slots,
              const std::string& allocator = "kubelet") {
  return {.id = id, .allocator = allocator, .slots = std::move(slots)};
}

TEST(Capacity, AHolderOfAPartExcludesItsAncestorsAndNotItsSiblings) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(LeaseOf("a", {Part("G.1.0", 20)})).ok());
  EXPECT_EQ(ledger.Add(LeaseOf("b", {Whole("G")})).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(ledger.Add(LeaseOf("b", {Share("G", 0, kFour)})).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(ledger.Add(LeaseOf("b", {Part("G.1", 40)})).error().code(), Code::kAlreadyExists);
  EXPECT_TRUE(ledger.Add(LeaseOf("b", {Part("G.1.1", 20)})).ok());
  EXPECT_TRUE(ledger.Add(LeaseOf("c", {Part("G.0", 40)})).ok());
  EXPECT_TRUE(ledger.Add(LeaseOf("d", {Whole("H")})).ok());
}

TEST(Capacity, AHolderOfADeviceExcludesItsParts) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(LeaseOf("a", {Share("G", 2, kFour)})).ok());
  EXPECT_EQ(ledger.Add(LeaseOf("b", {Part("G.0", 1)})).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(ledger.Add(LeaseOf("b", {Part("G.0.3", 1)})).error().code(), Code::kAlreadyExists);
  ledger.Release("a");
  EXPECT_TRUE(ledger.Add(LeaseOf("b", {Part("G.0.3", 1)})).ok());
}

TEST(Capacity, PartsNeverAddUpToMoreThanTheirDevice) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(LeaseOf("a", {Part("G.0", 40)})).ok());
  ASSERT_TRUE(ledger.Add(LeaseOf("b", {Part("G.1", 30)})).ok());
  EXPECT_EQ(ledger.Add(LeaseOf("c", {Part("G.2", 20)})).error().code(), Code::kAlreadyExists)
      << "a part that was made again while the holder of its predecessor is still there";
  EXPECT_EQ(ledger.Add(LeaseOf("c", {Part("G.3", 5), Part("G.4", 6)})).error().code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(ledger.Add(LeaseOf("c", {Part("G.3", 5), Part("G.4", 5)})).ok());
  ledger.Release("b");
  EXPECT_TRUE(ledger.Add(LeaseOf("d", {Part("G.2", 20)})).ok());
}

TEST(Capacity, TheHolderOfAPartIsAHolderOfItsDevice) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(LeaseOf("a", {Part("G.1.0", 20)})).ok());
  for (const char* device : {"G", "G.1", "G.1.0"}) {
    ASSERT_NE(ledger.Get()->HolderOf(device), nullptr) << device;
    EXPECT_FALSE(ledger.Get()->Free(device)) << "it must not be reset under its holder";
  }
  EXPECT_TRUE(ledger.Get()->Free("G.1.1"));
}

TEST(Capacity, SharesOfAPartTakeItOnce) {
  Ledger ledger;
  const auto share = [](int number) {
    Slot slot = Part("G.0", 40);
    slot.id += "::" + std::to_string(number);
    slot.shape = kServedFour;
    return slot;
  };
  for (int number = 0; number < 4; ++number)
    ASSERT_TRUE(ledger.Add(LeaseOf("a" + std::to_string(number), {share(number)})).ok()) << number;
  EXPECT_FALSE(ledger.Add(LeaseOf("b", {Part("G.0", 40)})).ok());
  EXPECT_TRUE(ledger.Add(LeaseOf("b", {Part("G.1", 40)})).ok());
  EXPECT_FALSE(ledger.Add(LeaseOf("c", {Part("G.2", 1)})).ok());
}

/// The product gives a device to one allocator at a time; the model does not need that.
TEST(Capacity, OfOneDeviceCanBeHeldThroughTwoAllocators) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(LeaseOf("a", {Share("G", 0, kFour)}, "kubelet")).ok());
  EXPECT_TRUE(ledger.Add(LeaseOf("b", {Share("G", 1, kFour)}, "local")).ok());
  EXPECT_FALSE(ledger.Add(LeaseOf("c", {Share("G", 1, kFour)}, "kubelet")).ok());
  ASSERT_TRUE(ledger.Add(LeaseOf("d", {Part("H.0", 40)}, "kubelet")).ok());
  EXPECT_TRUE(ledger.Add(LeaseOf("e", {Part("H.1", 40)}, "local")).ok());
  EXPECT_FALSE(ledger.Add(LeaseOf("f", {Part("H.2", 1)}, "local")).ok());
}

/// A model that knows only capacity. A device has 12 cells of each of 4 seats. Whole it takes all
/// of them; a share of a server takes its part of the cells; a time slice takes one seat of each
/// cell; a part takes some cells, all seats.
class Cells {
 public:
  static constexpr int kCells = 12, kSeats = 4;
  using Taken = std::set<std::pair<int, int>>;  // cell, seat

  static Taken OfSlot(const Slot& slot) {
    Taken taken;
    const auto all = [&](int first, int count) {
      for (int cell = first; cell < first + count; ++cell)
        for (int seat = 0; seat < kSeats; ++seat) taken.emplace(cell, seat);
    };
    const int number = slot.id.back() - '0';
    if (slot.shape.sharing == Sharing::kTimeSlicing) {
      for (int cell = 0; cell < kCells; ++cell) taken.emplace(cell, number);
    } else if (slot.shape.sharing == Sharing::kServer) {
      all(number * kCells / slot.shape.shares, kCells / slot.shape.shares);
    } else if (slot.ancestors.empty()) {
      all(0, kCells);
    } else {
      const auto size = static_cast<int>(slot.capacity.memory.mebibytes());
      const bool nested = slot.ancestors.size() == 2;  // "G.n.m": half of "G.n"
      const int outer = nested ? slot.id[slot.id.size() - 3] - '0' : number;
      all(outer * (nested ? 2 * size : size) + (nested ? number * size : 0), size);
    }
    return taken;
  }

  bool Fits(const Slot& slot) const {
    for (const auto& one : OfSlot(slot))
      if (taken_.contains(one)) return false;
    return true;
  }
  void Take(const Slot& slot) { taken_.merge(OfSlot(slot)); }
  void Give(const Slot& slot) {
    for (const auto& one : OfSlot(slot)) taken_.erase(one);
  }
  bool empty() const { return taken_.empty(); }

 private:
  Taken taken_;
};

/// What the ledger admits always fits, nothing is lost after the last holder, and what it refuses
/// although there would be room is of another shape.
TEST(Capacity, AgreesWithAModelThatKnowsOnlyCapacity) {
  std::mt19937 random(20261126);
  const auto chance = [&random](int n) {
    return static_cast<int>(std::uniform_int_distribution<>(0, n - 1)(random));
  };
  const auto any_slot = [&] {
    switch (chance(5)) {
      case 0: return Whole("G");
      case 1: return Share("G", chance(4), kFour);
      case 2: return Share("G", chance(2), {Sharing::kServer, 2});
      case 3: return Part("G." + std::to_string(chance(3)), 4, Cells::kCells);
      default: {
        Slot slot = Part("G." + std::to_string(chance(3)) + "." + std::to_string(chance(2)), 2,
                         Cells::kCells);
        slot.ancestors.front().capacity.memory = base::Mebibytes(4);
        return slot;
      }
    }
  };
  Ledger ledger;
  Cells cells;
  std::map<std::string, Slot> held;
  int admitted = 0;
  for (int step = 0; step < 4'000; ++step) {
    if (!held.empty() && chance(2) == 0) {
      const auto one = std::next(held.begin(), chance(static_cast<int>(held.size())));
      cells.Give(one->second);
      ledger.Release(one->first);
      held.erase(one);
      ASSERT_EQ(held.empty(), cells.empty());
      continue;
    }
    const Slot slot = any_slot();
    const std::string id = "l-" + std::to_string(step);
    const bool fits = cells.Fits(slot);
    const bool alike = std::ranges::all_of(
        held, [&slot](const auto& one) { return one.second.shape == slot.shape; });
    const bool added = ledger.Add(LeaseOf(id, {slot})).ok();
    ASSERT_EQ(added, fits && alike) << "step " << step << ": " << slot.id;
    if (!added) continue;
    ++admitted;
    cells.Take(slot);
    held.emplace(id, slot);
  }
  EXPECT_GT(admitted, 500);
}

}  // namespace
}  // namespace penstock::node::ledger
