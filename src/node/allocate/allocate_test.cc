#include "node/allocate/allocate.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/allocate/choose.h"
#include "node/inventory/testing/acme_inventory.h"
#include "node/share/assignment.h"

namespace penstock::node::allocate {
namespace {

using device::HealthState;
using inventory::AcmeSnapshot;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const auto DialectOf = device::testing::FindAcme;

std::vector<share::Offer> Offers(const inventory::Snapshot& box,
                                 const ledger::Snapshot& ledger = {}) {
  return share::ComputeOffers(
      share::ComputeAssignments({}, {"local"}, {}, box, DialectOf).assignments, box, ledger, {});
}

std::vector<std::string> Ids(const base::Result<std::vector<ledger::Slot>>& slots) {
  std::vector<std::string> ids;
  if (!slots.ok()) return {slots.error().ToString()};
  for (const auto& slot : *slots) ids.push_back(slot.id);
  return ids;
}

TEST(Offer, LeavesOutWhatIsWithheldAndMarksWhatCannotBeUsed) {
  auto box = AcmeSnapshot(4);
  box.devices[0].withheld = "MIG mode is enabled";
  box.devices[1].health = {HealthState::kUnhealthy, "XID 79", {}};
  ledger::Snapshot ledger;
  ledger.outside["G2"] = {{42, 1, "ann", "python"}};
  const auto offers = Offers(box, ledger);
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].resource, "acme.com/gpu");
  ASSERT_EQ(offers[0].slots.size(), 3u);
  EXPECT_EQ(offers[0].slots[0].reason, "XID 79");
  EXPECT_THAT(offers[0].slots[1].reason,
              HasSubstr("in use by a process of ann to which it is not allocated"));
  EXPECT_TRUE(offers[0].slots[2].usable);
}

TEST(Reserve, TakesLinkedDevicesTogether) {
  const auto box = AcmeSnapshot(8);
  ledger::Snapshot ledger;
  ledger.leases.push_back({.id = "x", .slots = {{"G0", "G0"}}});
  EXPECT_THAT(Ids(Reserve({.allocator = "local", .count = 2}, box, ledger, Offers(box))),
              ElementsAre("G2", "G3"));
  EXPECT_THAT(Ids(Reserve({.allocator = "local", .count = 1}, box, {}, Offers(box))),
              ElementsAre("G0"));
}

TEST(Reserve, ALinkThatOneSideKnowsIsEnough) {
  auto box = AcmeSnapshot(4);
  for (const int first : {0, 2}) {
    auto facts = *box.devices[static_cast<std::size_t>(first)].facts;
    facts.links.clear();
    box.devices[static_cast<std::size_t>(first)].facts =
        std::make_shared<const device::Facts>(facts);
  }
  ledger::Snapshot ledger;
  ledger.leases.push_back({.id = "x", .slots = {{"G0", "G0"}}});
  EXPECT_THAT(Ids(Reserve({.allocator = "local", .count = 2}, box, ledger, Offers(box))),
              ElementsAre("G2", "G3"));
}

TEST(Reserve, ByModelAndByName) {
  const auto box = AcmeSnapshot(4);
  EXPECT_THAT(Ids(Reserve({.allocator = "local", .model = "*small"}, box, {}, Offers(box))),
              ElementsAre("G0"));
  EXPECT_THAT(Ids(Reserve({.allocator = "local", .devices = {"3", "G1"}}, box, {}, Offers(box))),
              ElementsAre("G3", "G1"));
  EXPECT_EQ(
      Reserve({.allocator = "local", .devices = {"1", "G1"}}, box, {}, Offers(box)).error().code(),
      Code::kInvalidArgument);
  EXPECT_EQ(Reserve({.allocator = "local", .devices = {"9"}}, box, {}, Offers(box)).error().code(),
            Code::kNotFound);
}

