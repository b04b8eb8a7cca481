#include "operator/fleet_state.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/driver/rollout_facts.h"

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

json StateWith(const char* ready, const char* accelerators) {
  json state = StateWith({{{"vendor", "nvidia"}, {"driver", "550.54.15"}}});
  state["status"]["conditions"] = {
      {{"type", "Ready"}, {"status", ready}, {"reason", "DriverMissing"}, {"message", "m"}},
      {{"type", "AcceleratorsReady"},
       {"status", accelerators},
       {"reason", "ComputeFailed"},
       {"message", "compute: CUDA_ERROR_SYSTEM_NOT_READY (802)"},
       {"lastTransitionTime", "2026-11-27T04:00:00Z"}}};
  return state;
}

TEST(FleetState, ANodeOnWhichAStepOfItsValidationFailsIsNotReady) {
  const auto readiness = [](const char* ready, const char* accelerators) {
    const json reduced = ReducedNodeState(StateWith(ready, accelerators));
    return ReadinessOf("n1", false, &reduced, {});
  };
  EXPECT_EQ(readiness("True", "True").state, "ready");
  const NodeReadiness failed = readiness("True", "False");
  EXPECT_EQ(failed.state, "notReady");
  EXPECT_EQ(failed.reason, "ComputeFailed");
  EXPECT_EQ(failed.message, "compute: CUDA_ERROR_SYSTEM_NOT_READY (802)");
  EXPECT_EQ(failed.since, "2026-11-27T04:00:00Z");
  EXPECT_EQ(readiness("False", "False").reason, "DriverMissing") << "the first of the two";
}

TEST(FleetState, WhatAnAgentReportedLastSaysNothingOnceItIsGone) {
  const json reduced = ReducedNodeState(StateWith("True", "True"));
  const NodeReadiness gone = ReadinessOf("n1", false, &reduced, {}, "agent: CrashLoopBackOff");
  EXPECT_EQ(gone.state, "notReady");
  EXPECT_EQ(gone.reason, "AgentNotReady");
  EXPECT_EQ(gone.message, "agent: CrashLoopBackOff");
  EXPECT_EQ(ReadinessOf("n1", true, &reduced, {}, "agent: Error").state, "optedOut");
  EXPECT_EQ(ReadinessOf("n1", false, nullptr, {}, "agent: Error").reason, "NoReport");
}

TEST(FleetState, AnUpgradeIsValidatedByTheStepsOfTheNode) {
  const auto report = [](const json& state) { return *DriverReportOf(ReducedNodeState(state)); };
  EXPECT_TRUE(report(StateWith("True", "True")).ready);
  EXPECT_FALSE(report(StateWith("True", "False")).ready);
  EXPECT_EQ(report(StateWith("True", "False")).message,
            "compute: CUDA_ERROR_SYSTEM_NOT_READY (802)");
  EXPECT_TRUE(report(StateWith("False", "True")).ready)
      << "that nothing is offered is another matter";
  json without = StateWith("True", "False");  // validation is switched off
  without["status"]["conditions"].erase(1);
  EXPECT_TRUE(report(without).ready);
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
