// Runs a hundred thousand random steps of a node through inventory, offers, reservation,
// allocation, attribution and checkpoint, and checks that no slot is lost, allocated twice or
// leaked.
#include <gtest/gtest.h>

#include "node/attribute/testing/node_simulation.h"

namespace penstock::node::testing {
namespace {

/// Checks the invariants.
class Judge {
 public:
  explicit Judge(const NodeSimulation& life) : life_(life), agent_(life.agent()) {}

  /// The invariant that is violated; empty where none is.
  std::string Problem() const {
    if (!life_.problem().empty()) return life_.problem();
    std::string problem = ProblemOfLedger();
    if (problem.empty()) problem = ProblemOfOffers();
    if (problem.empty() && life_.steps() % 16 == 0) problem = ProblemOfHandingAll();
    if (problem.empty() && life_.steps() % 16 == 8 && *Offers() != Again())
      problem = "the offers are not what they follow from";
    return problem;
  }

  std::size_t usable() const {
    std::size_t usable = 0;
    for (const auto& offer : *Offers())
      usable += static_cast<std::size_t>(std::count_if(
          offer.slots.begin(), offer.slots.end(), [](const auto& slot) { return slot.usable; }));
    return usable;
  }

 private:
  std::shared_ptr<const std::vector<share::Offer>> Offers() const { return agent_.offers.Get(); }

  std::string ProblemOfLedger() const {
    const auto ledger = agent_.ledger.Get();
    for (const auto& [device, slots] : HoldersOf(*ledger)) {
      std::set<std::string> ids;
      std::set<device::Shape> ways;
      int most = 1;
      for (const ledger::Slot* slot : slots) {
        if (!ids.insert(slot->id).second) return slot->id + " is held twice";
        if (slot->id == device && slots.size() > 1)
          return device + " is held as a whole and in shares";
        ways.insert({slot->shape.sharing,
                     slot->shape.sharing == Sharing::kServer ? slot->shape.shares : 1});
        most = std::max(most, slot->shape.shares);
      }
      if (ways.size() > 1) return device + " is shared in two ways at once";
      if (static_cast<int>(slots.size()) > most)
        return device + " has more holders than it was ever cut into";
    }
    return ProblemOfBelief(*ledger);
  }

  /// Compares the ledger with the actual holders.
  std::string ProblemOfBelief(const ledger::Snapshot& ledger) const {
    std::multiset<std::string> of_kubelet, of_pods;
    std::set<std::string> runs;
    for (const ledger::Lease& lease : ledger.leases) {
      if (lease.allocator == api::kLocalAllocator) runs.insert(lease.id);
      for (const ledger::Slot& slot : lease.slots)
        if (lease.allocator == api::kKubeletAllocator)
          of_kubelet.insert(slot.resource + " " + slot.id);
    }
    for (const auto& [name, pod] : life_.pods())
      for (const std::string& id : pod.ids) of_pods.insert(pod.resource + " " + id);
    if (runs != life_.runs()) return "the runs are not those of the ledger";
    if (!std::includes(of_kubelet.begin(), of_kubelet.end(), of_pods.begin(), of_pods.end()))
      return "a pod's slot is lost";
    if (!life_.pods_to_report() && of_kubelet != of_pods) return "a slot has leaked: no pod has it";
    return "";
  }

  std::string ProblemOfOffers() const {
    const auto ledger = agent_.ledger.Get();
    const auto inventory = agent_.inventory.published().Get();
    const auto holders = HoldersOf(*ledger);
    std::map<std::string, std::vector<std::pair<const share::Offer*, const OfferedSlot*>>> offered;
    const auto offers = Offers();
    for (const share::Offer& offer : *offers)
      for (const OfferedSlot& slot : offer.slots)
        offered[slot.slot.device].emplace_back(&offer, &slot);
    const auto desired = agent_.offers.Desired();
    for (const auto& [id, assignment] : desired->assignments) {
      if (assignment.allocator.empty() != !offered.contains(id))
        return id + (assignment.allocator.empty() ? " is offered" : " is lost from the offers");
      if (assignment.allocator.empty()) continue;
      const auto held = holders.find(id);
      std::string problem = ProblemOfDevice(
          offered.at(id), held == holders.end() ? std::vector<const ledger::Slot*>{} : held->second,
          *ledger, *inventory->Find(id));
      if (!problem.empty()) return problem;
    }
    return "";
  }

