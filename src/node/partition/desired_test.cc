#include "node/partition/desired.h"

#include <gtest/gtest.h>

#include "base/core/strings.h"
#include "device/testing/acme.h"
#include "node/partition/testing/devices.h"

namespace penstock::node::partition {
namespace {

/// Profiles of this vendor have names in capitals.
class Capitals final : public device::testing::AcmeDialect {
 public:
  const device::PartTerms* part_terms() const override {
    static const device::PartTerms kTerms = {"mig", "enabled", "disabled", "", "", nullptr};
    return &kTerms;
  }
  Result<const device::PartProfile*> FindProfile(
      std::string_view name, std::span<const device::PartProfile> profiles) const override {
    for (const auto& profile : profiles)
      if (base::ToLower(profile.name) == name) return &profile;
    return Error(Code::kNotFound, "no profile " + std::string(name));
  }
};
const Capitals kDialect;

device::Facts Device() {
  device::Facts device = testing::DeviceOf(0, "0x20b0", {{.name = "A"}, {.name = "b"}});
  device.modes = {{"mig", "disabled", "disabled", {"disabled", "enabled"}}};
  return device;
}

TEST(DesiredOn, TakesTheDriversNames) {
  const auto desired =
      DesiredOn(Device(), {.partitioned = true, .parts = {{"a", 2}, {"b", 1}}}, kDialect);
  ASSERT_TRUE(desired.ok());
  EXPECT_EQ(desired->division.mode, "mig");
  EXPECT_EQ(desired->division.value, "enabled");
  ASSERT_EQ(desired->division.parts.size(), 2u);
  EXPECT_EQ(desired->division.parts[0].profile, "A");
  EXPECT_EQ(desired->division.parts[0].count, 2);
  EXPECT_EQ(desired->remarks, (std::vector<std::string>{"a is A here"}));
  EXPECT_EQ(DesiredOn(Device(), {.partitioned = true, .parts = {{"c", 1}, {"d", 1}}}, kDialect)
                .error()
                .message(),
            "no profile c\nno profile d");
}

TEST(DesiredOn, KeepsNamesWhileTheDriverListsNoProfiles) {
  device::Facts device = Device();
  device.profiles.clear();
  const auto desired = DesiredOn(device, {.partitioned = true, .parts = {{"a", 2}}}, kDialect);
  ASSERT_TRUE(desired.ok());
  EXPECT_EQ(desired->division.parts[0].profile, "a");
}

TEST(DesiredOn, TakesADeviceWithoutTheModeForWhole) {
  device::Facts device = Device();
  device.modes.clear();
  EXPECT_EQ(DesiredOn(device, {.partitioned = true}, kDialect).error().message(),
            "the device cannot be divided: it has no mode \"mig\"");
  const auto whole = DesiredOn(device, {}, kDialect);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->division.mode, "");
}

/// The parts of this vendor's devices come with a mode.
class ByMode final : public device::testing::AcmeDialect {
 public:
  const device::PartTerms* part_terms() const override {
    static const device::PartTerms kTerms = {.mode = "cut", .off = "one", .by_mode = true};
    return &kTerms;
  }
};
const ByMode kByMode;

device::Facts CutDevice() {
  device::Facts device = testing::DeviceOf(0, "0x74a1", {});
  device.modes = {{"cut", "one", "one", {"one", "eight"}},
                  {"memory",
                   "1",
                   "1",
                   {"1", "4"},
                   device::ModeScope::kLinkedDevices,
                   device::ModeEffect::kAfterDriverReload}};
  return device;
}

TEST(DesiredOn, TakesTheModeOfADeviceWhosePartsComeWithIt) {
  const auto desired =
      DesiredOn(CutDevice(), {.modes = {{"cut", "eight"}, {"memory", "1"}}}, kByMode);
  ASSERT_TRUE(desired.ok()) << desired.error().message();
  EXPECT_EQ(desired->division, (DesiredDivision{.mode = "cut",
                                                .value = "eight",
                                                .by_mode = true,
                                                .later = "memory",
                                                .later_value = "1"}));
}

TEST(DesiredOn, SaysWhichOtherModeIsInTheWay) {
  const auto error = [](std::map<std::string, std::string> modes) {
    const auto desired = DesiredOn(CutDevice(), {.modes = std::move(modes)}, kByMode);
    return desired.ok() ? "" : desired.error().message();
  };
  EXPECT_EQ(error({{"cut", "eight"}, {"memory", "4"}}), "") << "it is requested";
  EXPECT_EQ(error({{"cut", "eight"}, {"memory", "2"}}),
            "the mode memory is \"1\", not \"2\", which the device does not have: it can be 1, 4");
  device::Facts old = CutDevice();
  old.modes[1].available.clear();
  EXPECT_EQ(DesiredOn(old, {.modes = {{"memory", "4"}}}, kByMode).error().message(),
            "the mode memory is \"1\", not \"4\", and this driver cannot change it");
  EXPECT_TRUE(DesiredOn(old, {.modes = {{"cut", "eight"}, {"memory", "1"}}}, kByMode).ok());
  EXPECT_EQ(error({{"other", "x"}}), "the device has no mode other, which shall be \"x\"");
  EXPECT_EQ(error({}), "its parts come with its mode cut, and the layout does not say which");
  EXPECT_EQ(DesiredOn(Device(), {.modes = {{"mig", "enabled"}}}, kDialect).error().message(),
            "the device is divided into parts of its profiles, and the layout sets modes");
}

TEST(WhyNotAsDesired, ComparesModeAndParts) {
  Division now{.modes = {{"mig", "enabled", "enabled", {"disabled", "enabled"}}},
               .parts = {{.id = "1", .profile = "A"},
                         {.id = "2", .profile = "b", .outer = true},
                         {.id = "3", .profile = "A"}}};
  EXPECT_EQ(WhyNotAsDesired(now, {"mig", "enabled", {{"A", 2}}}, false), "");
  EXPECT_EQ(WhyNotAsDesired(now, {"mig", "enabled", {{"A", 1}, {"b", 1}}}, false),
            "it has 2 of A, not 1 of A, 1 of b");
  EXPECT_EQ(WhyNotAsDesired(now, {"mig", "enabled", {}}, false), "it has 2 of A, not no parts");
  EXPECT_EQ(WhyNotAsDesired(now, {"mig", "enabled", {}}, true), "");
  EXPECT_EQ(WhyNotAsDesired(now, {"mig", "disabled", {}}, true),
            "the mode mig is \"enabled\", not \"disabled\"");
}

TEST(WhyNotAsDesired, ComparesExactPlaces) {
  const Division now{
      .modes = {{"mig", "enabled", "enabled", {"disabled", "enabled"}}},
      .parts = {{.id = "1", .profile = "A", .placement = device::Placement{0, 2}},
                {.id = "2", .profile = "b", .placement = device::Placement{2, 2}, .outer = true},
                {.id = "3", .profile = "c.b", .parent = "2"},
                {.id = "4", .profile = "b", .placement = device::Placement{4, 2}, .outer = true}}};
  const DesiredParts a{.profile = "A", .placement = device::Placement{0, 2}};
  const DesiredParts c{.profile = "c.b", .outer = device::Placement{2, 2}};
  const DesiredParts b{.profile = "b", .placement = device::Placement{4, 2}, .vacant = true};
  const auto why = [&](std::vector<DesiredParts> parts) {
    return WhyNotAsDesired(now, {"mig", "enabled", std::move(parts)}, false);
  };
  EXPECT_EQ(why({a, c, b}), "");
  EXPECT_EQ(why({{.profile = "c.b"}, a, b}), "");
  EXPECT_EQ(why({a, c}), "b at slices 4-5 (4) is not desired");
  EXPECT_EQ(why({c, b}), "A at slices 0-1 (1) is not desired");
  EXPECT_EQ(why({a, a, c, b}), "A at slices 0-1 is missing");
  EXPECT_EQ(why({a, b, {.profile = "c.b", .outer = device::Placement{4, 2}}}),
            "c.b in the part at slices 4-5 is missing");
  EXPECT_EQ(why({a, c, {.profile = "b", .placement = device::Placement{2, 2}, .vacant = true}}),
            "b at slices 2-3 without parts in it is missing");
}

TEST(WhyNotAsDesired, ComparesPlacesWithinAPart) {
  Division now{
      .modes = {{"mig", "enabled", "enabled", {"disabled", "enabled"}}},
      .parts = {
          {.id = "1", .profile = "b", .placement = device::Placement{0, 8}, .outer = true},
          {.id = "2", .profile = "c.b", .parent = "1", .placement = device::Placement{0, 2}},
          {.id = "3", .profile = "c.b", .parent = "1", .placement = device::Placement{4, 2}}}};
  const auto c = [](std::optional<int> start) {
    DesiredParts parts{.profile = "c.b", .outer = device::Placement{0, 8}};
    if (start) parts.placement = device::Placement{*start, 2};
    return parts;
  };
  const auto why = [&](std::vector<DesiredParts> parts) {
    return WhyNotAsDesired(now, {"mig", "enabled", std::move(parts)}, false);
  };
  EXPECT_EQ(why({c(4), c(0)}), "");
  EXPECT_EQ(why({c({}), c(0)}), "") << "one whose place counts gets it";
  EXPECT_EQ(why({c(2), c(0)}), "c.b at slices 2-3 in the part at slices 0-7 is missing");
  EXPECT_EQ(why({c(0)}), "c.b at slices 4-5 (3) is not desired");
  // Recorded with a driver that has another size of the same part.
  DesiredParts larger = c(4);
  larger.placement->size = 3;
  EXPECT_EQ(why({larger, c(0)}), "");
  EXPECT_EQ(why({larger, larger}), "c.b at slices 4-6 in the part at slices 0-7 is missing");
  for (ExistingPart& part : now.parts)
    if (!part.outer) part.placement.reset();
  EXPECT_EQ(why({c(2), c(0)}), "") << "the driver chooses the places, and does not report them";
}

TEST(DesiredOn, KeepsExactPlacesApart) {
  const auto desired = DesiredOn(Device(),
                                 {.partitioned = true,
                                  .parts = {{"a", 2},
                                            {"a", 1, api::LayoutPlace{4, 2}},
                                            {"b", 2, {}, api::LayoutPlace{0, 4}},
                                            {"b", 1, api::LayoutPlace{6, 1}, {}, true}}},
                                 kDialect);
  ASSERT_TRUE(desired.ok());
  const std::vector<DesiredParts> expected{
      {.profile = "A", .placement = device::Placement{4, 2}},
      {.profile = "b", .count = 2, .outer = device::Placement{0, 4}},
      {.profile = "b", .placement = device::Placement{6, 1}, .vacant = true},
      {.profile = "A", .count = 2}};
  EXPECT_EQ(desired->division.parts, expected);
}

}  // namespace
}  // namespace penstock::node::partition
