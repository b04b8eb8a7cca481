// Tests that it is known before a node boots another kernel whether there is a precompiled driver
// for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/testing/driver_rollout_fixture.h"

namespace penstock::cluster {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kKernel[] = "feature.node.kubernetes.io/kernel-version.full";
constexpr char kOldKernel[] = "6.8.0-50-generic", kNewKernel[] = "6.8.0-51-generic";

class NextKernelOfNodes : public DriverRolloutTest {
 protected:
  /// All nodes have the precompiled driver of their kernel.
  void Begin() {
    for (const std::string& node : nodes_) Boot(node, kOldKernel);
    PutDriver("blue", "550.1", {{"usePrecompiled", true}, {"imagePullSecrets", {"secret"}}});
    Run(60);
    ASSERT_EQ(DriverStatus()["state"], "ready") << DriverStatus().dump(1);
    api_.ForgetCalls();
  }

  void Boot(const std::string& node, const std::string& kernel) {
    api_.Merge(NodePath(node), {{"metadata", {{"labels", {{kKernel, kernel}}}}}});
  }

  void Announce(const std::string& node, const std::string& kernel) {
    api_.Merge("/apis/penstock.io/v1alpha1/nodestates/" + node,
               {{"status", {{"nextKernel", kernel.empty() ? json() : json(kernel)}}}});
    executor_.Advance(2s);
  }

  /// The pods that check images, by their paths.
  std::map<std::string, json> Checks() {
    std::map<std::string, json> found;
    for (const ApiCall& call : api_.calls()) {
      if (call.method != "POST" || !call.path.ends_with("/pods")) continue;
      const json made = json::parse(call.body);
      const std::string path = kPods + TextAt(made, "/metadata/name");
      if (const json* pod = api_.Find(path)) found[path] = *pod;
    }
    return found;
  }

  std::size_t Created() {
    return static_cast<std::size_t>(std::ranges::count_if(api_.calls(), [](const ApiCall& call) {
      return call.method == "POST" && call.path.ends_with("/pods");
    }));
  }

  void Say(const std::string& pod, const json& container) {
    api_.Merge(pod, {{"status", {{"containerStatuses", json::array({container})}}}});
    executor_.Advance(3s);
  }
  void SayMissing(const std::string& pod) {
    Say(pod,
        {{"name", "image"},
         {"imageID", ""},
         {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "manifest unknown"}}}}}});
  }
  void SayThere(const std::string& pod) {
    Say(pod, {{"name", "image"}, {"imageID", "sha256:1"}, {"state", {{"terminated", json()}}}});
  }

  json NextKernels() {
    const json status = DriverStatus();
    return status["drivers"][0].value("nextKernels", json::array());
  }

  std::vector<std::string> EventsOn(const std::string& node) {
    std::vector<std::string> messages;
    for (const ApiCall& call : api_.calls()) {
      if (call.method != "POST" || !call.path.ends_with("/events")) continue;
      const json event = json::parse(call.body);
      if (TextAt(event, "/involvedObject/name") == node)
        messages.push_back(TextAt(event, "/reason") + ": " + TextAt(event, "/message"));
    }
    return messages;
  }
};

TEST_F(NextKernelOfNodes, AnImageThatIsThereIsSaidAndLeavesNoPod) {
  Begin();
  Announce("n2", kNewKernel);
  ASSERT_THAT(Checks(), SizeIs(1));
  const auto [path, pod] = *Checks().begin();
  EXPECT_EQ(pod["spec"]["nodeName"], "n2");
  EXPECT_EQ(TextAt(pod, "/spec/containers/0/image"),
            "nvcr.io/nvidia/driver:550.1-6.8.0-51-generic-ubuntu22.04");
  EXPECT_THAT(pod["spec"]["imagePullSecrets"].dump(), HasSubstr("secret"));
  EXPECT_EQ(TextAt(pod, "/metadata/ownerReferences/0/kind"), "ClusterPolicy");
  EXPECT_EQ(NextKernels()[0]["state"], "Unknown") << DriverStatus().dump(1);
  EXPECT_EQ(ConditionText(DriverStatus(), "NextKernelImages", "status"), "");
  SayThere(path);
  EXPECT_EQ(api_.Find(path), nullptr);
  EXPECT_EQ(NextKernels()[0]["state"], "Available");
  EXPECT_EQ(NextKernels()[0]["named"], json({"n2"}));
  EXPECT_EQ(ConditionText(DriverStatus(), "NextKernelImages", "status"), "True");
  EXPECT_THAT(EventsOn("n2"), IsEmpty());
  api_.ForgetCalls();
  executor_.Advance(std::chrono::hours(2));
  EXPECT_EQ(api_.Writes(), 0u) << "at rest";
}

