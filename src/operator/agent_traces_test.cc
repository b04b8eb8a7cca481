// Tests what is taken back of what agents wrote, against a fake API server in this process.
#include "operator/agent_traces.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using protocol::kube::ApiCall;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kNodes[] = "/api/v1/nodes/", kStates[] = "/apis/penstock.io/v1alpha1/nodestates/";

class AgentTracesTest : public testing::Test {
 protected:
  AgentTracesTest() {
    for (const std::string name : {"n1", "n2", "n3"}) {
      api_.Put(kNodes + name,
               {{"kind", "Node"}, {"metadata", {{"labels", {{"zone", "a"}, {"both", "x"}}}}}},
               "someone");
      if (name == "n3") continue;  // never had an agent
      ApplyLabels(name);
      Do(protocol::kube::Patch(
          {"", "v1", "nodes"}, "", name, protocol::kube::kStrategicMergePatch,
          {{"status",
            {{"conditions", {{{"type", "penstock.io/AcceleratorsReady"}, {"status", "True"}}}}}}},
          "penstock-condition", "status"));
      api_.Put(kStates + name, {{"kind", "NodeState"}});
    }
    api_.ForgetCalls();
  }

  void ApplyLabels(const std::string& node) {
    Do(protocol::kube::Apply({"", "v1", "nodes"}, "",
                             {{"apiVersion", "v1"},
                              {"kind", "Node"},
                              {"metadata",
                               {{"name", node},
                                {"labels", {{"nvidia.com/gpu.count", "8"}, {"both", "x"}}},
                                {"annotations", {{"penstock.io/devices", "8"}}}}}},
                             "penstock-labels"));
  }
  void Do(ApiCall call) {
    api_.Do(std::move(call), [](const auto& answer) { ASSERT_TRUE(answer.ok()); });
    executor_.RunUntilIdle();
  }
  json Labels(const std::string& node) {
    return (*api_.Find(kNodes + node))["metadata"].value("labels", json());
  }
  bool HasCondition(const std::string& node) {
    const json* conditions = nullptr;
    if (const json* found = api_.Find(kNodes + node); found != nullptr && found->contains("status"))
      conditions = &(*found)["status"]["conditions"];
    return conditions != nullptr &&
           conditions->dump().find("AcceleratorsReady") != std::string::npos;
  }

  base::ManualExecutor executor_;
  protocol::kube::FakeApi api_{executor_};
  int changes_ = 0;
  AgentTraces traces_{api_, [this] { ++changes_; }};
};

TEST_F(AgentTracesTest, WhatIsTheAgentsAloneGoesAndNothingElse) {
  ASSERT_TRUE(HasCondition("n1"));
  EXPECT_FALSE(traces_.settled());
  traces_.TakeBack();
  executor_.Advance(1s);
  EXPECT_TRUE(traces_.settled());
  EXPECT_GT(changes_, 0);
  for (const std::string name : {"n1", "n2"}) {
    EXPECT_EQ(Labels(name), json({{"zone", "a"}, {"both", "x"}})) << name;
    EXPECT_THAT((*api_.Find(kNodes + name))["metadata"].value("annotations", json::object()),
                IsEmpty());
    EXPECT_FALSE(HasCondition(name)) << name;
    EXPECT_EQ(api_.Find(kStates + name), nullptr);
  }
  EXPECT_THAT(traces_.taken_back(), ElementsAre("n1", "n2"));
  EXPECT_EQ(traces_.writes(), 6u) << "none of n3";
  EXPECT_EQ(api_.Writes(), 6u);
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 6u);
}

