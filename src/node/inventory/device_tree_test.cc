#include "node/inventory/device_tree.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::inventory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

device::Facts Device(const std::string& id, std::uint64_t mebibytes, const std::string& parent = "",
                     int units = 0) {
  device::Facts facts;
  facts.id = id;
  facts.parent = parent;
  facts.memory = base::Mebibytes(mebibytes);
  facts.compute_units = units;
  return facts;
}

std::map<std::string, TreePlace> Place(const std::vector<device::Facts>& devices) {
  std::vector<const device::Facts*> pointers;
  for (const device::Facts& device : devices) pointers.push_back(&device);
  return PlaceInTree(pointers);
}

TEST(DeviceTree, APartOfAPartHasBothAsAncestorsAndTheyAreWithheld) {
  const auto places =
      Place({Device("G", 80, "", 98), Device("G.1", 40, "G", 42), Device("G.1.0", 20, "G.1", 14),
             Device("G.1.1", 20, "G.1", 28), Device("H", 80)});
  EXPECT_THAT(places.at("G.1.1").ancestors, ElementsAre(Ancestor{"G.1", {base::Mebibytes(40), 42}},
                                                        Ancestor{"G", {base::Mebibytes(80), 98}}));
  EXPECT_EQ(places.at("G.1.1").withheld, "");
  EXPECT_EQ(places.at("G.1").withheld, "it is divided into parts");
  EXPECT_EQ(places.at("G").withheld, "it is divided into parts");
  EXPECT_THAT(places.at("H").ancestors, IsEmpty());
  EXPECT_EQ(places.at("H").withheld, "");
}

TEST(DeviceTree, WhatTheDriverSaysItselfTakesPrecedence) {
  device::Facts divided = Device("G", 80);
  divided.withheld = "MIG mode is enabled";
  EXPECT_EQ(Place({divided, Device("G.0", 80, "G")}).at("G").withheld, "MIG mode is enabled");
}

TEST(DeviceTree, NonsenseWithholdsThePartsConcernedAndNothingElse) {
  auto places = Place({Device("G", 80), Device("G.0", 81, "G"), Device("H", 80),
                       Device("H.0", 40, "H"), Device("H.1", 41, "H"), Device("I.0", 10, "I"),
                       Device("J", 80, "", 4), Device("J.0", 10, "J", 5), Device("K", 80)});
  EXPECT_EQ(places.at("G.0").withheld,
            "the driver reports that it is larger than G, of which it is a part");
  for (const char* part : {"H.0", "H.1"})
    EXPECT_EQ(places.at(part).withheld,
              "the driver reports parts of H that are larger together than it is");
  EXPECT_EQ(places.at("I.0").withheld, "it is a part of I, which the driver does not report");
  EXPECT_THAT(places.at("J.0").withheld, HasSubstr("larger than J"));
  EXPECT_EQ(places.at("K").withheld, "");
}

TEST(DeviceTree, PartsOfAnImpossiblePartAreWithheldToo) {
  const auto places = Place({Device("G", 80), Device("G.0", 100, "G"), Device("G.0.0", 50, "G.0"),
                             Device("G.0.1", 50, "G.0")});
  EXPECT_THAT(places.at("G.0").withheld, HasSubstr("larger than G"));
  for (const char* part : {"G.0.0", "G.0.1"})
    EXPECT_THAT(places.at(part).withheld,
                testing::AllOf(HasSubstr("it is a part of G.0"), HasSubstr("larger than G")));
}

TEST(DeviceTree, CyclesOfParentsEnd) {
  auto places = Place({Device("A", 80, "B"), Device("B", 80, "A"), Device("C", 80, "C"),
                       Device("D", 10, "A"), Device("E", 80)});
  for (const char* id : {"A", "B", "C", "D"}) {
    EXPECT_THAT(places.at(id).withheld, HasSubstr("a part of itself")) << id;
    EXPECT_THAT(places.at(id).ancestors, IsEmpty()) << id;
  }
  EXPECT_EQ(places.at("E").withheld, "");
  std::vector<device::Facts> chain{Device("0", 80)};
  for (int i = 1; i < 1000; ++i)
    chain.push_back(Device(std::to_string(i), 80, std::to_string(i - 1)));
  EXPECT_THAT(Place(chain).at("999").withheld, HasSubstr("too many others"));
}

TEST(DeviceTree, SumsDoNotWrap) {
  device::Capacity sum{{~0ull - 1}, std::numeric_limits<int>::max()};
  sum += {{5}, 5};
  EXPECT_EQ(sum, (device::Capacity{{~0ull}, std::numeric_limits<int>::max()}));
}

TEST(DeviceTree, UnknownCapacitiesAreNotCompared) {
  const auto places = Place({Device("G", 0), Device("G.0", 40, "G", 10), Device("H", 80),
                             Device("H.0", 0, "H"), Device("H.1", 80, "H", 7)});
  for (const char* part : {"G.0", "H.0", "H.1"}) EXPECT_EQ(places.at(part).withheld, "") << part;
}

}  // namespace
}  // namespace penstock::node::inventory
