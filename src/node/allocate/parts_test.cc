// Tests requests for parts of devices: which parts they get, why they get none, and what parts
// count.
#include <bit>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/allocate/allocate.h"
#include "node/allocate/explain.h"
#include "node/allocate/outlook.h"
#include "node/allocate/packing.h"
#include "node/allocate/ranked.h"
#include "node/inventory/testing/acme_parts.h"
#include "node/ledger/capacity.h"
#include "node/share/assignment.h"

namespace penstock::node::allocate {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string k1g = "1g.5gb", k2g = "2g.10gb", k3g = "3g.20gb";

/// A machine of which all devices are for local users.
class Divided {
 public:
  explicit Divided(const std::vector<std::vector<std::string>>& divisions,
                   api::PartsStrategy strategy = api::PartsStrategy::kMixed) {
    inventory::Inventory inventory;
    const auto facts = inventory::AcmeWithParts(divisions);
    inventory::ReportHealthy(inventory, facts, {});
    box = *inventory.published().Get();
    api::NodeConfig config;
    config.parts = strategy;
    assignments = share::ComputeAssignments(config, {"local"}, {}, box, device::testing::FindAcme)
                      .assignments;
  }

  std::vector<share::Offer> Offers() const {
    return share::ComputeOffers(assignments, box, *ledger.Get(), {});
  }

  base::Result<std::vector<ledger::Slot>> Try(Request request) const {
    request.allocator = "local";
    return Reserve(request, box, *ledger.Get(), Offers(), device::testing::FindAcme);
  }

  /// Reserves and allocates; the error in place of ids.
  std::vector<std::string> Take(const Request& request) {
    const auto slots = Try(request);
    if (!slots.ok()) return {slots.error().ToString()};
    std::vector<std::string> ids;
    for (const auto& slot : *slots) ids.push_back(slot.id);
    ledger::Lease lease{.id = "r-" + std::to_string(++leases),
                        .allocator = "local",
                        .slots = *slots,
                        .user = "ann"};
    const auto added = ledger.Add(std::move(lease));
    return added.ok() ? ids : std::vector{added.error().ToString()};
  }

  base::Error Refused(const Request& request) const {
    const auto slots = Try(request);
    return slots.ok() ? Error(Code::kInternal, "it was not refused") : slots.error();
  }

  double Amount(Request request) const {
    request.allocator = "local";
    return AmountOf(request, box, Offers(), device::testing::FindAcme);
  }

  inventory::Snapshot box;
  share::Assignments assignments;
  ledger::Ledger ledger;
  int leases = 0;
};

// --- Which parts

TEST(ReserveParts, ARequestForAProfileGetsAPartOfIt) {
  Divided node({{k2g, k1g, k1g}, {}});
  EXPECT_THAT(node.Take({.profile = k1g}), ElementsAre("G0.1"));
  EXPECT_THAT(node.Take({.profile = "1G.5GB"}), ElementsAre("G0.2")) << "as the dialect reads it";
  EXPECT_EQ(node.Refused({.profile = k1g}).code(), Code::kResourceExhausted);
  EXPECT_THAT(node.Take({.profile = k2g}), ElementsAre("G0.0"));
}

TEST(ReserveParts, WithoutTheDialectOnlyTheDriversOwnNameIsKnown) {
  const Divided node({{k1g}});
  const Request own{.allocator = "local", .profile = k1g},
      other{.allocator = "local", .profile = "1G.5GB"};
  EXPECT_TRUE(Reserve(own, node.box, {}, node.Offers()).ok());
  EXPECT_EQ(Reserve(other, node.box, {}, node.Offers()).error().code(), Code::kFailedPrecondition);
}

TEST(ReserveParts, ARequestThatNamesNoneGetsWholeDevices) {
  Divided node({{k3g, k3g}, {}});
  EXPECT_THAT(node.Take({}), ElementsAre("G1"));
  const auto refused = Divided({{k3g, k1g}}).Refused({.count = 1});
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "requested 1 GPU, but this node has 0 GPUs assigned to local users; there are parts, "
            "which are requested by their profile: 1g.5gb, 3g.20gb");
}

