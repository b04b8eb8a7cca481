#include "adapter/cluster/node_status.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::adapter::cluster {
namespace {

using nlohmann::json;

const NodeNumbers kNumbers{.capacity = {{"cpu", "8"}, {"nvidia.com/gpu", "8"}},
                           .allocatable = {{"cpu", "8"}, {"nvidia.com/gpu", "7"}}};

TEST(StatusPatch, HasOnlyWhatDiffers) {
  EXPECT_EQ(StatusPatch(kNumbers, {{"nvidia.com/gpu", {8, 8}}}),
            json::parse(R"({"status": {"allocatable": {"nvidia.com/gpu": "8"}}})"));
  EXPECT_EQ(
      StatusPatch(kNumbers, {{"nvidia.com/gpu", {8, 7}}, {"amd.com/gpu", {2, 1}}}),
      json::parse(
          R"({"status": {"capacity": {"amd.com/gpu": "2"}, "allocatable": {"amd.com/gpu": "1"}}})"));
}

TEST(StatusPatch, IsNotMadeWhereTheNodeShowsAll) {
  EXPECT_FALSE(StatusPatch(kNumbers, {{"nvidia.com/gpu", {8, 7}}}));
  EXPECT_FALSE(StatusPatch(kNumbers, {}));
  EXPECT_FALSE(StatusPatch(kNumbers, {{"amd.com/gpu", {0, 0}}}));
}

TEST(StatusPatch, TakesTheLastDeviceAway) {
  EXPECT_EQ(
      StatusPatch(kNumbers, {{"nvidia.com/gpu", {0, 0}}}),
      json::parse(
          R"({"status": {"capacity": {"nvidia.com/gpu": "0"}, "allocatable": {"nvidia.com/gpu": "0"}}})"));
}

const api::ConditionReport kBroken{.type = "AcceleratorsReady",
                                   .status = false,
                                   .reason = "DriverFailed",
                                   .message = "driver: it is missing",
                                   .since = "2026-11-21T03:42:00.125Z"};

TEST(ConditionPatch, HasOnlyTheOneCondition) {
  const auto patch = ConditionPatch(std::nullopt, kBroken, "2026-11-21T03:42:01.000Z");
  ASSERT_TRUE(patch);
  EXPECT_EQ(*patch, json::parse(R"({"status": {"conditions": [{
    "type": "penstock.io/AcceleratorsReady", "status": "False", "reason": "DriverFailed",
    "message": "driver: it is missing", "lastHeartbeatTime": "2026-11-21T03:42:01Z",
    "lastTransitionTime": "2026-11-21T03:42:00Z"}]}})"));
}

TEST(ConditionPatch, IsNotMadeWhereTheNodeShowsIt) {
  EXPECT_FALSE(ConditionPatch(
      ObservedCondition{"False", "DriverFailed", "driver: it is missing", "2020-01-01T00:00:00Z"},
      kBroken, "2026-11-21T03:42:01.000Z"));
}

TEST(ConditionPatch, KeepsTheTimeOfTheLastChangeOfTheStatus) {
  const auto time = [](const char* status) {
    const auto patch =
        ConditionPatch(ObservedCondition{status, "Other", "", "2020-01-01T00:00:00Z"}, kBroken,
                       "2026-11-21T03:42:01.000Z");
    return patch->at("status").at("conditions").at(0).at("lastTransitionTime");
  };
  EXPECT_EQ(time("False"), "2020-01-01T00:00:00Z");
  EXPECT_EQ(time("True"), "2026-11-21T03:42:00Z");
}

}  // namespace
}  // namespace penstock::adapter::cluster
