// Properties of all plans, on the profiles of all models: from each legal division to each other,
// compared with an exhaustive search.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "node/partition/plan.h"
#include "node/partition/testing/profile_tables.h"
#include "node/partition/testing/reference_model.h"

namespace penstock::node::partition {
namespace {

using testing::Enumeration;
using testing::LegalDivision;
using testing::Profiles;
using testing::ReferenceDevice;

DesiredDivision DesiredBy(const std::map<std::string, int>& counts) {
  DesiredDivision desired;
  for (const auto& [profile, count] : counts) desired.parts.push_back({profile, count});
  return desired;
}

/// How many parts that can be held stay if a division becomes another one: those at the same place.
/// Nothing: one that is held does not. Parts that the driver places are interchangeable.
std::optional<int> KeptParts(const LegalDivision& from, const LegalDivision& to) {
  using Place = std::tuple<std::string, std::optional<device::Placement>,
                           std::optional<device::Placement>>;  // profile, its own, its outer part's
  const auto places = [](const LegalDivision& division) {
    std::map<Place, std::pair<int, int>> count;  // all, held
    for (const ExistingPart& part : division.parts) {
      if (part.outer) continue;
      std::optional<device::Placement> outer;
      for (const ExistingPart& one : division.parts)
        if (one.id == part.parent) outer = one.placement;
      auto& [all, held] = count[{part.profile, part.placement, outer}];
      ++all;
      held += part.holder.empty() ? 0 : 1;
    }
    return count;
  };
  auto after = places(to);
  int kept = 0;
  for (const auto& [place, count] : places(from)) {
    const int there = after.contains(place) ? after[place].first : 0;
    if (count.second > there) return std::nullopt;
    kept += std::min(count.first, there);
  }
  return kept;
}

struct Case {
  LegalDivision from;
  std::map<std::string, int> to;
};

class Properties {
 public:
  Properties(const std::string& name, const Profiles& profiles, bool nested)
      : name_(name), profiles_(profiles), legal_(Enumeration(profiles, nested).all) {
    for (const LegalDivision& one : legal_) by_counts_[one.counts].push_back(&one);
  }

  std::size_t size() const { return legal_.size(); }

  /// Plans between random legal divisions, with random holders.
  void Sample(int cases, std::mt19937& random) {
    const auto pick = [&](std::size_t below) {
      return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
    };
    for (int i = 0; i < cases; ++i) {
      LegalDivision from = legal_[pick(legal_.size())];
      const bool holders = pick(3) != 0;
      for (ExistingPart& part : from.parts)
        if (holders && !part.outer && pick(3) == 0) part.holder = "pod ns/" + part.id;
      Check({from, legal_[pick(legal_.size())].counts});
      if (::testing::Test::HasFailure()) return;
    }
  }

  int plans() const { return plans_; }
  int refused() const { return refused_; }

 private:
  void Check(const Case& one) {
    std::optional<int> best;
    for (const LegalDivision* to : by_counts_.at(one.to))
      if (const auto kept = KeptParts(one.from, *to)) best = std::max(best.value_or(0), *kept);
    const Division now{.device = "dev", .profiles = profiles_, .parts = one.from.parts};
    const auto plan = MakePlan(now, DesiredBy(one.to), {});
    SCOPED_TRACE(name_ + ": " + Describe(one.from) + " -> " + Describe(one.to));
    if (!best) {
      ++refused_;
      ASSERT_FALSE(plan.ok()) << "a held part would be destroyed";
      EXPECT_EQ(plan.error().code(), Code::kFailedPrecondition) << plan.error().message();
      return;
    }
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    ++plans_;
    EXPECT_TRUE(plan->proven);
    ReferenceDevice device(now);
    ASSERT_EQ(device.Take(*plan), "");
    EXPECT_EQ(device.Parts(), one.to);
    int kept = 0;
    for (const ExistingPart& part : now.parts)
      kept += !part.outer && std::ranges::find(plan->kept, part.id) != plan->kept.end() ? 1 : 0;
    EXPECT_EQ(kept, *best) << "fewer parts than possible are kept";
    const auto again = MakePlan(device.division(), DesiredBy(one.to), {});
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again->steps.empty()) << again->steps.front().text;
    EXPECT_EQ(MakePlan(now, DesiredBy(one.to), {})->steps, plan->steps);
  }

