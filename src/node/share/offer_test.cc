#include "node/share/offer.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/inventory/testing/acme_inventory.h"
#include "node/share/assignment.h"

namespace penstock::node::share {
namespace {

using device::HealthState;
using device::Isolation;
using device::Shape;
using device::Sharing;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kGpu[] = "acme.com/gpu";
constexpr Shape kWhole{};
constexpr Shape Sliced(int shares) { return {Sharing::kTimeSlicing, shares}; }
constexpr Shape Mps(int shares) { return {Sharing::kServer, shares}; }

/// One or more devices whose assignments, holders and servers the test sets.
struct Node {
  explicit Node(int devices = 1, Shape shape = kWhole)
      : inventory(inventory::AcmeSnapshot(devices)) {
    for (const auto& entry : inventory.devices)
      assignments[entry.facts->id] = {.allocator = "kubelet", .resource = kGpu, .shape = shape};
  }

  void Assign(Shape shape, const std::string& resource = kGpu,
              const std::string& allocator = "kubelet") {
    for (auto& [id, assignment] : assignments)
      assignment = {.allocator = allocator, .resource = resource, .shape = shape};
  }
  void Hold(const std::string& slot, Shape shape, const std::string& resource = kGpu,
            const std::string& allocator = "kubelet") {
    ledger::Lease lease{.id = "held-" + slot,
                        .allocator = allocator,
                        .slots = {{slot, DeviceOf(slot), resource, shape}}};
    ledger.leases.push_back(std::move(lease));
  }
  std::vector<Offer> Offers() const {
    return ComputeOffers(assignments, inventory, ledger, servers);
  }

  /// Ids in the only offer that the allocator may allocate and has not allocated yet.
  std::vector<std::string> Free() const {
    std::vector<std::string> free;
    const auto offers = Offers();
    for (const OfferedSlot& slot : offers.at(0).slots) {
      const bool held =
          std::any_of(ledger.leases.begin(), ledger.leases.end(), [&](const ledger::Lease& lease) {
            return lease.allocator == offers[0].allocator &&
                   lease.slots[0].resource == offers[0].resource &&
                   lease.slots[0].id == slot.slot.id;
          });
      if (slot.usable && !held) free.push_back(slot.slot.id);
      if (slot.usable != slot.reason.empty()) ADD_FAILURE() << slot.slot.id << ": " << slot.reason;
    }
    return free;
  }