TEST_F(NextKernelOfNodes, AnImageThatIsMissingIsSaidBeforeTheNodeBoots) {
  Begin();
  Announce("n1", kNewKernel);
  Announce("n3", kNewKernel);
  ASSERT_THAT(Checks(), SizeIs(1)) << "one for a kernel, not for a node";
  const std::string pod = Checks().begin()->first;
  SayMissing(pod);
  EXPECT_EQ(NextKernels()[0]["state"], "Missing");
  EXPECT_EQ(NextKernels()[0]["nodes"], 2);
  EXPECT_EQ(ConditionText(DriverStatus(), "NextKernelImages", "status"), "False");
  const std::string why = ConditionText(DriverStatus(), "NextKernelImages", "message");
  for (const char* part :
       {"n1, n3", kNewKernel, "manifest unknown", "driver:550.1-6.8.0-51-generic"})
    EXPECT_THAT(why, HasSubstr(part));
  for (const char* node : {"n1", "n3"})
    EXPECT_THAT(EventsOn(node), ElementsAre(AllOf(HasSubstr("NextKernelWithoutDriver: "),
                                                  HasSubstr(kNewKernel), HasSubstr(kOldKernel))));
  EXPECT_THAT(EventsOn("n2"), IsEmpty());
  EXPECT_EQ(DriverStatus()["state"], "ready") << "the nodes have their drivers";
  api_.ForgetCalls();
  Say(pod, {{"name", "image"},
            {"state", {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "Back-off"}}}}}});
  executor_.Advance(std::chrono::hours(2));
  EXPECT_EQ(api_.Writes(), 0u) << "the kubelet tries again, and nothing is written";

  SayThere(pod);  // it was built
  EXPECT_EQ(NextKernels()[0]["state"], "Available");
  EXPECT_EQ(ConditionText(DriverStatus(), "NextKernelImages", "status"), "True");
  EXPECT_EQ(api_.Find(pod), nullptr);
}

TEST_F(NextKernelOfNodes, OnceTheNodeHasBootedNothingIsLeft) {
  Begin();
  Announce("n1", kNewKernel);
  ASSERT_THAT(Checks(), SizeIs(1));
  const std::string pod = Checks().begin()->first;
  SayMissing(pod);
  Boot("n1", kNewKernel);
  executor_.Advance(5s);
  EXPECT_EQ(api_.Find(pod), nullptr) << "also before its agent has reported again";
  EXPECT_THAT(NextKernels(), IsEmpty());
  EXPECT_EQ(ConditionText(DriverStatus(), "NextKernelImages", "status"), "");
}

