#include "app/penstock/cluster/policies_show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const base::WallTime kShownAt = base::ParseTime("2026-11-21T04:00:00Z");
constexpr char kSince[] = "2026-11-21T03:55:00Z";

Json Condition(const std::string& type, const std::string& status, const std::string& reason,
               const std::string& message) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", kSince}};
}

/// One of two nodes lacks its driver.
PolicyToShow Policy() {
  const Json waiting = {{"name", "n2"},
                        {"state", "pod-deletion-required"},
                        {"reason", "EvictionRefused"},
                        {"message", "default/train: a budget allows none"}};
  return {
      "clusterpolicy",
      {{"metadata", {{"name", "cluster-policy"}}},
       {"status",
        {{"state", "notReady"},
         {"conditions",
          Json::array({Condition("Ready", "False", "DriverNotReady", "1 of 2 nodes"),
                       Condition("Error", "False", "Ready", ""),
                       Condition("FieldsServed", "False", "NotServed", "spec.vgpuManager")})},
         {"nodes",
          {{"total", 2},
           {"byState", {{"ready", 1}, {"notReady", 1}}},
           {"notReady",
            Json::array({{{"name", "n2"}, {"state", "notReady"}, {"reason", "DriverMissing"}}})}}},
         {"drivers", Json::array({{{"nodes", 2},
                                   {"ready", 1},
                                   {"stopped", {{"reason", "Paused"}, {"message", "it is paused"}}},
                                   {"waiting", Json::array({waiting})}}})}}}}};
}

TEST(ShowPolicies, HasALineForEachObject) {
  const PolicyToShow fresh{"penstock", {{"metadata", {{"name", "site"}}}}};
  EXPECT_EQ(ShowPolicies({Policy(), fresh}, {}, kShownAt),
            "POLICY                        STATE     REASON          NODES      DRIVERS    SINCE  "
            "MESSAGE\n"
            "clusterpolicy/cluster-policy  notReady  DriverNotReady  1/2 ready  1/2 ready  5m     "
            "1 of 2 nodes\n"
            "penstock/site                 unknown   -               -          -          -      "
            "no operator has reported: is penstock-operator running?\n");
}

TEST(ShowPolicies, NameTheNamespaceOfAnObjectThatHasOne) {
  const PolicyToShow config{"deviceconfig",
                            {{"metadata", {{"name", "default"}, {"namespace", "kube-amd-gpu"}}}}};
  EXPECT_THAT(ShowPolicies({config}, {}, kShownAt),
              AllOf(HasSubstr("deviceconfig/default (kube-amd-gpu)  unknown"),
                    HasSubstr("in its own namespace that no other operator has")));
  const Json shown = Json::parse(PoliciesToJson({config, Policy()}))["policies"];
  EXPECT_EQ(shown[0]["namespace"], "kube-amd-gpu");
  EXPECT_FALSE(shown[1].contains("namespace"));
}

TEST(ShowPolicies, ReadTheStateAndTheCountsOfAmdsKind) {
  const auto line = [](const Json& status) {
    return ShowPolicies({{"deviceconfig", {{"metadata", {{"name", "d"}}}, {"status", status}}}}, {},
                        kShownAt);
  };
  const Json ready = Condition("Ready", "True", "OperatorReady", "all nodes");
  EXPECT_THAT(line({{"conditions", Json::array({ready})},
                    {"devicePlugin", {{"desiredNumber", 3}, {"availableNumber", 2}}},
                    {"driver", {{"desiredNumber", 3}, {"availableNumber", 3}}}}),
              HasSubstr("deviceconfig/d  ready  OperatorReady  2/3 ready  3/3 ready"));
  EXPECT_THAT(
      line({{"conditions", Json::array({Condition("Ready", "False", "Ignored", "older")})}}),
      HasSubstr("deviceconfig/d  ignored  Ignored  -"));
  EXPECT_THAT(line({{"conditions",
                     Json::array({Condition("Ready", "False", "ValidationError", ""),
                                  Condition("Error", "True", "ValidationError", "spec.x: bad")})}}),
              AllOf(HasSubstr("deviceconfig/d  notReady"), HasSubstr("spec.x: bad")));
}

TEST(ShowPolicies, AnErrorIsSaidBeforeTheProgress) {
  PolicyToShow policy = Policy();
  policy.object["status"]["conditions"][1] =
      Condition("Error", "True", "ReconcileFailed", "spec.mig: bad");
  EXPECT_THAT(ShowPolicies({policy}, {}, kShownAt),
              AllOf(HasSubstr("spec.mig: bad"), Not(HasSubstr("1 of 2 nodes"))));
}

TEST(ShowPolicy, HasConditionsNodesAndWhatDriversWaitFor) {
  EXPECT_THAT(ShowPolicy(Policy(), {}, kShownAt),
              AllOf(HasSubstr("FieldsServed  False   NotServed       5m     spec.vgpuManager"),
                    HasSubstr("n2    notReady  DriverMissing"), HasSubstr("it is paused"),
                    HasSubstr("pod-deletion-required  EvictionRefused  default/train: a budget")));
}

TEST(ShowPolicies, SurvivesObjectsOfAnotherShapeAndShowsNoControlCharacters) {
  const Json status = {{"state", "\x1b[31mready"},
                       {"conditions", 3},
                       {"nodes", {{"total", "x"}}},
                       {"drivers", Json::array({7, {{"nodes", 1}, {"waiting", "x"}}})}};
  const std::string text =
      ShowPolicy({"penstock", {{"metadata", {{"name", "n"}}}, {"status", status}}}, {}, kShownAt);
  EXPECT_THAT(text, AllOf(HasSubstr("penstock/n"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace penstock::app
