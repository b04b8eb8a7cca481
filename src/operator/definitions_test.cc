// Tests what becomes of definitions that the cluster has already, of a later release or from
// another program: which of them stay, that objects say so with a remedy, and that everything else
// goes on.
#include "operator/definitions.h"

#include <algorithm>

#include "operator/testing/driver_rollout_fixture.h"

namespace penstock::cluster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kNativePath[] = "/apis/penstock.io/v1alpha1/penstocks/site";
constexpr char kPoliciesDefined[] = "clusterpolicies.nvidia.com";

json DefinitionOf(const std::string& name, const std::string& version) {
  return {{"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"scope", "found"},
            {"versions", {{{"name", version}, {"served", true}, {"storage", true}}}}}},
          {"status",
           {{"storedVersions", {version}},
            {"conditions", {{{"type", "Established"}, {"status", "True"}}}}}}};
}

json WithAnnotation(json definition, const std::string& key, const std::string& value) {
  definition["metadata"]["annotations"][key] = value;
  return definition;
}

TEST(KeptDefinitions, AreNamedWithTheirVersionAndARemedy) {
  const json ours = Completed(DefinitionOf("penstocks.penstock.io", "v1alpha1"));
  const auto later = KeptAs(WithAnnotation(DefinitionOf("penstocks.penstock.io", "v1alpha1"),
                                           "penstock.io/version", "999.1.2"),
                            ours);
  EXPECT_THAT(later.why,
              AllOf(HasSubstr("penstocks.penstock.io is of release 999.1.2"),
                    HasSubstr("this operator's " PENSTOCK_VERSION),
                    HasSubstr("kubectl annotate crd penstocks.penstock.io penstock.io/version-")));
  EXPECT_TRUE(later.served);
  const auto newer = KeptAs(DefinitionOf("penstocks.penstock.io", "v2"), ours);
  EXPECT_THAT(newer.why, AllOf(HasSubstr("stored in version v2"), HasSubstr("Upgrade the operator"),
                               HasSubstr("does not serve v1alpha1")));
  EXPECT_FALSE(newer.served);
  const json theirs = WithAnnotation(DefinitionOf("deviceconfigs.amd.com", "v1alpha1"),
                                     "controller-gen.kubebuilder.io/version", "v0.17.0");
  const auto foreign = KeptAs(theirs, Completed(DefinitionOf("deviceconfigs.amd.com", "v1alpha1")));
  EXPECT_THAT(foreign.why,
              AllOf(HasSubstr("deviceconfigs.amd.com (v1alpha1) is another operator's"),
                    HasSubstr("annotate crd deviceconfigs.amd.com "
                              "controller-gen.kubebuilder.io/version-")));
}

TEST(KeptDefinitions, AreNoneOfAnEarlierReleaseAndOfNvidias) {
  const json ours = Completed(DefinitionOf("clusterpolicies.nvidia.com", "v1"));
  const json found = DefinitionOf("clusterpolicies.nvidia.com", "v1");
  EXPECT_EQ(KeptAs(found, ours), KeptDefinition{});
  EXPECT_EQ(KeptAs(WithAnnotation(found, "penstock.io/version", "0.0.9"), ours), KeptDefinition{});
  EXPECT_EQ(KeptAs(WithAnnotation(found, "controller-gen.kubebuilder.io/version", "v0.19.0"), ours),
            KeptDefinition{});
  for (const json& hostile : {json::object(), json({{"spec", 7}, {"status", {"v2"}}}),
                              json({{"status", {{"storedVersions", {7, nullptr}}}}})})
    EXPECT_EQ(KeptAs(hostile, ours), KeptDefinition{}) << hostile;
}

class DefinitionsTest : public DriverRolloutTest {
 protected:
  DefinitionsTest() { Run(30); }

