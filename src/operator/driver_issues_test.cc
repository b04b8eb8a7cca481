// What users of NVIDIA's operator reported about drivers, by repository and number (GO:
// gpu-operator).
#include "operator/testing/driver_rollout_fixture.h"

namespace penstock::cluster {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kNewDriver[] = "nvcr.io/nvidia/driver:580.1-ubuntu22.04";
const json kTwoUnavailable = {{"upgradePolicy", {{"autoUpgrade", true}, {"maxUnavailable", 2}}}};

class DriverIssues : public DriverRolloutTest {
 protected:
  json Waiting(const std::string& node) {
    for (const json& one : DriverStatus()["drivers"][0].value("waiting", json::array()))
      if (one["name"] == node) return one;
    return nullptr;
  }
  void SetLabels(const std::string& node, const json& labels) {
    api_.Merge(NodePath(node), {{"metadata", {{"labels", labels}}}});
  }
  std::vector<std::string> ChangesOfSets(const std::string& method) {
    std::vector<std::string> paths;
    for (const ApiCall& call : api_.calls())
      if (call.method == method && call.path.starts_with(kSets)) paths.push_back(call.path);
    return paths;
  }
};

// One node that is not ready disables the upgrades of all.
TEST_F(DriverIssues, GO688ANodeThatIsNotReadyHoldsUpNoOther) {
  Run(30);
  SetReady("n1", "Unknown");
  PutDriver("blue", "580.1", kTwoUnavailable);
  Run();
  for (const char* node : {"n2", "n3"}) EXPECT_EQ(loaded_[node].back(), kNewDriver) << node;
  EXPECT_THAT(loaded_["n1"], SizeIs(1));
  EXPECT_EQ(Waiting("n1")["reason"], "NodeNotReady") << DriverStatus().dump(1);
  SetReady("n1", "True");
  Run(40);
  EXPECT_EQ(loaded_["n1"].back(), kNewDriver);
  EXPECT_EQ(DriverStatus()["state"], "ready");
}

// "should not have Unscheduled pods": a DaemonSet that counts a pod which is not there.
TEST_F(DriverIssues, GO2255ADriverPodThatIsMissingOnOneNodeHoldsUpNoOther) {
  stuck_ = {"n1"};
  Run(30);
  EXPECT_EQ(Waiting("n1")["reason"], "DriverPodMissing") << DriverStatus().dump(1);
  PutDriver("blue", "580.1", kTwoUnavailable);
  Run();
  for (const char* node : {"n2", "n3"}) EXPECT_EQ(loaded_[node].back(), kNewDriver) << node;
  stuck_.clear();
  Run(40);
  EXPECT_EQ(loaded_["n1"].back(), kNewDriver);
}

// NFD restarts or is killed while it writes labels; a driver pod ends below running pods.
TEST_F(DriverIssues, GO782AndGO580NoDriverIsTakenAwayWithTheLabelsOfNfd) {
  Run(30);
  api_.ForgetCalls();
  const json none = {{"feature.node.kubernetes.io/pci-10de.present", nullptr},
                     {"feature.node.kubernetes.io/system-os_release.ID", nullptr},
                     {"feature.node.kubernetes.io/system-os_release.VERSION_ID", nullptr}};
  for (const std::string& node : nodes_) SetLabels(node, none);
  Run(40);
  EXPECT_THAT(ChangesOfSets("DELETE"), IsEmpty());
  for (const std::string& node : nodes_) {
    EXPECT_THAT(loaded_[node], SizeIs(1)) << node;
    EXPECT_NE(LabelOf(node, kPoolKey), "") << node;
  }
}

// NFD's label has the device's number, too, and everything was removed from the node.
TEST_F(DriverIssues, GO1469ALabelWithTheDevicesNumberTakesNothingAway) {
  Run(30);
  api_.ForgetCalls();
  for (const std::string& node : nodes_)
    SetLabels(node, {{"feature.node.kubernetes.io/pci-10de.present", nullptr},
                     {"feature.node.kubernetes.io/pci-0302_10de_20b5.present", "true"}});
  Run(40);
  for (const std::string& node : nodes_) EXPECT_THAT(loaded_[node], SizeIs(1)) << node;
  EXPECT_THAT(ChangesOfSets("DELETE"), IsEmpty());
}

// After an edit of the selector, DaemonSets were created and deleted without end.
TEST_F(DriverIssues, GO1368AndGO715AnEditedSelectorComesToRest) {
  Run(30);
  SetLabels("n3", {{"rack", "b"}});
  PutDriver("blue", "550.1", {{"nodeSelector", {{"rack", "b"}}}});
  Run(40);
  for (const char* node : {"n1", "n2"}) EXPECT_EQ(LabelOf(node, kPoolKey), "") << node;
  EXPECT_THAT(loaded_["n3"], SizeIs(1)) << "it has the driver already";
  EXPECT_EQ(DriverStatus()["state"], "ready") << DriverStatus().dump(1);
  PutDriver("blue", "550.1");
  Run(40);
  for (const std::string& node : nodes_) EXPECT_NE(LabelOf(node, kPoolKey), "") << node;
  EXPECT_EQ(DriverStatus()["state"], "ready") << DriverStatus().dump(1);
  api_.ForgetCalls();
  executor_.Advance(std::chrono::minutes(4));
  EXPECT_EQ(api_.Writes(), 0u);
}

// Precompiled drivers: a node boots another kernel, and the DaemonSet of its new kernel is deleted
// and created without end.
TEST_F(DriverIssues, GO1661ANodeThatBootsAnotherKernelGetsItsDriverOnce) {
  constexpr char kKernel[] = "feature.node.kubernetes.io/kernel-version.full";
  for (const std::string& node : nodes_) SetLabels(node, {{kKernel, "6.8.0-50-generic"}});
  PutDriver("red", "550.1", {{"usePrecompiled", true}, {"nodeSelector", {{"team", "red"}}}});
  for (const std::string& node : nodes_) SetLabels(node, {{"team", "red"}});
  Run(60);
  const std::string before = LabelOf("n1", kPoolKey);
  EXPECT_THAT(before, HasSubstr("red")) << DriverStatus("red").dump(1);
  api_.ForgetCalls();
  SetLabels("n1", {{kKernel, "6.8.0-51-generic"}});
  Run(60);
  EXPECT_NE(LabelOf("n1", kPoolKey), before);
  EXPECT_THAT(loaded_["n1"].back(), HasSubstr("6.8.0-51-generic"));
  EXPECT_THAT(ChangesOfSets("DELETE"), IsEmpty()) << "two nodes have the other kernel";
  EXPECT_EQ(DriverStatus("red")["state"], "ready") << DriverStatus("red").dump(1);
}

// There is no precompiled image for the kernel, and the pod only says ImagePullBackOff.
TEST_F(DriverIssues, GO910AndGO1203AnImageThatDoesNotExistIsNamed) {
  Run(30);
  stuck_ = {"n1"};
  api_.Merge(DriverPodPath("n1"),
             {{"status",
               {{"phase", "Pending"},
                {"conditions", {{{"type", "Ready"}, {"status", "False"}}}},
                {"containerStatuses",
                 {{{"name", "nvidia-driver-ctr"},
                   {"ready", false},
                   {"restartCount", 0},
                   {"state",
                    {{"waiting",
                      {{"reason", "ImagePullBackOff"},
                       {"message", "Back-off pulling image \"driver:550-6.8.0-51\""}}}}}}}}}}});
  Run(20);
  EXPECT_THAT(Waiting("n1").dump(), HasSubstr("driver:550-6.8.0-51")) << DriverStatus().dump(1);
  EXPECT_EQ(DriverStatus()["drivers"][0]["ready"], 2);
}

// upgrade-failed became upgrade-done as soon as the pod was ready.
TEST_F(DriverIssues, GO2549AFailedNodeIsDoneOnlyAfterItsDriverWasFoundWorking) {
  Run(30);
  PutDriver("blue", "580.bad", {{"upgradePolicy", {{"autoUpgrade", true}}}});
  Run();
  ASSERT_EQ(LabelOf("n1", kStateKey), "upgrade-failed");
  states_.clear();
  PutDriver("blue", "580.2");
  Run(400, 60ms);
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-done");
  EXPECT_THAT(states_["n1"], Contains("validation-required"));
}

}  // namespace
}  // namespace penstock::cluster
