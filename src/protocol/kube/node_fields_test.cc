#include "protocol/kube/node_fields.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::protocol::kube {
namespace {

const Json kOne = Json::object();

bool IsTakenBack(const Json& fields) {
  return MayBeTakenBack({{"manager", "m"}, {"operation", "Apply"}, {"fieldsV1", fields}});
}

Json Label(const std::string& key) {
  return {{"f:metadata", {{"f:labels", {{".", kOne}, {"f:" + key, kOne}}}}}};
}

TEST(MayBeTakenBack, NothingThatANodesCredentialsMayNotRemoveThemselves) {
  EXPECT_TRUE(IsTakenBack(Label("nvidia.com/gpu.count")));
  EXPECT_TRUE(IsTakenBack(Label("without-a-domain")));
  EXPECT_TRUE(IsTakenBack(Label("feature.node.kubernetes.io/pci-10de.present")));
  EXPECT_TRUE(
      IsTakenBack({{"f:metadata", {{"f:annotations", {{"f:penstock.io/devices", kOne}}}}}}));
  EXPECT_FALSE(IsTakenBack(Label("node-restriction.kubernetes.io/tier")));
  EXPECT_FALSE(IsTakenBack(Label("kubernetes.io/hostname")));
  EXPECT_FALSE(IsTakenBack(Label("topology.k8s.io/zone")));
  EXPECT_FALSE(IsTakenBack({{"f:metadata", {{"f:finalizers", {{".", kOne}}}}}}));
  EXPECT_FALSE(IsTakenBack({{"f:spec", {{"f:taints", kOne}}}}));
  Json both = Label("nvidia.com/gpu.count");
  both["f:spec"] = {{"f:unschedulable", kOne}};
  EXPECT_FALSE(IsTakenBack(both));
}

TEST(MayBeTakenBack, AppliesOfTheObjectItselfAlone) {
  Json entry = {{"operation", "Apply"}, {"fieldsV1", Label("nvidia.com/gpu.count")}};
  EXPECT_TRUE(MayBeTakenBack(entry));
  entry["subresource"] = "status";
  EXPECT_FALSE(MayBeTakenBack(entry));
  entry["subresource"] = "";
  EXPECT_TRUE(MayBeTakenBack(entry));
  entry["operation"] = "Update";
  EXPECT_FALSE(MayBeTakenBack(entry)) << "an empty apply takes nothing of it";
}

TEST(MayBeTakenBack, ReadsAnything) {
  for (const Json& odd : {Json("x"), Json::array(), Json({{"f:metadata", "x"}}),
                          Json({{"f:metadata", {{"f:labels", "x"}}}})}) {
    EXPECT_FALSE(IsTakenBack(odd)) << odd;
    EXPECT_FALSE(MayBeTakenBack(odd)) << odd;
  }
  EXPECT_FALSE(MayBeTakenBack({{"operation", "Apply"}}));
}

}  // namespace
}  // namespace penstock::protocol::kube