TEST_F(NextKernelOfNodes, ADeletedPolicyTakesItsPodsWithIt) {
  Begin();
  Announce("n1", kNewKernel);
  ASSERT_THAT(Checks(), SizeIs(1));
  const std::string pod = Checks().begin()->first;
  api_.Merge(kPolicyPath, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  Run(100);
  EXPECT_EQ(api_.Find(pod), nullptr);
}

TEST_F(NextKernelOfNodes, AnOperatorThatStartsFindsThePodsOfTheOneBefore) {
  Begin();
  Announce("n1", kNewKernel);
  ASSERT_THAT(Checks(), SizeIs(1));
  const std::string pod = Checks().begin()->first;
  SayMissing(pod);
  Start();
  executor_.Advance(20s);
  EXPECT_EQ(NextKernels()[0]["state"], "Missing");
  EXPECT_EQ(Created(), 1u);
  operator_.reset();
  Announce("n1", "");
  Start();
  executor_.Advance(20s);
  EXPECT_EQ(api_.Find(pod), nullptr) << "what is not asked for any more goes";
}

TEST_F(NextKernelOfNodes, ANodeThatDoesNotAnswerIsPassedOver) {
  Begin();
  Announce("n1", kNewKernel);
  Announce("n2", kNewKernel);
  ASSERT_THAT(Checks(), SizeIs(1));
  EXPECT_EQ(Checks().begin()->second["spec"]["nodeName"], "n1");
  executor_.Advance(std::chrono::minutes(29));
  EXPECT_EQ(Created(), 1u) << "an image has gigabytes";
  executor_.Advance(std::chrono::minutes(3));
  ASSERT_THAT(Checks(), SizeIs(1));
  EXPECT_EQ(Checks().begin()->second["spec"]["nodeName"], "n2");
  api_.Merge(Checks().begin()->first, {{"status", {{"phase", "Failed"}, {"reason", "OutOfpods"}}}});
  executor_.Advance(std::chrono::minutes(2));
  ASSERT_THAT(Checks(), SizeIs(1));
  EXPECT_EQ(Checks().begin()->second["spec"]["nodeName"], "n1") << "the kubelet refused it";
}

TEST_F(NextKernelOfNodes, WhatIsNoKernelAsksForNothing) {
  Begin();
  for (const char* kernel : {"5.15/../../evil", "5.15:latest", "5.15@sha256:0", "evil image", "",
                             "6.8.0-51-generic\n", "x86_64", kOldKernel}) {
    Announce("n1", kernel);
    EXPECT_EQ(Created(), 0u) << kernel;
  }
  Announce("n1", std::string(1u << 16, '5'));
  api_.Merge("/apis/penstock.io/v1alpha1/nodestates/n1",
             {{"status", {{"nextKernel", {{"a", 1}}}}}});
  executor_.Advance(2s);
  EXPECT_EQ(Created(), 0u);
  EXPECT_THAT(NextKernels(), IsEmpty());
}

TEST_F(NextKernelOfNodes, ANodeThatNamesAnotherKernelEachSecondIsSlowedDown) {
  Begin();
  for (int i = 0; i < 120; ++i) Announce("n1", "6.8.0-" + std::to_string(100 + i) + "-generic");
  EXPECT_LE(Created(), 50u) << "in four minutes";
  EXPECT_THAT(Checks(), SizeIs(testing::Le(1u)));
  Announce("n2", kNewKernel);
  bool asked = false;
  for (int i = 0; i < 20; ++i) {
    Announce("n1", "6.8.0-" + std::to_string(300 + i) + "-generic");
    for (const auto& [path, pod] : Checks()) asked |= pod["spec"]["nodeName"] == "n2";
  }
  EXPECT_TRUE(asked) << "others are asked all the same";
}

TEST_F(NextKernelOfNodes, APodThatIsRefusedIsNoTroubleOfThePolicy) {
  Begin();
  api_.Fail({.status = 403,
             .times = -1,
             .method = "POST",
             .path = "/api/v1/namespaces/gpu-operator/pods"});
  Announce("n1", kNewKernel);
  executor_.Advance(1min);
  EXPECT_EQ(DriverStatus()["state"], "ready") << DriverStatus().dump(1);
  EXPECT_EQ(NextKernels()[0]["state"], "Unknown");
  EXPECT_NE(NextKernels()[0].value("message", ""), "");
  const std::size_t tries = Created();
  executor_.Advance(10min);
  EXPECT_LE(Created(), tries + 11);
  api_.Heal();
  executor_.Advance(2min);
  EXPECT_THAT(Checks(), SizeIs(1));
}

TEST_F(NextKernelOfNodes, ADriverThatIsCompiledAsksForNothing) {
  Run(40);
  api_.ForgetCalls();
  Announce("n1", kNewKernel);
  executor_.Advance(1min);
  EXPECT_EQ(Created(), 0u);
}

}  // namespace
}  // namespace penstock::cluster
