#include "adapter/kubelet/advertisement_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::adapter::kubelet {
namespace {

using api::DeviceList;
using node::share::Offer;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

/// Slots of devices A and B under one name, all usable, and one of another allocator.
std::vector<Offer> Offers() {
  Offer gpu{.resource = "acme.com/gpu", .allocator = "kubelet"};
  for (const char* device : {"A", "B"}) {
    node::share::OfferedSlot slot;
    slot.slot.id = slot.slot.device = device;
    slot.usable = true;
    gpu.slots.push_back(slot);
  }
  Offer local = gpu;
  local.allocator = "local";
  return {gpu, local};
}

/// "A", or "B!why" if it is not usable.
std::vector<std::string> Seen(const std::vector<Offer>& offers) {
  std::vector<std::string> seen;
  for (const Offer& offer : offers)
    for (const auto& slot : offer.slots)
      seen.push_back(slot.slot.id + (slot.usable ? "" : "!" + slot.reason));
  return seen;
}

const DeviceListChoice kByCdi{.strategies = {DeviceList::kCdiCri}, .files = false};
const DeviceListChoice kVariable{.strategies = {DeviceList::kEnvvar}};

TEST(AdvertisementFilter, ADeviceThatNoSpecificationNamesYetIsNotAdvertised) {
  AdvertisementFilter shown;
  node::cdi::Written written{.devices = {"B"}};
  EXPECT_THAT(Seen(shown.Show(Offers(), {kByCdi, &written, {}})), ElementsAre("B"));
  EXPECT_THAT(shown.withheld(),
              ElementsAre(Pair("A", "no CDI specification names this device yet")));
  written.devices.insert("A");
  EXPECT_THAT(Seen(shown.Show(Offers(), {kByCdi, &written, {}})), ElementsAre("A", "B"));
  EXPECT_THAT(shown.withheld(), IsEmpty());
}

TEST(AdvertisementFilter, ADeviceThatWaitsIsNotAdvertisedAndOthersAre) {
  AdvertisementFilter shown;
  EXPECT_THAT(Seen(shown.Show(Offers(), {kVariable, nullptr, {}, {{"A", "it is being divided"}}})),
              ElementsAre("B"));
  EXPECT_THAT(shown.withheld(), ElementsAre(Pair("A", "it is being divided")));
  EXPECT_THAT(Seen(shown.Show(Offers(), {kVariable, nullptr, {}})), ElementsAre("A", "B"));
}

TEST(AdvertisementFilter, OneThatWasAdvertisedStaysAndCannotBeUsed) {
  AdvertisementFilter shown;
  node::cdi::Written written{.devices = {"A", "B"}};
  EXPECT_THAT(Seen(shown.Show(Offers(), {kByCdi, &written, {}})), ElementsAre("A", "B"));
  written.devices = {"B"};
  EXPECT_THAT(Seen(shown.Show(Offers(), {kByCdi, &written, {}})),
              ElementsAre("A!no CDI specification names this device yet", "B"));
  // A device that was gone counts as new.
  EXPECT_THAT(shown.Show({}, {kByCdi, &written, {}}), IsEmpty());
  EXPECT_THAT(Seen(shown.Show(Offers(), {kByCdi, &written, {}})), ElementsAre("B"));
}

TEST(AdvertisementFilter, AReasonThatIsThereAlreadyStays) {
  AdvertisementFilter shown;
  node::cdi::Written written{.devices = {"A", "B"}};
  shown.Show(Offers(), {kByCdi, &written, {}});
  auto offers = Offers();
  offers[0].slots[0].usable = false;
  offers[0].slots[0].reason = "XID 79";
  EXPECT_THAT(Seen(shown.Show(offers, {kByCdi, nullptr, {}}))[0], "A!XID 79");
}

TEST(AdvertisementFilter, WithoutCdiSpecificationsDoNotMatter) {
  AdvertisementFilter shown;
  const node::cdi::Written written;
  EXPECT_THAT(Seen(shown.Show(Offers(), {kVariable, &written, {}})), ElementsAre("A", "B"));
  EXPECT_THAT(Seen(shown.Show(Offers(), {kVariable, nullptr, {}})), ElementsAre("A", "B"));
}

TEST(AdvertisementFilter, SaysWhatIsInTheWayOfAll) {
  const auto withheld = [](const AdvertisementFilter::Gate& gate) {
    AdvertisementFilter shown;
    EXPECT_THAT(shown.Show(Offers(), gate), IsEmpty());
    return shown.withheld().at("A");
  };
  const node::cdi::Written written{.devices = {"A", "B"}};
  EXPECT_EQ(
      withheld({{.decided = false, .reason = "the container engine is being asked"}, &written, {}}),
      "the container engine is being asked");
  EXPECT_EQ(withheld({kVariable, &written, {"imex=0"}}),
            "imex=0: required (containers.requiredClasses) but missing on this node");
  EXPECT_EQ(
      withheld({kByCdi, nullptr, {}}),
      "containers.deviceList requests CDI, but no CDI specifications are written on this node");
}

}  // namespace
}  // namespace penstock::adapter::kubelet
