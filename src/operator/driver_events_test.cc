// Tests that each step of an upgrade that people wait for is said in an Event on the Node, once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/testing/driver_rollout_fixture.h"

namespace penstock::cluster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kBegins[] = "Normal: The upgrade of the driver begins";
constexpr char kDone[] = "Normal: The upgrade of the driver is done";

class DriverEvents : public DriverRolloutTest {
 protected:
  DriverEvents() { Run(30); }

  /// Since the last ForgetCalls; an Event that is counted again is a PATCH.
  std::vector<std::string> EventsOn(const std::string& node) {
    std::vector<std::string> messages;
    for (const ApiCall& call : api_.calls()) {
      if (call.path.starts_with("/api/v1/namespaces/default/events/" + node + "."))
        messages.push_back("again: " + TextAt(json::parse(call.body), "/message"));
      if (call.path != "/api/v1/namespaces/default/events") continue;
      const json event = json::parse(call.body);
      if (TextAt(event, "/reason") != "GPUDriverUpgrade") continue;
      const json& about = event["involvedObject"];
      EXPECT_EQ(about["kind"], "Node");
      EXPECT_EQ(about["uid"], about["name"]) << "by which kubectl describe finds it";
      if (about["name"] == node)
        messages.push_back(TextAt(event, "/type") + ": " + TextAt(event, "/message"));
    }
    return messages;
  }
};

TEST_F(DriverEvents, AFirstDriverIsNoUpgrade) {
  for (const std::string& node : nodes_) EXPECT_THAT(EventsOn(node), IsEmpty());
}

TEST_F(DriverEvents, AnUpgradeWithoutTroubleHasTwo) {
  PutDriver("blue", "580.1");
  Run();
  for (const std::string& node : nodes_) EXPECT_THAT(EventsOn(node), ElementsAre(kBegins, kDone));
  api_.ForgetCalls();
  Start();
  executor_.Advance(std::chrono::minutes(30));
  for (const std::string& node : nodes_)
    EXPECT_THAT(EventsOn(node), IsEmpty()) << "an operator that starts says it again";
}

TEST_F(DriverEvents, WhatAnUpgradeWaitsForIsSaidOnceAlsoByTheNextOperator) {
  RunPod("n1", "train", true);
  RefuseEvictionOf("train");
  PutDriver("blue", "580.1");
  Run(60);
  EXPECT_THAT(EventsOn("n1"),
              ElementsAre(kBegins, AllOf(StartsWith("Warning: The upgrade of the driver waits: "),
                                         HasSubstr("pod team/train (nvidia.com/gpu): "))));
  EXPECT_THAT(EventsOn("n2"), IsEmpty()) << "it has not begun";
  api_.ForgetCalls();
  Start();
  Run(60);
  EXPECT_EQ(LabelOf("n1", kStateKey), "pod-deletion-required");
  EXPECT_THAT(EventsOn("n1"), IsEmpty());
  api_.Heal();
  Run();
  EXPECT_THAT(EventsOn("n1"), ElementsAre(kDone));
}

TEST_F(DriverEvents, CausesThatTakeTurnsAreWrittenAndSaidOnce) {
  RunPod("n1", "train", true);
  RefuseEvictionOf("train");
  PutDriver("blue", "580.1");
  Run(30);
  const auto writes_of_n1 = [this] {
    return std::ranges::count_if(api_.calls(), [](const ApiCall& call) {
      return call.method == "PATCH" && call.path.starts_with(NodePath("n1"));
    });
  };
  ASSERT_EQ(LabelOf("n1", kStateKey), "pod-deletion-required");
  api_.ForgetCalls();
  for (int i = 0; i < 20; ++i) {
    SetReady("n1", i % 2 == 0 ? "Unknown" : "True");
    Run(20);
  }
  EXPECT_EQ(writes_of_n1(), 1) << "only the first time that the node is not ready";
  EXPECT_THAT(EventsOn("n1"),
              ElementsAre("Warning: The upgrade of the driver waits: NodeNotReady: the kubelet "
                          "does not report the node as ready"));
  api_.Heal();
  Run();
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-done");
}

TEST_F(DriverEvents, EachAttemptThatFailsAndTheRollBackAreSaidWithTheirCause) {
  PutDriver("blue", "580.bad");
  Run(120, 2s);
  ASSERT_EQ(DriverStatus()["drivers"][0]["waiting"][0]["reason"], "RolledBack");
  const std::string failed = "The upgrade of the driver failed: DriverCrashLoops: 11 restarts: ";
  EXPECT_THAT(
      EventsOn("n1"),
      ElementsAre(kBegins, StartsWith("Warning: " + failed), HasSubstr("begins again, attempt 2"),
                  StartsWith("again: " + failed), HasSubstr("begins again, attempt 3"),
                  AllOf(HasSubstr("the one that worked here before is put back: DriverCrashLoops"),
                        HasSubstr("11 restarts")),
                  AllOf(HasSubstr("is back, and stays until another one is wanted: RolledBack"),
                        HasSubstr("11 restarts"))));
}

}  // namespace
}  // namespace penstock::cluster
