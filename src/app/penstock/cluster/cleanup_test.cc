#include "app/penstock/cluster/cleanup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::app {
namespace {

using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

const char kState[] = "/apis/penstock.io/v1alpha1/nodestates/gpu-1";
const char kFeatures[] = "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/penstock/nodefeatures/";

class CleanupTest : public testing::Test {
 protected:
  CleanupTest() {
    api_.Put("/api/v1/nodes/gpu-1",
             {{"kind", "Node"}, {"metadata", {{"labels", {{"zone", "a"}, {"both", "x"}}}}}});
    ApplyLabels("gpu-1", {{"nvidia.com/gpu.count", "8"}, {"both", "x"}});
    api_.Put(kState, {{"kind", "NodeState"}}, "penstock");
    options_.namespace_name = "penstock";
  }

  void ApplyLabels(const std::string& node, const Json& labels) {
    const Json object = {
        {"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", node}, {"labels", labels}}}};
    ASSERT_TRUE(Ask(protocol::kube::Apply(kinds::Nodes(), "", object, "penstock-labels")).ok());
  }

  base::Result<ApiResponse> Ask(ApiCall call) {
    if (call.path == "/apis/penstock.io/v1alpha1")
      return ApiResponse{200, R"({"resources":[{"name":"nodestates"}]})"};
    if (call.path == "/apis/nfd.k8s-sigs.io/v1alpha1" && nfd_)
      return ApiResponse{200, R"({"resources":[{"name":"nodefeatures"}]})"};
    base::Result<ApiResponse> answer = base::Error(base::Code::kInternal, "not answered");
    api_.Do(std::move(call),
            [&answer](base::Result<ApiResponse> result) { answer = std::move(result); });
    executor_.RunUntilIdle();
    return answer;
  }

  CleanupOutcome Clean() {
    return Clean([this](ApiCall call) { return Ask(std::move(call)); });
  }
  CleanupOutcome Clean(const ApiServer& server) {
    CleanupOutcome outcome;
    CleanCluster(server, options_, outcome);
    return outcome;
  }
  Json Labels(const std::string& node) const {
    return (*api_.Find("/api/v1/nodes/" + node))["metadata"]["labels"];
  }

  base::ManualExecutor executor_;
  protocol::kube::FakeApi api_{executor_};
  CleanupOptions options_;
  bool nfd_ = false;
};

TEST_F(CleanupTest, TakesAwayWhatIsOursAloneAndThenHasNothingToDo) {
  EXPECT_THAT(Clean().removed,
              ElementsAre("node gpu-1: 1 label (nvidia.com/gpu.count)", "NodeState gpu-1"));
  EXPECT_EQ(Labels("gpu-1"), Json({{"zone", "a"}, {"both", "x"}}));
  EXPECT_EQ(api_.Find(kState), nullptr);
  const auto again = Clean();
  EXPECT_THAT(again.removed, IsEmpty());
  EXPECT_THAT(again.failures, IsEmpty());
}

TEST_F(CleanupTest, RemovesTheConditionAndNoOther) {
  const Json conditions =
      Json::array({{{"type", "Ready"}, {"status", "True"}},
                   {{"type", "penstock.io/AcceleratorsReady"}, {"status", "True"}}});
  api_.Merge("/api/v1/nodes/gpu-1", {{"status", {{"conditions", conditions}}}}, "penstock");
  EXPECT_THAT(Clean().removed,
              testing::Contains("node gpu-1: the condition penstock.io/AcceleratorsReady"));
  const auto patch = std::ranges::find_if(api_.calls(), [](const auto& call) {
    return call.method == "PATCH" && call.path == "/api/v1/nodes/gpu-1/status";
  });
  ASSERT_NE(patch, api_.calls().end());
  EXPECT_EQ(Json::parse(patch->body)["status"]["conditions"],
            Json::parse(R"([{"$patch": "delete", "type": "penstock.io/AcceleratorsReady"}])"));
}

TEST_F(CleanupTest, StartsProgramsThatWereStoppedForAChange) {
  const auto label = [this](const std::string& name, const std::string& value,
                            const std::string& manager) {
    api_.Merge("/api/v1/nodes/gpu-1",
               {{"metadata", {{"labels", {{"nvidia.com/gpu.deploy." + name, value}}}}}}, manager);
  };
  const std::string paused = "paused-for-mig-change";
  label("dcgm", paused, "penstock-clients");
  label("nvsm", "false", "penstock-clients");
  label("client", paused, "mig-manager");  // of NVIDIA, which puts it back itself
  const auto value = [this](const std::string& name) {
    return Labels("gpu-1").value("nvidia.com/gpu.deploy." + name, "");
  };
  options_.dry_run = true;
  EXPECT_THAT(Clean().removed, testing::Contains(HasSubstr("nvidia.com/gpu.deploy.dcgm")));
  EXPECT_EQ(value("dcgm"), paused);
  options_.dry_run = false;
  EXPECT_THAT(Clean().failures, IsEmpty());
  EXPECT_EQ(value("dcgm"), "true");
  EXPECT_EQ(value("nvsm"), "false");
  EXPECT_EQ(value("client"), paused);
  EXPECT_THAT(Clean().removed, IsEmpty());
  label("dcgm", paused, "operator");  // wrote it last
  Clean();
  EXPECT_EQ(value("dcgm"), paused);
}

TEST_F(CleanupTest, WritesToNoNodeThatWeDidNotWriteTo) {
  api_.Put("/api/v1/nodes/cpu-1",
           {{"kind", "Node"}, {"metadata", {{"labels", {{"nvidia.com/gpu.count", "0"}}}}}},
           "penstocky");
  api_.ForgetCalls();
  Clean();
  for (const ApiCall& call : api_.calls())
    EXPECT_TRUE(call.method == "GET" || call.path.find("gpu-1") != std::string::npos) << call.path;
  EXPECT_EQ(Labels("cpu-1"), Json({{"nvidia.com/gpu.count", "0"}}));
}

