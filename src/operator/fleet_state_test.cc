#include "operator/fleet_state.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::cluster {
namespace {

using nlohmann::json;

json StateWith(json vendors) {
  return {{"metadata", {{"name", "n1"}}}, {"status", {{"vendors", std::move(vendors)}}}};
}

TEST(FleetState, KnowsTheDriverOfANode) {
  const json reduced = ReducedNodeState(StateWith({{{"vendor", "nvidia"},
                                                    {"driver", "550.54.15"},
                                                    {"runtime", "12.4"},
                                                    {"driverSource", "container"},
                                                    {"driverRoot", "/run/nvidia/driver"},
                                                    {"driverSince", "2026-11-27T04:00:00Z"},
                                                    {"reason", ""}}}));
  EXPECT_EQ(reduced["vendors"][0].size(), 4u);
  const NodeDriver driver = DriverOnNode(reduced);
  EXPECT_TRUE(driver.looked);
  EXPECT_EQ(driver.version, "550.54.15");
  EXPECT_EQ(driver.source, "container");
  EXPECT_EQ(driver.since, "2026-11-27T04:00:00Z");
}

TEST(FleetState, NoDriverIsNotTheSameAsNotLookedYet) {
  const NodeDriver none = DriverOnNode(ReducedNodeState(
      StateWith({{{"vendor", "nvidia"}, {"driver", ""}, {"reason", "there is no library"}}})));
  EXPECT_TRUE(none.looked);
  EXPECT_EQ(none.version, "");
  EXPECT_EQ(none.source, "");
  for (const json& state :
       {StateWith(json::array()), StateWith({{{"vendor", "other"}, {"driver", "1"}}}),
        json{{"metadata", {{"name", "n1"}}}}})
    EXPECT_FALSE(DriverOnNode(ReducedNodeState(state)).looked) << state;
}

TEST(FleetState, KeepsLittleOfWhatANodeInvents) {
  json vendors = json::array();
  for (int i = 0; i < 100; ++i)
    vendors.push_back({{"vendor", "v" + std::to_string(i)}, {"driver", std::string(9000, 'x')}});
  vendors.push_back("text");
  const json reduced = ReducedNodeState(StateWith(std::move(vendors)));
  EXPECT_LE(reduced.dump().size(), 2000u);
  EXPECT_FALSE(DriverOnNode(ReducedNodeState(StateWith("text"))).looked);
  EXPECT_FALSE(DriverOnNode(json()).looked);
}

}  // namespace
}  // namespace penstock::cluster
