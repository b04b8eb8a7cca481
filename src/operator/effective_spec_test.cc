// Tests which policies are in force, and what they contribute together.
#include "operator/effective_spec.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PolicyObject ObjectOf(const std::string& kind, const std::string& name, const json& spec) {
  const api::compat::PolicyKind* found = &api::compat::PenstockKind();
  for (const auto& one : api::compat::PolicyKinds())
    if (one.kind == kind) found = &one;
  return {found,
          {{"apiVersion", found->group + "/" + found->version},
           {"kind", kind},
           {"metadata", {{"name", name}, {"uid", name + "-uid"}}},
           {"spec", spec}}};
}

PolicyObject PolicyWithObjects(bool use_objects) {
  return ObjectOf("ClusterPolicy", "cluster-policy",
                  {{"driver",
                    {{"version", "580"},
                     {"image", "driver"},
                     {"repository", "r"},
                     {"useNvidiaDriverCRD", use_objects}}}});
}

PolicyObject NvidiaDriver(const std::string& name) {
  return ObjectOf("NVIDIADriver", name,
                  {{"driverType", "gpu"}, {"version", "580"}, {"nodeSelector", {{"pool", name}}}});
}

const PolicyOutcome& OutcomeOf(const EffectiveSpec& effective, const std::string& name) {
  const auto found = std::ranges::find_if(effective.outcomes, [&](const PolicyOutcome& one) {
    return NameOf(*one.policy).name == name;
  });
  EXPECT_NE(found, effective.outcomes.end()) << name;
  return *found;
}

std::vector<std::string> DriversOf(const EffectiveSpec& effective) {
  std::vector<std::string> names;
  if (!effective.spec) return {"no spec"};
  for (const api::DriverSpec& driver : effective.spec->drivers) names.push_back(driver.name);
  return names;
}

TEST(EffectiveSpec, HasADriverWithoutANameFromAClusterPolicyAndNoneOfTheObjects) {
  const std::vector<PolicyObject> policies = {NvidiaDriver("blue"), PolicyWithObjects(false)};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_THAT(DriversOf(effective), ElementsAre(""));
  EXPECT_EQ(OutcomeOf(effective, "cluster-policy").ignored, "");
  EXPECT_EQ(OutcomeOf(effective, "blue").ignored,
            "ClusterPolicy cluster-policy has driver.useNvidiaDriverCRD false");
  EXPECT_EQ(OutcomeOf(effective, "blue").problem, "");
}

TEST(EffectiveSpec, HasTheDriversOfAllObjectsIfTheClusterPolicySaysSo) {
  const std::vector<PolicyObject> policies = {NvidiaDriver("green"), NvidiaDriver("blue"),
                                              PolicyWithObjects(true)};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_THAT(DriversOf(effective), ElementsAre("blue", "green"));
  for (const char* name : {"blue", "green", "cluster-policy"})
    EXPECT_EQ(OutcomeOf(effective, name).ignored, "") << name;
  EXPECT_EQ(effective.owner->kind, "ClusterPolicy");
  EXPECT_TRUE(effective.wanted);
}

TEST(EffectiveSpec, HasNoDriverWhereTheClusterPolicyHasNone) {
  const std::vector<PolicyObject> policies = {
      NvidiaDriver("blue"),
      ObjectOf("ClusterPolicy", "p",
               {{"driver", {{"enabled", false}, {"useNvidiaDriverCRD", true}}}})};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_THAT(DriversOf(effective), IsEmpty());
  EXPECT_EQ(OutcomeOf(effective, "blue").ignored, "ClusterPolicy p has driver.enabled false");
}