  Assignments assignments;
  inventory::Snapshot inventory;
  ledger::Snapshot ledger;
  device::SharedDevices servers;
};

TEST(Offer, ASharedDeviceIsSoManySlots) {
  Node node(2, Sliced(2));
  const auto offers = node.Offers();
  ASSERT_THAT(offers, SizeIs(1));
  ASSERT_THAT(offers[0].slots, SizeIs(4));
  const OfferedSlot& last = offers[0].slots[3];
  EXPECT_EQ(last.slot, (ledger::Slot{"G1::1", "G1", kGpu, Sliced(2)}));
  EXPECT_EQ(last.numa_node, 1);
  EXPECT_EQ(last.isolation, Isolation::kNone);
  EXPECT_FALSE(last.cut);
  EXPECT_THAT(node.Free(), ElementsAre("G0::0", "G0::1", "G1::0", "G1::1"));
}

TEST(Offer, EachResourceAndAllocatorIsAnOfferOfItsOwn) {
  Node node(3);
  node.assignments["G1"] = {.allocator = "kubelet",
                            .resource = "acme.com/slice",
                            .shape = Sliced(2),
                            .renamed = true,
                            .single = true};
  node.assignments["G2"].allocator = "local";
  const auto offers = node.Offers();
  ASSERT_THAT(offers, SizeIs(3));
  EXPECT_THAT(offers[0].slots, SizeIs(1));
  EXPECT_FALSE(offers[0].single);
  EXPECT_EQ(offers[1].resource, "acme.com/slice");
  EXPECT_TRUE(offers[1].single);
  EXPECT_EQ(offers[2].allocator, "local");
}

TEST(Offer, Issue1929AReplicaSetOnABadGpuIsUnusableAsAWholeAndItsNeighboursAreNot) {
  Node node(2, Sliced(3));
  node.Hold("G0::1", Sliced(3));
  node.inventory.devices[0].health = {HealthState::kUnhealthy, "XID 79", {}};
  const auto slots = node.Offers().at(0).slots;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(slots[i].reason, "XID 79");
  EXPECT_THAT(node.Free(), ElementsAre("G1::0", "G1::1", "G1::2"));
}

TEST(Offer, SomeoneOutsideKeepsEveryShareFromBeingUsed) {
  Node node(1, Sliced(2));
  node.ledger.outside["G0"] = {{42, 1, "ann", "python"}};
  EXPECT_THAT(node.Free(), IsEmpty());
  EXPECT_THAT(node.Offers().at(0).slots[1].reason,
              HasSubstr("in use by a process of ann to which it is not allocated"));
}

// --- holders of what was offered before

TEST(Offer, AWholeHolderKeepsEveryShareAndAShareKeepsTheWhole) {
  Node node(1, Sliced(4));
  node.Hold("G0", kWhole);
  EXPECT_THAT(node.Free(), IsEmpty());
  EXPECT_THAT(node.Offers().at(0).slots, SizeIs(4)) << "the list changes at once";
  EXPECT_EQ(node.Offers().at(0).slots[0].reason, "still held by held-G0 as previously offered");

  node = Node(1);
  node.Hold("G0::2", Sliced(4));
  EXPECT_THAT(node.Free(), IsEmpty());
}

TEST(Offer, AConfigThatShrinksReplicasBelowWhatIsHeldGivesOutNoMore) {
  Node node(1, Sliced(4));
  for (const char* slot : {"G0::0", "G0::2", "G0::3"}) node.Hold(slot, Sliced(4));
  node.Assign(Sliced(2));
  EXPECT_THAT(node.Free(), IsEmpty()) << "three holders where two are allowed";
  node.ledger.leases.erase(node.ledger.leases.begin());
  EXPECT_THAT(node.Free(), IsEmpty())
      << "two holders where two are allowed, under ids that are no longer listed";
  node.ledger.leases.erase(node.ledger.leases.begin());
  EXPECT_THAT(node.Free(), ElementsAre("G0::0")) << "the last free shares are withheld";
  node.ledger.leases.clear();
  EXPECT_THAT(node.Free(), ElementsAre("G0::0", "G0::1"));
}

TEST(Offer, ASlotInTheListThatSomeoneHoldsStaysUsableForThem) {
  Node node(1, Sliced(4));
  node.Hold("G0::0", Sliced(4));
  node.Hold("G0::3", Sliced(4));
  node.Assign(Sliced(2));
  const auto slots = node.Offers().at(0).slots;
  EXPECT_TRUE(slots[0].usable) << "a configuration must not make a pod's device appear unhealthy";
  EXPECT_FALSE(slots[1].usable);
}

TEST(Offer, MoreReplicasAreThereAtOnce) {
  Node node(1, Sliced(2));
  node.Hold("G0::0", Sliced(2));
  node.Assign(Sliced(4));
  EXPECT_THAT(node.Free(), ElementsAre("G0::1", "G0::2", "G0::3"));
}

TEST(Offer, WhatIsHeldUnderAnotherNameOrAtAnotherAllocatorIsNotGivenOutTwice) {
  Node node(1, Sliced(3));
  node.Hold("G0::1", Sliced(3));
  node.Assign(Sliced(3), "acme.com/gpu.shared");
  EXPECT_THAT(node.Free(), ElementsAre("G0::0", "G0::2"));
  node.Assign(Sliced(3), kGpu, "local");
  EXPECT_THAT(node.Free(), ElementsAre("G0::0", "G0::2"));

  Node whole(1);
  whole.Hold("G0", kWhole);
  whole.Assign(kWhole, "acme.com/big");
  EXPECT_THAT(whole.Free(), IsEmpty());
  EXPECT_FALSE(whole.Offers().at(0).slots[0].usable);
}

TEST(Offer, AHolderWhoseResourceIsNotKnownIsTakenForOneOfThisName) {
  Node node(1);
  node.Hold("G0", kWhole, "");
  EXPECT_TRUE(node.Offers().at(0).slots[0].usable);
}

TEST(Offer, TimeSlicingAndMpsAreNeverSideBySideOnADevice) {
  Node node(1, Sliced(2));
  node.Hold("G0::0", Sliced(2));
  node.Assign(Mps(2));
  EXPECT_THAT(node.Free(), IsEmpty());
  const auto slots = node.Offers().at(0).slots;
  EXPECT_TRUE(slots[0].usable) << "its holder needs no server";
  EXPECT_EQ(slots[1].reason, "still held by held-G0::0 as previously offered")
      << "the server waits for it, too";

  Node back(1, Mps(2));
  back.Hold("G0::1", Mps(2));
  back.Assign(Sliced(2));
  EXPECT_THAT(back.Free(), IsEmpty());
}

TEST(Offer, LimitsOfAServerChangeOnlyWhenNoOneHasTheFormerOnes) {
  Node node(1, Mps(2));
  node.servers["G0"] = {.set = kGpu, .ready = true, .isolation = Isolation::kMemoryPerProcess};
  node.Hold("G0::0", Mps(2));
  EXPECT_THAT(node.Free(), ElementsAre("G0::1"));
  node.Assign(Mps(4));
  EXPECT_THAT(node.Free(), IsEmpty()) << "half and three quarters exceed the whole device";
  node.ledger.leases.clear();
  EXPECT_THAT(node.Free(), SizeIs(4));
}

// --- servers

TEST(Offer, Issue1595ASlotIsUsableOnceItsServerIsReady) {
  Node node(2, Mps(2));
  node.assignments["G1"].shape = Sliced(2);
  EXPECT_THAT(node.Free(), ElementsAre("G1::0", "G1::1"));
  EXPECT_EQ(node.Offers().at(0).slots[0].reason, "its sharing server has not started yet");
  node.servers["G0"] = {
      .set = kGpu, .ready = false, .reason = "the MPS control daemon ended with status 1"};
  EXPECT_EQ(node.Offers().at(0).slots[1].reason, "the MPS control daemon ended with status 1");
  node.Hold("G0::0", Mps(2));
  EXPECT_FALSE(node.Offers().at(0).slots[0].usable) << "its users see that the server died";
  node.servers["G0"].ready = true;
  EXPECT_THAT(node.Free(), ElementsAre("G0::1", "G1::0", "G1::1"));
}

TEST(Offer, ADeviceIsWholeOrSlicedOnlyOnceItsFormerServerHasEnded) {
  for (const Shape shape : {kWhole, Sliced(2)}) {
    Node node(1, Mps(2));
    node.servers["G0"] = {.set = kGpu, .ready = true};
    EXPECT_THAT(node.Free(), SizeIs(2));
    node.Assign(shape);
    EXPECT_THAT(node.Free(), IsEmpty()) << "the end of the server is not known yet";
    node.servers["G0"].ready = false;
    node.servers["G0"].reason = "ends with its last client";
    EXPECT_THAT(node.Free(), IsEmpty());
    EXPECT_EQ(node.Offers().at(0).slots[0].reason,
              "its previous sharing server has not exited yet");
    node.servers.clear();
    EXPECT_THAT(node.Free(), SizeIs(shape.shares));
  }
}

TEST(Offer, Issue1690And467ReportsTheIsolationThatTheServerHoldsAndNeverMore) {
  Node node(3, Mps(2));
  node.assignments["G1"].shape = Sliced(2);
  node.assignments["G2"].shape = kWhole;
  EXPECT_EQ(node.Offers().at(0).slots[0].isolation, Isolation::kNone);
  node.servers["G0"] = {.ready = true, .isolation = Isolation::kMemoryCompute};
  const auto slots = node.Offers().at(0).slots;
  EXPECT_EQ(slots[0].isolation, Isolation::kMemoryCompute);
  EXPECT_EQ(slots[2].isolation, Isolation::kNone);
  EXPECT_EQ(slots[4].isolation, Isolation::kHardware);
}

// --- cut for a request of the local allocator

TEST(Offer, ADeviceIsCutForACallerOfTheLocalAllocatorAsLongAsOneHoldsAShare) {
  Node node;
  node.Assign(kWhole, kGpu, "local");
  node.Hold("G0::1", Sliced(4), kGpu, "local");
  EXPECT_THAT(node.Free(), ElementsAre("G0::0", "G0::2", "G0::3"));
  EXPECT_TRUE(node.Offers().at(0).slots[0].cut);
  node.ledger.leases.clear();
  EXPECT_THAT(node.Free(), ElementsAre("G0"));
  EXPECT_FALSE(node.Offers().at(0).slots[0].cut);
}

TEST(Offer, NoOneCutsADeviceOfTheKubelet) {
  Node node;
  node.Hold("G0::1", Sliced(4), kGpu, "local");
  const auto slots = node.Offers().at(0).slots;
  ASSERT_THAT(slots, SizeIs(1));
  EXPECT_FALSE(slots[0].usable) << "the device was moved with a process on it";
}

// --- OfferBook

TEST(OfferBook, SaysWhetherAnythingChangedAndAlwaysAgreesWithComputeOffers) {
  Node node(3, Sliced(2));
  OfferBook book;
  const auto update = [&] {
    return book.Update(node.assignments, node.inventory, node.ledger, node.servers);
  };
  EXPECT_TRUE(update());
  EXPECT_FALSE(update());
  node.inventory.devices[0].read_at += std::chrono::seconds(1);
  node.Hold("G0::0", Sliced(2));
  EXPECT_FALSE(update()) << "the allocator knows what it allocated";
  const std::vector<std::function<void()>> changes = {
      [&] {
        node.inventory.devices[2].health = {HealthState::kUnhealthy, "XID 79", {}};
      },
      [&] { node.assignments["G1"].single = true; },
      [&] { node.assignments["G1"].resource = "acme.com/slice"; },
      [&] {
        node.ledger.outside["G0"] = {{42, 1, "ann", "python"}};
      },
      [&] { std::swap(node.inventory.devices[0], node.inventory.devices[1]); },
      [&] { node.assignments["G0"].allocator = ""; },
      [&] { node.inventory.devices.erase(node.inventory.devices.begin()); },
      [&] { node.assignments["G0"].allocator = "local"; },
      [&] { node.assignments.clear(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    changes[i]();
    EXPECT_TRUE(update()) << i;
    EXPECT_FALSE(update()) << i;
    EXPECT_EQ(book.Get(), node.Offers()) << i;
  }
}

TEST(OfferBook, TakesEveryChangeAmongFiveThousandSlots) {
  Node node(16, Sliced(313));
  for (int i = 0; i < 200; ++i)
    node.Hold("G" + std::to_string(i % 16) + "::" + std::to_string(i), Sliced(313));
  OfferBook book;
  book.Update(node.assignments, node.inventory, node.ledger, node.servers);
  std::size_t slots = 0;
  for (int i = 0; i < 10; ++i) {
    node.inventory.devices[3].health = {
        i % 2 == 0 ? HealthState::kUnhealthy : HealthState::kHealthy, "", {}};
    ASSERT_TRUE(book.Update(node.assignments, node.inventory, node.ledger, node.servers));
    slots += book.Get().at(0).slots.size();
    EXPECT_EQ(book.Get(), node.Offers()) << i;
  }
  EXPECT_EQ(slots, 50'080u);
}

/// G0 is divided into G0.0 and G0.1 of 40 MiB each, and G1 is whole; G0.0 has two shares.
struct DividedNode : Node {
  DividedNode() : Node(2) {
    inventory::Inventory devices;
    std::vector<device::Facts> facts;
    for (const auto& entry : inventory.devices) facts.push_back(*entry.facts);
    facts[0].memory = base::Mebibytes(80);
    for (int part = 0; part < 2; ++part) {
      facts.push_back(facts[0]);
      facts.back().id = "G0." + std::to_string(part);
      facts.back().parent = "G0";
      facts.back().index = 2 + part;
      facts.back().memory = base::Mebibytes(40);
    }
    devices.SetFacts("acme", facts, "", {});
    inventory = *devices.published().Get();
    for (auto& entry : inventory.devices) {
      entry.health.state = HealthState::kHealthy;
      assignments[entry.facts->id] = {.allocator = "kubelet", .resource = kGpu};
    }
    assignments["G0.0"].shape = Sliced(2);
  }
  /// Holds a slot as it is offered.
  void Take(const std::string& id) {
    for (const Offer& offer : Offers())
      for (const OfferedSlot& slot : offer.slots)
        if (slot.slot.id == id)
          return ledger.leases.push_back(
              {.id = "held-" + id, .allocator = "kubelet", .slots = {slot.slot}});
    ADD_FAILURE() << id << " is not offered";
  }
};

TEST(Offer, APartTakesThePlaceOfItsDevice) {
  DividedNode node;
  EXPECT_THAT(node.Free(), ElementsAre("G0.0::0", "G0.0::1", "G0.1", "G1"));
  node.Take("G0.0::1");
  EXPECT_THAT(node.Free(), ElementsAre("G0.0::0", "G0.1", "G1"));
  EXPECT_EQ(node.ledger.leases[0].slots[0].ancestors,
            (std::vector<inventory::Ancestor>{{"G0", {base::Mebibytes(80), 0}}}));
}

TEST(Offer, ADeviceThatIsWholeAgainWaitsForTheHoldersOfItsParts) {
  DividedNode node;
  node.Take("G0.1");
  std::erase_if(node.inventory.devices,
                [](const auto& entry) { return !entry.facts->parent.empty(); });
  for (auto& entry : node.inventory.devices) entry.withheld.clear();
  const auto offers = node.Offers();
  const OfferedSlot& whole = offers.at(0).slots.at(0);
  EXPECT_EQ(whole.slot.id, "G0");
  EXPECT_TRUE(whole.held);
  EXPECT_FALSE(whole.usable);
  EXPECT_EQ(whole.reason, "its part G0.1 is held by held-G0.1");
  node.ledger.leases.clear();
  EXPECT_THAT(node.Free(), ElementsAre("G0", "G1"));
}

TEST(Offer, PartsOfADeviceThatIsStillHeldWait) {
  DividedNode node;
  node.Hold("G0", kWhole);
  EXPECT_THAT(node.Free(), ElementsAre("G1"));
  const auto offers = node.Offers();
  EXPECT_EQ(offers.at(0).slots.at(1).reason, "G0, of which it is a part, is held by held-G0");
}

TEST(Offer, WhatIsWrongWithADeviceIsWrongWithItsParts) {
  DividedNode node;
  node.inventory.devices[0].health = {HealthState::kUnhealthy, "XID 79", {}};
  node.inventory.devices[0].read_at = base::WallTime{std::chrono::seconds(1)};
  EXPECT_THAT(node.Free(), ElementsAre("G1"));
  EXPECT_EQ(node.Offers().at(0).slots.at(1).reason, "G0, of which it is a part: XID 79");
  node.inventory.devices[0].health = {HealthState::kHealthy, "", {}};
  node.ledger.outside["G0"] = {{42, 1, "ann", "python"}};
  EXPECT_THAT(node.Free(), ElementsAre("G1"));
}

TEST(Offer, APartThatWasMadeAgainWaitsWhileItsDeviceHasNoRoomForIt) {
  DividedNode node;
  node.Take("G0.0::0");
  node.Take("G0.1");
  for (auto& entry : node.inventory.devices)
    if (entry.facts->id == "G0.1") {
      device::Facts again = *entry.facts;
      again.id = "G0.2";
      entry.facts = std::make_shared<const device::Facts>(again);
    }
  node.assignments["G0.2"] = node.assignments["G0.1"];
  EXPECT_THAT(node.Free(), ElementsAre("G0.0::1", "G1"));
  node.ledger.leases.erase(node.ledger.leases.begin());
  EXPECT_THAT(node.Free(), ElementsAre("G0.0::0", "G0.0::1", "G0.2", "G1"));
}

}  // namespace
}  // namespace penstock::node::share
