#include "node/partition/division.h"

#include <gtest/gtest.h>

namespace penstock::node::partition {
namespace {

device::Facts Part(const std::string& id, const std::string& parent, const std::string& profile,
                   device::Placement at) {
  device::Facts facts;
  facts.id = id;
  facts.parent = parent;
  facts.profile = profile;
  facts.placement = at;
  return facts;
}

TEST(Division, HasThePartsOfItsDeviceOnTwoLevels) {
  device::Facts device;
  device.id = "GPU-0";
  device.profiles = {{.name = "1g.5gb"}};
  device.modes = {{.name = "mig", .current = "enabled"}};
  device::Facts empty = Part("GI-3", "GPU-0", "2g.10gb", {0, 2});
  empty.withheld = "it has no compute instance";
  const device::Facts whole = Part("MIG-1", "GPU-0", "1g.5gb", {2, 1});
  const device::Facts outer = Part("GI-2", "GPU-0", "3g.20gb", {4, 4});
  const device::Facts inner = Part("MIG-2", "GI-2", "1c.3g.20gb", {0, 1});
  const device::Facts other = Part("MIG-9", "GPU-1", "1g.5gb", {0, 1});
  const std::vector<const device::Facts*> devices = {&device, &inner, &empty,
                                                     &whole,  &outer, &other};
  const Division division = DivisionOf(device, devices, [](const std::string& id) {
    return id == "MIG-2" ? "pod ml/a" : id == "GPU-0" ? "run 1" : "";
  });
  EXPECT_EQ(division.device, "GPU-0");
  EXPECT_EQ(division.holder, "run 1");
  EXPECT_EQ(division.profiles, device.profiles);
  ASSERT_NE(division.FindMode("mig"), nullptr);
  EXPECT_EQ(division.FindMode("other"), nullptr);
  using P = device::Placement;
  EXPECT_EQ(division.parts,
            (std::vector<ExistingPart>{
                {.id = "GI-3", .profile = "2g.10gb", .placement = P{0, 2}, .outer = true},
                {.id = "MIG-1", .profile = "1g.5gb", .placement = P{2, 1}},
                {.id = "GI-2", .profile = "3g.20gb", .placement = P{4, 4}, .outer = true},
                {.id = "MIG-2",
                 .profile = "1c.3g.20gb",
                 .parent = "GI-2",
                 .placement = P{0, 1},
                 .holder = "pod ml/a"}}));
}

TEST(Division, EndsWherePartsClaimToBePartsOfThemselves) {
  device::Facts device = Part("a", "a", "p", {0, 1});
  const device::Facts b = Part("b", "b", "p", {0, 1});
  const std::vector<const device::Facts*> devices = {&device, &b};
  EXPECT_TRUE(DivisionOf(device, devices, [](const std::string&) { return ""; }).parts.empty());
}

}  // namespace
}  // namespace penstock::node::partition