TEST(EffectiveSpec, GoesOnWithoutADriverThatCannotBeRead) {
  PolicyObject broken = NvidiaDriver("broken");
  broken.object["spec"]["kernelModuleType"] = "shut";
  const std::vector<PolicyObject> policies = {broken, NvidiaDriver("blue"),
                                              PolicyWithObjects(true)};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_THAT(DriversOf(effective), ElementsAre("blue"));
  EXPECT_THAT(effective.unreadable_drivers, ElementsAre("broken"));
  EXPECT_THAT(OutcomeOf(effective, "broken").problem,
              HasSubstr("NVIDIADriver broken: spec.kernelModuleType: \"shut\" is none of"));
  EXPECT_EQ(OutcomeOf(effective, "blue").problem, "");
}

TEST(EffectiveSpec, AnNvidiaDriverAloneDeploysNothing) {
  PolicyObject broken = NvidiaDriver("broken");
  broken.object["spec"]["kernelModuleType"] = "shut";
  const std::vector<PolicyObject> policies = {NvidiaDriver("blue"), broken};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_FALSE(effective.wanted);
  EXPECT_FALSE(effective.spec);
  EXPECT_FALSE(effective.owner);
  EXPECT_THAT(effective.unreadable_drivers, IsEmpty());
  EXPECT_THAT(OutcomeOf(effective, "blue").ignored,
              AllOf(HasSubstr("no ClusterPolicy"), HasSubstr("no Penstock object")));
  EXPECT_THAT(OutcomeOf(effective, "broken").problem, HasSubstr("shut"));
}

TEST(EffectiveSpec, APenstockObjectSufficesForNvidiaDriversAndChangesThemByName) {
  const std::vector<PolicyObject> policies = {
      NvidiaDriver("blue"), NvidiaDriver("green"),
      ObjectOf("Penstock", "site",
               {{"drivers",
                 {{{"name", "blue"}, {"upgrade", {{"maxFailures", "1"}}}},
                  {{"name", "red"}, {"nodeSelector", {{"pool", "red"}}}}}}})};
  const EffectiveSpec effective = ComputeSpec(policies);
  ASSERT_THAT(DriversOf(effective), ElementsAre("blue", "green", "red"));
  const api::DriverSpec& blue = effective.spec->drivers[0];
  EXPECT_EQ(blue.upgrade.max_failures, "1");
  EXPECT_EQ(blue.image.version, "580") << "the rest is as the NVIDIADriver has it";
  EXPECT_EQ(effective.owner->kind, "Penstock");
}

TEST(EffectiveSpec, APenstockObjectAddsToAClusterPolicysDriver) {
  const std::vector<PolicyObject> policies = {
      PolicyWithObjects(false),
      ObjectOf("Penstock", "site",
               {{"drivers", {{{"name", "red"}, {"nodeSelector", {{"pool", "red"}}}}}}})};
  EXPECT_THAT(DriversOf(ComputeSpec(policies)), ElementsAre("", "red"));
}

TEST(EffectiveSpec, ChangesNothingWhileThePolicyCannotBeRead) {
  const std::vector<PolicyObject> policies = {
      NvidiaDriver("blue"), ObjectOf("ClusterPolicy", "p", {{"driver", {{"enabled", "yes"}}}})};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_TRUE(effective.wanted);
  EXPECT_FALSE(effective.spec);
  EXPECT_EQ(OutcomeOf(effective, "blue").ignored, "") << "it is not known";
  EXPECT_THAT(OutcomeOf(effective, "p").problem, HasSubstr("spec.driver.enabled"));
}

TEST(EffectiveSpec, AnswersNothingOverAPolicyThatCannotBeRead) {
  const std::vector<PolicyObject> policies = {
      ObjectOf("ClusterPolicy", "p", {{"driver", {{"enabled", "yes"}}}}),
      ObjectOf("DeviceConfig", "read", {{"driver", {{"enable", true}}}}),
      ObjectOf("Penstock", "wrong", {{"drivers", "none"}})};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_THAT(effective.unreadable, ElementsAre("ClusterPolicy p", "Penstock wrong"));
  const PolicyOutcome& read = OutcomeOf(effective, "read");
  EXPECT_FALSE(read.answered);
  EXPECT_EQ(read.problem, "");
  EXPECT_THAT(read.answers, IsEmpty());
  EXPECT_THAT(read.components, IsEmpty());
  EXPECT_THAT(OutcomeOf(effective, "wrong").problem, HasSubstr("drivers"));
}

