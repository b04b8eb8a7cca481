#include "node/allocate/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/inventory/testing/acme_inventory.h"

namespace penstock::node::allocate {
namespace {

using inventory::AcmeSnapshot;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

share::Offer Whole(const inventory::Snapshot& box) {
  share::Offer offer{.resource = "acme.com/gpu", .allocator = "local"};
  for (const auto& entry : box.devices)
    offer.slots.push_back({{entry.facts->id, entry.facts->id, "acme.com/gpu"}, true, ""});
  return offer;
}

TEST(Explain, ReportsTheSetOfEverySizeAndItsLinks) {
  const auto box = AcmeSnapshot(4);
  const auto explained = Explain({Whole(box)}, {}, api::SharePolicy::kDistributed, box, {});
  EXPECT_THAT(explained.devices, SizeIs(4));
  ASSERT_THAT(explained.choices, SizeIs(4));
  EXPECT_THAT(explained.choices[0].devices, ElementsAre("G0"));
  EXPECT_THAT(explained.choices[0].links, IsEmpty());
  const api::PreviewedChoice& pair = explained.choices[1];
  EXPECT_EQ(pair.size, 2u);
  EXPECT_EQ(pair.allocator, "local");
  EXPECT_THAT(pair.devices, ElementsAre("G0", "G1"));
  EXPECT_THAT(pair.links,
              ElementsAre(api::PreviewedLink{"4 fabric links, one PCIe switch", {"0-1"}}));
  EXPECT_EQ(pair.within, pair.left) << "as good a pair is left";
  EXPECT_TRUE(pair.exact);
  EXPECT_THAT(explained.choices[3].links,
              ElementsAre(api::PreviewedLink{"4 fabric links, one PCIe switch", {"0-1", "2-3"}},
                          api::PreviewedLink{"across NUMA nodes", {"0-2", "0-3", "1-2", "1-3"}}));
  EXPECT_EQ(explained.choices[3].left, 0);
}

TEST(Explain, ReportsWhatIsNotFreeAndWhyThereIsNoLargerSet) {
  const auto box = AcmeSnapshot(4);
  auto offer = Whole(box);
  offer.slots[1].usable = false;
  offer.slots[1].reason = "XID 79";
  ledger::Snapshot ledger;
  ledger.leases.push_back({.id = "r-1", .slots = {{"G3", "G3"}}, .user = "ann"});
  const auto explained = Explain({offer}, {}, api::SharePolicy::kDistributed, box, ledger);
  EXPECT_EQ(explained.devices[0].free, 1u);
  EXPECT_EQ(explained.devices[1].reason, "XID 79");
  EXPECT_EQ(explained.devices[3].reason, "held by r-1 of ann");
  ASSERT_THAT(explained.choices, SizeIs(3));
  EXPECT_THAT(explained.choices[1].devices, ElementsAre("G0", "G2"));
  EXPECT_THAT(explained.choices[2].devices, IsEmpty());
  EXPECT_EQ(explained.choices[2].size, 3u);
  EXPECT_EQ(explained.choices[2].reason, "2 of 4 are free; GPU 1: XID 79");
}

TEST(Explain, OfSharesReportsThePolicy) {
  const auto box = AcmeSnapshot(4);
  share::Offer offer{.resource = "acme.com/gpu", .allocator = "kubelet"};
  for (const auto& entry : box.devices)
    for (int share = 0; share < 3; ++share)
      offer.slots.push_back({{entry.facts->id + "::" + std::to_string(share),
                              entry.facts->id,
                              "acme.com/gpu",
                              {device::Sharing::kTimeSlicing, 3}},
                             true,
                             ""});
  auto explained = Explain({offer}, {}, api::SharePolicy::kDistributed, box, {});
  EXPECT_THAT(explained.devices, SizeIs(4));
  EXPECT_EQ(explained.devices[2].slots, 3u);
  ASSERT_THAT(explained.choices, SizeIs(4)) << "one for each device";
  EXPECT_THAT(explained.choices[3].reason, testing::StartsWith("shares, distributed"));
  offer.single = true;
  EXPECT_THAT(Explain({offer}, {}, api::SharePolicy::kDistributed, box, {}).choices, SizeIs(1))
      << "more is never given";
}

TEST(Explain, ReportsWhyADeviceIsNotOffered) {
  auto box = AcmeSnapshot(4);
  auto offer = Whole(box);
  offer.slots.erase(offer.slots.begin(), offer.slots.begin() + 3);
  box.devices[1].withheld = "its mode is not supported";
  box.devices[2].health.state = device::HealthState::kGone;
  const share::Assignments assignments = {{"G0", {.reason = "moves to local users"}},
                                          {"G1", {.allocator = "local"}}};
  const auto explained = Explain({offer}, assignments, api::SharePolicy::kDistributed, box, {});
  ASSERT_THAT(explained.devices, SizeIs(3));
  EXPECT_EQ(explained.devices[0].id, "G3");
  EXPECT_EQ(explained.devices[1], (api::PreviewedDevice{.id = "G0",
                                                        .index = 0,
                                                        .model = box.devices[0].facts->model,
                                                        .reason = "moves to local users"}));
  EXPECT_EQ(explained.devices[2].reason, "its mode is not supported");
  EXPECT_EQ(Explain({}, {}, api::SharePolicy::kDistributed, AcmeSnapshot(1), {}).devices[0].reason,
            "assigned to none");
}

TEST(Explain, OfNothingIsNothing) {
  const auto box = AcmeSnapshot(0);
  EXPECT_THAT(Explain({}, {}, api::SharePolicy::kDistributed, box, {}).devices, IsEmpty());
  EXPECT_THAT(Explain({{.resource = "acme.com/gpu", .allocator = "local"}}, {},
                      api::SharePolicy::kDistributed, box, {})
                  .choices,
              IsEmpty());
}

}  // namespace
}  // namespace penstock::node::allocate