TEST(ReserveParts, PartsThatAreOfferedAsDevicesAreDevices) {
  Divided node({{k3g, k3g}, {k3g, k3g}}, api::PartsStrategy::kSingle);
  EXPECT_THAT(node.Take({.count = 2}), ElementsAre("G0.0", "G0.1"));
  EXPECT_THAT(node.Take({.profile = k3g}), ElementsAre("G1.0"));
}

TEST(ReserveParts, OfAModelOfANumberAndShares) {
  Divided node({{k1g, k1g}, {k1g}});
  EXPECT_THAT(node.Take({.model = "*Big", .profile = k1g}), ElementsAre("G1.0"));
  EXPECT_THAT(
      node.Refused({.count = 2, .model = "*Big", .profile = k1g}).message(),
      HasSubstr("requested 2 parts 1g.5gb of model *Big, but this node has 1 part 1g.5gb of "
                "that model assigned to local users"));
  EXPECT_THAT(node.Take({.share = 2, .profile = k1g}), ElementsAre("G0.0::0"));
  EXPECT_THAT(node.Take({.share = 2, .profile = k1g}), ElementsAre("G0.0::1"));
  EXPECT_THAT(node.Take({.devices = {"0:1"}}), ElementsAre("G0.1"));
}

// --- Why none

TEST(ReserveParts, ReportsWhoHoldsThem) {
  Divided node({{k1g, k1g}, {}});
  node.Take({.count = 2, .profile = k1g});
  const auto refused = node.Refused({.profile = k1g});
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "1 requested, 0 of 2 free; GPU 0:0 (G0.0): held by r-1 of ann; GPU 0:1 (G0.1): held by "
            "r-1 of ann");
  Divided many({{k1g, k1g, k1g, k1g, k1g, k1g}});
  many.Take({.count = 6, .profile = k1g});
  EXPECT_THAT(many.Refused({.profile = k1g}).message(), HasSubstr("; and 2 more"));
}

TEST(ReserveParts, ReportsAProfileThatNoDeviceIsDividedInto) {
  const Divided node({{k1g, k1g, k3g}, {}});
  const auto refused = node.Refused({.profile = "1g.6gb"});
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "no GPU of this node is divided into 1g.6gb (did you mean 1g.5gb?); there are 2 of "
            "1g.5gb and 1 of 3g.20gb");
  EXPECT_EQ(
      node.Refused({.profile = "2g.10gb"}).message(),
      "no GPU of this node is divided into 2g.10gb; GPU 0 (G0) and 1 more can be; there are 2 "
      "of 1g.5gb and 1 of 3g.20gb");
  const Divided whole(std::vector<std::vector<std::string>>(1));
  EXPECT_EQ(whole.Refused({.profile = "7g.80gb"}).message(),
            "no GPU of this node is divided into parts, and 7g.80gb was requested");
  const auto no_name = node.Refused({.profile = "large"});
  EXPECT_EQ(no_name.code(), Code::kInvalidArgument);
  EXPECT_EQ(no_name.message(), "\"large\" is no profile");
}

TEST(ReserveParts, ReportsPartsOfAnotherAllocator) {
  Divided node({{k1g, k1g}});
  node.assignments["G0.1"].allocator = "kubelet";
  const auto refused = node.Refused({.count = 2, .profile = k1g});
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_EQ(
      refused.message(),
      "requested 2 parts 1g.5gb, but this node has 1 part 1g.5gb assigned to local users; GPU "
      "0:1 (G0.1) is not among them (see `penstock status`)");
}

TEST(ReserveParts, WaitsForPartsThatWereNotReadYet) {
  Divided node({{k1g}});
  for (inventory::Entry& entry : node.box.devices)
    if (entry.facts->id == "G0.0") entry.health = {};
  EXPECT_EQ(node.Refused({.profile = k1g}).code(), Code::kResourceExhausted);
}

// --- Memory

