#include "adapter/cluster/observed_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::adapter::cluster {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(ObservedNode, ReportsWhoseEachLabelIs) {
  const ObservedNode view = ObserveNode(json::parse(R"({
    "metadata": {"name": "n1", "uid": "u-1", "resourceVersion": "12",
      "labels": {"nvidia.com/gpu.count": "8", "nvidia.com/gpu.product": "x", "zone": "a", "both": "1"},
      "managedFields": [
        {"manager": "penstock-labels", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {"f:nvidia.com/gpu.count": {}, "f:both": {}}}}},
        {"manager": "penstock-labels", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:zone": {}}}}},
        {"manager": "kubectl-label", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:nvidia.com/gpu.product": {}, "f:both": {}}}}}]},
    "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "7"}}})"));
  EXPECT_EQ(view.name, "n1");
  EXPECT_EQ(view.uid, "u-1");
  EXPECT_EQ(view.labels.at("zone"), "a");
  EXPECT_THAT(view.own, ElementsAre("both", "nvidia.com/gpu.count"));
  EXPECT_THAT(view.others, ElementsAre(Pair("nvidia.com/gpu.product", "kubectl-label"),
                                       Pair("zone", "penstock-labels")));
  EXPECT_EQ(view.numbers.capacity.at("nvidia.com/gpu"), "8");
  EXPECT_EQ(view.numbers.allocatable.at("nvidia.com/gpu"), "7");
}

TEST(ObservedNode, KnowsTheKeysThatNfdKeeps) {
  const ObservedNode view = ObserveNode(json::parse(R"({"metadata": {"annotations": {
    "nfd.node.kubernetes.io/feature-labels": "pci-10de.present, nvidia.com/gpu.count,",
    "second.nfd.node.kubernetes.io/feature-labels": "x/y", "nfd.node.kubernetes.io/taints": "z"}}})"));
  EXPECT_THAT(view.nfd, ElementsAre("feature.node.kubernetes.io/pci-10de.present",
                                    "nvidia.com/gpu.count", "x/y"));
}

TEST(ObservedNode, TakesNothingOfTheShapeForGranted) {
  for (
      const char* node :
      {"null", "[]", "3", "{}", R"({"metadata": 3})",
       R"({"metadata": {"labels": [], "managedFields": {}, "uid": 3}})",
       R"({"metadata": {"labels": {"a": 1}, "managedFields": [3, {"fieldsV1": 1}, {"fieldsV1": {"f:metadata": {"f:labels": 1}}}]}})"}) {
    const ObservedNode view = ObserveNode(json::parse(node));
    EXPECT_THAT(view.labels, IsEmpty()) << node;
    EXPECT_THAT(view.own, IsEmpty()) << node;
  }
}

TEST(ObservedNode, AnOlderOneIsKnownByItsVersionUnlessItIsOfAnotherNode) {
  const ObservedNode known{.uid = "u-1", .version = "9"};
  EXPECT_TRUE(NotOlder({.uid = "u-1", .version = "10"}, known));
  EXPECT_TRUE(NotOlder({.uid = "u-1", .version = "9"}, known));
  EXPECT_FALSE(NotOlder({.uid = "u-1", .version = "8"}, known));
  EXPECT_TRUE(NotOlder({.uid = "u-2", .version = "8"}, known));
  EXPECT_TRUE(NotOlder({.uid = "u-1", .version = "opaque"}, known));
}

}  // namespace
}  // namespace penstock::adapter::cluster
