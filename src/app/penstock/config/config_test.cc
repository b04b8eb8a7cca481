// Tests how `penstock config check --against` prints a configuration's offers.
#include "app/penstock/config/config.h"

#include <gtest/gtest.h>

namespace penstock::app {
namespace {

using device::Sharing;
using node::share::OfferedSlot;

OfferedSlot Slot(const std::string& device, Sharing sharing = Sharing::kNone, int shares = 1,
                 const std::string& reason = "") {
  OfferedSlot offered{.usable = reason.empty(), .reason = reason};
  offered.slot.device = device;
  offered.slot.shape = {sharing, shares};
  return offered;
}

TEST(ShowPreview, NamesEachDeviceOnceWithItsShares) {
  view::Preview preview;
  preview.offers = {
      {.resource = "nvidia.com/gpu",
       .allocator = "kubelet",
       .slots = {Slot("GPU-a"), Slot("GPU-b")}},
      {.resource = "nvidia.com/gpu.shared",
       .allocator = "local",
       .slots = {Slot("GPU-c", Sharing::kTimeSlicing, 2), Slot("GPU-c", Sharing::kTimeSlicing, 2),
                 Slot("GPU-d", Sharing::kServer, 3)}}};
  preview.labels = {{"nvidia.com/gpu.count", "4"}, {"nvidia.com/gpu.present", "true"}};
  EXPECT_EQ(ShowPreview(preview),
            "  allocator kubelet offers 2 nvidia.com/gpu: GPU-a, GPU-b\n"
            "  allocator local offers 3 nvidia.com/gpu.shared: GPU-c in 2 shares "
            "(time-slicing), GPU-d in 3 shares (mps)\n"
            "  label nvidia.com/gpu.count=4\n"
            "  label nvidia.com/gpu.present=true\n");
}

TEST(ShowPreview, SaysWhyADeviceCannotBeUsedButNotThatAServerOfMpsIsMissing) {
  view::Preview preview;
  preview.offers = {{.resource = "nvidia.com/gpu",
                     .allocator = "kubelet",
                     .slots = {Slot("GPU-a", Sharing::kNone, 1, "XID 79"),
                               Slot("GPU-b", Sharing::kTimeSlicing, 2, "XID 48"),
                               Slot("GPU-c", Sharing::kServer, 2, "no MPS server runs")}}};
  EXPECT_EQ(ShowPreview(preview),
            "  allocator kubelet offers 3 nvidia.com/gpu: GPU-a (XID 79), GPU-b in 2 shares "
            "(time-slicing) (XID 48), "
            "GPU-c in 2 shares (mps)\n");
}

TEST(ShowPreview, SaysWhereNothingIsOffered) { EXPECT_EQ(ShowPreview({}), "  offers nothing\n"); }

}  // namespace
}  // namespace penstock::app