  /// Before an operator starts that has not applied its own.
  void Found(const json& definition) {
    operator_.reset();
    api_.Put(DefinitionPath(TextAt(definition, "/metadata/name")), definition);
    api_.ForgetCalls();
  }
  void Settle() {
    Start();
    executor_.Advance(30s);
  }
  json Scope(const std::string& name) {
    return (*api_.Find(DefinitionPath(name)))["spec"].value("scope", "");
  }
  /// How often a definition was written.
  int Applied() {
    return static_cast<int>(std::ranges::count_if(api_.calls(), [](const ApiCall& call) {
      return call.method == "PATCH" && call.path.starts_with(DefinitionPath(""));
    }));
  }
  void PutNative(json spec) {
    api_.Put(
        kNativePath,
        {{"apiVersion", "penstock.io/v1alpha1"}, {"kind", "Penstock"}, {"spec", std::move(spec)}});
  }
  std::string Said(const std::string& path, const char* type, const char* key) {
    return ConditionText(api_.Find(path)->value("status", json::object()), type, key);
  }
  std::string Kept(const std::string& path) { return Said(path, "DefinitionsApplied", "message"); }
  /// The objects with such an Event, with how often they have it.
  std::map<std::string, int> Events() {
    std::map<std::string, int> objects;
    for (const ApiCall& call : api_.calls()) {
      if (!call.path.ends_with("/events")) continue;
      const json event = json::parse(call.body);
      if (event.at("reason") != "DefinitionsKept") continue;
      EXPECT_EQ(event.at("type"), "Warning");
      ++objects[TextAt(event, "/involvedObject/kind")];
    }
    return objects;
  }
};

TEST_F(DefinitionsTest, ThoseOfALaterReleaseStayAndObjectsOfTheKindSaySoOnce) {
  PutNative(json::object());
  Found(WithAnnotation(DefinitionOf("penstocks.penstock.io", "v1alpha1"), "penstock.io/version",
                       "999.0.0"));
  Settle();
  EXPECT_EQ(Scope("penstocks.penstock.io"), "found");
  EXPECT_EQ(Said(kNativePath, "DefinitionsApplied", "status"), "False");
  EXPECT_EQ(Said(kNativePath, "DefinitionsApplied", "reason"), "DefinitionsKept");
  EXPECT_THAT(Kept(kNativePath), HasSubstr("penstocks.penstock.io is of release 999.0.0"));
  EXPECT_EQ(Kept(kPolicyPath), "");
  EXPECT_EQ(Said(kPolicyPath, "Error", "status"), "False");
  EXPECT_THAT(Events(), ElementsAre(testing::Pair("Penstock", 1)));
  const json status = (*api_.Find(kNativePath))["status"];
  Settle();
  EXPECT_THAT(Events(), ElementsAre(testing::Pair("Penstock", 1))) << "of another operator";
  EXPECT_EQ((*api_.Find(kNativePath))["status"], status);

  api_.Merge(DefinitionPath("penstocks.penstock.io"),
             {{"metadata", {{"annotations", {{"penstock.io/version", nullptr}}}}}});
  executor_.Advance(11min);
  EXPECT_EQ(Scope("penstocks.penstock.io"), "Cluster") << "the remedy";
  EXPECT_EQ(Kept(kNativePath), "");
}

TEST_F(DefinitionsTest, ThatOfTheReportsIsSaidByAllObjects) {
  Found(WithAnnotation(DefinitionOf("nodestates.penstock.io", "v1alpha1"), "penstock.io/version",
                       "999.0.0"));
  Settle();
  for (const std::string path : {kPolicyPath, "/apis/nvidia.com/v1alpha1/nvidiadrivers/blue"})
    EXPECT_THAT(Kept(path), HasSubstr("nodestates.penstock.io is of release 999.0.0")) << path;
}

TEST_F(DefinitionsTest, AKindInAnotherVersionHasNoObjectsAndTheOthersSayWhy) {
  api_.Remove(kPolicyPath);
  PutNative({{"startupTaints", {"example.com/one"}}});
  Found(DefinitionOf(kPoliciesDefined, "v2"));
  api_.NotInstalled("/apis/nvidia.com/v1/");
  Settle();
  executor_.Advance(2min);
  EXPECT_EQ(Scope(kPoliciesDefined), "found");
  EXPECT_THAT(Kept(kNativePath), AllOf(HasSubstr("stored in version v2"), HasSubstr("serve v1,")));
  EXPECT_EQ(Said(kNativePath, "Error", "status"), "False");
  const json set = *api_.Find(std::string(kSets) + "penstock-agent");
  EXPECT_EQ(TextAt(set, "/metadata/ownerReferences/0/kind"), "Penstock");
  EXPECT_THAT(set.dump(), HasSubstr("example.com/one")) << "what is asked for goes on";
}