TEST(ReserveMemory, GetsTheSmallestThatHasItAndIsFree) {
  Divided node({{k3g, k2g, k1g}, {}});
  const Request eight{.least_memory = base::Mebibytes(8u << 10)};
  EXPECT_THAT(node.Take(eight), ElementsAre("G0.1"));
  EXPECT_THAT(node.Take(eight), ElementsAre("G0.0"));
  EXPECT_THAT(node.Take(eight), ElementsAre("G1")) << "a whole device, where no part is left";
  const auto refused = node.Refused(eight);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("1 requested, 0 of 3 free"), HasSubstr("G0.1"),
                                       HasSubstr("G0.0"), HasSubstr("G1"), Not(HasSubstr("G0.2"))));
}

TEST(ReserveMemory, OfTwoTakesTheTwoSmallest) {
  Divided node({{}, {k3g, k2g, k2g}});
  EXPECT_THAT(node.Take({.count = 2, .least_memory = base::Mebibytes(10u << 10)}),
              ElementsAre("G1.1", "G1.2"));
  EXPECT_THAT(node.Take({.count = 2, .least_memory = base::Mebibytes(10u << 10)}),
              ElementsAre("G0", "G1.0"));
}

TEST(ReserveMemory, ReportsTheMostThatThereIs) {
  const Divided node({{k3g}, {k1g}});
  const auto refused = node.Refused({.least_memory = base::Mebibytes(80u << 10)});
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "requested 1 GPU with at least 80 GiB of memory, but this node has 0 GPUs with so much "
            "memory assigned to local users; the most is 20 GiB, of GPU 0:0 (G0.0)");
  EXPECT_EQ(node.Refused({.least_memory = {~std::uint64_t{0}}}).code(), Code::kFailedPrecondition);
  EXPECT_EQ(node.Refused({.share = 2, .least_memory = {1}}).code(), Code::kInvalidArgument);
}

// --- Packing

TEST(ReserveParts, TakesDevicesInUseBeforeOthers) {
  Divided node({{k1g, k1g, k1g}, {k1g, k1g, k3g}, {k1g}});
  node.Take({.devices = {"1:2"}});
  EXPECT_THAT(node.Take({.profile = k1g}), ElementsAre("G1.0"));
  EXPECT_THAT(node.Take({.profile = k1g}), ElementsAre("G1.1"));
  EXPECT_THAT(node.Take({.profile = k1g}), ElementsAre("G2.0"))
      << "of the unused devices the one with the fewest parts that are enough";
  EXPECT_THAT(node.Take({.count = 2, .profile = k1g}), ElementsAre("G0.0", "G0.1"));
}

TEST(ReserveParts, BeginsAsFewDevicesAsPossible) {
  Divided node({{k1g, k1g}, {k1g}, {k1g, k1g, k1g}});
  EXPECT_THAT(node.Take({.count = 3, .profile = k1g}), ElementsAre("G2.0", "G2.1", "G2.2"));
  Divided more({{k1g, k1g}, {k1g}, {k1g, k1g, k1g}});
  EXPECT_THAT(more.Take({.count = 5, .profile = k1g}),
              ElementsAre("G0.0", "G0.1", "G2.0", "G2.1", "G2.2"));
}

std::vector<std::string> Preferred(const Divided& node, const std::vector<std::string>& available,
                                   std::size_t size, std::vector<std::string> must = {}) {
  for (const share::Offer& offer : node.Offers())
    if (offer.resource == "acme.com/1g.5gb")
      return Prefer({available, std::move(must), size}, offer, api::SharePolicy::kDistributed,
                    node.box, *node.ledger.Get());
  return {"there is no such offer"};
}

TEST(PreferParts, KnowsWhatOthersHold) {
  Divided node({{k1g, k1g}, {k1g, k1g, k3g}});
  EXPECT_THAT(Preferred(node, {"G0.0", "G0.1", "G1.0", "G1.1"}, 1), ElementsAre("G0.0"));
  node.Take({.profile = k3g});
  EXPECT_THAT(Preferred(node, {"G0.0", "G0.1", "G1.0", "G1.1"}, 1), ElementsAre("G1.0"))
      << "under another name";
  EXPECT_THAT(Preferred(node, {"G0.0", "G0.1", "G1.0", "G1.1"}, 2, {"G0.1"}),
              ElementsAre("G0.1", "G1.0"));
}

