#include "operator/node_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr char kFound[] = "feature.node.kubernetes.io/pci-10de.present";

api::PenstockSpec MarksSpec() {
  api::PenstockSpec spec;
  spec.marks.labels = {{"x/deploy.a", "true"}, {"x/deploy.b", "true"}};
  spec.marks.annotations = {{"x/upgrade", "true"}};
  spec.marks.present_label = "x/present";
  spec.marks.opt_out_label = "x/deploy.operands";
  return spec;
}

json NodeWith(const json& labels, const json& annotations = json::object()) {
  return {{"metadata",
           {{"name", "n1"}, {"uid", "u1"}, {"labels", labels}, {"annotations", annotations}}}};
}

NodeMarksPlan PlanFor(const json& node, const api::PenstockSpec& spec, MarkFacts facts = {}) {
  return PlanMarks(node, spec, KeysOf(spec), facts);
}

TEST(NodeMarks, ANodeWithoutDevicesGetsNothing) {
  const auto plan = PlanFor(NodeWith({{"zone", "a"}}), MarksSpec());
  EXPECT_FALSE(plan.has_devices);
  EXPECT_FALSE(plan.differs);
  EXPECT_FALSE(plan.doubtful);
  EXPECT_THAT(plan.labels, IsEmpty());
}

TEST(NodeMarks, ANodeWithDevicesGetsAllInOneWrite) {
  const auto plan = PlanFor(NodeWith({{kFound, "true"}}), MarksSpec());
  EXPECT_TRUE(plan.differs);
  EXPECT_THAT(plan.labels, ElementsAre(Pair("x/deploy.a", "true"), Pair("x/deploy.b", "true"),
                                       Pair("x/present", "true")));
  EXPECT_THAT(plan.annotations, ElementsAre(Pair("x/upgrade", "true")));
}

TEST(NodeMarks, AValueOfOthersIsHonouredUnlessItIsEmpty) {
  const auto plan = PlanFor(
      NodeWith({{kFound, "true"}, {"x/deploy.a", "paused"}, {"x/deploy.b", ""}}), MarksSpec());
  EXPECT_THAT(plan.labels, ElementsAre(Pair("x/deploy.b", "true"), Pair("x/present", "true")));
}

TEST(NodeMarks, WhereAllIsThereNothingDiffers) {
  const auto plan = PlanFor(
      NodeWith(
          {{kFound, "true"}, {"x/deploy.a", "true"}, {"x/deploy.b", "true"}, {"x/present", "true"}},
          {{"x/upgrade", "true"}}),
      MarksSpec());
  EXPECT_FALSE(plan.differs);
  EXPECT_FALSE(plan.doubtful);
}

TEST(NodeMarks, ALabelThatDisappearsRemovesNothing) {
  const auto plan =
      PlanFor(NodeWith({{"x/deploy.a", "true"}, {"x/deploy.b", "true"}}), MarksSpec());
  EXPECT_FALSE(plan.has_devices);
  EXPECT_FALSE(plan.differs);
  EXPECT_FALSE(plan.doubtful);
}

TEST(NodeMarks, ANodeThatOptsOutKeepsOnlyThatItHasDevices) {
  const auto plan = PlanFor(NodeWith({{kFound, "true"},
                                      {"x/deploy.operands", "false"},
                                      {"x/deploy.a", "true"},
                                      {"x/present", "true"}}),
                            MarksSpec());
  EXPECT_TRUE(plan.opted_out);
  EXPECT_TRUE(plan.doubtful);
  EXPECT_THAT(plan.labels, ElementsAre(Pair("x/present", "true")));
}

TEST(NodeMarks, SomeLabelsDependOnOthers) {
  auto spec = MarksSpec();
  spec.node.default_layout = "all-disabled";
  const auto plan = PlanFor(NodeWith({{kFound, "true"}, {"nvidia.com/mig.capable", "true"}}), spec);
  EXPECT_EQ(plan.labels.at("nvidia.com/gpu.deploy.mig-manager"), "true");
  EXPECT_EQ(plan.labels.at("nvidia.com/mig.config"), "all-disabled");
}

