#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/penstock/mig/mig_machine.h"
#include "node/partition/testing/devices.h"

namespace penstock::app {
namespace {

using device::Facts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Facts Gpu(int index, const std::string& mode) {
  Facts gpu = node::partition::testing::DeviceOf(
      index, "0x20b0", node::partition::testing::SevenSlices(5, 10, 20, 40));
  gpu.model = "NVIDIA A100";
  gpu.modes = {{"mig",
                mode,
                mode,
                {"disabled", "enabled"},
                device::ModeScope::kDevice,
                device::ModeEffect::kAfterReset}};
  return gpu;
}

Facts PartOf(const std::string& gpu, const std::string& id, const std::string& profile,
             device::Placement at) {
  Facts part;
  part.id = id;
  part.parent = gpu;
  part.profile = profile;
  part.placement = at;
  return part;
}

/// Two GPUs; the first has two parts, of which a pod holds one.
MigMachine Machine() {
  MigMachine machine;
  machine.devices = {Gpu(1, "disabled"), Gpu(0, "enabled"),
                     PartOf("GPU-0", "MIG-a", "1g.5gb", {4, 1}),
                     PartOf("GPU-0", "MIG-b", "3g.20gb", {0, 4})};
  machine.holders = {{"MIG-a", "pod ml/a"}};
  machine.holders_known = true;
  return machine;
}

constexpr char kFile[] = R"(version: v1
mig-configs:
  mixed:
  - devices: [0]
    mig-enabled: true
    mig-devices: {"1g.5gb": 1, "4g.20gb": 1}
  - devices: [1]
    mig-enabled: false
  large:
  - devices: all
    mig-enabled: true
    mig-devices: {"7g.39gb": 1}
  now:
  - devices: [0]
    mig-enabled: true
    mig-devices: {"1g.5gb": 1, "3g.20gb": 1}
)";

api::Layout Layout(const std::string& name) {
  const auto layout = LayoutIn(kFile, "f", name);
  EXPECT_TRUE(layout.ok()) << layout.error().message();
  return *layout;
}

/// What a verb prints on standard error.
template <typename Function>
std::string ErrorsOf(const Function& function) {
  ::testing::internal::CaptureStderr();
  function();
  return ::testing::internal::GetCapturedStderr();
}

TEST(MigVerbs, ReadTheLayoutThatIsSelected) {
  EXPECT_EQ(Layout("mixed").rules.size(), 2u);
  EXPECT_EQ(LayoutIn(kFile, "f", "").error().message(),
            "f has several layouts: choose one with --selected-config: mixed, large, now");
  EXPECT_EQ(LayoutIn(kFile, "f", "mixd").error().message(),
            "f has no layout \"mixd\"; did you mean \"mixed\"?");
  EXPECT_EQ(LayoutIn("version: v1\n", "f", "").error().message(), "f has no layouts");
  EXPECT_TRUE(
      LayoutIn("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false}]}", "f", "")
          .ok());
  EXPECT_THAT(LayoutIn("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: true, "
                       "mig-devices: {big: 1}}]}",
                       "f", "")
                  .error()
                  .message(),
              HasSubstr("f:2:67: mig-configs.a[0].mig-devices.big: \"big\" is no MIG profile"));
}

TEST(MigVerbs, ListPartsAndProfiles) {
  const std::string text = ShowMigList(Machine(), false, {})->text;
  EXPECT_THAT(text, HasSubstr("GPU  MODEL        MIG       PART   PROFILE  SLICES  HOLDER\n"
                              "0    NVIDIA A100  enabled   MIG-a  1g.5gb   4       pod ml/a\n"
                              "0    NVIDIA A100  enabled   MIG-b  3g.20gb  0-3     -\n"
                              "1    NVIDIA A100  disabled  -      -        -       -\n"));
  EXPECT_THAT(text, HasSubstr("GPU  PROFILE     MOST  COMPUTE  MEMORY  SLICES\n"
                              "0,1  1g.5gb      7     1        -       0 1 2 3 4 5 6\n"));
  EXPECT_THAT(text, HasSubstr("0,1  3g.20gb     2     3        -       0-3 4-7\n"));
  const auto json = nlohmann::json::parse(ShowMigList(Machine(), true, {})->text);
  EXPECT_EQ(json["devices"][0]["mode"], "enabled");
  EXPECT_EQ(json["devices"][0]["parts"][1],
            nlohmann::json::parse(R"({"id": "MIG-b", "profile": "3g.20gb", "within": "",
              "placement": {"start": 0, "size": 4}, "outer": false, "holder": ""})"));
  EXPECT_EQ(json["devices"][1]["profiles"][1],
            nlohmann::json::parse(R"({"name": "1g.5gb+me", "slices": 1, "most": 1, "memoryBytes": 0,
              "placements": [{"start": 0, "size": 1}, {"start": 1, "size": 1}, {"start": 2, "size": 1},
              {"start": 3, "size": 1}, {"start": 4, "size": 1}, {"start": 5, "size": 1},
              {"start": 6, "size": 1}], "engines": {"copy": 1, "ofa": 1}})"));
}

TEST(MigVerbs, SayWhenNothingCanBeDivided) {
  MigMachine machine = Machine();
  for (Facts& device : machine.devices) device.profiles.clear();
  machine.devices[0].modes.clear();
  std::string text;
  EXPECT_THAT(ErrorsOf([&] { text = ShowMigList(machine, false, {})->text; }),
              HasSubstr("no GPU of this machine can be divided: the driver lists no profiles"));
  EXPECT_THAT(text, HasSubstr("unavailable"));
  EXPECT_THAT(GenerateMigLayouts(machine).error().message(), HasSubstr("no GPU of this machine"));
  machine.devices.clear();
  EXPECT_EQ(ShowMigList(machine, false, {})->text, "This machine has no NVIDIA GPUs.");
  EXPECT_FALSE(ExportMigLayout(machine, "a").ok());
}

TEST(MigVerbs, PlanTheStepsOfEachGpu) {
  MigMachine machine = Machine();
  machine.remarks = {"GPU 7 does not respond"};
  Shown shown("");
  EXPECT_EQ(ErrorsOf([&] { shown = *ShowMigPlan(machine, Layout("mixed"), false); }),
            "penstock mig: GPU 7 does not respond\n");
  EXPECT_EQ(shown.status, 0);
  EXPECT_EQ(shown.text,
            "GPU 0 (GPU-0): 2 steps, 1 part stays\n"
            "  1. Destroy 3g.20gb at slices 0-3 (MIG-b): none of 3g.20gb is desired.\n"
            "  2. Create 4g.20gb at slices 0-3.\n"
            "GPU 1 (GPU-1): no change\n");
}

TEST(MigVerbs, AnswerNoWhereALayoutIsImpossible) {
  const auto shown = ShowMigPlan(Machine(), Layout("large"), false);
  ASSERT_TRUE(shown.ok());
  EXPECT_EQ(shown->status, command::kNo);
  EXPECT_EQ(shown->text,
            "GPU 0 (GPU-0): impossible\n"
            "  1g.5gb at slice 4 (MIG-a), held by pod ml/a: none of 1g.5gb is desired\n"
            "GPU 1 (GPU-1): 3 steps\n"
            "  1. Change the mode mig from \"disabled\" to \"enabled\".\n"
            "  2. Reset the device, so that the mode mig takes effect.\n"
            "  3. Create 7g.40gb at slices 0-7.\n"
            "  Note: 7g.39gb is 7g.40gb here.\n");
  const auto json = nlohmann::json::parse(ShowMigPlan(Machine(), Layout("large"), true)->text);
  EXPECT_EQ(json["possible"], false);
  EXPECT_EQ(json["devices"][0]["problems"].size(), 1u);
  EXPECT_EQ(json["devices"][1]["steps"][2],
            nlohmann::json::parse(R"({"action": "create", "profile": "7g.40gb",
              "placement": {"start": 0, "size": 8}, "text": "Create 7g.40gb at slices 0-7."})"));
  MigMachine small = Machine();
  small.devices.erase(small.devices.begin());
  EXPECT_EQ(ShowMigPlan(small, Layout("mixed"), false).error().message(),
            "layout mixed, rules[1]: device 1 does not exist; the devices are 0");
}

TEST(MigVerbs, SayNothingOfAGpuWithAPartThatDoesNotRespond) {
  MigMachine machine = Machine();
  Facts& gpu = machine.devices[1];
  gpu.parts = {"MIG-a", "MIG-b", "MIG-c"};
  machine.devices[2].address = "MIG-a";
  machine.devices[3].address = "MIG-b";
  const std::string why = "its part MIG-c does not respond";
  EXPECT_EQ(machine.WhyNotKnown(gpu), why);
  EXPECT_EQ(machine.WhyNotKnown(machine.devices[0]), "");
  std::vector<std::string> remarks;
  EXPECT_THAT(*WhyNotApplied(machine, Layout("now"), false, remarks),
              ElementsAre("GPU 0 (GPU-0): " + why));
  EXPECT_THAT(*WhyNotApplied(machine, Layout("now"), true, remarks), IsEmpty());
  const auto plan = ShowMigPlan(machine, Layout("mixed"), false);
  EXPECT_EQ(plan->status, command::kNo);
  EXPECT_EQ(plan->text, "GPU 0 (GPU-0): impossible\n  " + why + "\nGPU 1 (GPU-1): no change\n");
  EXPECT_EQ(ExportMigLayout(machine, "a").error().message(), "GPU 0 (GPU-0): " + why);
  gpu.parts.pop_back();
  EXPECT_EQ(machine.WhyNotKnown(gpu), "");
  EXPECT_THAT(*WhyNotApplied(machine, Layout("now"), false, remarks), IsEmpty());
}

TEST(MigVerbs, AssertWhatIsApplied) {
  std::string errors = ErrorsOf([] {
    const auto shown = AssertMigLayout(Machine(), Layout("now"), false);
    ASSERT_TRUE(shown.ok());
    EXPECT_EQ(shown->status, 0);
    EXPECT_EQ(shown->text, "Layout now is applied.");
  });
  EXPECT_THAT(errors, HasSubstr("no rule is for device 1, which stays as divided now"));
  errors = ErrorsOf([] {
    EXPECT_EQ(AssertMigLayout(Machine(), Layout("mixed"), false).error().message(),
              "layout mixed is not applied");
    EXPECT_TRUE(AssertMigLayout(Machine(), Layout("mixed"), true).ok());
    EXPECT_FALSE(AssertMigLayout(Machine(), Layout("large"), true).ok());
  });
  EXPECT_THAT(errors, HasSubstr("GPU 0 (GPU-0): it has 1 of 1g.5gb, 1 of 3g.20gb, not 1 of 1g.5gb, "
                                "1 of 4g.20gb"));
  EXPECT_THAT(errors, HasSubstr("GPU 1 (GPU-1): the mode mig is \"disabled\", not \"enabled\""));
}

TEST(MigVerbs, ExportALayoutThatIsApplied) {
  const std::string text = ExportMigLayout(Machine(), "before")->text;
  EXPECT_EQ(text,
            R"({"version":"v1","mig-configs":{"before":[{"devices":[0],"mig-enabled":true,)"
            R"("mig-devices":{"1g.5gb":1,"3g.20gb":1}},{"devices":[1],"mig-enabled":false}]}})");
  EXPECT_TRUE(AssertMigLayout(Machine(), *LayoutIn(text, "f", "before"), false).ok());
}

TEST(MigVerbs, GenerateLayoutsThatCanBePlanned) {
  MigMachine machine = Machine();
  machine.holders.clear();
  const std::string text = GenerateMigLayouts(machine)->text;
  for (const char* name : {"all-disabled", "all-enabled", "all-1g.5gb", "all-1g.5gb.me",
                           "all-7g.40gb", "all-balanced"})
    EXPECT_EQ(ShowMigPlan(machine, *LayoutIn(text, "f", name), false)->status, 0) << name;
}

TEST(MigVerbs, ShowNoControlCharactersOfIds) {
  MigMachine machine = Machine();
  machine.devices[1].id = machine.devices[2].parent = machine.devices[3].parent = "GPU\x1b[2J";
  EXPECT_THAT(ShowMigPlan(machine, Layout("mixed"), false)->text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ShowMigList(machine, false, {})->text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace penstock::app
