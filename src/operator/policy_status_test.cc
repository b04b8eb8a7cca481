#include "operator/policy_status.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/json_text.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

using api::compat::FieldFate;
using nlohmann::json;
using testing::HasSubstr;

const PolicyObject kObject{&api::compat::PolicyKinds().front(),
                           {{"metadata", {{"name", "cluster-policy"}, {"uid", "u1"}}}}};

ClusterFacts FactsWith(std::vector<NodeReadiness> nodes) {
  ClusterFacts facts{.namespace_name = "gpu-operator"};
  const auto count = static_cast<std::int64_t>(nodes.size());
  facts.agents = {true, true, count, count, count};
  facts.reports = count;
  facts.complete = true;
  facts.written = true;
  facts.fleet = Count(std::move(nodes));
  return facts;
}

json ConditionIn(const json& status, const std::string& type) {
  for (const json& one : status["conditions"])
    if (one["type"] == type) return one;
  return {};
}

TEST(PolicyStatus, WhileReadyHasNvidiasConditionsWithOneOfThemTrue) {
  const json status = StatusOf({.policy = &kObject}, FactsWith({{"n1", "ready", "Ready", "", ""}}),
                               {}, "2026-01-01T00:00:00Z");
  EXPECT_EQ(status["state"], "ready");
  EXPECT_EQ(status["namespace"], "gpu-operator");
  EXPECT_EQ(ConditionIn(status, "Ready")["status"], "True");
  EXPECT_EQ(ConditionIn(status, "Ready")["reason"], "Reconciled");
  EXPECT_EQ(ConditionIn(status, "Error")["status"], "False");
  EXPECT_EQ(ConditionIn(status, "Error")["reason"], "Ready");
}

// NVIDIA's operator has Error=True meanwhile.
TEST(PolicyStatus, WhileItWaitsForNodesNeitherConditionIsTrue) {
  const json status =
      StatusOf({.policy = &kObject}, FactsWith({{"n1", "notReady", "NoAgent", "", ""}}), {}, "now");
  EXPECT_EQ(status["state"], "notReady");
  EXPECT_EQ(ConditionIn(status, "Ready")["status"], "False");
  EXPECT_EQ(ConditionIn(status, "Ready")["reason"], "OperandNotReady");
  EXPECT_THAT(ConditionIn(status, "Ready")["message"].get<std::string>(), HasSubstr("n1"));
  EXPECT_EQ(ConditionIn(status, "Error")["status"], "False");
  EXPECT_EQ(ConditionIn(status, "Error")["message"], "");
}

TEST(PolicyStatus, WithAProblemErrorIsTrueAndHasTheReasonAndMessageOfReady) {
  ClusterFacts facts = FactsWith({{"n1", "ready", "Ready", "", ""}});
  facts.problems = {"services are refused"};
  const json status = StatusOf({.policy = &kObject}, facts, {}, "now");
  EXPECT_EQ(status["state"], "notReady");
  EXPECT_EQ(ConditionIn(status, "Ready")["status"], "False");
  EXPECT_EQ(ConditionIn(status, "Error")["status"], "True");
  for (const char* key : {"reason", "message"})
    EXPECT_EQ(ConditionIn(status, "Error")[key], ConditionIn(status, "Ready")[key]) << key;
  EXPECT_EQ(ConditionIn(status, "Error")["reason"], "ReconcileFailed");
}

TEST(PolicyStatus, AWarningAboutOperandsStaysUntilTheyAreKnownToBeGone) {
  ClusterFacts facts = FactsWith({{"n1", "ready", "Ready", "", ""}});
  facts.operands_left = "delete them";
  const json found = StatusOf({.policy = &kObject}, facts, {}, "now");
  EXPECT_EQ(found["state"], "ready");
  EXPECT_EQ(ConditionIn(found, "OperandsReplaced")["message"], "delete them");
  EXPECT_TRUE(ConditionIn(StatusOf({.policy = &kObject, .ignored = "a"}, facts, {}, "now"),
                          "OperandsReplaced")
                  .is_null());
  facts.operands_left.reset();
  EXPECT_EQ(ConditionIn(StatusOf({.policy = &kObject}, facts, found, "now"), "OperandsReplaced"),
            ConditionIn(found, "OperandsReplaced"));
  EXPECT_EQ(
      ConditionIn(StatusOfUndecided(kObject, {"a problem"}, found, "now"), "OperandsReplaced"),
      ConditionIn(found, "OperandsReplaced"));
  facts.operands_left = "";
  EXPECT_TRUE(ConditionIn(StatusOf({.policy = &kObject}, facts, found, "now"), "OperandsReplaced")
                  .is_null());
}