TEST(PreferParts, KnowsWhatTheKubeletGaveAwayBeforeTheLedgerDoes) {
  const Divided node({{k1g, k1g}, {k1g, k1g}});
  EXPECT_THAT(Preferred(node, {"G0.0", "G0.1", "G1.1"}, 1), ElementsAre("G1.1"));
  EXPECT_THAT(Preferred(node, {"G0.0", "G0.1", "G1.1"}, 2, {"G0.0"}), ElementsAre("G0.0", "G0.1"))
      << "of both one part is taken: the first";
}

TEST(PreferParts, IsTheSameForAnyOrderOfTheQuestion) {
  const Divided node({{k1g, k1g}, {k1g, k1g, k1g}, {k1g}});
  std::vector<std::string> available = {"G0.0", "G0.1", "G1.0", "G1.1", "G1.2", "G2.0"};
  std::mt19937 random(1);
  for (std::size_t size = 1; size <= available.size(); ++size) {
    const auto first = Preferred(node, available, size);
    EXPECT_EQ(first.size(), size);
    for (int i = 0; i < 5; ++i) {
      std::shuffle(available.begin(), available.end(), random);
      EXPECT_EQ(Preferred(node, available, size), first);
    }
  }
}

/// Which of the devices have a part in the set; bits of `set` are positions.
std::set<std::string> DevicesOf(const std::vector<const ledger::Slot*>& slots, unsigned set) {
  std::set<std::string> devices;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if ((set >> i & 1u) != 0) devices.insert(WholeOf(*slots[i]));
  return devices;
}

TEST(ChoosePacked, BeginsNoMoreDevicesThanAnyOtherChoice) {
  std::mt19937 random(20);
  for (int round = 0; round < 300; ++round) {
    std::vector<ledger::Slot> free;
    PartsInUse in_use;
    std::set<std::string> used;
    for (int device = 0; device < 4; ++device) {
      const std::string whole = "G" + std::to_string(device);
      const auto part = [&whole](int i) {
        const std::string id = whole + "." + std::to_string(i);
        return ledger::Slot{.id = id,
                            .device = id,
                            .ancestors = {{whole, {base::Mebibytes(40), 8}}},
                            .capacity = {base::Mebibytes(5), 1}};
      };
      const int parts = static_cast<int>(random() % 4);
      for (int i = 0; i < parts; ++i) free.push_back(part(i));
      if (random() % 3 > 0) continue;
      in_use.Add(part(7));
      used.insert(whole);
    }
    std::vector<const ledger::Slot*> slots;
    for (const auto& slot : free) slots.push_back(&slot);
    const auto begun = [&](unsigned set) {
      const auto devices = DevicesOf(slots, set);
      return std::ranges::count_if(devices, [&](const auto& one) { return !used.contains(one); });
    };
    for (std::size_t size = 1; size <= slots.size(); ++size) {
      PartsInUse now = in_use;
      unsigned chosen = 0;
      for (const std::size_t i : ChoosePacked(slots, size, now)) chosen |= 1u << i;
      ASSERT_EQ(std::popcount(chosen), static_cast<int>(size));
      for (unsigned other = 0; other < 1u << slots.size(); ++other)
        if (std::popcount(other) == static_cast<int>(size)) {
          ASSERT_LE(begun(chosen), begun(other)) << "round " << round << ", size " << size;
        }
    }
  }
}

