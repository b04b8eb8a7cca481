// Plays roll-outs of drivers against a fake API server.
#include "operator/driver/driver_rollout.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/effective_spec.h"
#include "operator/testing/driver_rollout_fixture.h"

namespace penstock::cluster {
namespace {

using protocol::kube::WatchStream;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kClaims[] = "/apis/resource.k8s.io/v1/resourceclaims";

/// An API server whose watches of claims can be made to show nothing.
class SlowClaims final : public protocol::kube::Api {
 public:
  explicit SlowClaims(Api& api) : api_(api) {}

  base::Executor& executor() override { return api_.executor(); }
  void Do(ApiCall call, Done done) override { api_.Do(std::move(call), std::move(done)); }
  std::unique_ptr<WatchStream> Open(ApiCall call, std::function<void(std::string_view)> line,
                                    std::function<void(base::Status)> end) override {
    if (silent && call.path == kClaims) return std::make_unique<WatchStream>();
    return api_.Open(std::move(call), std::move(line), std::move(end));
  }

  bool silent = false;

 private:
  Api& api_;
};

TEST_F(DriverRolloutTest, InstallsADriverOnTheNodesThatItSelects) {
  api_.Merge(NodePath("n3"), {{"metadata", {{"labels", {{"team", "red"}}}}}});
  Run(30);
  EXPECT_THAT(loaded_["n1"], ElementsAre("nvcr.io/nvidia/driver:550.1-ubuntu22.04"));
  EXPECT_EQ(api_.Find(DriverPodPath("n3")), nullptr);
  EXPECT_EQ(LabelOf("n1", "nvidia.com/gpu-operator.driver.owner"), "blue");
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-done");
  EXPECT_EQ(DriverStatus()["state"], "ready") << DriverStatus().dump(2);
  EXPECT_EQ(DriverStatus()["drivers"][0]["ready"], 2);
}

TEST_F(DriverRolloutTest, WritesNothingAtRest) {
  Run(40);
  api_.ForgetCalls();
  executor_.Advance(std::chrono::minutes(4));
  EXPECT_EQ(api_.Writes(), 0u);
}

TEST_F(DriverRolloutTest, UpgradesNodeByNodeAndEvictsOnlyWhatHoldsDevices) {
  Run(30);
  RunPod("n1", "train", true);
  RunPod("n1", "web", false);
  RunPod("n2", "infer", true);
  api_.ForgetCalls();
  states_.clear();
  PutDriver("blue", "580.1");
  Run();
  for (const std::string& node : nodes_) {
    EXPECT_EQ(loaded_[node].back(), "nvcr.io/nvidia/driver:580.1-ubuntu22.04");
    EXPECT_THAT(states_[node],
                testing::Each(testing::AnyOf("upgrade-done", "upgrade-required", "cordon-required",
                                             "wait-for-jobs-required", "pod-deletion-required",
                                             "pod-restart-required", "validation-required",
                                             "uncordon-required")));
    EXPECT_EQ(LabelOf(node, kStateKey), "upgrade-done");
    EXPECT_FALSE(IsCordoned(node));
  }
  EXPECT_THAT(Deeds(), ElementsAre("POST /api/v1/namespaces/team/pods/train/eviction",
                                   "DELETE /api/v1/namespaces/gpu-operator/pods/driver-n1",
                                   "POST /api/v1/namespaces/team/pods/infer/eviction",
                                   "DELETE /api/v1/namespaces/gpu-operator/pods/driver-n2",
                                   "DELETE /api/v1/namespaces/gpu-operator/pods/driver-n3"));
  EXPECT_EQ(DriverStatus()["state"], "ready");
}

TEST_F(DriverRolloutTest, CordonsNoNodeWhileTheWriteThatUncordonsAnotherIsRefused) {
  Run(30);
  PutDriver("blue", "580.1");
  api_.SetDelay(100ms);
  for (int turn = 0; turn < 1000 && LabelOf("n1", kStateKey) != "uncordon-required"; ++turn)
    Run(1, 5ms);
  ASSERT_EQ(LabelOf("n1", kStateKey), "uncordon-required");
  api_.Fail({.status = 409, .times = 2, .method = "PATCH", .path = NodePath("n1")});
  // While it is being written, something else changes.
  api_.Merge(NodePath("n3"),
             {{"metadata", {{"labels", {{"nvidia.com/gpu-driver-upgrade.skip", "false"}}}}}});
  Run(1000, 10ms);  // that there are never two is checked after each step
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-done");
  Run();
  EXPECT_EQ(LabelOf("n3", kStateKey), "upgrade-done");
}

TEST_F(DriverRolloutTest, DecidesByItsOwnWritesWhileTheWatchIsLate) {
  Run(30);
  api_.SetLateWatches(200ms);
  api_.ForgetCalls();
  PutDriver("blue", "580.1");
  Run(200);
  std::size_t reads = 0, writes = 0;
  for (const ApiCall& call : api_.calls()) {
    if (call.path != NodePath("n1") || call.content_type == protocol::kube::kApplyPatch) continue;
    reads += call.method == "GET" ? 1 : 0;
    writes += call.method == "PATCH" ? 1 : 0;
  }
  EXPECT_EQ(reads, writes) << "some of them were decided by an earlier state";
  for (const std::string& node : nodes_) EXPECT_EQ(LabelOf(node, kStateKey), "upgrade-done");
}

TEST_F(DriverRolloutTest, GoesOnWhereAnotherOperatorEnded) {
  Run(30);
  PutDriver("blue", "580.1");
  for (int i = 0; i < 7; ++i) {
    Run(9);
    Start();
  }
  for (const std::string& node : nodes_) {
    EXPECT_EQ(loaded_[node].size(), 2u) << node;
    EXPECT_EQ(LabelOf(node, kStateKey), "upgrade-done");
  }
}

TEST_F(DriverRolloutTest, WaitsForAnEvictionThatIsRefusedAndSaysForWhat) {
  Run(30);
  RunPod("n1", "train", true);
  RefuseEvictionOf("train");
  PutDriver("blue", "580.1");
  api_.ForgetCalls();
  Run(40);
  EXPECT_LE(Deeds().size(), 4u) << "it asks every five seconds, and these are twelve";
  EXPECT_EQ(LabelOf("n1", kStateKey), "pod-deletion-required");
  EXPECT_THAT(ConditionText(DriverStatus(), "Ready", "message"), HasSubstr("team/train"));
  EXPECT_EQ(ConditionText(DriverStatus(), "Ready", "reason"), "DriverNotReady");
  EXPECT_EQ(loaded_["n1"].size(), 1u) << "its driver was replaced below a pod";
  api_.Heal();
  Run();
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-done");
}

/// In a roll-out that never comes to rest, with pods that come and go.
TEST_F(DriverRolloutTest, NothingStaysOfEvictionsThatWereRefusedOncePodsAreGone) {
  Run(30);
  RunPod("n1", "train", true);
  RefuseEvictionOf("train");
  PutDriver("blue", "580.1");
  Run(20);
  ASSERT_EQ(LabelOf("n1", kStateKey), "pod-deletion-required");
  std::vector<PolicyObject> policies;
  for (const auto& kind : api::compat::PolicyKinds())
    for (const std::string& path : {std::string(kPolicyPath), kDriverPath + std::string("blue")})
      if (const json* found = api_.Find(path); found && (*found)["kind"] == kind.kind)
        policies.push_back({&kind, *found});
  const auto spec = ComputeSpec(policies).spec;
  ASSERT_TRUE(spec);
  operator_.reset();
  DriverRollout rollout(
      api_, "pod-1",
      {.due = [] {},
       .due_after = [](auto) {},
       .problem = [](const Status& why) { EXPECT_TRUE(why.ok()) << why.error().message(); },
       .daemon_set = [this](const std::string& name) { return api_.Find(kSets + name); },
       .own = [](json&) {}});
  rollout.Want(*spec, {}, {.namespace_name = "gpu-operator", .image = "localhost/penstock:1"});
  const auto turn = [&] {
    for (int i = 0; i < 20; ++i) {
      rollout.Turn();
      for (const auto& [name, set] : rollout.plan().daemon_sets) api_.Put(kSets + name, set);
      executor_.Advance(1s);
    }
  };
  turn();
  ASSERT_EQ(rollout.refused(), 1u) << LabelOf("n1", kStateKey);
  for (const std::string name : {"a", "b", "c", "d"}) {
    RunPod("n1", name, true);
    RefuseEvictionOf(name);
    turn();
    EXPECT_EQ(rollout.refused(), 2u) << name;
    api_.Remove("/api/v1/namespaces/team/pods/" + name);
    turn();
    EXPECT_EQ(rollout.refused(), 1u) << name;
  }
  EXPECT_EQ(LabelOf("n1", kStateKey), "pod-deletion-required");
}

/// The server had no such kind, and was updated.
TEST_F(DriverRolloutTest, ThatThereWereNoClaimsInOneRollOutSaysNothingInTheNext) {
  SlowClaims slow(api_);
  Start(slow);
  api_.NotInstalled(kClaims);
  Run(30);
  PutDriver("blue", "580.1");
  Run();
  for (const std::string& node : nodes_) ASSERT_EQ(LabelOf(node, kStateKey), "upgrade-done");
  api_.Heal();
  const json devices = {{"results", {{{"driver", "gpu.nvidia.com"}, {"device", "gpu-0"}}}}};
  api_.Put("/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/big",
           {{"kind", "ResourceClaim"}, {"status", {{"allocation", {{"devices", devices}}}}}});
  RunPod("n1", "train", false);
  api_.Merge("/api/v1/namespaces/team/pods/train",
             {{"spec", {{"resourceClaims", {{{"name", "gpu"}, {"resourceClaimName", "big"}}}}}}});
  slow.silent = true;
  PutDriver("blue", "590.1");
  Run(60);
  EXPECT_EQ(LabelOf("n1", kStateKey), "wait-for-jobs-required");
  EXPECT_EQ(loaded_["n1"].size(), 2u) << "before it was known what claims there are";
  api_.ForgetCalls();
  Run(300);  // it asks for pages
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-done");
  EXPECT_THAT(Deeds(), testing::Contains("POST /api/v1/namespaces/team/pods/train/eviction"));
  operator_.reset();
}

TEST_F(DriverRolloutTest, StopsAfterTheFailuresThatAreAllowedAndGoesOnWithAnotherDriver) {
  Run(30);
  PutDriver("blue", "580.bad");
  Run();
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-failed");
  EXPECT_THAT(ConditionText(DriverStatus(), "Ready", "message"), HasSubstr("DriverCrashLoops"));
  EXPECT_THAT(DriverStatus()["drivers"][0]["stopped"]["reason"], "TooManyFailures");
  EXPECT_EQ(loaded_["n3"].size(), 1u) << "10 % of three nodes may fail, which is one";
  PutDriver("blue", "580.2");
  Run();
  for (const std::string& node : nodes_)
    EXPECT_EQ(loaded_[node].back(), "nvcr.io/nvidia/driver:580.2-ubuntu22.04");
}

TEST_F(DriverRolloutTest, ANodeWhoseAttemptsFailedGetsItsEarlierDriver) {
  Run(30);
  PutDriver("blue", "580.bad");
  Run(120, 2s);
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-failed");
  EXPECT_FALSE(IsCordoned("n1"));
  EXPECT_EQ(loaded_["n1"].back(), "nvcr.io/nvidia/driver:550.1-ubuntu22.04");
  EXPECT_EQ(DriverStatus()["drivers"][0]["waiting"][0]["reason"], "RolledBack");
  PutDriver("blue", "580.2");
  Run(60, 2s);
  for (const std::string& node : nodes_) {
    EXPECT_EQ(loaded_[node].back(), "nvcr.io/nvidia/driver:580.2-ubuntu22.04") << node;
    EXPECT_EQ(LabelOf(node, "penstock.io/driver-held"), "");
  }
  for (const ApiCall& call : api_.calls())
    if (call.method == "DELETE" && call.path.starts_with(kSets)) {
      EXPECT_THAT(call.path, HasSubstr("blue-ubuntu22.04-")) << "only that of the earlier driver";
    }
}

TEST_F(DriverRolloutTest, CountsItsNodesForTheMetrics) {
  const auto is_ready = [this] {
    for (const auto& policy : operator_->numbers().policy_states)
      if (policy.kind == "NVIDIADriver" && policy.name == "blue") return policy.ready;
    ADD_FAILURE() << "the driver is not among the policies";
    return false;
  };
  Run(30);
  Operator::Numbers numbers = operator_->numbers();
  EXPECT_TRUE(numbers.automatic_upgrades);
  ASSERT_EQ(numbers.drivers.size(), 1u);
  EXPECT_EQ(numbers.drivers[0].counts.done, nodes_.size());
  EXPECT_TRUE(is_ready());
  PutDriver("blue", "580.bad");
  Run();
  EXPECT_FALSE(is_ready());
  EXPECT_GT(operator_->numbers().drivers[0].counts.failed, 0u);
  PutDriver("blue", "550.1", {{"upgradePolicy", {{"autoUpgrade", false}}}});
  Run();
  EXPECT_FALSE(operator_->numbers().automatic_upgrades);
}

TEST_F(DriverRolloutTest, SaysWhichNodesTwoDriversSelect) {
  Run(30);
  PutDriver("other", "535.1", {{"nodeSelector", {{"team", "blue"}}}});
  Run(20);
  EXPECT_EQ(ConditionText(DriverStatus("other"), "Error", "reason"), "ConflictingNodeSelector");
  EXPECT_THAT(ConditionText(DriverStatus("other"), "Error", "message"), HasSubstr("it keeps blue"));
  EXPECT_EQ(loaded_["n1"].size(), 1u);
}

TEST_F(DriverRolloutTest, AnUnreadableDriverDoesNotConcernTheOthers) {
  Run(30);
  PutDriver("red", "535.1", {{"driverType", "quantum"}});
  PutDriver("blue", "580.1");
  Run();
  EXPECT_EQ(ConditionText(DriverStatus("red"), "Error", "status"), "True");
  EXPECT_EQ(loaded_["n1"].back(), "nvcr.io/nvidia/driver:580.1-ubuntu22.04");
}

TEST_F(DriverRolloutTest, TakesEverythingBack) {
  Run(30);
  api_.Remove(kPolicyPath);
  Run(30);
  for (const char* key : {kPoolKey, kStateKey, "nvidia.com/gpu-operator.driver.owner"})
    EXPECT_EQ(LabelOf("n1", key), "") << key;
  EXPECT_EQ(api_.Find(kSets + std::string("nvidia-gpu-driver-blue-ubuntu22.04")), nullptr);
}

TEST_F(DriverRolloutTest, TakesEverythingBackWhereAPolicyWasDeletedWhileNoOperatorRan) {
  Run(30);
  operator_.reset();
  api_.Remove(kDriverPath + std::string("blue"));
  Start();
  Run(60);
  for (const std::string& node : nodes_) {
    EXPECT_EQ(LabelOf(node, kPoolKey), "");
    EXPECT_EQ(LabelOf(node, kStateKey), "");
  }
  api_.ForgetCalls();
  executor_.Advance(1min);
  EXPECT_EQ(api_.Count("get"), 0u) << "there is nothing left to look at";
}

/// Of two ClusterPolicies that ask for the same. The API server's garbage collector, of which there
/// is none here, deletes what a policy controls that is gone.
class DeletedPolicyTest : public DriverRolloutTest {
 protected:
  DeletedPolicyTest() {
    Run(30);
    json next = *api_.Find(kPolicyPath);
    next.erase("metadata");
    next.erase("status");
    api_.Put(kNext, next);
    Run(5);
  }
  void Delete() {
    api_.Merge(kPolicyPath, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  }
  bool IsHeld() { return !ListAt(*api_.Find(kPolicyPath), "/metadata/finalizers").empty(); }
  const json& Set() { return *api_.Find(kSet); }
  json Owners() { return ListAt(Set(), "/metadata/ownerReferences"); }
  std::string UidOf(const std::string& path) { return TextAt(*api_.Find(path), "/metadata/uid"); }

  const std::string kNext = "/apis/nvidia.com/v1/clusterpolicies/next";
  const std::string kSet = std::string(kSets) + "nvidia-gpu-driver-blue-ubuntu22.04";
};

TEST_F(DeletedPolicyTest, ADriverThatStaysAsItIsDoesNotGoWithIt) {
  PutDriver("blue", "580.1", {{"driverType", "quantum"}});
  Run(10);
  const json spec = Set()["spec"];
  ASSERT_EQ(TextAt(Set(), "/metadata/ownerReferences/0/uid"), UidOf(kPolicyPath));
  api_.Fail({.status = 500, .times = -1, .method = "PATCH", .path = kSet});
  Delete();
  executor_.Advance(2min);
  EXPECT_TRUE(IsHeld());
  EXPECT_THAT(ConditionText((*api_.Find(kPolicyPath))["status"], "Ready", "message"),
              HasSubstr("to be taken back: DaemonSet nvidia-gpu-driver-blue-ubuntu22.04"));
  api_.Heal();
  api_.SetLateWatches(1s);
  api_.ForgetCalls();
  for (int i = 0; i < 600; ++i) {
    Report("n2", i % 2 == 0 ? "550.1" : "550.2");  // something changes all the time
    executor_.Advance(200ms);
  }
  EXPECT_FALSE(IsHeld());
  EXPECT_THAT(Owners(), IsEmpty());
  EXPECT_EQ(Set()["spec"], spec);
  EXPECT_EQ(std::ranges::count_if(
                api_.calls(),
                [this](const ApiCall& call) { return call.method != "GET" && call.path == kSet; }),
            1);
  api_.Remove(kPolicyPath);
  PutDriver("blue", "550.1");
  Run(10);
  EXPECT_EQ(Owners().size(), 1u);
  EXPECT_EQ(TextAt(Set(), "/metadata/ownerReferences/0/uid"), UidOf(kNext));
  EXPECT_EQ(Set()["spec"], spec);
  for (const std::string& node : nodes_) EXPECT_EQ(loaded_[node].size(), 1u) << node;
}

TEST_F(DeletedPolicyTest, DriversThatAreNotPlannedYetDoNotGoWithIt) {
  const char* maps = "/api/v1/namespaces/gpu-operator/configmaps";
  for (const char* method : {"GET", "WATCH"})
    api_.Fail({.status = 500, .times = -1, .method = method, .path = maps});
  PutDriver("blue", "550.1", {{"repoConfig", {{"name", "repositories"}}}});
  Run(10);
  Delete();
  executor_.Advance(1min);
  EXPECT_TRUE(IsHeld());
  EXPECT_EQ(TextAt(Set(), "/metadata/ownerReferences/0/uid"), UidOf(kPolicyPath));
  api_.Heal();
  PutDriver("blue", "550.1");
  executor_.Advance(1min);
  EXPECT_FALSE(IsHeld());
  EXPECT_EQ(TextAt(Set(), "/metadata/ownerReferences/0/uid"), UidOf(kNext));
}

TEST_F(DriverRolloutTest, IsNotSettledBeforeATurnAboutTheDriversThatAreWantedNow) {
  operator_.reset();
  DriverRollout rollout(api_, "pod-1",
                        {.due = [] {},
                         .due_after = [](auto) {},
                         .problem = [](const Status&) {},
                         .daemon_set = [](const std::string&) { return nullptr; },
                         .own = [](json&) {}});
  const DriverInstallation place = {.namespace_name = "gpu-operator", .image = "penstock:1"};
  const auto want = [&](std::vector<api::DriverSpec> drivers, std::set<std::string> unreadable) {
    api::PenstockSpec spec;
    spec.drivers = std::move(drivers);
    rollout.Want(spec, std::move(unreadable), place);
    const bool was_settled = rollout.settled();
    for (int i = 0; i < 5; ++i) {
      executor_.Advance(1s);
      EXPECT_TRUE(rollout.Turn());
    }
    EXPECT_TRUE(rollout.settled());
    return was_settled;
  };
  const api::DriverSpec red{.name = "red", .node_selector = {{"team", "red"}}};
  EXPECT_FALSE(want({red}, {}));
  EXPECT_TRUE(want({red}, {}));
  EXPECT_FALSE(want({red}, {"blue"}));
  EXPECT_FALSE(want({}, {"blue"}));
}

TEST_F(DriverRolloutTest, AFailedWriteThatIsNotWantedAnyMoreIsNoProblem) {
  Run(30);
  api_.Merge(NodePath("n3"), {{"metadata", {{"labels", {{"team", "red"}}}}}});
  Run(10);
  api_.Fail({.status = 500, .times = -1, .method = "PATCH", .path = NodePath("n3")});
  api_.Merge(NodePath("n3"), {{"metadata", {{"labels", {{"team", "blue"}}}}}});
  Run(3);
  EXPECT_EQ(ConditionText(DriverStatus(), "Error", "status"), "True");
  api_.Merge(NodePath("n3"), {{"metadata", {{"labels", {{"team", "red"}}}}}});
  Run(60);
  EXPECT_EQ(ConditionText(DriverStatus(), "Error", "status"), "False")
      << ConditionText(DriverStatus(), "Error", "message");
}

TEST_F(DriverRolloutTest, ANodeThatCannotBeWrittenIsNotTriedWithEachChange) {
  Run(30);
  api_.Fail({.status = 500, .times = -1, .method = "PATCH", .path = NodePath("n1")});
  PutDriver("blue", "580.1");
  Run(10);
  api_.ForgetCalls();
  for (int i = 0; i < 200; ++i) {
    Report("n2", i % 2 == 0 ? "550.1" : "550.2");  // something changes all the time
    Run(1);
  }
  const auto tried = std::ranges::count_if(api_.calls(), [](const ApiCall& call) {
    return call.method == "PATCH" && call.path.starts_with(NodePath("n1"));
  });
  EXPECT_GE(tried, 1);
  EXPECT_LE(tried, 6) << "in a minute";
  api_.Heal();
  Report("n2", "550.1");
  Run(400);
  for (const std::string& node : nodes_) EXPECT_EQ(LabelOf(node, kStateKey), "upgrade-done");
}

TEST_F(DriverRolloutTest, AnOperatorThatStartsDeletesNoDriver) {
  Run(30);
  api_.Fail({.status = 500, .times = 3, .method = "GET", .path = "/api/v1/nodes"});
  api_.ForgetCalls();
  Start();
  Run(30);
  for (const ApiCall& call : api_.calls()) EXPECT_NE(call.method, "DELETE") << call.path;
  EXPECT_EQ(loaded_["n1"].size(), 1u);
}

}  // namespace
}  // namespace penstock::cluster
