// Tests when requests can be served, on a machine with linked pairs.
#include "node/allocate/outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/inventory/testing/acme_inventory.h"
#include "node/share/assignment.h"

namespace penstock::node::allocate {
namespace {

using std::chrono::hours;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

constexpr base::TimePoint kNow{hours(100)};

class OutlookTest : public testing::Test {
 protected:
  OutlookTest() {
    for (inventory::Entry& entry : box_.devices) entry.read_at = base::WallTime(hours(1));
  }

  void Hold(const std::string& device, const std::string& user = "ann", device::Shape shape = {}) {
    const std::string slot = share::SlotId(device, shape, 0);
    ledger_.leases.push_back({.id = "r-" + device,
                              .allocator = "local",
                              .slots = {{slot, device, "acme.com/gpu", shape}},
                              .user = user});
  }
  Outlook View(std::map<std::string, base::TimePoint> ends) {
    const auto desired =
        share::ComputeAssignments({}, {"local"}, {}, box_, device::testing::FindAcme);
    offers_ = share::ComputeOffers(desired.assignments, box_, ledger_, {});
    return {box_, ledger_, offers_, std::move(ends)};
  }
  static Request Of(int count, int share = 1) {
    Request request;
    request.allocator = "local";
    request.count = count;
    request.share = share;
    return request;
  }

  inventory::Snapshot box_ = inventory::AcmeSnapshot(4);
  ledger::Snapshot ledger_;
  std::vector<share::Offer> offers_;
};

TEST_F(OutlookTest, ServesOnceEnoughHaveEnded) {
  for (const char* device : {"G0", "G1", "G2", "G3"}) Hold(device);
  const auto view =
      View({{"r-G0", kNow + hours(3)}, {"r-G2", kNow + hours(1)}, {"r-G3", kNow + hours(2)}});
  EXPECT_EQ(Foresee(Of(1), view, kNow)->at, kNow + hours(1));
  const auto two = Foresee(Of(2), view, kNow);
  EXPECT_EQ(two->at, kNow + hours(2));
  EXPECT_EQ(two->slots.at(0).device, "G2");
  EXPECT_EQ(two->slots.at(1).device, "G3");
  EXPECT_FALSE(Foresee(Of(4), view, kNow)) << "nobody knows when G1 comes back";
}

TEST_F(OutlookTest, TakesWhoStaysLongerForOneThatEndsNow) {
  for (const char* device : {"G0", "G1", "G2", "G3"}) Hold(device);
  EXPECT_EQ(Foresee(Of(1), View({{"r-G0", kNow - hours(1)}}), kNow)->at, kNow);
}

TEST_F(OutlookTest, KnowsThatACutDeviceIsWholeAgain) {
  Hold("G0", "ann", {device::Sharing::kTimeSlicing, 2});
  for (const char* device : {"G1", "G2", "G3"}) Hold(device);
  const auto view = View({{"r-G0", kNow + hours(1)}});
  const auto whole = Foresee(Of(1), view, kNow);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->at, kNow + hours(1));
  EXPECT_EQ(whole->slots.at(0).id, "G0");
  EXPECT_EQ(Foresee(Of(1, 2), view, kNow)->at, kNow) << "a share of it is free now";
}

TEST_F(OutlookTest, PlansEachAfterThoseBeforeIt) {
  for (const char* device : {"G0", "G1", "G2", "G3"}) Hold(device);
  const auto view = View({{"r-G0", kNow + hours(1)},
                          {"r-G1", kNow + hours(2)},
                          {"r-G2", kNow + hours(2)},
                          {"r-G3", kNow + hours(2)}});
  Request broken = Of(1);
  broken.devices = {"G9"};
  EXPECT_THAT(
      ExpectedStarts({{Of(1), hours(4)}, {broken, {}}, {Of(4), {}}, {Of(1), hours(1)}}, view, kNow),
      ElementsAre(Optional(kNow + hours(1)), testing::Eq(std::nullopt),
                  Optional(kNow + hours(1) + LongestHeld(hours(4))), testing::Eq(std::nullopt)));
}

TEST_F(OutlookTest, PlansNoFartherThanAnyoneKnows) {
  for (const char* device : {"G0", "G1", "G2", "G3"}) Hold(device);
  const auto view = View({{"r-G0", kNow + hours(1)},
                          {"r-G1", kNow + hours(1)},
                          {"r-G2", kNow + hours(1)},
                          {"r-G3", kNow + hours(1)}});
  const auto starts = ExpectedStarts(std::vector<Planned>(32, {Of(4), kFarthest / 3}), view, kNow);
  ASSERT_EQ(starts.size(), 32u);
  for (std::size_t i = 0; i < starts.size(); ++i) EXPECT_EQ(starts[i].has_value(), i < 3) << i;
  EXPECT_EQ(ExpectedStarts({{Of(4), base::Duration::max()}, {Of(4), {}}}, view, kNow).at(1),
            std::nullopt);
}

TEST_F(OutlookTest, EndsNoMoreThanHelps) {
  for (const char* device : {"G0", "G1", "G2", "G3"}) Hold(device);
  const auto view = View({});
  Request named = Of(1);
  named.devices = {"G2"};
  EXPECT_THAT(ToEnd(named, view, {}, {"r-G0", "r-G1", "r-G2"}), ElementsAre("r-G2"));
  EXPECT_THAT(ToEnd(Of(2), view, {}, {"r-G3", "r-G1", "r-G2"}), ElementsAre("r-G3", "r-G1"));
  EXPECT_THAT(ToEnd(Of(2), view, {"r-G0"}, {"r-G1"}), ElementsAre("r-G1"));
  EXPECT_THAT(ToEnd(Of(1), view, {"r-G0"}, {"r-G1"}), IsEmpty()) << "what ends already is enough";
  EXPECT_THAT(ToEnd(Of(4), view, {}, {"r-G0", "r-G1", "r-G2"}), IsEmpty()) << "in vain";
}

TEST_F(OutlookTest, KeepsDevicesBack) {
  const auto view = View({});
  const auto offers = WithoutDevices(view.offers, {"G0", "G1", "G2"});
  EXPECT_EQ(Reserve(Of(1), box_, ledger_, offers)->at(0).device, "G3");
  EXPECT_EQ(Reserve(Of(2), box_, ledger_, offers).error().code(), base::Code::kResourceExhausted);
}

TEST_F(OutlookTest, CountsSharesAsPartsOfADevice) {
  Hold("G0", "ann", {device::Sharing::kTimeSlicing, 4});
  Hold("G1");
  Hold("G3", "ann", {device::Sharing::kServer, 2});
  EXPECT_DOUBLE_EQ(DevicesHeld(ledger_.leases.at(0)), 0.25);
  EXPECT_DOUBLE_EQ(DevicesHeld(ledger_.leases.at(1)), 1);
  EXPECT_DOUBLE_EQ(DevicesHeld(ledger_.leases.at(2)), 0.5)
      << "an MPS client as its part of the device";
}

TEST_F(OutlookTest, KnowsWhatARequestCouldUse) {
  const auto view = View({});
  EXPECT_THAT(DevicesFor(Of(1), box_, view.offers), ElementsAre("G0", "G1", "G2", "G3"));
  Request named = Of(2);
  named.devices = {"1", "G3"};
  EXPECT_THAT(DevicesFor(named, box_, view.offers), ElementsAre("G1", "G3"));
  Request other = Of(1);
  other.model = "*H100*";
  EXPECT_THAT(DevicesFor(other, box_, view.offers), IsEmpty());
}

}  // namespace
}  // namespace penstock::node::allocate
