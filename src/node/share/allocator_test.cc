#include "node/share/allocator.h"

#include <gtest/gtest.h>

namespace penstock::node::share {
namespace {

inventory::Entry Gpu(int number, const std::string& model) {
  device::Facts facts;
  facts.id = "G" + std::to_string(number);
  facts.index = number;
  facts.model = model;
  return {.facts = std::make_shared<const device::Facts>(facts), .number = number};
}

TEST(AssignAllocators, GoesToTheKubeletWhereItIsElseToTheLocalAllocator) {
  EXPECT_EQ(AssignAllocators({}, {"kubelet", "local"})(Gpu(0, "T4")), "kubelet");
  EXPECT_EQ(AssignAllocators({}, {"local"})(Gpu(0, "T4")), "local");
  EXPECT_EQ(AssignAllocators({}, {})(Gpu(0, "T4")), "");
}

TEST(AssignAllocators, TheFirstRuleThatMatchesCounts) {
  api::NodeConfig config;
  config.assignments = {{{"1", "G2"}, "local"}, {{"*T4"}, "none"}};
  const AllocatorOf allocator_of = AssignAllocators(config, {"kubelet", "local"});
  EXPECT_EQ(allocator_of(Gpu(1, "T4")), "local");
  EXPECT_EQ(allocator_of(Gpu(2, "T4")), "local");
  EXPECT_EQ(allocator_of(Gpu(3, "Tesla T4")), "");
  EXPECT_EQ(allocator_of(Gpu(4, "A100")), "kubelet");
}

TEST(AssignAllocators, AnIndexMeansAPlaceWhateverTheDriverCallsItNow) {
  api::NodeConfig config;
  config.assignments = {{{"3"}, "local"}};
  const AllocatorOf allocator_of = AssignAllocators(config, {"kubelet", "local"});
  inventory::Entry moved_up = Gpu(4, "T4"), meant = Gpu(3, "T4"), nowhere = Gpu(3, "T4");
  device::Facts facts = *moved_up.facts;
  facts.index = 3;
  moved_up.facts = std::make_shared<const device::Facts>(facts);
  facts = *meant.facts;
  facts.index = 2;
  meant.facts = std::make_shared<const device::Facts>(facts);
  nowhere.number = -1;
  EXPECT_EQ(allocator_of(moved_up), "kubelet");
  EXPECT_EQ(allocator_of(meant), "local");
  EXPECT_EQ(allocator_of(nowhere), "kubelet");
}

TEST(AssignAllocators, ARuleForAClosedAllocatorOffersNowhere) {
  api::NodeConfig config;
  config.assignments = {{{}, "kubelet"}};
  EXPECT_EQ(AssignAllocators(config, {"local"})(Gpu(0, "T4")), "");
}

}  // namespace
}  // namespace penstock::node::share
