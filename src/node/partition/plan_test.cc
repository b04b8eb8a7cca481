#include "node/partition/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/partition/testing/profile_tables.h"
#include "node/partition/testing/reference_model.h"

namespace penstock::node::partition {
namespace {

using device::ModeEffect;
using device::Placement;
using ::testing::HasSubstr;
using testing::ReferenceDevice;

ExistingPart Whole(const std::string& id, const std::string& profile, Placement at,
                   const std::string& holder = "") {
  return {.id = id, .profile = profile, .placement = at, .holder = holder};
}

ExistingPart Outer(const std::string& id, const std::string& profile, Placement at) {
  return {.id = id, .profile = profile, .placement = at, .outer = true};
}

ExistingPart In(const std::string& outer, const std::string& id, const std::string& profile,
                Placement at, const std::string& holder = "") {
  return {.id = id, .profile = profile, .parent = outer, .placement = at, .holder = holder};
}

Division A100(std::vector<ExistingPart> parts = {}, const std::string& mode = "enabled",
              ModeEffect effect = ModeEffect::kAfterReset) {
  return {
      .device = "GPU-0",
      .profiles = testing::SevenSlices(5, 10, 20, 40),
      .modes = {{"mig", mode, mode, {"disabled", "enabled"}, device::ModeScope::kDevice, effect}},
      .parts = std::move(parts)};
}

DesiredDivision Enabled(std::vector<DesiredParts> parts) {
  return {"mig", "enabled", std::move(parts)};
}

std::vector<std::string> Texts(const PartitionPlan& plan) {
  std::vector<std::string> texts;
  for (const PlanStep& step : plan.steps) texts.push_back(step.text);
  return texts;
}

/// The steps' texts, after a device took them; the error where there is no plan.
std::vector<std::string> Planned(const Division& now, const DesiredDivision& desired,
                                 const PlanPolicy& policy = {}) {
  const auto plan = MakePlan(now, desired, policy);
  if (!plan.ok()) return {plan.error().message()};
  EXPECT_EQ(ReferenceDevice(now).Take(*plan, policy.destroy_held), "");
  return Texts(*plan);
}

std::string ErrorOf(const Division& now, const DesiredDivision& desired, Code code) {
  const auto plan = MakePlan(now, desired, {});
  if (plan.ok()) return "there is a plan";
  EXPECT_EQ(plan.error().code(), code) << plan.error().message();
  return plan.error().message();
}

using Steps = std::vector<std::string>;

TEST(Plan, CreatesTheLargePartsFirstAtExplicitPlacements) {
  EXPECT_EQ(Planned(A100(), Enabled({{"1g.5gb", 2}, {"2g.10gb"}, {"3g.20gb"}})),
            (Steps{"Create 3g.20gb at slices 4-7.", "Create 2g.10gb at slices 0-1.",
                   "Create 1g.5gb at slice 2.", "Create 1g.5gb at slice 3."}));
}

TEST(Plan, FindsAPlacementWhereTheOrderOfTheFileWouldNotFit) {
  // Created one after the other at the lowest slice, 1g would be in the way of 4g.
  EXPECT_EQ(Planned(A100(), Enabled({{"1g.5gb", 3}, {"4g.20gb"}})),
            (Steps{"Create 4g.20gb at slices 0-3.", "Create 1g.5gb at slice 4.",
                   "Create 1g.5gb at slice 5.", "Create 1g.5gb at slice 6."}));
}

TEST(Plan, ChangesNothingOnADeviceThatIsDividedAsDesired) {
  const auto plan =
      MakePlan(A100({Whole("a", "3g.20gb", {0, 4}, "pod ml/a"), Whole("b", "3g.20gb", {4, 4})}),
               Enabled({{"3g.20gb", 2}}), {});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->steps.empty());
  EXPECT_EQ(plan->kept, (std::vector<std::string>{"a", "b"}));
}

TEST(Plan, KeepsHeldPartsWhereTheyAreAndDestroysOnlyWhatIsInTheWay) {
  EXPECT_EQ(Planned(A100({Whole("a", "1g.5gb", {0, 1}, "pod ml/a"), Whole("b", "1g.5gb", {1, 1}),
                          Whole("c", "1g.5gb", {4, 1}), Whole("d", "1g.5gb", {2, 1})}),
                    Enabled({{"1g.5gb", 3}, {"3g.20gb"}})),
            (Steps{"Destroy 1g.5gb at slice 4 (c): only 3 are desired.",
                   "Create 3g.20gb at slices 4-7."}));
  EXPECT_EQ(Planned(A100({Whole("a", "1g.5gb", {0, 1}, "pod ml/a"), Whole("c", "1g.5gb", {4, 1})}),
                    Enabled({{"1g.5gb", 2}, {"3g.20gb"}})),
            (Steps{"Destroy 1g.5gb at slice 4 (c): 3g.20gb at slices 4-7 needs its place.",
                   "Create 3g.20gb at slices 4-7.", "Create 1g.5gb at slice 1."}));
}

TEST(Plan, NamesTheHolderThatIsInTheWay) {
  const Division now =
      A100({Whole("a", "1g.5gb", {0, 1}, "pod ml/a"), Whole("b", "1g.5gb", {5, 1}, "pod ml/b")});
  EXPECT_EQ(ErrorOf(now, Enabled({{"1g.5gb", 2}, {"4g.20gb"}}), Code::kFailedPrecondition),
            "2 of 1g.5gb and 1 of 4g.20gb do not fit beside 1g.5gb at slice 0 (a), held by pod "
            "ml/a; they will as soon as it is released");
  EXPECT_EQ(ErrorOf(now, Enabled({{"3g.20gb", 2}}), Code::kFailedPrecondition),
            "1g.5gb at slice 0 (a), held by pod ml/a: none of 1g.5gb is desired\n"
            "1g.5gb at slice 5 (b), held by pod ml/b: none of 1g.5gb is desired");
  EXPECT_EQ(ErrorOf(now, Enabled({{"1g.5gb"}}), Code::kFailedPrecondition),
            "1g.5gb at slice 0 (a), held by pod ml/a: only 1 of 1g.5gb are desired, and 2 are "
            "held\n1g.5gb at slice 5 (b), held by pod ml/b: only 1 of 1g.5gb are desired, and 2 "
            "are held");
}

TEST(Plan, DestroysTheFewestHeldPartsWhereThatIsPermitted) {
  const Division now =
      A100({Whole("a", "1g.5gb", {0, 1}, "pod ml/a"), Whole("b", "1g.5gb", {5, 1}, "pod ml/b"),
            Whole("c", "1g.5gb", {6, 1})});
  EXPECT_EQ(Planned(now, Enabled({{"1g.5gb", 2}, {"4g.20gb"}}), {.destroy_held = true}),
            (Steps{"Destroy 1g.5gb at slice 0 (a), held by pod ml/a: only 2 are desired.",
                   "Create 4g.20gb at slices 0-3."}));
}

TEST(Plan, ExplainsWhatNoDeviceOfTheModelCanHave) {
  const auto error = [](std::vector<DesiredParts> parts) {
    return ErrorOf(A100(), Enabled(std::move(parts)), Code::kInvalidArgument);
  };
  EXPECT_EQ(error({{"1g.6gb"}, {"9q"}}),
            "the device has no profile \"1g.6gb\"; did you mean \"1g.5gb\"?\n"
            "the device has no profile \"9q\"; it has 1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, "
            "3g.20gb, 4g.20gb, 7g.40gb, 1c.2g.10gb, 1c.3g.20gb, 2c.3g.20gb, 1c.4g.20gb, "
            "2c.4g.20gb, 1c.7g.40gb, 2c.7g.40gb, 3c.7g.40gb, 4c.7g.40gb");
  EXPECT_EQ(error({{"1g.5gb", 8}}), "there can be at most 7 of 1g.5gb at once, not 8");
  EXPECT_EQ(error({{"1g.5gb+me", 2}}), "there can be at most 1 of 1g.5gb+me at once, not 2");
  EXPECT_EQ(error({{"4g.20gb"}, {"3g.20gb"}, {"1g.5gb"}}),
            "8 slices of compute are needed, and there are 7");
  EXPECT_EQ(error({{"3g.20gb"}, {"2g.10gb", 2}, {"1g.5gb"}}),
            "8 slices of compute are needed, and there are 7");
  EXPECT_EQ(error({{"3g.20gb"}, {"1g.10gb", 3}}),
            "1 of 3g.20gb and 3 of 1g.10gb take 10 slices of memory, and the device has 8");
  EXPECT_EQ(error({{"3g.20gb"}, {"2g.10gb"}, {"1g.10gb"}}), "there is a plan");
  EXPECT_EQ(error({{"4g.20gb"}, {"1g.5gb", 2}, {"1g.10gb"}, {"1g.5gb+me", 0}}), "there is a plan");
  EXPECT_EQ(error({{"3g.20gb", 2}, {"1g.5gb+me"}}),
            "2 of 3g.20gb and 1 of 1g.5gb+me take 9 slices of memory, and the device has 8");
  EXPECT_EQ(error({{"2g.10gb", 3}, {"1g.10gb"}, {"1g.5gb"}}),
            "8 slices of compute are needed, and there are 7");
  const Division acme{.device = "d", .profiles = testing::Acme()};
  EXPECT_EQ(ErrorOf(acme, {.parts = {{"slab"}, {"dot", 4}}}, Code::kInvalidArgument),
            "1 of slab and 4 of dot do not fit together, wherever they are placed; without one of "
            "slab or dot they do");
  EXPECT_EQ(error({{"1g.5gb", 2'000'000'000}, {"2g.10gb", 2'000'000'000}}),
            "more than 256 parts are desired, which no device has");
}

TEST(Plan, CountsEnginesOfPartsTogether) {
  Division now{.device = "d", .profiles = testing::RtxPro6000()};
  EXPECT_EQ(ErrorOf(now, {.parts = {{"1g.24gb+me"}, {"2g.48gb+me.all"}}}, Code::kInvalidArgument),
            "there are 4 engines media, and 5 are needed");
  EXPECT_EQ(ErrorOf(now, {.parts = {{"1g.24gb+me"}, {"1g.24gb+me.all"}, {"1g.24gb-me"}}},
                    Code::kInvalidArgument),
            "there are 4 engines media, and 5 are needed");
  EXPECT_EQ(Planned(now, {.parts = {{"1g.24gb-me", 2}, {"2g.48gb+me.all"}}}).size(), 3u);
}

TEST(Plan, EnablesTheModeBeforePartsAreCreatedAndResetsOnlyWhereTheDriverNeedsIt) {
  EXPECT_EQ(Planned(A100({}, "disabled"), Enabled({{"7g.40gb"}})),
            (Steps{"Change the mode mig from \"disabled\" to \"enabled\".",
                   "Reset the device, so that the mode mig takes effect.",
                   "Create 7g.40gb at slices 0-7."}));
  EXPECT_EQ(Planned(A100({}, "disabled", ModeEffect::kNow), Enabled({{"7g.40gb"}})),
            (Steps{"Change the mode mig from \"disabled\" to \"enabled\".",
                   "Create 7g.40gb at slices 0-7."}));
  EXPECT_EQ(Planned(A100({}, "disabled", ModeEffect::kAfterDriverReload), Enabled({})),
            (Steps{"Change the mode mig from \"disabled\" to \"enabled\".",
                   "Reload the driver, so that the mode mig takes effect."}));
  Division pending = A100({}, "disabled");
  pending.modes[0].pending = "enabled";
  EXPECT_EQ(Planned(pending, Enabled({})),
            (Steps{"Reset the device, so that the mode mig takes effect."}));
  EXPECT_EQ(Planned(pending, {"mig", "disabled", {}}),
            (Steps{"Withdraw the pending change of the mode mig to \"enabled\"."}));
  EXPECT_EQ(Planned(A100({}, "disabled"), {"mig", "disabled", {}}), Steps());
}

TEST(Plan, DestroysAllPartsBeforeTheModeIsDisabled) {
  EXPECT_EQ(Planned(A100({Outer("o", "3g.20gb", {4, 4}), In("o", "i", "1c.3g.20gb", {2, 1}),
                          Whole("a", "1g.5gb", {0, 1})}),
                    {"mig", "disabled", {}}),
            (Steps{"Destroy 1c.3g.20gb at slice 2 (i): the mode mig changes.",
                   "Destroy 3g.20gb at slices 4-7 (o): the mode mig changes.",
                   "Destroy 1g.5gb at slice 0 (a): the mode mig changes.",
                   "Change the mode mig from \"enabled\" to \"disabled\".",
                   "Reset the device, so that the mode mig takes effect."}));
}

TEST(Plan, DoesNotChangeTheModeOfAHeldDevice) {
  EXPECT_EQ(ErrorOf(A100({Whole("a", "1g.5gb", {0, 1}, "run 7")}), {"mig", "disabled", {}},
                    Code::kFailedPrecondition),
            "the mode mig changes, which destroys all parts, and 1g.5gb at slice 0 (a) is held by "
            "run 7");
  Division held = A100({}, "disabled");
  held.holder = "pod ml/b";
  EXPECT_EQ(ErrorOf(held, Enabled({}), Code::kFailedPrecondition),
            "the mode mig cannot change while the device is held by pod ml/b");
  EXPECT_EQ(ErrorOf(A100({Whole("a", "1g.5gb", {0, 1}, "run 7")}), Enabled({}),
                    Code::kFailedPrecondition),
            "no parts are desired, and 1g.5gb at slice 0 (a) is held by run 7");
}

TEST(Plan, SaysWhenTheDriverListsNoProfiles) {
  Division now = A100({}, "disabled");
  now.profiles.clear();
  EXPECT_EQ(ErrorOf(now, Enabled({{"1g.5gb"}}), Code::kFailedPrecondition),
            "the driver lists the device's profiles only once the mode mig is \"enabled\": change "
            "the mode first, without parts");
  EXPECT_EQ(Planned(now, Enabled({})).size(), 2u);
  now.modes.clear();
  EXPECT_EQ(ErrorOf(now, {.parts = {{"1g.5gb"}}}, Code::kFailedPrecondition),
            "the device cannot be divided: its driver lists no profiles of parts");
  EXPECT_EQ(ErrorOf(now, Enabled({}), Code::kInvalidArgument), "the device has no mode \"mig\"");
  EXPECT_EQ(ErrorOf(A100(), {"mig", "on", {}}, Code::kInvalidArgument),
            "the mode mig cannot be \"on\": it can be disabled, enabled");
}

TEST(Plan, CreatesOuterPartsForPartsWithinThem) {
  EXPECT_EQ(Planned(A100(), Enabled({{"1c.3g.20gb", 4}, {"1g.5gb"}})).front(),
            "1 of 1g.5gb and 4 of 1c.3g.20gb do not fit together, wherever they are placed; "
            "without one of 1g.5gb or 1c.3g.20gb they do");
  EXPECT_EQ(
      Planned(A100(), Enabled({{"1c.3g.20gb", 3}, {"1g.5gb"}})),
      (Steps{"Create 3g.20gb at slices 4-7, for parts within it.",
             "Create 1c.3g.20gb at slice 0 of the new 3g.20gb.",
             "Create 1c.3g.20gb at slice 1 of the new 3g.20gb.",
             "Create 1c.3g.20gb at slice 2 of the new 3g.20gb.", "Create 1g.5gb at slice 0."}));
  Division placing = A100();
  placing.profiles = testing::WithoutPlacesWithin(placing.profiles);
  EXPECT_EQ(
      Planned(placing, Enabled({{"1c.3g.20gb"}, {"2c.3g.20gb"}})),
      (Steps{"Create 3g.20gb at slices 4-7, for parts within it.",
             "Create 2c.3g.20gb of the new 3g.20gb.", "Create 1c.3g.20gb of the new 3g.20gb."}));
}

TEST(Plan, PlacesPartsWithinAPartSoThatAllFit) {
  // The largest first, each at the lowest slice, the second 2c would not fit.
  for (const int three : {3, 4}) {
    Division now = A100();
    now.profiles = testing::SevenSlices(5, 10, 20, 40, three);
    EXPECT_EQ(Planned(now, Enabled({{"2c.7g.40gb", 2}, {"3c.7g.40gb"}})),
              (Steps{"Create 7g.40gb at slices 0-7, for parts within it.",
                     "Create 3c.7g.40gb at slices 4-" + std::to_string(3 + three) +
                         " of the new 7g.40gb.",
                     "Create 2c.7g.40gb at slices 0-1 of the new 7g.40gb.",
                     "Create 2c.7g.40gb at slices 2-3 of the new 7g.40gb."}));
  }
  Division halves = A100();
  halves.profiles = testing::SevenSlices(5, 10, 20, 40, 4);
  EXPECT_EQ(ErrorOf(halves, Enabled({{"3c.7g.40gb", 2}, {"1c.7g.40gb"}}), Code::kInvalidArgument),
            "2 of 3c.7g.40gb and 1 of 1c.7g.40gb do not fit together, wherever they are placed; "
            "without one of 3c.7g.40gb or 1c.7g.40gb they do");
  EXPECT_EQ(Planned(A100(), Enabled({{"3c.7g.40gb", 2}, {"1c.7g.40gb"}})).back(),
            "Create 1c.7g.40gb at slice 3 of the new 7g.40gb.");
}

TEST(Plan, KeepsPartsWithinAPartWhereTheyAreAndNamesTheSliceInTheWay) {
  Division now = A100({Outer("o", "7g.40gb", {0, 8}), In("o", "i", "2c.7g.40gb", {4, 2}),
                       In("o", "j", "2c.7g.40gb", {2, 2}, "pod ml/a")});
  EXPECT_EQ(
      Planned(now, Enabled({{"2c.7g.40gb", 2}, {"3c.7g.40gb"}})),
      (Steps{"Destroy 2c.7g.40gb at slices 4-5 (i): 3c.7g.40gb at slices 4-6 needs its place.",
             "Create 3c.7g.40gb at slices 4-6 in o.", "Create 2c.7g.40gb at slices 0-1 in o."}));
  EXPECT_EQ(ErrorOf(now, Enabled({{"2c.7g.40gb"}, {"4c.7g.40gb"}}), Code::kFailedPrecondition),
            "1 of 2c.7g.40gb and 1 of 4c.7g.40gb do not fit beside 2c.7g.40gb at slices 2-3 (j), "
            "held by pod ml/a; they will as soon as it is released");
  // Where the driver permits more placements, and one of another program is at one of them.
  now.profiles = testing::AnywhereWithin(now.profiles);
  now.parts[2].placement = Placement{3, 2};
  now.parts[1].placement = Placement{0, 2};
  EXPECT_EQ(Planned(now, Enabled({{"2c.7g.40gb", 3}})),
            (Steps{"Create 2c.7g.40gb at slices 5-6 in o."}));
}

TEST(Plan, CreatesPartsInTheOuterPartsThatExist) {
  const Division now =
      A100({Outer("o", "3g.20gb", {0, 4}), In("o", "i", "1c.3g.20gb", {2, 1}, "pod ml/a"),
            Outer("p", "3g.20gb", {4, 4}), In("p", "j", "1c.3g.20gb", {0, 1}),
            In("p", "k", "1c.3g.20gb", {1, 1})});
  EXPECT_EQ(Planned(now, Enabled({{"1c.3g.20gb", 4}})),
            (Steps{"Create 1c.3g.20gb at slice 0 in o."}));
  EXPECT_EQ(Planned(now, Enabled({{"2c.3g.20gb"}, {"1c.3g.20gb"}})),
            (Steps{"Destroy 1c.3g.20gb at slice 0 (j): only one is desired.",
                   "Destroy 1c.3g.20gb at slice 1 (k): only one is desired.",
                   "Destroy 3g.20gb at slices 4-7 (p): no part is left in it.",
                   "Create 2c.3g.20gb at slices 0-1 in o."}));
  EXPECT_EQ(Planned(now, Enabled({{"1c.3g.20gb"}, {"3g.20gb"}})),
            (Steps{"Destroy 1c.3g.20gb at slice 0 (j): only one is desired.",
                   "Destroy 1c.3g.20gb at slice 1 (k): only one is desired.",
                   "Destroy 3g.20gb at slices 4-7 (p): no part is left in it.",
                   "Create 3g.20gb at slices 4-7."}));
  // Two outer parts do not leave room for 2g; their three parts fit into one of them.
  EXPECT_EQ(Planned(now, Enabled({{"1c.3g.20gb", 3}, {"2g.10gb"}})),
            (Steps{"Destroy 1c.3g.20gb at slice 0 (j): the others need it elsewhere.",
                   "Destroy 1c.3g.20gb at slice 1 (k): the others need it elsewhere.",
                   "Destroy 3g.20gb at slices 4-7 (p): no part is left in it.",
                   "Create 1c.3g.20gb at slice 0 in o.", "Create 1c.3g.20gb at slice 1 in o.",
                   "Create 2g.10gb at slices 4-5."}));
}

TEST(Plan, RecreatesAPartThatCannotBeHeld) {
  // A GPU instance without a compute instance.
  EXPECT_EQ(Planned(A100({Outer("o", "3g.20gb", {4, 4})}), Enabled({{"3g.20gb"}})),
            (Steps{"Destroy 3g.20gb at slices 4-7 (o): no part is left in it.",
                   "Create 3g.20gb at slices 4-7."}));
}

TEST(Plan, RestoresPartsAtTheirExactPlacements) {
  const DesiredDivision checkpoint = Enabled({{"1g.5gb", 1, Placement{2, 1}},
                                              {"1g.5gb", 1, Placement{0, 1}},
                                              {"1c.3g.20gb", 2, std::nullopt, Placement{4, 4}}});
  EXPECT_EQ(Planned(A100(), checkpoint),
            (Steps{"Create 3g.20gb at slices 4-7, for parts within it.",
                   "Create 1c.3g.20gb at slice 0 of the new 3g.20gb.",
                   "Create 1c.3g.20gb at slice 1 of the new 3g.20gb.", "Create 1g.5gb at slice 0.",
                   "Create 1g.5gb at slice 2."}));
  EXPECT_EQ(Planned(A100({Whole("a", "1g.5gb", {1, 1}), Whole("b", "1g.5gb", {2, 1}),
                          Outer("o", "3g.20gb", {4, 4}), In("o", "i", "1c.3g.20gb", {1, 1})}),
                    checkpoint),
            (Steps{"Destroy 1g.5gb at slice 1 (a): the others need it elsewhere.",
                   "Create 1c.3g.20gb at slice 0 in o.", "Create 1g.5gb at slice 0."}));
  const auto error = [](std::vector<DesiredParts> parts) {
    return ErrorOf(A100(), Enabled(std::move(parts)), Code::kInvalidArgument);
  };
  EXPECT_EQ(error({{"3g.20gb", 1, Placement{2, 4}}}),
            "3g.20gb at slices 2-5 is impossible: it can begin at slices 0, 4, with a size of 4");
  EXPECT_EQ(error({{"1g.5gb", 2, Placement{2, 1}}}), "2 of 1g.5gb are desired at one placement");
  EXPECT_EQ(error({{"4g.20gb", 1, Placement{0, 4}}, {"1g.5gb", 1, Placement{3, 1}}}),
            "4g.20gb at slices 0-3 and 1g.5gb at slice 3 overlap");
  EXPECT_EQ(error({{"1c.3g.20gb", 1, Placement{0, 1}}}),
            "of 1c.3g.20gb a placement is desired, but not in which 3g.20gb");
  EXPECT_EQ(error({{"1g.5gb", 1, std::nullopt, Placement{0, 4}}}),
            "1g.5gb is created on the device, and in no other part");
  EXPECT_EQ(ErrorOf(A100({Whole("a", "1g.5gb", {1, 1}, "pod ml/a")}),
                    Enabled({{"1g.5gb", 1, Placement{2, 1}}}), Code::kFailedPrecondition),
            "1 of 1g.5gb do not fit beside 1g.5gb at slice 1 (a), held by pod ml/a; they will as "
            "soon as it is released");
}

TEST(Plan, DoesNotPlaceAnythingBesideAHeldPartWhosePlacementIsUnknown) {
  const Division now = A100(
      {{.id = "a", .profile = "1g.5gb", .holder = "pod ml/a"}, {.id = "b", .profile = "1g.5gb"}});
  EXPECT_EQ(Planned(now, Enabled({{"1g.5gb", 2}})), Steps());
  EXPECT_THAT(ErrorOf(now, Enabled({{"1g.5gb", 3}}), Code::kFailedPrecondition),
              HasSubstr("do not fit beside 1g.5gb (a), held by pod ml/a"));
}

TEST(Plan, RefusesProfilesThatCannotBe) {
  for (const Placement at : {Placement{-1, 1}, Placement{0, 0}, Placement{0, 65}, Placement{64, 1},
                             Placement{2'147'483'647, 2'147'483'647}}) {
    const Division now{.device = "d", .profiles = {testing::Profile("p", 1, 1, {at})}};
    EXPECT_THAT(ErrorOf(now, {.parts = {{"p"}}}, Code::kFailedPrecondition),
                HasSubstr("which is impossible"));
  }
  Division now{.device = "d", .profiles = testing::Acme()};
  now.profiles.back().within = "chip";
  EXPECT_EQ(ErrorOf(now, {.parts = {{"chip"}}}, Code::kFailedPrecondition),
            "the driver reports of the profile chip that it is created within chip, which is no "
            "profile of the device itself");
  const Division outside =
      A100({Whole("a", "1g.5gb", {-2'000'000'000, 2'147'483'647}), Whole("b", "1g.5gb", {64, 1}),
            Whole("c", "1g.5gb", {2'147'483'647, 2'147'483'647})});
  EXPECT_EQ(Planned(outside, Enabled({{"1g.5gb", 7}})).size(), 10u);
  // A part of a profile that the driver does not list is destroyed, unless it is held.
  Division odd = A100({Whole("a", "5g.30gb", {0, 60})});
  EXPECT_EQ(Planned(odd, Enabled({{"7g.40gb"}})).front(),
            "Destroy 5g.30gb at slices 0-59 (a): none of 5g.30gb is desired.");
  odd.parts[0].holder = "run 1";
  EXPECT_EQ(ErrorOf(odd, Enabled({{"7g.40gb"}}), Code::kFailedPrecondition),
            "5g.30gb at slices 0-59 (a), held by run 1: none of 5g.30gb is desired");
}

TEST(Plan, EndsWithMorePartsWithinPartsThanCanBeDistributed) {
  EXPECT_EQ(
      ErrorOf(A100(), Enabled({{"1c.3g.20gb", 200}, {"2c.3g.20gb", 50}}), Code::kInvalidArgument),
      "200 of 1c.3g.20gb and 50 of 2c.3g.20gb do not fit together, wherever they are placed");
  // A made-up device with 40 outer parts, whose parts leave a slice of each unused.
  for (const bool placed : {false, true}) {
    testing::Profiles profiles = {testing::Profile("o", 5, 0, {}),
                                  testing::Profile("all", 200, 1, {})};
    for (const int slices : {2, 3}) testing::AddWithin(profiles, "o", slices, 0, {});
    if (placed) profiles = testing::AnywhereWithin(profiles);
    const Division now{.device = "d", .profiles = profiles};
    const auto plan = MakePlan(now, {.parts = {{"2c.o", 40}, {"3c.o", 40}}}, {});
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    EXPECT_EQ(ReferenceDevice(now).Take(*plan), "");
    const auto none = MakePlan(now, {.parts = {{"3c.o", 41}, {"2c.o", 38}}}, {});
    ASSERT_FALSE(none.ok());
  }
}

TEST(Plan, EndsOnDevicesWithMorePlacementsThanCanBeTried) {
  std::vector<int> starts(63);
  for (int i = 0; i < 63; ++i) starts[static_cast<std::size_t>(i)] = i;
  Division now{.device = "d",
               .profiles = {testing::Profile("a", 1, 0, testing::At(starts, 2)),
                            testing::Profile("b", 1, 0, testing::At(starts, 1)),
                            testing::Profile("all", 64, 1, {{0, 64}})}};
  const auto plan = MakePlan(now, {.parts = {{"a", 16}, {"b", 16}}}, {});
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  EXPECT_FALSE(plan->proven);
  EXPECT_EQ(ReferenceDevice(now).Take(*plan), "");
  // Between parts that are held there is room for one, in one of two places each.
  int held = 0;
  for (int slice = 3; slice < 63; slice += 4, ++held)
    now.parts.push_back(Whole(std::to_string(slice), "b", {slice, 1}, "run 1"));
  const auto none = MakePlan(now, {.parts = {{"a", 18}, {"b", held}}}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kResourceExhausted) << none.error().message();
}

TEST(Plan, CreatesExactlyThePartsOfACheckpoint) {
  const DesiredDivision exact =
      Enabled({{.profile = "2g.10gb", .placement = Placement{4, 2}},
               {.profile = "1c.3g.20gb", .count = 2, .outer = Placement{0, 4}},
               {.profile = "1g.5gb", .placement = Placement{6, 1}, .vacant = true}});
  EXPECT_EQ(Planned(A100({Whole("MIG-a", "2g.10gb", {4, 2}), Whole("MIG-b", "1g.5gb", {6, 1}),
                          Outer("3", "3g.20gb", {0, 4}), In("3", "MIG-c", "1c.3g.20gb", {2, 1})}),
                    exact),
            (Steps{"Destroy 1g.5gb at slice 6 (MIG-b): none of 1g.5gb is desired.",
                   "Create 1c.3g.20gb at slice 0 in 3.",
                   "Create 1g.5gb at slice 6, for parts within it."}));
  const Division same = A100({Outer("3", "3g.20gb", {0, 4}), In("3", "MIG-c", "1c.3g.20gb", {0, 1}),
                              In("3", "MIG-d", "1c.3g.20gb", {2, 1}),
                              Whole("MIG-a", "2g.10gb", {4, 2}), Outer("9", "1g.5gb", {6, 1})});
  EXPECT_EQ(Planned(same, exact), Steps{});
}

TEST(Plan, PutsPartsWithinAPartBackWhereTheyWere) {
  const auto within = [](const char* profile, Placement at) {
    return DesiredParts{.profile = profile, .placement = at, .outer = Placement{0, 8}};
  };
  // Recorded on a driver that permits more placements than are derived for a part that is not
  // there.
  const DesiredDivision recorded = Enabled(
      {within("2c.7g.40gb", {3, 2}), within("2c.7g.40gb", {5, 2}), within("3c.7g.40gb", {0, 3})});
  const auto plan = MakePlan(A100(), recorded, {});
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  EXPECT_EQ(Texts(*plan), (Steps{"Create 7g.40gb at slices 0-7, for parts within it.",
                                 "Create 3c.7g.40gb at slices 0-2 of the new 7g.40gb.",
                                 "Create 2c.7g.40gb at slices 3-4 of the new 7g.40gb.",
                                 "Create 2c.7g.40gb at slices 5-6 of the new 7g.40gb."}));
  Division now = A100({Outer("o", "7g.40gb", {0, 8}), In("o", "i", "2c.7g.40gb", {1, 2}),
                       In("o", "j", "2c.7g.40gb", {5, 2}, "pod ml/a")});
  now.profiles = testing::AnywhereWithin(now.profiles);
  EXPECT_EQ(
      Planned(now, recorded),
      (Steps{"Destroy 2c.7g.40gb at slices 1-2 (i): 3c.7g.40gb at slices 0-2 needs its "
             "place.",
             "Create 3c.7g.40gb at slices 0-2 in o.", "Create 2c.7g.40gb at slices 3-4 in o."}));
  // An older record, and a driver that chooses the places.
  EXPECT_EQ(
      Planned(now, Enabled({{.profile = "2c.7g.40gb", .count = 2, .outer = Placement{0, 8}}})),
      Steps());
  now = A100();
  now.profiles = testing::WithoutPlacesWithin(now.profiles);
  EXPECT_EQ(Planned(now, recorded).back(), "Create 2c.7g.40gb of the new 7g.40gb.");
  EXPECT_EQ(ErrorOf(A100(), Enabled({within("3c.7g.40gb", {0, 3}), within("2c.7g.40gb", {2, 2})}),
                    Code::kInvalidArgument),
            "3c.7g.40gb at slices 0-2 and 2c.7g.40gb at slices 2-3 in 7g.40gb at slices 0-7 "
            "overlap");
  for (const Placement at : {Placement{7, 1}, Placement{-1, 1}, Placement{0, 0}, Placement{0, 65},
                             Placement{2'147'483'647, 2'147'483'647}})
    EXPECT_THAT(ErrorOf(A100(), Enabled({within("1c.7g.40gb", at)}), Code::kInvalidArgument),
                HasSubstr("is impossible: 7g.40gb has 7 slices of compute"));
}

TEST(Plan, TakesTheSizesOfThisDriverForPartsWithinAPart) {
  const auto within = [](const char* profile, Placement at) {
    return DesiredParts{.profile = profile, .placement = at, .outer = Placement{0, 8}};
  };
  for (const int size : {3, 4}) {
    const int other = 7 - size;  // with which they were recorded
    Division now = A100({Outer("o", "7g.40gb", {0, 8}), In("o", "i", "3c.7g.40gb", {0, size}),
                         In("o", "j", "3c.7g.40gb", {4, size}, "pod ml/a")});
    now.profiles = testing::SevenSlices(5, 10, 20, 40, size);
    const DesiredDivision recorded =
        Enabled({within("3c.7g.40gb", {0, other}), within("3c.7g.40gb", {4, other})});
    EXPECT_EQ(Planned(now, recorded), Steps());
    std::erase_if(now.parts, [](const ExistingPart& part) { return part.id == "i"; });
    EXPECT_EQ(Planned(now, recorded),
              Steps{"Create 3c.7g.40gb at slices 0-" + std::to_string(size - 1) + " in o."});
    // Without the outer part, only its driver knows the sizes.
    const auto from_nothing = MakePlan({"", now.profiles, now.modes}, recorded, {});
    ASSERT_TRUE(from_nothing.ok()) << from_nothing.error().message();
    EXPECT_EQ(from_nothing->steps.size(), 3u);
  }
}

TEST(Plan, RefusesPlacesWithinAPartThatItsDriverDoesNotList) {
  const auto within = [](const char* profile, Placement at) {
    return DesiredParts{.profile = profile, .placement = at, .outer = Placement{0, 8}};
  };
  Division now = A100({Outer("o", "7g.40gb", {0, 8})});
  now.profiles = testing::SevenSlices(5, 10, 20, 40, 4);
  EXPECT_EQ(ErrorOf(now, Enabled({within("2c.7g.40gb", {3, 2})}), Code::kInvalidArgument),
            "2c.7g.40gb at slices 3-4 is impossible: in 7g.40gb it can begin at slices 0, 2, 4");
  EXPECT_EQ(ErrorOf(now, Enabled({within("3c.7g.40gb", {0, 3}), within("1c.7g.40gb", {3, 1})}),
                    Code::kInvalidArgument),
            "3c.7g.40gb at slices 0-3 and 1c.7g.40gb at slice 3 in 7g.40gb at slices 0-7 overlap");
  // What is there is possible, whatever is listed.
  now.parts.push_back(In("o", "i", "2c.7g.40gb", {3, 2}));
  EXPECT_EQ(Planned(now, Enabled({within("2c.7g.40gb", {3, 2})})), Steps());
}

TEST(Plan, RefusesExactPartsThatContradictEachOther) {
  const DesiredParts vacant{.profile = "3g.20gb", .placement = Placement{0, 4}, .vacant = true};
  const DesiredParts within{.profile = "1c.3g.20gb", .outer = Placement{0, 4}};
  EXPECT_EQ(ErrorOf(A100(), Enabled({vacant, vacant}), Code::kInvalidArgument),
            "3g.20gb at slices 0-3 is desired twice");
  EXPECT_EQ(ErrorOf(A100(), Enabled({within, vacant}), Code::kInvalidArgument),
            "3g.20gb at slices 0-3 is desired twice");
  EXPECT_EQ(ErrorOf(A100(), Enabled({vacant, within}), Code::kInvalidArgument),
            "3g.20gb at slices 0-3 is desired with and without parts");
  EXPECT_EQ(
      ErrorOf(A100(), Enabled({{.profile = "3g.20gb", .vacant = true}}), Code::kInvalidArgument),
      "3g.20gb without parts in it needs a placement");
  EXPECT_EQ(
      ErrorOf(A100(), Enabled({{.profile = "1c.3g.20gb", .vacant = true}}), Code::kInvalidArgument),
      "1c.3g.20gb is created in another part, and has no parts");
  EXPECT_EQ(ErrorOf(A100(), Enabled({{.profile = "1g.5gb", .placement = Placement{1, 1}}, vacant}),
                    Code::kInvalidArgument),
            "1g.5gb at slice 1 and 3g.20gb at slices 0-3 overlap");
}

TEST(Plan, OfADeviceWhosePartsComeWithItsModeIsTheMode) {
  Division now{.device = "GPU-0",
               .modes = {{"cut", "one", "one", {"one", "two"}}},
               .parts = {{.id = "a", .profile = "half"}, {.id = "b", .profile = "half"}}};
  const auto to = [](const std::string& value) {
    return DesiredDivision{.mode = "cut", .value = value, .by_mode = true};
  };
  auto plan = MakePlan(now, to("two"), {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Texts(*plan),
            (std::vector<std::string>{"Change the mode cut from \"one\" to \"two\"."}));
  EXPECT_TRUE(plan->kept.empty()) << "the driver makes others";
  plan = MakePlan(now, to("one"), {});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->steps.empty());
  EXPECT_EQ(plan->kept, (std::vector<std::string>{"a", "b"}));
  now.parts[1].holder = "pod ml/a";
  EXPECT_THAT(ErrorOf(now, to("two"), Code::kFailedPrecondition), HasSubstr("held by pod ml/a"));
  EXPECT_THAT(ErrorOf(now, to("three"), Code::kInvalidArgument),
              HasSubstr("cannot be \"three\": it can be one, two"));
}

TEST(Plan, RequestsFirstTheModeThatTakesEffectWhenTheDriverIsLoadedAgain) {
  Division now{.device = "GPU-0",
               .modes = {{"cut", "one", "one", {"one", "two"}},
                         {"memory",
                          "1",
                          "1",
                          {"1", "4"},
                          device::ModeScope::kLinkedDevices,
                          device::ModeEffect::kAfterDriverReload}},
               .parts = {{.id = "a", .profile = "half", .holder = "pod ml/a"}}};
  const DesiredDivision desired{
      .mode = "cut", .value = "two", .by_mode = true, .later = "memory", .later_value = "4"};
  const auto texts = [&] {
    const auto plan = MakePlan(now, desired, {});
    return plan.ok() ? Texts(*plan) : std::vector<std::string>{plan.error().message()};
  };
  const std::vector<std::string> request{
      "Request the mode memory \"4\", for when the driver is loaded again."};
  EXPECT_TRUE(AwaitsReload(now, desired));
  EXPECT_EQ(texts(), request) << "parts stay";
  EXPECT_EQ(MakePlan(now, desired, {})->kept, (std::vector<std::string>{"a"}));
  now.modes[1].pending = "4";
  EXPECT_TRUE(texts().empty()) << "until the driver is loaded again";
  now.modes[1].current = "4";
  now.parts.clear();
  EXPECT_FALSE(AwaitsReload(now, desired));
  EXPECT_EQ(texts(), (std::vector<std::string>{"Change the mode cut from \"one\" to \"two\"."}));
  now.modes[0] = {"cut", "two", "two", {"one", "two"}};
  now.modes[1].pending = "1";
  EXPECT_TRUE(texts().empty()) << "drivers withdraw no request";
  now.modes[1].current = "1";
  now.holder = "pod ml/b";
  EXPECT_THAT(texts(), ::testing::ElementsAre(HasSubstr("held by pod ml/b")));
}

}  // namespace
}  // namespace penstock::node::partition