TEST_F(AgentTracesTest, LabelsOfTheOperatorThatAnAgentHadPausedGoAndNobodyElses) {
  const std::string dcgm = "nvidia.com/gpu.deploy.dcgm", client = "nvidia.com/gpu.deploy.client",
                    nvsm = "nvidia.com/gpu.deploy.nvsm";
  const auto write = [this](const char* node, const std::string& key, const char* value,
                            const char* manager) {
    api_.Merge(std::string(kNodes) + node, {{"metadata", {{"labels", {{key, value}}}}}}, manager);
  };
  for (const char* value : {"paused-for-mig-change", "true"})
    for (const std::string& key : {dcgm, nvsm}) write("n1", key, value, "penstock-clients");
  write("n1", client, "paused-for-mig-change", "penstock-clients");
  write("n3", dcgm, "paused-for-mig-change", "penstock-clients");
  write("n3", client, "true", "kubectl-label");
  write("n2", dcgm, "true", "penstock-clients");
  write("n2", dcgm, "false", "kubectl-label");
  api_.Fail({.status = 409, .times = 2, .method = "PATCH", .path = std::string(kNodes) + "n1"});
  traces_.TakeBack();
  executor_.Advance(10s);
  EXPECT_TRUE(traces_.settled());
  EXPECT_THAT(traces_.problems(), IsEmpty());
  EXPECT_EQ(Labels("n1"), json({{"zone", "a"}, {"both", "x"}, {nvsm, "true"}}))
      << "the operator does not write that of nvsm";
  EXPECT_EQ(Labels("n2"), json({{"zone", "a"}, {"both", "x"}, {dcgm, "false"}}));
  EXPECT_EQ(Labels("n3"), json({{"zone", "a"}, {"both", "x"}, {client, "true"}}));
  EXPECT_THAT(traces_.taken_back(), ElementsAre("n1", "n2", "n3"));
}

TEST_F(AgentTracesTest, ALabelThatAUserWritesMeanwhileStays) {
  const std::string dcgm = "nvidia.com/gpu.deploy.dcgm";
  const auto write = [&](const char* value, const char* manager) {
    api_.Merge(std::string(kNodes) + "n1", {{"metadata", {{"labels", {{dcgm, value}}}}}}, manager);
  };
  write("true", "penstock-clients");
  api_.SetLateAnswers(500ms);
  traces_.TakeBack();
  // The server has answered what the Node is, and the operator has not heard it yet.
  const auto is_read = [this] {
    return std::ranges::any_of(api_.calls(), [](const ApiCall& call) {
      return call.method == "GET" && call.path == std::string(kNodes) + "n1";
    });
  };
  for (int i = 0; i < 500 && !is_read(); ++i) executor_.Advance(10ms);
  ASSERT_TRUE(is_read());
  write("false", "kubectl-label");
  executor_.Advance(1min);
  EXPECT_TRUE(traces_.settled());
  EXPECT_EQ(Labels("n1").value(dcgm, ""), "false");
}

TEST_F(AgentTracesTest, WhatCannotBeWrittenIsNamedWithWhyAndTriedAgain) {
  api_.Fail({.status = 403, .times = -1, .method = "PATCH", .path = "/api/v1/nodes/n1/status"});
  api_.Fail({.status = 500, .times = -1, .method = "DELETE", .path = std::string(kStates) + "n2"});
  traces_.TakeBack();
  executor_.Advance(10s);
  EXPECT_FALSE(traces_.settled());
  EXPECT_TRUE(traces_.listed());
  EXPECT_THAT(traces_.unsettled(), ElementsAre("n1", "n2"));
  EXPECT_THAT(traces_.problems(), Contains(HasSubstr("nodes/n1/status")));
  api_.Heal();
  executor_.Advance(2min);
  EXPECT_TRUE(traces_.settled());
  EXPECT_THAT(traces_.problems(), IsEmpty());
  EXPECT_THAT(traces_.unsettled(), IsEmpty());
}

TEST_F(AgentTracesTest, AServerThatDoesNotAnswerIsAskedAgain) {
  api_.Fail({.status = 500, .times = 3, .method = "GET"});
  traces_.TakeBack();
  EXPECT_FALSE(traces_.listed());
  executor_.Advance(1min);
  EXPECT_TRUE(traces_.settled());
  EXPECT_THAT(traces_.taken_back(), ElementsAre("n1", "n2"));
}

TEST_F(AgentTracesTest, ANodeThatIsReplacedMeanwhileIsAnotherOne) {
  ApplyLabels("n3");  // and no condition
  api_.SetLateAnswers(500ms);
  traces_.TakeBack();
  executor_.Advance(100ms);
  api_.Remove(std::string(kNodes) + "n1");
  api_.Put(std::string(kNodes) + "n1", {{"kind", "Node"}, {"metadata", {{"labels", {{"a", "b"}}}}}},
           "someone");
  for (const char* name : {"n2", "n3"}) api_.Remove(std::string(kNodes) + name);
  executor_.Advance(1min);
  EXPECT_TRUE(traces_.settled());
  for (const char* name : {"n2", "n3"})
    EXPECT_EQ(api_.Find(std::string(kNodes) + name), nullptr) << "an apply would make it again";
  EXPECT_EQ(Labels("n1"), json({{"a", "b"}}));
}