json EntryOf(const char* manager, const std::vector<std::string>& labels,
             const char* operation = "Apply") {
  json entry = {{"manager", manager}, {"operation", operation}};
  for (const std::string& key : labels)
    entry["fieldsV1"]["f:metadata"]["f:labels"]["f:" + key] = json::object();
  return entry;
}

TEST(NodeMarks, WhatIsOursIsInTheManagedFields) {
  json node = NodeWith({{kFound, "true"},
                        {"x/deploy.a", "true"},
                        {"x/present", "true"},
                        {"nvidia.com/other", "true"}});
  const auto plan = PlanFor(node, MarksSpec(), {.wanted = false});
  EXPECT_THAT(plan.labels, IsEmpty());
  EXPECT_TRUE(plan.doubtful);
  const auto excess = [&] { return ExcessOf(node, plan, KeysOf(MarksSpec())).labels; };
  EXPECT_THAT(excess(), IsEmpty());
  auto& fields = node["metadata"]["managedFields"];
  fields = {EntryOf("penstock-operator", {"x/deploy.a", "x/present", "x/gone"})};
  EXPECT_THAT(excess(), ElementsAre("x/deploy.a", "x/present"));
  fields = {
      EntryOf("penstock-operator", {"x/deploy.a", "x/present", "nvidia.com/other"}, "Update")};
  EXPECT_THAT(excess(), ElementsAre("x/deploy.a", "x/present"));
  fields.push_back(EntryOf("kubectl-label", {"x/present"}, "Update"));
  EXPECT_THAT(excess(), ElementsAre("x/deploy.a"));
}

bool MayBeAppliedTo(const json& node, const api::PenstockSpec& spec) {
  return MayBeApplied(PlanFor(ReducedNode(node, KeysOf(spec)), spec));
}

TEST(NodeMarks, WhatANodeMayNotChangeIsOnlyOursIfThePolicyNamesIt) {
  constexpr char kRole[] = "node-role.kubernetes.io/gpu";
  auto spec = MarksSpec();
  json node = NodeWith({{kFound, "true"}, {"x/deploy.a", "true"}, {kRole, "true"}});
  node["metadata"]["managedFields"] = {EntryOf("penstock-operator", {"x/deploy.a", kRole})};
  const auto plan = PlanFor(node, spec, {.wanted = false});
  EXPECT_THAT(ExcessOf(node, plan, KeysOf(spec)).labels, ElementsAre("x/deploy.a"));
  EXPECT_FALSE(MayBeAppliedTo(node, spec));
  spec.marks.opt_out_label = kRole;
  EXPECT_THAT(ExcessOf(node, plan, KeysOf(spec)).labels, ElementsAre("x/deploy.a"))
      << "the operator reads it";
  EXPECT_FALSE(MayBeAppliedTo(node, spec));
  spec.marks.labels[kRole] = "true";
  EXPECT_THAT(ExcessOf(node, plan, KeysOf(spec)).labels, ElementsAre(kRole, "x/deploy.a"));
  EXPECT_TRUE(MayBeAppliedTo(node, spec));
}

TEST(NodeMarks, WhatOthersOwnTooIsGivenUpByAnApply) {
  json node = NodeWith({{kFound, "true"}, {"x/deploy.a", "true"}, {"x/deploy.operands", "false"}});
  node["metadata"]["managedFields"] = {EntryOf("penstock-operator", {"x/deploy.a"}),
                                       EntryOf("gitops", {"x/deploy.a"})};
  const auto plan = PlanFor(node, MarksSpec());
  EXPECT_TRUE(AppliedMore(node, plan));
  EXPECT_TRUE(ExcessOf(node, plan, KeysOf(MarksSpec())).empty());
}

