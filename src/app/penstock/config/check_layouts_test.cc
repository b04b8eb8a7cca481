// Tests layouts against devices of the test's own; with those of a machine:
// tests/integration/config_test.py.
#include "app/penstock/config/check_layouts.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::app {
namespace {

using testing::HasSubstr;

/// GPUs that can have two of 1g.5gb.
node::inventory::Snapshot MachineOf(int gpus) {
  node::inventory::Snapshot machine;
  for (int i = 0; i < gpus; ++i) {
    device::Facts facts;
    facts.id = "GPU-" + std::to_string(i);
    facts.vendor = "nvidia";
    facts.index = i;
    facts.modes = {{"mig", "disabled", "disabled", {"disabled", "enabled"}}};
    facts.profiles = {{.name = "1g.5gb", .slices = 1, .most = 2, .placements = {{0, 1}, {1, 1}}},
                      {.name = "2g.10gb", .slices = 2, .most = 1, .placements = {{0, 2}}}};
    machine.devices.push_back({.facts = std::make_shared<const device::Facts>(facts)});
  }
  return machine;
}

std::vector<CheckedLayout> CheckedOf(const std::string& rules, int gpus = 3) {
  const auto layouts = ReadLayouts("version: v1\nmig-configs: {a: [" + rules + "]}", "f.yaml");
  EXPECT_TRUE(layouts.ok()) << (layouts.ok() ? "" : layouts.error().message());
  return layouts.ok() ? CheckLayouts(*layouts, MachineOf(gpus)) : std::vector<CheckedLayout>();
}

TEST(CheckLayouts, DevicesOfOneKindAreNamedTogetherAndTheImpossibleIsExplained) {
  const auto checked = CheckedOf(
      "{devices: [0, 2], mig-enabled: true, mig-devices: {1g.5gb: 2}}, {devices: [1], "
      "mig-enabled: true, mig-devices: {1g.5gb: 3}}");
  EXPECT_EQ(ShowLayouts(checked),
            "  layout a: GPU 0, 2: 2 of 1g.5gb\n"
            "  layout a: GPU 1: 3 of 1g.5gb: impossible\n"
            "    there can be at most 2 of 1g.5gb at once, not 3\n");
  const auto json = JsonOf(checked);
  EXPECT_EQ(json[0]["possible"], false);
  EXPECT_EQ(json[0]["devices"][0]["possible"], true);
  EXPECT_THAT(json[0]["devices"][1]["problem"].get<std::string>(), HasSubstr("at most 2"));
}

TEST(CheckLayouts, WholeDevicesAndRulesWithoutADevice) {
  EXPECT_EQ(ShowLayouts(CheckedOf("{devices: all, mig-enabled: false}", 1)),
            "  layout a: GPU 0: whole\n");
  EXPECT_THAT(ShowLayouts(CheckedOf("{devices: [7], mig-enabled: false}")),
              HasSubstr("  layout a: impossible\n    "));
  EXPECT_THAT(ShowLayouts(CheckedOf("{devices: [0], mig-enabled: false}")),
              HasSubstr("  remark: layout a: no rule is for device 1, 2"));
}

TEST(CheckLayouts, AreReadStrictly) {
  const auto layouts = ReadLayouts("version: v1\nmig-configs: {a: [{devices: all}]}", "f.yaml");
  ASSERT_FALSE(layouts.ok());
  EXPECT_THAT(layouts.error().message(), HasSubstr("f.yaml:2"));
}

}  // namespace
}  // namespace penstock::app