TEST_F(AgentTracesTest, NothingMoreGoesOnceAPolicyIsInForceAgain) {
  api_.SetLateAnswers(500ms);
  traces_.TakeBack();
  executor_.Advance(100ms);  // the lists are on their way
  traces_.Forget();
  executor_.Advance(1min);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_FALSE(traces_.settled());
  traces_.TakeBack();
  executor_.Advance(1min);
  EXPECT_TRUE(traces_.settled()) << "the next time it is all taken back";
  EXPECT_THAT(traces_.taken_back(), ElementsAre("n1", "n2"));
}

TEST_F(AgentTracesTest, AClusterOfManyNodesIsReadInPages) {
  for (int i = 10; i < 130; ++i)
    api_.Put(kStates + ("m" + std::to_string(i)), {{"kind", "NodeState"}});
  traces_.TakeBack();
  executor_.Advance(10s);
  EXPECT_TRUE(traces_.settled());
  EXPECT_EQ(traces_.taken_back().size(), 122u);
}

TEST_F(AgentTracesTest, ANodeThatTheServerRefusesHoldsNothing) {
  api_.Fail({.status = 422, .times = -1, .method = "PATCH", .path = "/api/v1/nodes/n1"});
  traces_.TakeBack();
  executor_.Advance(10s);
  EXPECT_TRUE(traces_.settled());
  EXPECT_THAT(traces_.problems(), IsEmpty());
  EXPECT_THAT(traces_.taken_back(), ElementsAre("n1", "n2")) << "the NodeState of n1";
  EXPECT_TRUE(HasCondition("n1"));
}

json By(const char* manager, const char* operation, const char* subresource, const json& fields) {
  return {{"metadata",
           {{"uid", "u"},
            {"labels", {{"nvidia.com/gpu.count", "8"}}},
            {"managedFields",
             {{{"manager", manager},
               {"operation", operation},
               {"subresource", subresource},
               {"fieldsV1", fields}}}}}}};
}

TEST(TraceOn, CountsNobodyElsesFields) {
  const auto by = [](const char* manager, const char* operation, const char* subresource) {
    return TraceOn(
        By(manager, operation, subresource,
           {{"f:metadata", {{"f:labels", {{"f:nvidia.com/gpu.count", json::object()}}}}}}));
  };
  EXPECT_TRUE(by("penstock-labels", "Apply", "").any());
  EXPECT_FALSE(by("penstock-labels", "Update", "").any());
  EXPECT_FALSE(by("penstock-labels-2", "Apply", "").any());
  EXPECT_TRUE(by("penstock-condition", "Update", "status").condition);
  EXPECT_FALSE(by("kubelet", "Update", "status").condition);
  EXPECT_FALSE(TraceOn({{"metadata", {{"managedFields", "none"}}}}).any());
}

TEST(TraceOn, WhatAgentAndOperatorOwnGoes) {
  json node = By("penstock-labels", "Apply", "",
                 {{"f:metadata", {{"f:labels", {{"f:nvidia.com/gpu.count", json::object()}}}}}});
  json& entries = node["metadata"]["managedFields"];
  entries.push_back(entries[0]);
  entries[1]["manager"] = "penstock-operator";
  EXPECT_TRUE(TraceOn(node).any());
  entries[1]["manager"] = "kubectl-label";
  EXPECT_FALSE(TraceOn(node).any());
}

TEST(TraceOn, CountsNothingThatMayBeAnotherOnes) {
  const json label = {{"f:labels", {{"f:nvidia.com/gpu.count", json::object()}}}};
  const auto with = [&label](const json& spec) {
    return TraceOn(By("penstock-labels", "Apply", "", {{"f:metadata", label}, {"f:spec", spec}}));
  };
  EXPECT_FALSE(with({{"f:taints", json::object()}}).any());
}

}  // namespace
}  // namespace penstock::cluster