TEST(PolicyStatus, AConditionThatDidNotChangeKeepsItsTime) {
  const auto facts = FactsWith({{"n1", "ready", "Ready", "", ""}});
  const json before = StatusOf({.policy = &kObject}, facts, {}, "2026-01-01T00:00:00Z");
  EXPECT_EQ(StatusOf({.policy = &kObject}, facts, before, "2026-02-02T00:00:00Z"), before);
}

TEST(PolicyStatus, AGenerationIsObservedOnceWhatItWantsWasWritten) {
  auto facts = FactsWith({{"n1", "ready", "Ready", "", ""}});
  facts.written = false;
  PolicyObject object = kObject;
  object.object["metadata"]["generation"] = 1;
  const auto observed = [&](const json& found) {
    return ConditionIn(StatusOf({.policy = &object}, facts, found, "now"), "Ready")
        .value("observedGeneration", 0);
  };
  EXPECT_EQ(observed({}), 0) << "nothing was written yet";
  facts.written = true;
  EXPECT_EQ(observed({}), 1);
  const json found = StatusOf({.policy = &object}, facts, {}, "now");
  object.object["metadata"]["generation"] = 2;
  facts.written = false;
  EXPECT_EQ(observed(found), 1) << "what is there is what the spec before it wanted";
  facts.written = true;
  EXPECT_EQ(observed(found), 2);
}

TEST(PolicyStatus, IsNotReadyBeforeWhatItWantsWasWritten) {
  auto facts = FactsWith({{"n1", "ready", "Ready", "", ""}});  // as another policy wanted it
  PolicyObject object = kObject;
  object.object["metadata"]["generation"] = 1;
  const auto state = [&](const json& found) {
    return StateOf({.policy = &object}, facts, found).state;
  };
  facts.written = false;
  EXPECT_EQ(state({}), "notReady");
  facts.written = true;
  EXPECT_EQ(state({}), "ready");
  const json found = StatusOf({.policy = &object}, facts, {}, "now");
  facts.written = false;
  EXPECT_EQ(state(found), "ready") << "an object that others changed is put right";
  object.object["metadata"]["generation"] = 2;
  EXPECT_EQ(state(found), "notReady");
}

TEST(PolicyStatus, WhatWasWrittenOnceIsRememberedWhereTheStatusHasNoConditions) {
  auto facts = FactsWith({{"n1", "ready", "Ready", "", ""}});
  facts.written = false;
  facts.generations_written = {{"u1", 1}};
  PolicyObject object = kObject;
  object.object["metadata"]["generation"] = 1;
  EXPECT_EQ(StateOf({.policy = &object}, facts, {}).state, "ready");
  object.object["metadata"]["generation"] = 2;
  EXPECT_EQ(StateOf({.policy = &object}, facts, {}).state, "notReady");
}

TEST(PolicyStatus, AnObjectThatIsIgnoredHasBeenObserved) {
  PolicyObject object = kObject;
  object.object["metadata"]["generation"] = 3;
  const json status =
      StatusOf({.policy = &object, .ignored = "another is in force"}, FactsWith({}), {}, "now");
  EXPECT_EQ(ConditionIn(status, "Ready")["observedGeneration"], 3);
}

TEST(PolicyStatus, SaysWhichFieldsAreNotServed) {
  PolicyOutcome outcome{.policy = &kObject};
  outcome.answers = {{"spec.a", FieldFate::kNotServed, "is not served yet"},
                     {"spec.b", FieldFate::kHonoured, ""}};
  const json condition =
      ConditionIn(StatusOf(outcome, FactsWith({}), {}, "2026-01-01T00:00:00Z"), "FieldsServed");
  EXPECT_EQ(condition["status"], "False");
  EXPECT_EQ(condition["message"], "spec.a: is not served yet");
}

TEST(PolicyStatus, DoesNotSayThatFieldsAreServedBeforeItIsKnown) {
  const PolicyOutcome outcome{.policy = &kObject, .answered = false};
  EXPECT_TRUE(ConditionIn(StatusOf(outcome, FactsWith({}), {}, "now"), "FieldsServed").is_null());
}

