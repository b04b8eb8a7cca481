// Tests what is asked of the API server while pods of a DaemonSet end, in a cluster of many nodes.
#include "operator/pod_troubles.h"

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
using protocol::kube::FakeApi;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kMany = 500;

class PodTroublesTest : public testing::Test {
 protected:
  PodTroublesTest() {
    for (int i = 0; i < kMany; ++i) {
      PutNode(i, "True");
      PutPod(i);
    }
  }

  static std::string PodAt(int i) {
    return "/api/v1/namespaces/penstock/pods/agent-" + std::to_string(i);
  }

  void PutNode(int i, const char* ready) {
    api_.Put(
        "/api/v1/nodes/n" + std::to_string(i),
        {{"kind", "Node"}, {"status", {{"conditions", {{{"type", "Ready"}, {"status", ready}}}}}}},
        "someone");
  }

  void PutPod(int i) {
    api_.Put(PodAt(i),
             {{"kind", "Pod"},
              {"metadata",
               {{"labels",
                 {{"app.kubernetes.io/managed-by", "penstock-operator"},
                  {"app.kubernetes.io/instance", "agent"}}}}},
              {"spec", {{"nodeName", "n" + std::to_string(i)}}},
              {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}},
             "someone");
  }

  void End(int i) {
    api_.Merge(PodAt(i), {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}},
               "someone");
  }

  void Touch(int i, bool ready) {
    api_.Merge(
        PodAt(i),
        {{"status", {{"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}}}},
        "someone");
  }

  /// Something changes of each pod every three seconds.
  void TouchAll(base::Duration time) {
    for (base::Duration passed{}; passed < time; passed += 3s) {
      for (int i = 0; i < kMany; ++i) Touch(i, passed / 3s % 2 == 0);
      executor_.Advance(3s);
    }
  }

  void Read() {
    troubles_.Read(true);
    executor_.Advance(1s);
  }

  std::size_t QuestionsAboutNodes() {
    return static_cast<std::size_t>(std::ranges::count_if(
        api_.calls(), [](const ApiCall& call) { return call.path.starts_with("/api/v1/nodes"); }));
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  PodTroubles troubles_{
      api_,
      "penstock",
      "agent",
      {.changed = [] {}, .due_after = [](auto) {}, .problem = [](const base::Status&) {}}};
};

TEST_F(PodTroublesTest, ARollOutThatGoesWellAsksForNoNode) {
  Read();
  for (int i = 0; i < kMany; ++i) End(i);
  executor_.Advance(5s);
  for (int i = 0; i < kMany; ++i) Touch(i, false);
  executor_.Advance(5s);
  for (int i = 0; i < kMany; ++i) api_.Remove(PodAt(i));
  executor_.Advance(2min);
  EXPECT_EQ(QuestionsAboutNodes(), 0u);
  EXPECT_THAT(troubles_.troubles(), IsEmpty());
}

TEST_F(PodTroublesTest, APodThatDoesNotEndInTimeIsAReasonToAsk) {
  Read();
  PutNode(7, "Unknown");
  End(7);
  executor_.Advance(20s);
  EXPECT_EQ(QuestionsAboutNodes(), 1u);
  ASSERT_THAT(troubles_.troubles(), SizeIs(1));
  EXPECT_THAT(troubles_.troubles()[0], HasSubstr("n7: terminating, and the kubelet does not"));
  executor_.Advance(10min);
  EXPECT_EQ(QuestionsAboutNodes(), 1u) << "at rest nothing is asked";
}

TEST_F(PodTroublesTest, ManyPodsThatEndAskForEachNodeOnceAndAtABoundedRate) {
  for (int i = 0; i < kMany; ++i) {
    PutNode(i, "Unknown");
    End(i);
  }
  Read();
  EXPECT_FALSE(troubles_.has_read());
  EXPECT_LE(QuestionsAboutNodes(), 50u + 100u);
  TouchAll(12s);
  EXPECT_TRUE(troubles_.has_read());
  EXPECT_EQ(QuestionsAboutNodes(), static_cast<std::size_t>(kMany));
  EXPECT_THAT(troubles_.troubles(), SizeIs(kMany));
  EXPECT_THAT(troubles_.troubles(), Each(HasSubstr("the kubelet does not report")));
  api_.ForgetCalls();
  TouchAll(30s);
  EXPECT_GE(QuestionsAboutNodes(), static_cast<std::size_t>(kMany)) << "a change is a reason";
  EXPECT_LE(QuestionsAboutNodes(), static_cast<std::size_t>(kMany) * 3)
      << "for each node at most once in 15 s";
}

}  // namespace
}  // namespace penstock::cluster
