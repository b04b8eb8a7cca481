#include "node/share/assign.h"

#include <gtest/gtest.h>

namespace penstock::node::share {
namespace {

device::Facts Gpu(int index, const std::string& model) {
  device::Facts facts;
  facts.id = "G" + std::to_string(index);
  facts.index = index;
  facts.model = model;
  return facts;
}

TEST(AssignDoors, GoesToTheKubeletWhereItIsElseToTheLocalDoor) {
  EXPECT_EQ(AssignDoors({}, true, true)(Gpu(0, "T4")), "kubelet");
  EXPECT_EQ(AssignDoors({}, false, true)(Gpu(0, "T4")), "local");
  EXPECT_EQ(AssignDoors({}, false, false)(Gpu(0, "T4")), "");
}

TEST(AssignDoors, TheFirstRuleThatMatchesCounts) {
  api::NodeConfig config;
  config.doors = {{{"1", "G2"}, "local"}, {{"*T4"}, "none"}};
  const DoorOf door_of = AssignDoors(config, true, true);
  EXPECT_EQ(door_of(Gpu(1, "T4")), "local");
  EXPECT_EQ(door_of(Gpu(2, "T4")), "local");
  EXPECT_EQ(door_of(Gpu(3, "Tesla T4")), "");
  EXPECT_EQ(door_of(Gpu(4, "A100")), "kubelet");
}

TEST(AssignDoors, ARuleForAClosedDoorOffersNowhere) {
  api::NodeConfig config;
  config.doors = {{{}, "kubelet"}};
  EXPECT_EQ(AssignDoors(config, false, true)(Gpu(0, "T4")), "");
}

}  // namespace
}  // namespace penstock::node::share