TEST(ReserveParts, ArrivalsAndDeparturesNeverExceedTheParts) {
  std::mt19937 random(4);
  Divided node({{k1g, k1g, k2g}, {k1g, k3g}, {}, {k2g, k2g, k2g, k1g}});
  const std::map<std::string, std::size_t> all = {{k1g, 4}, {k2g, 4}, {k3g, 1}};
  std::map<std::string, std::map<std::string, std::size_t>> held;  // lease → profile → count
  for (int step = 0; step < 2000; ++step) {
    if (!held.empty() && random() % 2 == 0) {
      const auto lease = std::next(held.begin(), static_cast<long>(random() % held.size()));
      node.ledger.Release(lease->first);
      held.erase(lease);
      continue;
    }
    const auto kind = std::next(all.begin(), static_cast<long>(random() % all.size()));
    const auto count = 1 + random() % 3;
    std::size_t taken = 0;
    for (const auto& [lease, profiles] : held)
      if (const auto found = profiles.find(kind->first); found != profiles.end())
        taken += found->second;
    const auto slots = node.Try({.count = static_cast<int>(count), .profile = kind->first});
    ASSERT_EQ(slots.ok(), taken + count <= kind->second) << kind->first << " " << count;
    if (!slots.ok()) {
      EXPECT_EQ(slots.error().code(),
                count > kind->second ? Code::kFailedPrecondition : Code::kResourceExhausted);
      continue;
    }
    for (const auto& slot : *slots)
      EXPECT_EQ(node.box.Find(slot.device)->facts->profile, kind->first);
    const std::string id = "r" + std::to_string(step);
    ASSERT_TRUE(node.ledger.Add({.id = id, .allocator = "local", .slots = *slots}).ok());
    held[id][kind->first] = count;
  }
}

/// Eight devices with parts of two profiles, of which some are held.
class Arrivals {
 public:
  Arrivals() : node_(std::vector(8, std::vector{k1g, k1g, k1g, k1g, k2g, k2g})) {
    for (const share::Offer& offer : node_.Offers())
      for (const share::OfferedSlot& offered : offer.slots) {
        slots_.push_back(offered.slot);
        facts_.push_back(node_.box.Find(offered.slot.device)->facts.get());
      }
    links_.emplace(facts_);
  }

  /// The devices of which no part is held, summed over requests for one or two parts that arrive
  /// and end at random, while about `most` parts are held.
  std::size_t UnusedDevices(bool packed, std::size_t most) {
    std::mt19937 random(9);
    std::vector<std::vector<std::size_t>> requests;
    held_.clear();
    std::size_t unused = 0;
    for (int step = 0; step < 3000; ++step) {
      const auto ends = random(), which = random(), large = random(), size = random();
      if (!requests.empty() && (held_.size() >= most || ends % 3 == 0)) {
        const auto request = requests.begin() + static_cast<long>(which % requests.size());
        for (const std::size_t i : *request) held_.erase(i);
        requests.erase(request);
      } else {
        requests.push_back(Choose(large % 3 == 0 ? k2g : k1g, 1 + size % 2, packed));
        held_.insert(requests.back().begin(), requests.back().end());
      }
      std::set<std::string> used;
      for (const std::size_t i : held_) used.insert(WholeOf(slots_[i]));
      unused += 8 - used.size();
    }
    return unused;
  }

 private:
  std::vector<std::size_t> Choose(const std::string& profile, std::size_t size, bool packed) {
    PartsInUse in_use;
    std::vector<Ranked> candidates;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (held_.contains(i))
        in_use.Add(slots_[i]);
      else if (facts_[i]->profile == profile)
        candidates.push_back({i, 0, packed ? &slots_[i] : nullptr});
    }
    return ChooseRanked(*links_, std::move(candidates), {}, size, in_use);
  }

  const Divided node_;
  std::vector<ledger::Slot> slots_;
  std::vector<const device::Facts*> facts_;
  std::optional<DeviceLinks> links_;
  std::set<std::size_t> held_;
};

TEST(ChoosePacked, LeavesMoreDevicesUnusedThanTheChoiceByLinks) {
  Arrivals arrivals;
  for (const std::size_t most : {10, 20, 30}) {
    const std::size_t by_links = arrivals.UnusedDevices(false, most);
    EXPECT_GT(arrivals.UnusedDevices(true, most), by_links) << most << " of 48 parts";
    EXPECT_GT(by_links, 0u);
  }
}

// --- What they count

