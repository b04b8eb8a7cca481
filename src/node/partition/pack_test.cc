#include "node/partition/pack.h"

#include <gtest/gtest.h>

#include "node/partition/testing/arrivals.h"
#include "node/partition/testing/profile_tables.h"
#include "node/partition/testing/reference_model.h"

namespace penstock::node::partition {
namespace {

using device::Placement;

Division PackedA100(std::vector<std::pair<std::string, Placement>> parts = {}) {
  Division division{.device = "GPU-0", .profiles = testing::SevenSlices(5, 10, 20, 40)};
  for (const auto& [profile, at] : parts)
    division.parts.push_back(
        {.id = std::to_string(division.parts.size()), .profile = profile, .placement = at});
  return division;
}

std::optional<PackedPart> PackOn(const std::vector<Division>& devices, std::string_view profile) {
  std::vector<const Division*> pointers;
  for (const Division& device : devices) pointers.push_back(&device);
  return Pack(pointers, profile);
}

TEST(Pack, LeavesTheLargePlacementsFree) {
  // At slice 0 it would exclude 4g, 3g and each 2g below 4.
  EXPECT_EQ(PackOn({PackedA100()}, "1g.5gb"), (PackedPart{0, Placement{6, 1}}));
  EXPECT_EQ(PackOn({PackedA100()}, "2g.10gb"), (PackedPart{0, Placement{4, 2}}));
  EXPECT_EQ(PackOn({PackedA100()}, "3g.20gb"), (PackedPart{0, Placement{4, 4}}));
  EXPECT_EQ(PackOn({PackedA100({{"1g.5gb", {6, 1}}})}, "1g.5gb"), (PackedPart{0, Placement{4, 1}}));
  EXPECT_EQ(PackOn({PackedA100({{"1g.5gb", {4, 1}}})}, "1g.5gb"), (PackedPart{0, Placement{5, 1}}));
}

TEST(Pack, FillsADeviceThatIsInUseBeforeAnEmptyOne) {
  EXPECT_EQ(PackOn({PackedA100(), PackedA100({{"4g.20gb", {0, 4}}})}, "2g.10gb"),
            (PackedPart{1, Placement{4, 2}}));
  EXPECT_EQ(PackOn({PackedA100({{"4g.20gb", {0, 4}}}), PackedA100()}, "4g.20gb"),
            (PackedPart{1, Placement{0, 4}}));
}

TEST(Pack, FindsNothingWhereNothingFits) {
  EXPECT_EQ(PackOn({PackedA100({{"1g.5gb", {2, 1}}})}, "4g.20gb"), std::nullopt);
  EXPECT_EQ(PackOn({PackedA100({{"1g.5gb+me", {6, 1}}})}, "1g.5gb+me"), std::nullopt);
  EXPECT_EQ(PackOn({PackedA100()}, "1g.6gb"), std::nullopt);
  EXPECT_EQ(PackOn({}, "1g.5gb"), std::nullopt);
  EXPECT_EQ(PackOn({PackedA100()}, "1c.3g.20gb"), std::nullopt);
}

TEST(Pack, PassesOverDevicesOfWhichItDoesNotKnowWhatIsTaken) {
  Division unknown = PackedA100();
  unknown.parts = {{.id = "a", .profile = "1g.5gb"}};
  EXPECT_EQ(PackOn({unknown}, "1g.5gb"), std::nullopt);
  unknown.parts = {{.id = "a", .profile = "5g.30gb", .placement = Placement{0, 5}}};
  EXPECT_EQ(PackOn({unknown}, "1g.5gb"), std::nullopt);
  unknown.parts = {{.id = "a", .profile = "1g.5gb", .placement = Placement{-5, 70}}};
  EXPECT_EQ(PackOn({unknown, PackedA100()}, "1g.5gb"), (PackedPart{1, Placement{6, 1}}));
  Division impossible = PackedA100();
  impossible.profiles[0].placements = {{-1, 100}};
  EXPECT_EQ(PackOn({impossible}, "2g.10gb"), std::nullopt);
}

TEST(Pack, LetsTheDriverPlaceWhatHasNoPlacements) {
  const Division acme{.device = "d", .profiles = testing::Acme()};
  EXPECT_EQ(PackOn({acme}, "loose"), (PackedPart{0, std::nullopt}));
}

TEST(Pack, PlacesOnlyWhereADeviceAcceptsIt) {
  for (const auto& [name, profiles] : testing::AllTables()) {
    const auto legal = testing::Enumeration(profiles, false).all;
    for (std::size_t i = 0; i < legal.size(); i += std::max<std::size_t>(1, legal.size() / 97)) {
      const Division now{.device = "d", .profiles = profiles, .parts = legal[i].parts};
      for (const auto& profile : profiles) {
        if (!profile.within.empty()) continue;
        bool possible = false;
        auto places = std::vector<std::optional<Placement>>(profile.placements.begin(),
                                                            profile.placements.end());
        if (places.empty()) places.push_back(std::nullopt);
        for (const auto& at : places) {
          const PlanStep step{
              .kind = PlanStep::Kind::kCreate, .profile = profile.name, .placement = at};
          possible |= testing::ReferenceDevice(now).Take({.steps = {step}}).empty();
        }
        const auto packed = PackOn({now}, profile.name);
        ASSERT_EQ(packed.has_value(), possible) << name << " " << profile.name;
        if (!packed) continue;
        const PlanStep step{.kind = PlanStep::Kind::kCreate,
                            .profile = profile.name,
                            .placement = packed->placement};
        ASSERT_EQ(testing::ReferenceDevice(now).Take({.steps = {step}}), "") << name;
      }
    }
  }
}

// The figures for 10,000 sequences are in bench/RESULTS.md.
TEST(Pack, RejectsAThirdFewerRequestsThanFirstFitOnAHalfFullMachine) {
  for (const auto& weights : {testing::EqualSlices(), testing::EqualNumbers()}) {
    int first = 0, packed = 0;
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
      const testing::ArrivalsInput input{.load = 0.5, .weights = weights};
      first += testing::Rejected(input, testing::FirstFit, seed);
      packed += testing::Rejected(input, testing::PackedFit, seed);
    }
    EXPECT_GT(first, 50);
    EXPECT_LT(packed * 10, first * 7) << packed << " of " << first;
  }
}

}  // namespace
}  // namespace penstock::node::partition
