// Tests which driver a node gets, and what happens where several would be possible.
#include "operator/driver/ownership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using api::DriverSpec;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

DriverSpec Selecting(const std::string& name, const std::string& pool) {
  DriverSpec driver;
  driver.name = name;
  driver.node_selector = {{"pool", pool}};
  return driver;
}

DriverSpec Fallback(const std::string& name) {
  DriverSpec driver;
  driver.name = name;
  driver.fallback = true;
  return driver;
}

DriverNode NodeOf(const std::string& name, const std::string& pool, const std::string& owner = "") {
  DriverNode node{name, {{"pool", pool}}, "", ""};
  if (!owner.empty()) node.labels["nvidia.com/gpu-operator.driver.owner"] = owner;
  return node;
}

TEST(DriverOwnership, GivesANodeTheDriverThatSelectsItBeforeTheFallback) {
  const auto ownership =
      AssignDrivers({NodeOf("n1", "blue"), NodeOf("n2", "red"), NodeOf("n3", "other")},
                    {Selecting("b", "blue"), Fallback("d"), Selecting("r", "red")});
  EXPECT_THAT(ownership.owner,
              UnorderedElementsAre(Pair("n1", "b"), Pair("n2", "r"), Pair("n3", "d")));
  EXPECT_THAT(ownership.conflicts, IsEmpty());
  EXPECT_THAT(ownership.problems, IsEmpty());
}

TEST(DriverOwnership, NamesANodeThatTwoDriversSelectAndGoesOnWithTheOthers) {
  const auto ownership =
      AssignDrivers({NodeOf("n2", "blue", "b2"), NodeOf("n1", "blue"), NodeOf("n3", "red")},
                    {Selecting("b2", "blue"), Selecting("b1", "blue"), Fallback("d")});
  EXPECT_THAT(ownership.owner, UnorderedElementsAre(Pair("n2", "b2"), Pair("n3", "d")));
  EXPECT_THAT(ownership.conflicts, ElementsAre(DriverConflict{"n1", {"b1", "b2"}, ""},
                                               DriverConflict{"n2", {"b1", "b2"}, "b2"}));
  EXPECT_EQ(ownership.conflicts[0].Message(), "node n1: selected by b1 and b2; it gets no driver");
  EXPECT_EQ(ownership.conflicts[1].Message(), "node n2: selected by b1 and b2; it keeps b2");
  EXPECT_EQ(ownership.ConflictsOf("b1").size(), 2u);
  EXPECT_THAT(ownership.ConflictsOf("d"), IsEmpty());
}

TEST(DriverOwnership, GivesNoNodeToAnOwnerThatOnlyALabelNames) {
  const auto ownership = AssignDrivers({NodeOf("n1", "blue", "gone"), NodeOf("n2", "none", "gone")},
                                       {Selecting("b1", "blue"), Selecting("b2", "blue")});
  EXPECT_THAT(ownership.owner, IsEmpty());
  EXPECT_EQ(ownership.conflicts.size(), 1u);
}

TEST(DriverOwnership, RefusesTwoFallbacksAndTakesNothingAway) {
  const auto ownership =
      AssignDrivers({NodeOf("n1", "x", "d2"), NodeOf("n2", "x"), NodeOf("n3", "blue")},
                    {Fallback("d1"), Fallback("d2"), Selecting("b", "blue")});
  EXPECT_THAT(ownership.owner, UnorderedElementsAre(Pair("n1", "d2"), Pair("n3", "b")));
  EXPECT_THAT(
      ownership.problems,
      ElementsAre(Pair("d1", HasSubstr("multiple default NVIDIADrivers found (d1, d2): ")),
                  Pair("d2", HasSubstr("multiple default NVIDIADrivers found (d1, d2): "))));
}

TEST(DriverOwnership, ReportsAnAffinityThatCannotBeReadAndSelectsNothingByIt) {
  DriverSpec broken = Selecting("a", "blue");
  broken.node_affinity.text = R"({"requiredDuringSchedulingIgnoredDuringExecution": 7})";
  DriverSpec off = Selecting("c", "blue");
  off.enabled = false;
  const auto ownership =
      AssignDrivers({NodeOf("n1", "blue")}, {broken, Selecting("b", "blue"), off});
  EXPECT_THAT(ownership.owner, ElementsAre(Pair("n1", "b")));
  EXPECT_THAT(ownership.problems, ElementsAre(Pair("a", HasSubstr("nodeAffinity"))));
}

}  // namespace
}  // namespace penstock::cluster