  static std::string Describe(const LegalDivision& division) {
    std::string text;
    for (const ExistingPart& part : division.parts)
      text += part.profile + (part.placement ? "@" + std::to_string(part.placement->start) : "") +
              (part.outer ? "(outer)" : "") + (part.parent.empty() ? "" : " in " + part.parent) +
              (part.holder.empty() ? "" : "(held)") + " ";
    return text;
  }
  static std::string Describe(const std::map<std::string, int>& counts) {
    std::string text;
    for (const auto& [profile, count] : counts) text += std::to_string(count) + "x" + profile + " ";
    return text;
  }

  const std::string name_;
  const Profiles profiles_;
  const std::vector<LegalDivision> legal_;
  std::map<std::map<std::string, int>, std::vector<const LegalDivision*>> by_counts_;
  int plans_ = 0, refused_ = 0;
};

TEST(PartitionProperties, EachLegalDivisionIsReachedWithTheFewestPartsDestroyed) {
  std::mt19937 random(20'260'115);
  for (const auto& [name, profiles] : testing::AllTables()) {
    Properties properties(name, profiles, false);
    ASSERT_GT(properties.size(), 30u) << name;
    properties.Sample(250, random);
    ASSERT_GT(properties.plans(), 100) << name;
    ASSERT_GT(properties.refused(), 20) << name;
    if (HasFailure()) return;
  }
}

TEST(PartitionProperties, AlsoWithPartsWithinParts) {
  std::mt19937 random(20'260'116);
  for (const auto& [name, profiles] : testing::AllTables()) {
    if (name != "A30-24GB" && name != "Acme") continue;  // the others have too many divisions
    Properties properties(name, profiles, true);
    ASSERT_GT(properties.size(), 100u) << name;
    properties.Sample(600, random);
    ASSERT_GT(properties.plans(), 100) << name;
    if (HasFailure()) return;
  }
}

/// For each profile of the device itself that can have parts within it: that and those.
std::map<std::string, Profiles> SingleOuterParts(const std::string& name,
                                                 const Profiles& profiles) {
  std::map<std::string, Profiles> tables;
  for (const device::PartProfile& outer : profiles) {
    Profiles table{outer};
    for (const device::PartProfile& one : profiles)
      if (one.within == outer.name) table.push_back(one);
    if (table.size() > 1) tables[name + " " + outer.name] = std::move(table);
  }
  return tables;
}

TEST(PartitionProperties, EachSetOfPartsWithinAPartIsReachedFromEachOther) {
  std::mt19937 random(20'260'117);
  int tables = 0, large = 0;
  for (const auto& [name, profiles] : testing::AllTables()) {
    if (name == "Acme") continue;
    for (const Profiles& all : {profiles, testing::AnywhereWithin(profiles)})
      for (const auto& [one, table] : SingleOuterParts(name, all)) {
        Properties properties(one, table, true);
        ++tables;
        large += properties.size() > 100 ? 1 : 0;
        properties.Sample(properties.size() > 100 ? 400 : 60, random);
        ASSERT_GT(properties.plans(), 20) << one;
        if (HasFailure()) return;
      }
  }
  EXPECT_GT(tables, 80);
  EXPECT_GT(large, 20);
}

/// The sets of parts that a device can have, wherever they lie.
std::set<std::map<std::string, int>> SetsOf(const Profiles& profiles) {
  std::set<std::map<std::string, int>> sets;
  for (const LegalDivision& one : Enumeration(profiles, true).all) sets.insert(one.counts);
  return sets;
}

TEST(PartitionProperties, PlacementsOnAGridPermitWhatPlacementsAnywherePermit) {
  for (const Profiles& profiles : {testing::SevenSlices(5, 10, 20, 40), testing::A30()})
    for (const auto& [name, table] : SingleOuterParts("", profiles)) {
      const auto anywhere = SetsOf(testing::AnywhereWithin(table));
      EXPECT_EQ(SetsOf(table), anywhere) << name;
      EXPECT_GT(anywhere.size(), 2u);
    }
}

}  // namespace
}  // namespace penstock::node::partition