TEST(EffectiveSpec, LabelsOfPodsThatAgentsMayNotListAreAnsweredOfThePolicyThatAsksForThem) {
  const json wants = {{"dcgmExporter", {{"enabled", true}, {"enablePodLabels", true}}}};
  const json native = {{"node", {{"telemetry", {{"holderLabels", {"app"}}}}}}};
  const auto asked = [](const EffectiveSpec& effective, const std::string& name) {
    std::vector<std::string> texts;
    for (const auto& answer : OutcomeOf(effective, name).answers)
      if (answer.field.starts_with("labels of pods"))
        texts.push_back(answer.fate == api::compat::FieldFate::kNotServed ? answer.text : "?");
    return texts;
  };
  const auto names_value = ElementsAre(HasSubstr("penstock.rbac.podLabels of the chart is false"));
  const std::vector<PolicyObject> policies = {ObjectOf("ClusterPolicy", "cluster-policy", wants),
                                              ObjectOf("Penstock", "site", json::object())};
  EffectiveSpec effective = ComputeSpec(policies, {.pod_labels = false});
  ASSERT_TRUE(effective.spec);
  EXPECT_THAT(effective.spec->node.telemetry.holder_labels, IsEmpty());
  EXPECT_THAT(asked(effective, "cluster-policy"), names_value);
  EXPECT_THAT(asked(effective, "site"), IsEmpty());
  effective = ComputeSpec(policies);
  EXPECT_THAT(effective.spec->node.telemetry.holder_labels, Not(IsEmpty()));
  EXPECT_THAT(asked(effective, "cluster-policy"), IsEmpty());

  const std::vector<PolicyObject> other = {
      ObjectOf("ClusterPolicy", "cluster-policy", json::object()),
      ObjectOf("Penstock", "site", native)};
  effective = ComputeSpec(other, {.pod_labels = false});
  EXPECT_THAT(effective.spec->node.telemetry.holder_labels, IsEmpty());
  EXPECT_THAT(asked(effective, "site"), names_value);
  EXPECT_THAT(asked(effective, "cluster-policy"), IsEmpty());
}

TEST(EffectiveSpec, OfTwoClusterPoliciesTheOlderIsInForce) {
  PolicyObject older = PolicyWithObjects(true);
  older.object["metadata"] = {{"name", "z"}, {"creationTimestamp", "2026-01-01T00:00:00Z"}};
  PolicyObject younger = PolicyWithObjects(false);
  younger.object["metadata"] = {{"name", "a"}, {"creationTimestamp", "2026-01-02T00:00:00Z"}};
  const std::vector<PolicyObject> policies = {younger, NvidiaDriver("blue"), older};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_THAT(DriversOf(effective), ElementsAre("blue"));
  EXPECT_EQ(OutcomeOf(effective, "a").ignored,
            "ClusterPolicy z is in force, since it is older; delete one of the two");
}

TEST(EffectiveSpec, LeavesOutWhatWasDeleted) {
  PolicyObject deleted = NvidiaDriver("gone");
  deleted.object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  const std::vector<PolicyObject> policies = {deleted, PolicyWithObjects(true)};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_THAT(DriversOf(effective), IsEmpty());
  EXPECT_EQ(effective.outcomes.size(), 1u);
}

TEST(EffectiveSpec, OnlyAnswersKindsThatAreNotServed) {
  const std::vector<PolicyObject> policies = {
      ObjectOf("GPUCluster", "gpu-cluster", json::object())};
  const EffectiveSpec effective = ComputeSpec(policies);
  EXPECT_FALSE(effective.wanted);
  ASSERT_EQ(effective.outcomes.size(), 1u);
  EXPECT_EQ(effective.outcomes[0].ignored, "");
  EXPECT_EQ(effective.outcomes[0].answers.size(), 1u);
}

}  // namespace
}  // namespace penstock::cluster
