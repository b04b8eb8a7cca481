#include "protocol/kube/node_fields.h"

#include <vector>

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
  EXPECT_FALSE(MayBeTakenBack(entry));
}

TEST(IsManagedBy, OneManagerInOnePart) {
  const auto managed = [](const Json& entries) -> Json {
    return {{"metadata", {{"managedFields", entries}}}};
  };
  const Json node = managed({{{"manager", "a"}}, {{"manager", "b"}, {"subresource", "status"}}});
  EXPECT_TRUE(IsManagedBy(node, "a"));
  EXPECT_FALSE(IsManagedBy(node, "a", "status"));
  EXPECT_TRUE(IsManagedBy(node, "b", "status"));
  EXPECT_FALSE(IsManagedBy(node, "b"));
  for (const Json& other : {Json(), Json("a"), managed("a"), managed({"a", 1, Json()})})
    EXPECT_FALSE(IsManagedBy(other, "a"));
}

Json NodeOf(const Json& entries) {
  return {{"metadata",
           {{"uid", "u"},
            {"resourceVersion", "7"},
            {"labels", {{"a", "1"}, {"b", "2"}, {"c", "3"}}},
            {"annotations", {{"d", "4"}}},
            {"managedFields", entries}}}};
}
Json EntryOf(const char* manager, const char* map, const std::vector<std::string>& keys) {
  Json entry = {{"manager", manager}, {"operation", "Apply"}};
  for (const std::string& key : keys) entry["fieldsV1"]["f:metadata"][map]["f:" + key] = kOne;
  return entry;
}
OwnedKeys Owned(const Json& node) {
  return OwnedAlone(node, MayBeTakenBack,
                    [](const std::string& manager) { return manager == "m"; });
}

TEST(OwnedAlone, WhatIsOursAloneAndIsThere) {
  const Json node =
      NodeOf({EntryOf("m", "f:labels", {"a", "b", "gone", "x.kubernetes.io/y"}),
              EntryOf("m", "f:labels", {"a", "b", "gone"}), EntryOf("m", "f:annotations", {"d"}),
              EntryOf("user", "f:labels", {"b"})});
  EXPECT_EQ(Owned(node).labels, std::set<std::string>{"a"}) << "the first entry is not an agent's";
  EXPECT_EQ(Owned(node).annotations, std::set<std::string>{"d"});
  EXPECT_EQ(Without(Owned(node), node), Json({{"metadata",
                                               {{"uid", "u"},
                                                {"resourceVersion", "7"},
                                                {"labels", {{"a", nullptr}}},
                                                {"annotations", {{"d", nullptr}}}}}}));
}

TEST(OwnedAlone, AnothersUpdateKeepsIt) {
  Json update = EntryOf("user", "f:labels", {"a"});
  update["operation"] = "Update";
  EXPECT_TRUE(Owned(NodeOf({EntryOf("m", "f:labels", {"a"}), update})).empty());
}

TEST(OwnedAlone, ReadsAnything) {
  EXPECT_TRUE(Owned("x").empty());
  EXPECT_TRUE(Owned({{"metadata", {{"managedFields", {1, "x", {{"manager", 2}}}}}}}).empty());
  EXPECT_TRUE(
      Owned({{"metadata", {{"managedFields", {EntryOf("m", "f:labels", {"a"})}}}}}).empty());
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