  std::string ProblemOfDevice(
      const std::vector<std::pair<const share::Offer*, const OfferedSlot*>>& slots,
      const std::vector<const ledger::Slot*>& held, const ledger::Snapshot& ledger,
      const inventory::Entry& entry) const {
    const std::string& id = entry.facts->id;
    const share::Offer& offer = *slots.front().first;
    const device::Shape shape = slots.front().second->slot.shape;
    if (static_cast<int>(slots.size()) != shape.shares) return id + " is not offered as it is cut";
    const bool well = agent_.IsWell(id);
    const auto server = agent_.servers.Get()->find(id);
    const bool served = shape.sharing != Sharing::kServer ||
                        (server != agent_.servers.Get()->end() && server->second.ready);
    int free = 0;
    for (const auto& [of, slot] : slots) {
      if (of != &offer) return id + " is offered twice";
      if (slot->usable != slot->reason.empty())
        return slot->slot.id + " has no reason, or one too much";
      const bool mine = HeldAs(*slot, offer, ledger);
      if (slot->usable && !well) return slot->slot.id + " is usable on a device that is not";
      if (!slot->usable && well && served && held.empty())
        return slot->slot.id + " is not usable, and nothing is in its way: " + slot->reason;
      if (!slot->usable || mine) continue;
      ++free;
      if (!served) return slot->slot.id + " is usable without its server";
      if (const ledger::Lease* other = ledger.InTheWayOf(slot->slot))
        return slot->slot.id + " is usable, and in its way is " + other->id;
    }
    const int taken = static_cast<int>(held.size());
    if (free > 0 && free + taken > shape.shares)
      return id + " would have more holders than it is cut into";
    return "";
  }

  /// Whether the allocator allocated the slot itself.
  static bool HeldAs(const OfferedSlot& slot, const share::Offer& offer,
                     const ledger::Snapshot& ledger) {
    for (const ledger::Lease& lease : ledger.leases)
      for (const ledger::Slot& one : lease.slots)
        if (one.id == slot.slot.id)
          return lease.allocator == offer.allocator && one.resource == offer.resource;
    return false;
  }

  /// Allocates every free slot to a holder of its own.
  std::string ProblemOfHandingAll() const {
    ledger::Ledger ledger;
    for (const ledger::Lease& lease : agent_.ledger.Get()->leases) (void)ledger.Add(lease);
    const auto offers = Offers();
    int number = 0;
    for (const share::Offer& offer : *offers)
      for (const OfferedSlot& slot : offer.slots) {
        if (!slot.usable || HeldAs(slot, offer, *agent_.ledger.Get())) continue;
        const auto handed = ledger.Add({.id = "all-" + std::to_string(++number),
                                        .allocator = offer.allocator,
                                        .slots = {slot.slot}});
        if (!handed.ok()) return "not all that is free can be handed: " + handed.error().ToString();
      }
    return "";
  }

  std::vector<share::Offer> Again() const {
    return share::ComputeOffers(agent_.offers.Desired()->assignments,
                                *agent_.inventory.published().Get(), *agent_.ledger.Get(),
                                *agent_.servers.Get());
  }

  const NodeSimulation& life_;
  Agent& agent_;  // until it restarts
};

class RandomSteps : public ::testing::TestWithParam<int> {};

TEST_P(RandomSteps, LoseDoubleAndLeakNothing) {
  constexpr int kSteps = 10'000;
  NodeSimulation life(static_cast<std::uint64_t>(GetParam()));
  for (int step = 0; step < kSteps; ++step) {
    life.Step();
    const std::string problem = Judge(life).Problem();
    ASSERT_EQ(problem, "") << "seed " << GetParam() << ", step " << step << ", after\n"
                           << life.Story();
  }
  EXPECT_GT(life.handed(), kSteps / 20)
      << "too few steps allocated anything for the test to be meaningful";
  life.EndAll();
  EXPECT_EQ(Judge(life).Problem(), "") << "seed " << GetParam();
  EXPECT_TRUE(life.agent().ledger.Get()->leases.empty())
      << "seed " << GetParam() << ": a slot is held indefinitely";
  EXPECT_EQ(Judge(life).usable(), static_cast<std::size_t>(kDevices)) << "seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSteps, ::testing::Range(1, 11));

}  // namespace
}  // namespace penstock::node::testing
