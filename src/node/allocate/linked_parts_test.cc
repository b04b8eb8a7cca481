#include "node/allocate/linked_parts.h"

#include <bit>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/allocate/ranked.h"

namespace penstock::node::allocate {
namespace {

using ::testing::ElementsAre;

std::string PartName(std::size_t device, std::size_t part) {
  return "G" + std::to_string(device) + "." + std::to_string(part);
}

/// Devices with parts, all of which are linked with each other.
struct Linked {
  /// `near`: the score of two parts of one device. `far`: of these two devices.
  template <typename Far>
  Linked(const std::vector<std::size_t>& parts, int near, const Far& far) {
    for (std::size_t device = 0; device < parts.size(); ++device)
      for (std::size_t part = 0; part < parts[device]; ++part) {
        const std::string whole = "G" + std::to_string(device), id = PartName(device, part);
        device::Facts one{.id = id, .parent = whole};
        for (std::size_t other = 0; other < parts.size(); ++other)
          for (std::size_t peer = 0; peer < parts[other]; ++peer)
            if (PartName(other, peer) != id)
              one.links.push_back({.peer = PartName(other, peer),
                                   .score = other == device ? near : far(device, other)});
        facts.push_back(std::move(one));
        slots.push_back({.id = id,
                         .device = id,
                         .ancestors = {{whole, {base::Mebibytes(64), 8}}},
                         .capacity = {base::Mebibytes(8), 1}});
      }
  }

  DeviceLinks links() const {
    std::vector<const device::Facts*> all;
    for (const auto& one : facts) all.push_back(&one);
    return LinksToConsider(all);
  }
  std::size_t At(const std::string& id) const {
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].id == id) return i;
    return slots.size();
  }

  /// Ids of the chosen; `held` and `fixed` are no candidates.
  std::vector<std::string> Choose(std::size_t size, const std::set<std::string>& held = {},
                                  const std::vector<std::string>& fixed = {}) const {
    PartsInUse in_use;
    std::vector<Ranked> candidates;
    std::vector<std::size_t> positions;
    for (const std::string& id : fixed) {
      positions.push_back(At(id));
      in_use.Add(slots[At(id)]);
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (held.contains(slots[i].id))
        in_use.Add(slots[i]);
      else if (std::ranges::find(fixed, slots[i].id) == fixed.end())
        candidates.push_back({i, 0, &slots[i]});
    }
    std::vector<std::string> chosen;
    for (const std::size_t i : ChooseRanked(links(), candidates, positions, size, in_use))
      chosen.push_back(slots[i].id);
    return chosen;
  }

  std::vector<device::Facts> facts;
  std::vector<ledger::Slot> slots;
};

int Pairs(std::size_t a, std::size_t b) { return a / 2 == b / 2 ? 40 : 30; }

TEST(LinkedParts, OfOneDeviceAreBetterThanTheRestOfADeviceInUse) {
  const Linked node({4, 4}, 60, Pairs);
  EXPECT_THAT(node.Choose(3, {"G0.0", "G0.1"}), ElementsAre("G1.0", "G1.1", "G1.2"));
  EXPECT_THAT(node.Choose(2, {"G0.0", "G0.1"}), ElementsAre("G0.2", "G0.3"))
      << "as well linked, and no other device is begun";
  EXPECT_THAT(node.Choose(1, {"G1.0"}), ElementsAre("G1.1"));
}

TEST(LinkedParts, ComeFromDevicesThatAreLinkedBest) {
  const Linked node({2, 2, 2, 2}, 60, Pairs);
  EXPECT_THAT(node.Choose(4, {"G1.0"}), ElementsAre("G2.0", "G2.1", "G3.0", "G3.1"));
  EXPECT_THAT(node.Choose(2, {}, {"G3.1"}), ElementsAre("G2.0", "G3.0"))
      << "with the one that must be included";
}

TEST(LinkedParts, OfEquallyGoodDevicesTheFullestAreTaken) {
  const Linked node({4, 4, 4}, 60, Pairs);
  EXPECT_THAT(node.Choose(1, {"G0.0", "G2.0", "G2.1"}), ElementsAre("G2.2"));
  const Linked lost({4, 3}, 60, Pairs);
  EXPECT_THAT(lost.Choose(2), ElementsAre("G1.0", "G1.1")) << "leaves fewer parts";
}

TEST(LinkedParts, AreTheBestOfAllSetsAndBeginTheFewestDevices) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::map<std::pair<std::size_t, std::size_t>, int> far;
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = 0; b < 4; ++b) far[{a, b}] = 10 + 10 * static_cast<int>(random() % 4);
    const Linked node({1 + random() % 3, 1 + random() % 3, 1 + random() % 3, 1 + random() % 3}, 60,
                      [&](std::size_t a, std::size_t b) { return far.at(std::minmax(a, b)); });
    const DeviceLinks links = node.links();
    std::set<std::string> held, used;
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < node.slots.size(); ++i) {
      if (random() % 3 > 0) {
        free.push_back(i);
      } else {
        held.insert(node.slots[i].id);
        used.insert(WholeOf(node.slots[i]));
      }
    }
    const auto key = [&](const std::vector<std::size_t>& set) {
      int score = 0;
      std::set<std::string> begun;
      for (const std::size_t a : set) {
        if (!used.contains(WholeOf(node.slots[a]))) begun.insert(WholeOf(node.slots[a]));
        for (const std::size_t b : set)
          if (a < b) score += links.Score(a, b);
      }
      return std::pair(-score, begun.size());
    };
    for (std::size_t size = 1; size <= free.size(); ++size) {
      std::vector<std::size_t> chosen;
      for (const std::string& id : node.Choose(size, held)) chosen.push_back(node.At(id));
      ASSERT_EQ(chosen.size(), size);
      for (unsigned bits = 0; bits < 1u << free.size(); ++bits) {
        if (std::popcount(bits) != static_cast<int>(size)) continue;
        std::vector<std::size_t> other;
        for (std::size_t i = 0; i < free.size(); ++i)
          if ((bits >> i & 1u) != 0) other.push_back(free[i]);
        ASSERT_LE(key(chosen), key(other)) << "round " << round << ", size " << size;
      }
    }
  }
}

TEST(LinkedParts, OfMoreDevicesThanCanBeComparedArePacked) {
  const Linked node(std::vector<std::size_t>(20, 2), 60, Pairs);
  EXPECT_EQ(node.Choose(7, {"G9.0"}).size(), 7u);
  EXPECT_THAT(node.Choose(1, {"G9.0"}), ElementsAre("G9.1"));
}

TEST(LinkedParts, WithoutLinksAreOnlyPacked) {
  Linked node({4, 4}, 60, Pairs);
  for (device::Facts& one : node.facts) one.links.clear();
  EXPECT_FALSE(node.links().any());
  EXPECT_THAT(node.Choose(3, {"G0.0", "G0.1"}), ElementsAre("G0.2", "G0.3", "G1.0"));
  // Nor do links count that lead elsewhere.
  for (device::Facts& one : node.facts) one.links.push_back({.peer = "NIC", .score = 9});
  EXPECT_FALSE(node.links().any());
  EXPECT_THAT(node.Choose(3, {"G0.0", "G0.1"}), ElementsAre("G0.2", "G0.3", "G1.0"));
}

}  // namespace
}  // namespace penstock::node::allocate