TEST_F(DefinitionsTest, OneThatTheServerRefusesIsNamedAndUsedAsItIs) {
  Found(DefinitionOf(kPoliciesDefined, "v1"));
  api_.Fail(
      {.status = 422, .times = -1, .method = "PATCH", .path = DefinitionPath(kPoliciesDefined)});
  Settle();
  EXPECT_EQ(Scope(kPoliciesDefined), "found");
  EXPECT_THAT(Said(kPolicyPath, "Error", "message"),
              HasSubstr("definition clusterpolicies.nvidia.com: "));
  api_.Merge(kPolicyPath, {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}});
  executor_.Advance(10s);
  EXPECT_THAT(api_.Find(std::string(kSets) + "penstock-agent")->dump(), HasSubstr(R"("team":"a")"));
  api_.Heal();
  executor_.Advance(6min);
  EXPECT_EQ(Scope(kPoliciesDefined), "Cluster");
  EXPECT_EQ(Said(kPolicyPath, "Error", "status"), "False");
}

TEST_F(DefinitionsTest, OneThatMayNotBeReadIsNamedAndUsedAsItIs) {
  Found(DefinitionOf(kPoliciesDefined, "v1"));
  api_.Forbid("GET", DefinitionPath(kPoliciesDefined));
  Settle();
  EXPECT_EQ(Kept(kPolicyPath), "") << "a server that starts permits it later";
  executor_.Advance(2min);
  EXPECT_THAT(Kept(kPolicyPath),
              AllOf(HasSubstr("clusterpolicies.nvidia.com cannot be read"), HasSubstr("\"get\""),
                    HasSubstr("set operator.upgradeCRD to false")));
  EXPECT_EQ(Kept("/apis/nvidia.com/v1alpha1/nvidiadrivers/blue"), "") << "it is of another kind";
  EXPECT_THAT(Events(), ElementsAre(testing::Pair("ClusterPolicy", 1)));
  api_.Merge(kPolicyPath, {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}});
  executor_.Advance(10s);
  EXPECT_THAT(api_.Find(std::string(kSets) + "penstock-agent")->dump(), HasSubstr(R"("team":"a")"));
  const std::string said = Kept(kPolicyPath);
  Settle();
  EXPECT_EQ(Kept(kPolicyPath), said) << "by an operator that starts";
  EXPECT_THAT(Events(), ElementsAre(testing::Pair("ClusterPolicy", 1)));
  api_.Heal();
  executor_.Advance(6min);
  EXPECT_EQ(Scope(kPoliciesDefined), "Cluster");
  EXPECT_EQ(Kept(kPolicyPath), "");
}

TEST_F(DefinitionsTest, WhereTheServerDoesNotAnswerWhatWasSaidOfADefinitionStays) {
  Found(WithAnnotation(DefinitionOf(kPoliciesDefined, "v1"), "penstock.io/version", "999.0.0"));
  Settle();
  const std::string said = Kept(kPolicyPath);
  EXPECT_THAT(said, HasSubstr("999.0.0"));
  api_.Fail(
      {.status = 503, .times = -1, .method = "GET", .path = DefinitionPath(kPoliciesDefined)});
  Settle();
  executor_.Advance(3min);
  EXPECT_EQ(Kept(kPolicyPath), said);
}

TEST_F(DefinitionsTest, OneThatAnotherProgramWritesOverIsWrittenAgain) {
  api_.ForgetCalls();
  api_.Merge(DefinitionPath(kPoliciesDefined), {{"spec", {{"scope", "theirs"}}}});
  executor_.Advance(11min);
  EXPECT_EQ(Scope(kPoliciesDefined), "Cluster");
  EXPECT_EQ(Applied(), 1);
  executor_.Advance(1h);
  EXPECT_EQ(Applied(), 1);
}

TEST_F(DefinitionsTest, WhatTheServerMakesOfOneIsNotWrittenAgain) {
  Found(DefinitionOf(kPoliciesDefined, "v1"));
  api_.Drop("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/spec/names/listKind");
  Settle();
  executor_.Advance(11min);  // the others have lost the field, too
  const int once = Applied();
  EXPECT_GE(once, 1);
  executor_.Advance(1h);
  EXPECT_EQ(Applied(), once);
}

TEST_F(DefinitionsTest, NvidiasOwnAreReplacedAndNothingIsSaid) {
  for (const char* name : {"clusterpolicies.nvidia.com", "nvidiadrivers.nvidia.com"})
    Found(WithAnnotation(
        DefinitionOf(name, name == std::string(kPoliciesDefined) ? "v1" : "v1alpha1"),
        "controller-gen.kubebuilder.io/version", "v0.19.0"));
  Settle();
  EXPECT_EQ(Scope(kPoliciesDefined), "Cluster");
  EXPECT_EQ(Scope("nvidiadrivers.nvidia.com"), "Cluster");
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_EQ(Kept(kPolicyPath), "");
}

}  // namespace
}  // namespace penstock::cluster
