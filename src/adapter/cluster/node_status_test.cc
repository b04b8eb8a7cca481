#include "adapter/cluster/node_status.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::adapter::cluster {
namespace {

using nlohmann::json;

const NodeNumbers kNode{.capacity = {{"cpu", "8"}, {"nvidia.com/gpu", "8"}},
                        .allocatable = {{"cpu", "8"}, {"nvidia.com/gpu", "7"}}};

TEST(StatusPatch, HasOnlyWhatDiffers) {
  EXPECT_EQ(StatusPatch(kNode, {{"nvidia.com/gpu", {8, 8}}}),
            json::parse(R"({"status": {"allocatable": {"nvidia.com/gpu": "8"}}})"));
  EXPECT_EQ(
      StatusPatch(kNode, {{"nvidia.com/gpu", {8, 7}}, {"amd.com/gpu", {2, 1}}}),
      json::parse(
          R"({"status": {"capacity": {"amd.com/gpu": "2"}, "allocatable": {"amd.com/gpu": "1"}}})"));
}

TEST(StatusPatch, IsNotMadeWhereTheNodeShowsAll) {
  EXPECT_FALSE(StatusPatch(kNode, {{"nvidia.com/gpu", {8, 7}}}));
  EXPECT_FALSE(StatusPatch(kNode, {}));
  EXPECT_FALSE(StatusPatch(kNode, {{"amd.com/gpu", {0, 0}}}));
}

TEST(StatusPatch, TakesTheLastDeviceAway) {
  EXPECT_EQ(
      StatusPatch(kNode, {{"nvidia.com/gpu", {0, 0}}}),
      json::parse(
          R"({"status": {"capacity": {"nvidia.com/gpu": "0"}, "allocatable": {"nvidia.com/gpu": "0"}}})"));
}

}  // namespace
}  // namespace penstock::adapter::cluster
