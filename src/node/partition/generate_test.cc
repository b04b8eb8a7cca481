#include "node/partition/generate.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "node/partition/plan.h"
#include "node/partition/select.h"
#include "node/partition/testing/devices.h"
#include "node/partition/testing/reference_model.h"

namespace penstock::node::partition {
namespace {

using api::Layout;
using api::LayoutRule;
using api::PciModel;
using testing::DeviceOf;
using testing::PointersTo;

const PciModel kA100{0x10de, 0x20b0};
const PciModel kA30{0x10de, 0x20b7};

TEST(GenerateLayouts, HasThoseOfMigPartedForOneModel) {
  const std::vector<device::Facts> devices = {
      DeviceOf(0, "0x20b0", testing::SevenSlices(5, 10, 20, 40)),
      DeviceOf(1, "0x20b0", testing::SevenSlices(5, 10, 20, 40))};
  const auto generated = GenerateLayouts(PointersTo(devices));
  EXPECT_TRUE(generated.remarks.empty());
  const auto one = [](const std::string& profile, int count) {
    return LayoutRule{.all_devices = true, .partitioned = true, .parts = {{profile, count}}};
  };
  EXPECT_EQ(generated.layouts.layouts,
            (std::vector<Layout>{{"all-disabled", {{.all_devices = true}}},
                                 {"all-enabled", {{.all_devices = true, .partitioned = true}}},
                                 {"all-1g.10gb", {one("1g.10gb", 4)}},
                                 {"all-1g.5gb", {one("1g.5gb", 7)}},
                                 {"all-1g.5gb.me", {one("1g.5gb+me", 1)}},
                                 {"all-2g.10gb", {one("2g.10gb", 3)}},
                                 {"all-3g.20gb", {one("3g.20gb", 2)}},
                                 {"all-4g.20gb", {one("4g.20gb", 1)}},
                                 {"all-7g.40gb", {one("7g.40gb", 1)}},
                                 {"all-balanced",
                                  {{.all_devices = true,
                                    .partitioned = true,
                                    .parts = {{"1g.5gb", 2}, {"2g.10gb", 1}, {"3g.20gb", 1}}}}}}));
}

TEST(GenerateLayouts, NamesModelsWhereThereAreSeveral) {
  const std::vector<device::Facts> devices = {
      DeviceOf(0, "0x20b0", testing::SevenSlices(5, 12, 20, 40)),
      DeviceOf(1, "0x20b7", testing::A30()), DeviceOf(2, "0x1eb8", {})};
  const auto layouts = GenerateLayouts(PointersTo(devices)).layouts;
  EXPECT_EQ(layouts.Find("all-disabled")->rules, (std::vector<LayoutRule>{{.all_devices = true}}));
  EXPECT_EQ(layouts.Find("all-enabled")->rules,
            (std::vector<LayoutRule>{
                {.models = {kA100, kA30}, .all_devices = true, .partitioned = true}}));
  EXPECT_EQ(
      layouts.Find("all-2g.12gb")->rules,
      (std::vector<LayoutRule>{
          {.models = {kA30}, .all_devices = true, .partitioned = true, .parts = {{"2g.12gb", 2}}},
          {.models = {kA100},
           .all_devices = true,
           .partitioned = true,
           .parts = {{"2g.12gb", 3}}}}));
  EXPECT_EQ(layouts.Find("all-balanced")->rules.size(), 2u);
  EXPECT_EQ(layouts.Find("all-balanced")->rules[1].parts,
            (std::vector<api::LayoutParts>{{"1g.6gb", 2}, {"2g.12gb", 1}}));
}

/// Divides an undivided device as the layout says, by a plan.
void ExpectApplies(const Layout& layout, const std::string& table, const device::Facts& facts) {
  const std::vector<device::Facts> devices = {facts};
  const auto selection = SelectDevices(layout, PointersTo(devices));
  ASSERT_TRUE(selection.ok()) << table << " " << layout.name;
  DesiredDivision desired;
  for (const auto& parts : selection->devices[0].rule->parts)
    desired.parts.push_back({parts.profile, parts.count});
  const Division now{.device = "GPU-0", .profiles = facts.profiles};
  const auto plan = MakePlan(now, desired, {});
  ASSERT_TRUE(plan.ok()) << table << " " << layout.name << ": " << plan.error().message();
  testing::ReferenceDevice device(now);
  EXPECT_EQ(device.Take(*plan), "");
  EXPECT_EQ(PartsOf(device.division()), selection->devices[0].rule->parts);
}

TEST(GenerateLayouts, CanBeAppliedToTheDevices) {
  for (const auto& [name, profiles] : testing::AllTables()) {
    const std::vector<device::Facts> devices = {DeviceOf(0, "0x20b0", profiles)};
    const auto generated = GenerateLayouts(PointersTo(devices));
    EXPECT_EQ(generated.layouts.Find("all-balanced") == nullptr, name == "Acme");
    EXPECT_EQ(generated.remarks.size(), name == "Acme" ? 1u : 0u);
    for (const Layout& layout : generated.layouts.layouts) ExpectApplies(layout, name, devices[0]);
  }
}

TEST(ExportLayout, HasOneRuleForDevicesThatAreDividedAlike) {
  const std::vector<device::Facts> devices = {DeviceOf(0, "0x20b0", {}), DeviceOf(1, "0x20b0", {}),
                                              DeviceOf(2, "0x20b0", {}), DeviceOf(3, "0x20b0", {})};
  const Division whole, divided{.parts = {{.id = "o", .profile = "3g.20gb", .outer = true},
                                          {.id = "i", .profile = "1c.3g.20gb", .parent = "o"},
                                          {.id = "j", .profile = "1c.3g.20gb", .parent = "o"},
                                          {.id = "k", .profile = "1g.5gb"}}};
  const std::vector<DividedDevice> as_now = {{&devices[0], &whole, false},
                                             {&devices[1], &divided, true},
                                             {&devices[2], &whole, true},
                                             {&devices[3], &whole, false}};
  EXPECT_EQ(
      ExportLayout("current", as_now),
      (Layout{"current",
              {{.devices = {0, 3}},
               {.devices = {1}, .partitioned = true, .parts = {{"1c.3g.20gb", 2}, {"1g.5gb", 1}}},
               {.devices = {2}, .partitioned = true}}}));
  EXPECT_EQ(ExportLayout("all", {as_now.begin() + 1, as_now.begin() + 2}),
            (Layout{"all",
                    {{.all_devices = true,
                      .partitioned = true,
                      .parts = {{"1c.3g.20gb", 2}, {"1g.5gb", 1}}}}}));
}

TEST(ModeLayouts, AreOfTheModesThatAllDevicesHave) {
  std::vector<device::Facts> devices(3);
  devices[0].modes = {{"cut", "ONE", "ONE", {"ONE", "TWO", "EIGHT"}}};
  devices[1].modes = {{"cut", "ONE", "ONE", {"ONE", "EIGHT"}}};
  const std::vector<const device::Facts*> all{&devices[0], &devices[1], &devices[2]};
  const api::Layouts layouts = ModeLayouts(all, "cut");
  EXPECT_EQ(layouts.names(), (std::vector<std::string>{"eight", "one"}));
  const api::LayoutRule& rule = layouts.Find("eight")->rules.front();
  EXPECT_TRUE(rule.all_devices);
  EXPECT_EQ(rule.modes.at("cut"), "EIGHT");
  EXPECT_TRUE(ModeLayouts({}, "cut").layouts.empty());
}

TEST(LayoutsFor, HaveProfilesWithinOthersWhereUsersHaveNoFilesToAskInForThem) {
  const device::PartTerms own, files{.program = "a program"};
  for (const auto& [name, profiles] : testing::AllTables()) {
    const std::vector<device::Facts> devices = {DeviceOf(0, "0x20b0", profiles)};
    EXPECT_EQ(LayoutsFor(PointersTo(devices), files), GenerateLayouts(PointersTo(devices)).layouts);
    const api::Layouts layouts = LayoutsFor(PointersTo(devices), own);
    for (const device::PartProfile& profile : profiles)
      EXPECT_EQ(std::ranges::count(layouts.layouts, "all-" + profile.name, &Layout::name),
                profile.name.find('+') == std::string::npos ? 1 : 0)
          << name;
    for (const Layout& layout : layouts.layouts) ExpectApplies(layout, name, devices[0]);
  }
}

TEST(LayoutsFor, AreOfTheDevicesThatCanBeDividedAsTheirVendorDoes) {
  std::vector<device::Facts> devices = {DeviceOf(0, "0x20b0", testing::Acme()),
                                        DeviceOf(1, "0x20b7", {})};
  const api::Layouts of_profiles = LayoutsFor(PointersTo(devices), {});
  EXPECT_EQ(
      of_profiles.Find("all-chip")->rules,
      (std::vector<LayoutRule>{{.all_devices = true, .partitioned = true, .parts = {{"chip", 6}}}}))
      << "two within each of three";
  devices[1].modes = {{"cut", "ONE", "ONE", {"ONE", "EIGHT"}}};
  EXPECT_EQ(LayoutsFor(PointersTo(devices), {.mode = "cut", .by_mode = true}).names(),
            (std::vector<std::string>{"eight", "one"}));
}

}  // namespace
}  // namespace penstock::node::partition
