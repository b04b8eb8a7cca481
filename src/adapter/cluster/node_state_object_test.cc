#include "adapter/cluster/node_state_object.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::adapter::cluster {
namespace {

using nlohmann::json;

json Object(const std::string& health, const std::string& since, const std::string& ready = "True",
            const std::string& ready_since = "1") {
  return {{"status",
           {{"devices",
             json::array({{{"id", "GPU-0"},
                           {"health", {{"state", health}, {"reason", ""}, {"since", since}}}}})},
            {"conditions",
             json::array(
                 {{{"type", "Ready"}, {"status", ready}, {"lastTransitionTime", ready_since}}})},
            {"configuration", {{"origin", "defaults"}, {"problem", ""}, {"since", since}}}}}};
}

TEST(StartTimes, WhatWasSoBeforeTheAgentBeganIsSoSinceThen) {
  StartTimes times;
  times.Remember(Object("healthy", "1"));
  json wanted = Object("healthy", "7", "True", "7");
  times.PutInto(wanted, true);
  EXPECT_EQ(wanted, Object("healthy", "1"));
  wanted = Object("healthy", "7", "True", "7");
  times.PutInto(wanted, false);
  EXPECT_EQ(wanted, Object("healthy", "1")) << "also later while the state is unchanged";
}

TEST(StartTimes, WhatIsOtherwiseNowIsSoSinceNow) {
  StartTimes times;
  times.Remember(Object("unhealthy", "1", "False"));
  json wanted = Object("healthy", "7", "True", "7");
  times.PutInto(wanted, true);
  EXPECT_EQ(wanted["status"]["devices"], Object("healthy", "7")["status"]["devices"]);
  EXPECT_EQ(wanted["status"]["conditions"][0]["lastTransitionTime"], "7");
}

TEST(StartTimes, WhatChangedAndChangedBackIsSoSinceThat) {
  StartTimes times;
  times.Remember(Object("healthy", "1"));
  json wanted = Object("healthy", "7");
  times.PutInto(wanted, true);
  wanted = Object("healthy", "9");
  times.PutInto(wanted, false);
  EXPECT_EQ(wanted["status"]["devices"], Object("healthy", "9")["status"]["devices"]);
}

TEST(StartTimes, AnObjectOfAnyShapeIsBorne) {
  for (const char* seen :
       {"null", "[]", "{}", R"({"status": 3})",
        R"({"status": {"devices": {}, "conditions": [3], "configuration": []}})",
        R"({"status": {"devices": [3, {"health": 1}, {"id": 2, "health": {"since": 3}}]}})"}) {
    StartTimes times;
    times.Remember(json::parse(seen));
    json wanted = Object("healthy", "7", "True", "7");
    times.PutInto(wanted, true);
    EXPECT_EQ(wanted, Object("healthy", "7", "True", "7")) << seen;
  }
}

TEST(NodeState, BelongsToItsNode) {
  api::Report report;
  report.node = "n1";
  EXPECT_EQ(
      OwnedNodeState(report, "u-1")["metadata"],
      json::parse(
          R"({"name": "n1", "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-1"}]})"));
  EXPECT_EQ(OwnedNodeState(report, "")["metadata"], json::parse(R"({"name": "n1"})"));
}

TEST(NodeFeature, HasTheNamesThatNfdLooksFor) {
  EXPECT_EQ(NodeFeatureOf("n1", "u-1", {{"nvidia.com/gpu.count", "8"}}), json::parse(R"({
    "apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature",
    "metadata": {"name": "penstock-features-for-n1", "labels": {"nfd.node.kubernetes.io/node-name": "n1"},
                 "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-1"}]},
    "spec": {"labels": {"nvidia.com/gpu.count": "8"}}})"));
}

}  // namespace
}  // namespace penstock::adapter::cluster