TEST(NodeMarks, AnEmptyValueThatIsWantedDoesNotDiffer) {
  auto spec = MarksSpec();
  spec.marks = {};
  spec.marks.present_label = "x/present";
  spec.marks.labels = {{"node-role.kubernetes.io/gpu", ""}};
  json node = NodeWith({{kFound, "true"}, {"x/present", "true"}});
  EXPECT_TRUE(PlanFor(node, spec).differs);
  node["metadata"]["labels"]["node-role.kubernetes.io/gpu"] = "";
  EXPECT_FALSE(PlanFor(node, spec).differs);
}

TEST(NodeMarks, WhereAnApplyCouldTakeMoreNoneIsMade) {
  json node = NodeWith({{kFound, "true"}});
  const auto may = [&node](const json& entry) {
    node["metadata"]["managedFields"] = {entry};
    return MayBeAppliedTo(node, MarksSpec());
  };
  EXPECT_TRUE(may(EntryOf("penstock-operator", {"x/deploy.a", "x/old"})));
  EXPECT_TRUE(may(EntryOf("kubectl", {"node-restriction.kubernetes.io/tier"})));
  EXPECT_FALSE(may(EntryOf("penstock-operator", {"node-restriction.kubernetes.io/tier"})));
  json taints = EntryOf("penstock-operator", {"x/deploy.a"});
  taints["fieldsV1"]["f:spec"]["f:taints"] = json::object();
  EXPECT_FALSE(may(taints));
  EXPECT_FALSE(MayBeApplied({})) << "without labels it could take the Node's last one";
}

TEST(NodeMarks, APatchHasWhatDiffersAndWhatGoes) {
  json node = NodeWith({{kFound, "true"}, {"x/deploy.a", "true"}, {"x/deploy.b", ""}},
                       {{"x/upgrade", "true"}});
  node["metadata"]["resourceVersion"] = "7";
  const auto plan = PlanFor(node, MarksSpec());
  EXPECT_EQ(MarksPatch(node, plan, {.labels = {"x/old"}, .annotations = {"x/older"}}),
            json({{"metadata",
                   {{"uid", "u1"},
                    {"resourceVersion", "7"},
                    {"labels", {{"x/deploy.b", "true"}, {"x/present", "true"}, {"x/old", nullptr}}},
                    {"annotations", {{"x/older", nullptr}}}}}}));
}

TEST(NodeMarks, OfANodeOnlyWhatMattersIsKept) {
  json node = NodeWith({{kFound, "true"}, {"zone", "a"}, {"x/deploy.a", "true"}},
                       {{"x/upgrade", "true"}, {"other", "long"}});
  node["status"] = {{"images", json::array()}};
  EXPECT_EQ(ReducedNode(node, KeysOf(MarksSpec())),
            NodeWith({{kFound, "true"}, {"x/deploy.a", "true"}}, {{"x/upgrade", "true"}}));
}

TEST(NodeMarks, WhatAnotherPolicyAskedForMayBeOurs) {
  api::PenstockSpec none;
  const json node = NodeWith({{"nvidia.com/gpu.deploy.driver", "true"}},
                             {{"nvidia.com/gpu-driver-upgrade-enabled", "true"}});
  const auto keys = KeysOf(none);
  EXPECT_TRUE(keys.labels.contains("nvidia.com/gpu.deploy.driver"));
  EXPECT_TRUE(keys.annotations.contains("nvidia.com/gpu-driver-upgrade-enabled"));
  const auto plan = PlanFor(node, none);
  EXPECT_FALSE(plan.differs);
  EXPECT_TRUE(plan.doubtful);
}

TEST(NodeMarks, WhatAFormerPolicyNamedMayBeOurs) {
  auto former = MarksSpec();
  former.marks.labels["x/deploy.gone"] = "true";
  const json node = NodeWith({{"x/deploy.gone", "true"}});
  EXPECT_FALSE(PlanMarks(node, MarksSpec(), KeysOf(MarksSpec()), {}).doubtful);
  EXPECT_TRUE(PlanMarks(node, MarksSpec(), KeysOf(former), {}).doubtful);
}

}  // namespace
}  // namespace penstock::cluster