/// Two devices of Acme and two of another vendor, G2 and G3.
inventory::Snapshot TwoVendors() {
  auto box = AcmeSnapshot(4);
  box.vendors.push_back(box.vendors.front());
  box.vendors.back().vendor = "other";
  for (const std::size_t i : {2u, 3u}) {
    auto facts = *box.devices[i].facts;
    facts.vendor = "other";
    facts.memory = base::Mebibytes(1);
    box.devices[i].facts = std::make_shared<const device::Facts>(facts);
  }
  return box;
}

/// As if both were Acme's.
const device::DialectOf kOfBoth = [](std::string_view) { return DialectOf("acme"); };

std::vector<std::string> TakenOf(const Request& request, const ledger::Snapshot& ledger = {}) {
  const auto box = TwoVendors();
  Request local = request;
  local.allocator = "local";
  const auto offers = share::ComputeOffers(
      share::ComputeAssignments({}, {"local"}, {}, box, kOfBoth).assignments, box, ledger, {});
  return Ids(Reserve(local, box, ledger, offers, kOfBoth));
}

TEST(Reserve, TakesDevicesOfOneVendor) {
  EXPECT_THAT(TakenOf({.count = 2}), ElementsAre("G0", "G1"));
  EXPECT_THAT(TakenOf({.count = 2, .vendor = "other"}), ElementsAre("G2", "G3"));
  ledger::Snapshot ledger;
  ledger.leases.push_back({.id = "x", .slots = {{"G0", "G0"}}});
  EXPECT_THAT(TakenOf({.count = 1}, ledger), ElementsAre("G1"));
  EXPECT_THAT(TakenOf({.count = 2}, ledger), ElementsAre("G2", "G3"))
      << "the first has too few free";
  EXPECT_THAT(TakenOf({.count = 2, .devices = {"G1", "G2"}}), ElementsAre("G1", "G2"))
      << "these were asked for";
  EXPECT_THAT(TakenOf({.count = 1, .vendor = "other", .devices = {"3"}}), ElementsAre("G3"));
  EXPECT_THAT(TakenOf({.count = 1, .vendor = "acme", .devices = {"G3"}}),
              ElementsAre(HasSubstr("there is no device G3 of vendor acme on this node")));
  EXPECT_THAT(TakenOf({.count = 1, .least_memory = {1}}), ElementsAre("G2"))
      << "it has the least memory";
}

TEST(DevicesFor, OfAVendorThatHasTooFewNoneHelps) {
  auto box = TwoVendors();
  const auto offers = share::ComputeOffers(
      share::ComputeAssignments({}, {"local"}, {}, box, kOfBoth).assignments, box, {}, {});
  const auto devices = [&](int count, const std::vector<share::Offer>& of) {
    return DevicesFor({.allocator = "local", .count = count}, box, of, kOfBoth);
  };
  EXPECT_THAT(devices(2, offers), ElementsAre("G0", "G1", "G2", "G3"));
  auto moved = *box.devices[2].facts;
  moved.vendor = "acme";
  box.devices[2].facts = std::make_shared<const device::Facts>(moved);
  const auto three_and_one = share::ComputeOffers(
      share::ComputeAssignments({}, {"local"}, {}, box, kOfBoth).assignments, box, {}, {});
  EXPECT_THAT(devices(2, three_and_one), ElementsAre("G0", "G1", "G2"))
      << "a request that waits must not keep the other from those who can use it";
  EXPECT_THAT(devices(1, three_and_one), ElementsAre("G0", "G1", "G2", "G3"));
}

TEST(Reserve, SaysWhyNoVendorHasEnough) {
  EXPECT_THAT(TakenOf({.count = 3}),
              ElementsAre(HasSubstr("requested 3 GPUs, but this node has 2 GPUs of acme and 2 GPUs "
                                    "of other assigned to local users, and a request gets those "
                                    "of one vendor")));
  EXPECT_THAT(TakenOf({.count = 5}), ElementsAre(HasSubstr("requested 5 GPUs, but this node has 4 "
                                                           "GPUs assigned to local users")));
  EXPECT_THAT(TakenOf({.count = 3, .vendor = "other"}),
              ElementsAre(HasSubstr("requested 3 GPUs of vendor other, but this node has 2 GPUs of "
                                    "that vendor assigned to local users")));
  EXPECT_THAT(TakenOf({.count = 1, .vendor = "third"}),
              ElementsAre(HasSubstr("this node has 0 GPUs of that vendor")));
  ledger::Snapshot ledger;
  for (const char* device : {"G0", "G3"})
    ledger.leases.push_back({.id = device, .slots = {{device, device}}, .user = "ann"});
  EXPECT_THAT(TakenOf({.count = 2}, ledger),
              ElementsAre(testing::AllOf(HasSubstr("acme: 2 requested, 1 of 2 free; GPU 0"),
                                         HasSubstr("; other: 2 requested, 1 of 2 free; GPU 3"))));
}