TEST(PolicyStatus, StaysBelowItsLimitWhateverNodesReport) {
  std::vector<NodeReadiness> nodes;
  for (int i = 0; i < 5000; ++i)
    nodes.push_back({"node-" + std::to_string(i), "notReady", "Reason" + std::to_string(i),
                     std::string(400, 'x'), ""});
  PolicyOutcome outcome{.policy = &kObject};
  for (int i = 0; i < 1000; ++i)
    outcome.answers.push_back(
        {"spec.field" + std::to_string(i), FieldFate::kUnknown, std::string(200, 'y')});
  const json status = StatusOf(outcome, FactsWith(std::move(nodes)), {}, "2026-01-01T00:00:00Z");
  EXPECT_LT(base::JsonText(status).size(), 64u << 10);
  EXPECT_EQ(status["nodes"]["notReady"].size(), kMostNamed);
  EXPECT_EQ(status["nodes"]["byState"]["notReady"], 5000);
}

TEST(PolicyStatus, WithoutDevicesItIsReadyAndSaysSo) {
  ClusterFacts facts = FactsWith({});
  EXPECT_EQ(StateOf({.policy = &kObject}, facts, {}).reason, "NoGPUNodes");
  facts.agents.desired = 3;
  EXPECT_EQ(StateOf({.policy = &kObject}, facts, {}).reason, "OperandNotReady");
}

TEST(PolicyStatus, ADriverThatIsMissingEverywhereIsTheReason) {
  const auto state = StateOf(
      {.policy = &kObject},
      FactsWith({{"n1", "notReady", "DriverMissing", "", ""}, {"n2", "ready", "Ready", "", ""}}),
      {});
  EXPECT_EQ(state.reason, "DriverNotReady");
  EXPECT_THAT(state.message, HasSubstr("1 of 2 nodes not ready: n1: DriverMissing"));
}

TEST(PolicyStatus, AnObjectWithoutEffectSaysWhy) {
  const auto& kinds = api::compat::PolicyKinds();
  const auto kind = std::ranges::find(kinds, "NVIDIADriver", &api::compat::PolicyKind::kind);
  ASSERT_NE(kind, kinds.end());
  const PolicyObject driver{&*kind, {{"metadata", {{"name", "blue"}}}}};
  const json status = StatusOf({.policy = &driver, .ignored = "ClusterPolicy p has no drivers"},
                               FactsWith({{"n1", "ready", "Ready", "", ""}}), {}, "now");
  EXPECT_EQ(status["state"], "ignored");
  EXPECT_EQ(ConditionIn(status, "Ready")["reason"], "Ignored");
  EXPECT_EQ(ConditionIn(status, "Ready")["message"], "ClusterPolicy p has no drivers");
  EXPECT_FALSE(status.contains("nodes"));
}

TEST(PolicyStatus, AnObjectThatIsOnlyAnsweredIsNotReady) {
  const auto& kinds = api::compat::PolicyKinds();
  const auto kind = std::ranges::find(kinds, "GPUCluster", &api::compat::PolicyKind::kind);
  ASSERT_NE(kind, kinds.end());
  const PolicyObject object{&*kind, {{"metadata", {{"name", "one"}}}}};
  const auto state =
      StateOf({.policy = &object}, FactsWith({{"n1", "ready", "Ready", "", ""}}), {});
  EXPECT_EQ(state.state, "notReady");
  EXPECT_EQ(state.reason, "NotServed");
  EXPECT_EQ(state.message, kind->not_served);
}

TEST(JsonValues, AMergePatchTurnsOneValueIntoTheOther) {
  const json found = {{"a", 1}, {"b", {{"c", 1}, {"d", 2}}}, {"e", 3}};
  const json wanted = {{"a", 1}, {"b", {{"c", 2}}}};
  json patched = found;
  patched.merge_patch(MergePatchOf(found, wanted));
  EXPECT_EQ(patched, wanted);
  EXPECT_EQ(MergePatchOf(found, found), json::object());
}

TEST(JsonValues, AServerMayAddFieldsAndElements) {
  const json wanted = {{"list", {{{"name", "a"}, {"value", 1}}}}, {"empty", json::array()}};
  EXPECT_TRUE(Covers(
      {{"list", {{{"name", "b"}}, {{"name", "a"}, {"value", 1}, {"more", 2}}}}, {"other", 1}},
      wanted));
  EXPECT_FALSE(Covers({{"list", {{{"name", "a"}, {"value", 2}}}}}, wanted));
  EXPECT_FALSE(Covers({{"args", {"a", "b"}}}, {{"args", {"a"}}}));
}

}  // namespace
}  // namespace penstock::cluster