TEST_F(CleanupTest, WhatNodesMayNotChangeStaysWhoeverHasAppliedItUnderOurName) {
  const Json forged = {
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata",
       {{"name", "gpu-1"},
        {"labels",
         {{"nvidia.com/gpu.count", "8"}, {"node-restriction.kubernetes.io/tier", "restricted"}}}}},
      {"spec", {{"unschedulable", true}}}};
  ASSERT_TRUE(Ask(protocol::kube::Apply(kinds::Nodes(), "", forged, "penstock-labels")).ok());
  const Json before = *api_.Find("/api/v1/nodes/gpu-1");
  const auto outcome = Clean();
  EXPECT_EQ(*api_.Find("/api/v1/nodes/gpu-1"), before);
  EXPECT_THAT(outcome.removed, ElementsAre("NodeState gpu-1"));
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(outcome.remarks, ElementsAre(HasSubstr("node gpu-1: what the field manager "
                                                     "penstock-labels has applied stays")));
}

TEST_F(CleanupTest, RemovesOurNodeFeaturesAndNoOneElses) {
  nfd_ = true;
  const Json mine = {
      {"apiVersion", "nfd.k8s-sigs.io/v1alpha1"},
      {"kind", "NodeFeature"},
      {"metadata", {{"name", "penstock-features-for-gpu-1"}, {"namespace", "penstock"}}},
      {"spec", {{"labels", {{"nvidia.com/gpu.count", "8"}}}}}};
  ASSERT_TRUE(Ask(protocol::kube::Apply(kinds::NodeFeatures(), "penstock", mine, "penstock")).ok());
  api_.Put(std::string(kFeatures) + "nvidia-features-for-gpu-1", {{"kind", "NodeFeature"}},
           "gpu-feature-discovery");
  EXPECT_THAT(Clean().removed,
              testing::Contains("NodeFeature penstock/penstock-features-for-gpu-1"));
  EXPECT_EQ(api_.Find(std::string(kFeatures) + "penstock-features-for-gpu-1"), nullptr);
  EXPECT_NE(api_.Find(std::string(kFeatures) + "nvidia-features-for-gpu-1"), nullptr);
}

TEST_F(CleanupTest, SaysWhatIsForbiddenAndDoesTheRest) {
  api_.Forbid("GET", "/apis/penstock.io");
  const auto outcome = Clean();
  EXPECT_EQ(outcome.removed.size(), 1u);
  EXPECT_THAT(outcome.failures, ElementsAre(HasSubstr("NodeState objects cannot be read: ")));
}

TEST_F(CleanupTest, NamesTheNodeByItsUidSoThatOneDeletedMeanwhileIsNotMadeAgain) {
  const Json uid = (*api_.Find("/api/v1/nodes/gpu-1"))["metadata"]["uid"];
  ASSERT_TRUE(uid.is_string());
  api_.ForgetCalls();
  Clean();
  const auto patch = std::find_if(api_.calls().begin(), api_.calls().end(),
                                  [](const ApiCall& call) { return call.method == "PATCH"; });
  ASSERT_NE(patch, api_.calls().end());
  EXPECT_EQ(Json::parse(patch->body)["metadata"]["uid"], uid);
}

TEST_F(CleanupTest, ANodeThatIsGoneMeanwhileIsNoFailureNorOneThatHasItsName) {
  for (const bool again : {false, true}) {
    const auto server = [this, again](ApiCall call) -> base::Result<ApiResponse> {
      if (call.method == "PATCH") {
        api_.Remove("/api/v1/nodes/gpu-1");
        if (again) api_.Put("/api/v1/nodes/gpu-1", {{"kind", "Node"}});
      }
      return Ask(std::move(call));
    };
    ApplyLabels("gpu-1", {{"nvidia.com/gpu.count", "8"}});
    EXPECT_THAT(Clean(server).failures, IsEmpty()) << again;
    EXPECT_EQ(api_.Find("/api/v1/nodes/gpu-1") != nullptr, again) << "none is made";
  }
}

/// A DaemonSet whose pods become ready, or do not.
class WaitForDaemonSetTest : public CleanupTest {
 protected:
  void Pods(int ready) {
    api_.Put(
        "/apis/apps/v1/namespaces/p/daemonsets/d",
        {{"metadata", {{"generation", 1}}},
         {"status",
          {{"observedGeneration", 1}, {"numberReady", ready}, {"desiredNumberScheduled", 2}}}});
  }
  std::vector<std::string> Wait(const std::function<void()>& meanwhile) {
    return WaitForDaemonSet([this](ApiCall call) { return Ask(std::move(call)); }, "p/d", 5s,
                            clock_,
                            [&](base::Duration by) {
                              clock_.Advance(by);
                              meanwhile();
                            });
  }
  base::FakeClock clock_;
};

TEST_F(WaitForDaemonSetTest, GoesOnOnceItsPodsAreReadyOrItIsGone) {
  Pods(1);
  EXPECT_THAT(Wait([this] { Pods(2); }), IsEmpty());
  Pods(1);
  EXPECT_THAT(Wait([this] { api_.Remove("/apis/apps/v1/namespaces/p/daemonsets/d"); }), IsEmpty());
}

TEST_F(WaitForDaemonSetTest, GoesOnWithoutItAfterTheTimeAndSaysSo) {
  Pods(1);
  EXPECT_THAT(Wait([] {}),
              ElementsAre(HasSubstr("1 of 2 of its pods are ready after 5s; continuing")));
}

}  // namespace
}  // namespace penstock::app