TEST(AmountOf, APartCountsAsTheFractionOfItsDevice) {
  Divided node({{k1g, k2g, k3g}, {}});
  EXPECT_DOUBLE_EQ(node.Amount({}), 1);
  EXPECT_DOUBLE_EQ(node.Amount({.count = 2, .share = 4}), 0.5);
  EXPECT_DOUBLE_EQ(node.Amount({.profile = k1g}), 0.125);
  EXPECT_DOUBLE_EQ(node.Amount({.count = 2, .share = 2, .profile = k1g}), 0.125);
  EXPECT_DOUBLE_EQ(node.Amount({.profile = k3g}), 0.5);
  EXPECT_DOUBLE_EQ(node.Amount({.devices = {"0:1"}}), 0.25);
  EXPECT_DOUBLE_EQ(node.Amount({.least_memory = {1}}), 1) << "it may get a whole device";
  EXPECT_DOUBLE_EQ(node.Amount({.profile = "9g.90gb"}), 1) << "nothing could serve it";
  node.Take({.profile = k3g});
  node.Take({.share = 2, .profile = k1g});
  EXPECT_DOUBLE_EQ(DevicesHeld(node.ledger.Get()->leases.at(0)), 0.5);
  EXPECT_DOUBLE_EQ(DevicesHeld(node.ledger.Get()->leases.at(1)), 0.0625);
}

TEST(FractionOf, IsOfTheWholeDeviceAndAtMostOne) {
  ledger::Slot slot{.id = "a", .device = "a"};
  EXPECT_DOUBLE_EQ(ledger::FractionOf(slot), 1);
  slot.ancestors = {{"outer", {base::Mebibytes(20), 4}}, {"whole", {base::Mebibytes(40), 8}}};
  EXPECT_DOUBLE_EQ(ledger::FractionOf(slot), 1) << "nothing is known";
  slot.capacity = {base::Mebibytes(5), 2};
  EXPECT_DOUBLE_EQ(ledger::FractionOf(slot), 0.25);
  slot.capacity = {base::Mebibytes(400), 2};
  EXPECT_DOUBLE_EQ(ledger::FractionOf(slot), 1);
}

TEST(DevicesFor, ARequestForAPartLeavesOtherDevicesToOthers) {
  const Divided node({{k1g, k2g}, {k1g}, {}});
  const auto could_use = [&node](const Request& request) {
    return DevicesFor(request, node.box, node.Offers(), device::testing::FindAcme);
  };
  EXPECT_THAT(could_use({.allocator = "local", .profile = k1g}), ElementsAre("G0.0", "G1.0"));
  EXPECT_THAT(could_use({.allocator = "local"}), ElementsAre("G2"));
  EXPECT_THAT(could_use({.allocator = "local", .least_memory = base::Mebibytes(10u << 10)}),
              ElementsAre("G0.1", "G2"));
  EXPECT_THAT(could_use({.allocator = "local", .profile = "9g.90gb"}), IsEmpty());
}

TEST(Foresee, APartIsForeseenWhenItsHolderEnds) {
  Divided node({{k1g}, {k2g}});
  node.Take({.profile = k1g});
  node.Take({.profile = k2g});
  const base::TimePoint now{};
  const auto offers = node.Offers();
  const auto ledger = node.ledger.Get();
  const Outlook outlook{
      node.box,
      *ledger,
      offers,
      {{"r-1", now + std::chrono::seconds(50)}, {"r-2", now + std::chrono::seconds(9)}},
      device::testing::FindAcme};
  const auto start = Foresee({.allocator = "local", .profile = "1G.5GB"}, outlook, now);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->at, now + std::chrono::seconds(50));
  EXPECT_EQ(start->slots.at(0).device, "G0.0");
}

TEST(ExplainParts, ShowsWhatARequestWouldGet) {
  Divided node({{k1g, k1g}, {k1g, k3g}});
  node.Take({.profile = k3g});
  const auto explained = Explain(node.Offers(), node.assignments, api::SharePolicy::kDistributed,
                                 node.box, *node.ledger.Get());
  const auto of = [&](std::size_t size) {
    for (const auto& choice : explained.choices)
      if (choice.resource == "acme.com/1g.5gb" && choice.size == size) return choice;
    return api::PreviewedChoice{};
  };
  EXPECT_THAT(of(1).devices, ElementsAre("G1.0"));
  EXPECT_EQ(of(1).reason, "parts, packed: of the most used devices");
  EXPECT_EQ(of(2).links.at(0).pairs.at(0), "0:0-1:0");
  EXPECT_EQ(explained.devices.at(0).number, "0:0");
}

}  // namespace
}  // namespace penstock::node::allocate
