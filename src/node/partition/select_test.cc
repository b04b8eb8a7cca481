#include "node/partition/select.h"

#include <gtest/gtest.h>

#include "node/partition/testing/devices.h"

namespace penstock::node::partition {
namespace {

using api::Layout;
using api::LayoutRule;
using api::PciModel;
using testing::DeviceOf;

const PciModel kAmpere{0x10de, 0x20b0};
const PciModel kH100{0x10de, 0x2330};

std::vector<device::Facts> Machine() {
  return {DeviceOf(0, "0x20b0", {}), DeviceOf(1, "0x20b0", {}), DeviceOf(2, "0x2330", {})};
}

/// The index of each device's rule, -1 for none.
std::vector<int> RulesOf(const Layout& layout, std::vector<std::string>* remarks = nullptr) {
  const auto devices = Machine();
  const auto selection = SelectDevices(layout, testing::PointersTo(devices));
  if (!selection.ok()) {
    ADD_FAILURE() << selection.error().message();
    return {};
  }
  std::vector<int> rules;
  for (const SelectedDevice& one : selection->devices)
    rules.push_back(one.rule == nullptr ? -1 : static_cast<int>(one.rule - layout.rules.data()));
  if (remarks != nullptr) *remarks = selection->remarks;
  return rules;
}

std::string ProblemsOf(const Layout& layout,
                       const std::vector<device::Facts>& devices = Machine()) {
  const auto selection = SelectDevices(layout, testing::PointersTo(devices));
  if (selection.ok()) return "";
  EXPECT_EQ(selection.error().code(), Code::kInvalidArgument);
  return selection.error().message();
}

TEST(SelectDevices, ByModelAndIndex) {
  std::vector<std::string> remarks;
  EXPECT_EQ(RulesOf({"a", {{.all_devices = true}}}, &remarks), (std::vector{0, 0, 0}));
  EXPECT_TRUE(remarks.empty());
  EXPECT_EQ(RulesOf({"a",
                     {{.models = {kH100}, .all_devices = true},
                      {.models = {kAmpere, PciModel{1, 2}}, .devices = {1}, .partitioned = true}}},
                    &remarks),
            (std::vector{-1, 1, 0}));
  EXPECT_EQ(
      remarks,
      (std::vector<std::string>{"layout a: no rule is for device 0, which stays as divided now"}));
}

TEST(SelectDevices, BySubsystemWhereTheFilterNamesOne) {
  PciModel a100 = kAmpere;
  a100.subsystem = PciModel::Subsystem{0x10de, 0x134f};
  PciModel other = kH100;
  other.subsystem = PciModel::Subsystem{0x10de, 0x1111};
  EXPECT_EQ(RulesOf({"a", {{.models = {a100, other}, .all_devices = true}}}),
            (std::vector{0, 0, -1}));
}

TEST(SelectDevices, RemarksOnRulesForOtherMachines) {
  std::vector<std::string> remarks;
  EXPECT_EQ(RulesOf({"a",
                     {{.models = {PciModel{0x10de, 0x20b7}}, .devices = {7}},
                      {.all_devices = true, .partitioned = true}}},
                    &remarks),
            (std::vector{1, 1, 1}));
  EXPECT_EQ(remarks, (std::vector<std::string>{
                         "layout a, rules[0]: there is no device of its models on this machine"}));
}

TEST(SelectDevices, RefusesALayoutThatSelectsNothing) {
  EXPECT_EQ(ProblemsOf({"a", {{.models = {PciModel{0x10de, 0x20b7}}, .all_devices = true}}}),
            "layout a: no rule selects a device of this machine");
  EXPECT_EQ(ProblemsOf({"a", {{.all_devices = true}}}, {}),
            "layout a: no rule selects a device of this machine, which has none");
}

TEST(SelectDevices, RefusesIndicesThatDoNotExistAndRulesThatContradictEachOther) {
  EXPECT_EQ(ProblemsOf({"a",
                        {{.devices = {}},
                         {.devices = {1, 4}},
                         {.models = {kH100}, .devices = {0}},
                         {.devices = {1, 2}, .partitioned = true},
                         {.models = {kH100},
                          .all_devices = true,
                          .partitioned = true,
                          .parts = {{"1g.10gb", 7}}}}}),
            "layout a, rules[0]: selects no device\n"
            "layout a, rules[1]: device 4 does not exist; the devices are 0, 1, 2\n"
            "layout a, rules[2]: device 0 is of another model than the rule is for\n"
            "layout a, rules[3]: divides device 1 otherwise than rules[1]\n"
            "layout a, rules[4]: divides device 2 otherwise than rules[3]");
}

TEST(SelectDevices, AcceptsRulesThatAgree) {
  EXPECT_EQ(RulesOf({"a", {{.all_devices = true}, {.models = {kH100}, .all_devices = true}}}),
            (std::vector{0, 0, 1}));
}

TEST(SelectDevices, DoesNotFilterDevicesWithoutPciIds) {
  auto devices = Machine();
  devices[0].details.erase("pci.device-id");
  devices[1].details["pci.device-id"] = "0x120b0";
  EXPECT_EQ(ModelOf(devices[0]), std::nullopt);
  EXPECT_EQ(ModelOf(devices[1]), std::nullopt);
  EXPECT_EQ(ModelOf(devices[2])->device, 0x2330);
  EXPECT_EQ(ProblemsOf({"a", {{.models = {kAmpere}, .all_devices = true}}}, devices),
            "layout a: no rule selects a device of this machine");
}

TEST(SelectDevices, ById) {
  EXPECT_EQ(RulesOf({"a", {{.ids = {"GPU-2", "GPU-0"}}, {.devices = {1}}}}),
            (std::vector{0, 1, 0}));
  EXPECT_EQ(ProblemsOf({"a", {{.ids = {"GPU-2", "GPU-9"}}}}),
            "layout a, rules[0]: device GPU-9 is not on this machine");
}

TEST(SelectDevices, ALayoutMayBeForANumberOfDevices) {
  const device::Facts device = testing::DeviceOf(0, "0x74a1", {});
  const std::vector<const device::Facts*> all{&device};
  api::Layout layout{.name = "p", .rules = {{.devices = {0}}}, .total = 1, .total_by = "sum: 1"};
  EXPECT_TRUE(SelectDevices(layout, all).ok());
  layout.total = 9;
  layout.total_by = "sum: 9";
  const auto wrong = SelectDevices(layout, all);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message(),
            "layout p is for 9 devices (sum: 9), and this machine has 1: correct the numbers");
}

}  // namespace
}  // namespace penstock::node::partition