TEST(Reserve, SaysWhetherWaitingHelps) {
  const auto box = AcmeSnapshot(2);
  ledger::Snapshot ledger;
  ledger.leases.push_back({.id = "r-1", .slots = {{"G0", "G0"}}, .user = "ann"});
  const auto later = Reserve({.allocator = "local", .count = 2}, box, ledger, Offers(box));
  EXPECT_EQ(later.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(later.error().message(), HasSubstr("GPU 0 (G0): held by r-1 of ann"));
  EXPECT_EQ(Reserve({.allocator = "local", .count = 3}, box, ledger, Offers(box)).error().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(
      Reserve({.allocator = "kubelet", .devices = {"G0"}}, box, ledger, Offers(box)).error().code(),
      Code::kFailedPrecondition);
  EXPECT_EQ(Reserve({.allocator = "local", .count = 0}, box, ledger, Offers(box)).error().code(),
            Code::kInvalidArgument);
}

TEST(Reserve, ReportsWhatNoOneCanBeGivenFromWhatSomeoneHolds) {
  auto box = AcmeSnapshot(4);
  ledger::Snapshot ledger;
  ledger.leases.push_back({.id = "r-1", .slots = {{"G0", "G0"}}, .user = "ann"});
  const auto code = [&](const Request& request) {
    return Reserve(request, box, ledger, Offers(box, ledger)).error().code();
  };
  const Request all{.allocator = "local", .count = 4}, three{.allocator = "local", .count = 3},
      named{.allocator = "local", .devices = {"0", "3"}};
  EXPECT_EQ(code(all), Code::kResourceExhausted);

  box.devices[3].health = {HealthState::kUnhealthy, "XID 79", {}};
  const auto in_vain = Reserve(all, box, ledger, Offers(box, ledger));
  EXPECT_EQ(in_vain.error().code(), Code::kUnavailable);
  EXPECT_THAT(in_vain.error().message(), HasSubstr("GPU 3 (G3): XID 79"));
  EXPECT_EQ(code(three), Code::kResourceExhausted) << "there are three without it";
  EXPECT_EQ(code(named), Code::kUnavailable);

  box.devices[3].health = {HealthState::kHealthy, "", {}};
  EXPECT_EQ(code(named), Code::kResourceExhausted);
  ledger.outside["G3"] = {{42, 1, "bob", "python"}};
  EXPECT_EQ(code(all), Code::kUnavailable)
      << "nobody handed it to them, so nobody knows when they end";
}

TEST(Reserve, WaitsForDevicesThatWereNotLookedAtYet) {
  auto box = AcmeSnapshot(4);
  for (std::size_t i = 1; i < 4; ++i)
    box.devices[i].health = {HealthState::kUnknown, "not looked at yet", {}};
  const auto code = [&](const Request& request) {
    return Reserve(request, box, {}, Offers(box)).error().code();
  };
  EXPECT_EQ(code({.allocator = "local", .count = 4}), Code::kResourceExhausted);
  EXPECT_EQ(code({.allocator = "local", .count = 9}), Code::kResourceExhausted)
      << "nobody knows yet how many there will be";
  EXPECT_EQ(code({.allocator = "local", .devices = {"2"}}), Code::kResourceExhausted);
  EXPECT_EQ(code({.allocator = "local", .devices = {"9"}}), Code::kNotFound);
  EXPECT_THAT(Ids(Reserve({.allocator = "local"}, box, {}, Offers(box))), ElementsAre("G0"));

  for (auto& entry : box.devices) entry.read_at += std::chrono::seconds(1);
  EXPECT_EQ(code({.allocator = "local", .count = 4}), Code::kUnavailable)
      << "looked at, and they did not answer";
  EXPECT_EQ(code({.allocator = "local", .count = 9}), Code::kFailedPrecondition);
  EXPECT_EQ(Reserve({.allocator = "local", .devices = {"2"}}, {}, {}, {}).error().code(),
            Code::kResourceExhausted)
      << "no device was found yet";
}

std::vector<std::string> Preferred(const std::vector<std::string>& available,
                                   const std::vector<std::string>& must_include, std::size_t size,
                                   const inventory::Snapshot& box) {
  return allocate::Prefer({available, must_include, size}, Offers(box)[0],
                          api::SharePolicy::kDistributed, box, {});
}

TEST(Prefer, HonoursWhatMustBeInAndIsTheSameForAnyOrder) {
  const auto box = AcmeSnapshot(8);
  std::vector<std::string> available = {"G7", "G1", "G2", "G3", "G6", "G0"};
  EXPECT_THAT(Preferred(available, {"G7"}, 2, box), ElementsAre("G6", "G7"));
  const auto first = Preferred(available, {}, 4, box);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(available.begin(), available.end(), random);
    EXPECT_EQ(Preferred(available, {}, 4, box), first);
  }
}

TEST(Prefer, IsEmptyWhenInDoubt) {
  const auto box = AcmeSnapshot(2);
  EXPECT_THAT(Preferred({"G0", "unknown"}, {}, 1, box), IsEmpty());
  EXPECT_THAT(Preferred({"G0"}, {"G1"}, 1, box), IsEmpty());
  EXPECT_THAT(Preferred({"G0", "G1"}, {}, 3, box), IsEmpty());
  EXPECT_THAT(Preferred({"G0", "G1"}, {}, 0, box), IsEmpty());
}

TEST(Commit, GivesEachSharedFileOnceAndSortsByIndex) {
  const auto box = AcmeSnapshot(4);
  const auto edits =
      Commit({{"G3", "G3"}, {"G1", "G1"}}, ConsumerKind::kContainer, box, DialectOf, {});
  ASSERT_TRUE(edits.ok());
  EXPECT_EQ(edits->environment.at("ACME"), "G1,G3");
  EXPECT_EQ(edits->files.size(), 3u);
  EXPECT_EQ(Commit({{"G9", "G9"}}, ConsumerKind::kContainer, box, DialectOf, {}).error().code(),
            Code::kNotFound);
}

TEST(AccessFor, GuardsAllAndAdmitsTheSlotsOwn) {
  const auto access = AccessFor({{"G2", "G2"}}, AcmeSnapshot(4));
  EXPECT_THAT(access.guarded, ElementsAre(device::DeviceNumbers{195, 0, 253}));
  EXPECT_THAT(access.admitted, ElementsAre(device::DeviceNumbers{195, 2, 2}));
}

TEST(AccessFor, GuardsAllFilesThatLeadToADevice) {
  auto box = AcmeSnapshot(2);
  for (std::size_t i = 0; i < 2; ++i) {
    device::Facts facts = *box.devices[i].facts;
    facts.files.push_back(
        {"/dev/dri/renderD" + std::to_string(128 + i), 226, static_cast<std::uint32_t>(128 + i)});
    box.devices[i].facts = std::make_shared<device::Facts>(facts);
  }
  const auto access = AccessFor({{"G1", "G1"}}, box);
  EXPECT_THAT(access.guarded,
              ElementsAre(device::DeviceNumbers{195, 0, 253}, device::DeviceNumbers{226, 128, 128},
                          device::DeviceNumbers{226, 129, 129}));
  EXPECT_THAT(access.admitted,
              ElementsAre(device::DeviceNumbers{195, 1, 1}, device::DeviceNumbers{226, 129, 129}));
}

}  // namespace
}  // namespace penstock::node::allocate
