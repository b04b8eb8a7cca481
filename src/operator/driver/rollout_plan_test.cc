// Tests which DaemonSets there are and what is written to which Node.
#include "operator/driver/rollout_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

using api::DriverSpec;
using std::chrono::seconds;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

const base::WallTime kPlannedAt = base::NearestTime(1'800'000'000);
constexpr char kOwner[] = "nvidia.com/gpu-operator.driver.owner";
constexpr char kPool[] = "penstock.io/driver-pool";
constexpr char kState[] = "nvidia.com/gpu-driver-upgrade-state";

DriverSpec Blue(const std::string& version) {
  DriverSpec driver;
  driver.name = "blue";
  driver.node_selector = {{"team", "blue"}};
  driver.image = {"nvcr.io/nvidia", "driver", version, "", {}};
  driver.upgrade.automatic = true;
  return driver;
}

RolloutNode NodeOf(const std::string& name) {
  RolloutNode node;
  node.node = {name,
               {{"team", "blue"},
                {"nvidia.com/gpu.deploy.driver", "true"},
                {"feature.node.kubernetes.io/system-os_release.ID", "ubuntu"},
                {"feature.node.kubernetes.io/system-os_release.VERSION_ID", "22.04"}},
               "",
               ""};
  node.has_devices = true;
  return node;
}

class RolloutPlanTest : public testing::Test {
 protected:
  RolloutPlanTest() {
    facts_.installation = {.namespace_name = "gpu-operator", .image = "penstock:1"};
    facts_.claims.emplace();
    facts_.drivers = {Blue("550")};
    for (const char* name : {"n1", "n2"}) {
      facts_.nodes[name] = NodeOf(name);
      facts_.reports[name] = {};  // looked, and found no driver
    }
  }

  RolloutPlan Plan() { return PlanRollout(facts_, kPlannedAt); }

  /// Does what is planned, and lets the pods of the DaemonSets run.
  RolloutPlan Do() {
    RolloutPlan plan = Plan();
    for (const auto& [name, set] : plan.daemon_sets) facts_.daemon_sets[name] = set;
    std::erase_if(facts_.daemon_sets, [&](const auto& set) {
      return !plan.daemon_sets.contains(set.first) && !plan.kept_sets.contains(set.first);
    });
    for (const auto& [name, write] : plan.writes) Apply(facts_.nodes.at(name), name, write);
    for (const auto& [name, node] : facts_.nodes) RunPod(name, node);
    return plan;
  }

  void Apply(RolloutNode& node, const std::string& name, const NodeWrite& write) {
    for (const UpgradeAction& action : write.step.actions) actions_.push_back(action.pod);
    if (!write.step.actions.empty() &&
        write.step.actions.front().kind == UpgradeAction::Kind::kDelete)
      facts_.pods.erase(name);
    const auto put = [](NodeTexts& texts, const auto& marks) {
      for (const auto& [key, value] : marks) {
        texts.erase(key);
        if (value) texts[key] = *value;
      }
    };
    put(node.node.labels, write.labels);
    put(node.annotations, write.annotations);
    if (write.step.cordon) node.cordoned = *write.step.cordon;
  }

  /// As the controller of DaemonSets does: a pod whose node its set does not select any more ends.
  void RunPod(const std::string& name, const RolloutNode& node) {
    const auto pool = node.node.labels.find(kPool);
    const Json* set = nullptr;
    if (pool != node.node.labels.end())
      if (const auto found = facts_.daemon_sets.find(pool->second);
          found != facts_.daemon_sets.end())
        set = &found->second;
    const auto pod = facts_.pods.find(name);
    if (set == nullptr || (pod != facts_.pods.end() && sets_[name] != pool->second))
      facts_.pods.erase(name);
    if (set == nullptr || facts_.pods.contains(name)) return;
    sets_[name] = pool->second;
    RolloutPod& made = facts_.pods[name];
    made.node = name;
    made.started = kPlannedAt;
    made.ready_since = kPlannedAt;
    made.pod = {.name = "gpu-operator/driver-" + name,
                .uid = name + TemplateOf(*set),
                .target = TemplateOf(*set),
                .digest = ConfigDigestOf(*set),
                .ready = true};
    facts_.reports[name] = {.version = "550", .since = kPlannedAt, .ready = true};
  }

  std::string LabelOf(const std::string& node, const std::string& key) {
    const auto& labels = facts_.nodes.at(node).node.labels;
    const auto found = labels.find(key);
    return found == labels.end() ? "" : found->second;
  }

  void Settle(int turns = 30) {
    for (int turn = 0; turn < turns; ++turn) Do();
  }

  RolloutFacts facts_;
  std::map<std::string, std::string> sets_;  // of which a node's pod is
  std::vector<std::string> actions_;
};

TEST_F(RolloutPlanTest, GivesNodesTheirOwnerAndPoolOnceTheirAgentsHaveFoundNoDriver) {
  facts_.reports.erase("n2");
  const RolloutPlan plan = Plan();
  EXPECT_THAT(plan.daemon_sets, ElementsAre(Key("nvidia-gpu-driver-blue-ubuntu22.04")));
  ASSERT_THAT(plan.writes, ElementsAre(Key("n1")));
  EXPECT_EQ(plan.writes.at("n1").labels.at(kOwner), "blue");
  EXPECT_EQ(plan.writes.at("n1").labels.at(kPool), "nvidia-gpu-driver-blue-ubuntu22.04");
}

TEST_F(RolloutPlanTest, LeavesADriverOfTheHostAlone) {
  facts_.reports["n2"] = {.version = "535", .of_host = true, .since = kPlannedAt, .ready = true};
  const RolloutPlan plan = Plan();
  EXPECT_THAT(plan.writes, ElementsAre(Key("n1")));
  EXPECT_THAT(plan.host_drivers, ElementsAre("n2"));
}

TEST_F(RolloutPlanTest, TakesADriverBackThatWasPlacedBeforeTheHostsWasFound) {
  Do();
  ASSERT_NE(LabelOf("n2", kPool), "");
  facts_.reports["n2"] = {.version = "535", .of_host = true, .since = kPlannedAt, .ready = true};
  const RolloutPlan plan = Do();
  EXPECT_THAT(plan.host_drivers, ElementsAre("n2"));
  EXPECT_EQ(LabelOf("n2", kPool), "");
  EXPECT_EQ(LabelOf("n2", kOwner), "");
}

TEST_F(RolloutPlanTest, KeepsADriverThatWorkedWhateverIsFoundBesides) {
  Settle();
  facts_.reports["n2"].of_host = true;
  EXPECT_THAT(Plan().writes, IsEmpty());
  EXPECT_THAT(Plan().host_drivers, IsEmpty());
}

TEST_F(RolloutPlanTest, LeavesOutNodesThatDoNotWantADriver) {
  facts_.nodes["n1"].node.labels["nvidia.com/gpu.deploy.driver"] = "false";
  facts_.nodes["n2"].opted_out = true;
  EXPECT_THAT(Plan().writes, IsEmpty());
  EXPECT_THAT(Plan().daemon_sets, IsEmpty());
}

TEST_F(RolloutPlanTest, GO661ANodeThatOptsOutKeepsItsDriverWhilePodsHoldItsDevices) {
  Settle();
  facts_.nodes["n1"].opted_out = true;
  facts_.nodes["n2"].node.labels["nvidia.com/gpu.deploy.driver"] = "false";
  EXPECT_THAT(Plan().writes, IsEmpty()) << "their pods were not read yet";
  EXPECT_THAT(Plan().pods_needed, ElementsAre("n1", "n2"));
  const Json container = {{"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}};
  facts_.pods_of_nodes["n1"] = {{{"metadata", {{"name", "train"}, {"namespace", "team"}}},
                                 {"spec", {{"containers", Json::array({container})}}},
                                 {"status", {{"phase", "Running"}}}}};
  facts_.pods_of_nodes["n2"] = {};
  const RolloutPlan plan = Do();
  EXPECT_THAT(facts_.pods, ElementsAre(Key("n1"))) << "nothing holds the devices of n2";
  ASSERT_THAT(plan.drivers[0].waiting, SizeIs(1));
  EXPECT_EQ(plan.drivers[0].waiting[0].reason, "DevicesInUse");
  EXPECT_THAT(plan.drivers[0].waiting[0].message, HasSubstr("team/train (nvidia.com/gpu)"));
  facts_.pods_of_nodes["n1"] = {};
  Do();
  EXPECT_THAT(facts_.pods, IsEmpty());
  EXPECT_THAT(facts_.daemon_sets, IsEmpty());
  EXPECT_THAT(Do().pods_needed, IsEmpty());
}

TEST_F(RolloutPlanTest, IsAtRestOnceEveryNodeHasItsDriver) {
  Settle();
  EXPECT_EQ(LabelOf("n1", kState), "upgrade-done");
  const RolloutPlan plan = Plan();
  EXPECT_THAT(plan.writes, IsEmpty());
  ASSERT_THAT(plan.drivers, SizeIs(1));
  EXPECT_EQ(plan.drivers[0].ready, 2u);
  EXPECT_THAT(plan.drivers[0].waiting, IsEmpty());
}

TEST_F(RolloutPlanTest, ReplacesADriverNodeByNode) {
  Settle();
  const std::string before = facts_.pods.at("n1").pod.target;
  facts_.drivers = {Blue("580")};
  std::vector<std::string> states;
  for (int turn = 0; turn < 40; ++turn) {
    const RolloutPlan plan = Do();
    for (const std::string& node : plan.pods_needed) facts_.pods_of_nodes[node] = {};
    EXPECT_LE(plan.drivers[0].counts.underway, 1u);
    if (states.empty() || states.back() != LabelOf("n1", kState))
      states.push_back(LabelOf("n1", kState));
  }
  EXPECT_THAT(states,
              ElementsAre("upgrade-done", "upgrade-required", "cordon-required",
                          "wait-for-jobs-required", "pod-deletion-required", "pod-restart-required",
                          "validation-required", "uncordon-required", "upgrade-done"));
  for (const char* node : {"n1", "n2"}) {
    EXPECT_NE(facts_.pods.at(node).pod.target, before);
    EXPECT_FALSE(facts_.nodes.at(node).cordoned);
  }
  EXPECT_THAT(actions_, ElementsAre("gpu-operator/driver-n1", "gpu-operator/driver-n2"));
}

/// Another operator's container has loaded a driver, and pods use it: our pods cannot unload it.
TEST_F(RolloutPlanTest, EvictsTheUsersOfAnotherOperatorsDriverWhereAUserAsksForIt) {
  for (auto& [name, report] : facts_.reports)
    report = {.version = "535", .since = kPlannedAt, .ready = true};
  Do();
  ASSERT_THAT(facts_.pods, SizeIs(2)) << "they wait on their nodes";
  for (auto& [name, pod] : facts_.pods) {
    pod.pod.ready = false;
    pod.pod.trouble = "the driver cannot be unloaded";
    pod.started = pod.ready_since = std::nullopt;
  }
  Settle();
  EXPECT_THAT(Plan().writes, IsEmpty());
  EXPECT_THAT(actions_, IsEmpty());
  EXPECT_THAT(Plan().drivers[0].waiting[0].message, HasSubstr("cannot be unloaded"));
  facts_.nodes["n1"].annotations["nvidia.com/gpu-driver-upgrade-requested"] = "true";
  const Json container = {{"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}};
  const Json owner = {{"kind", "ReplicaSet"}, {"controller", true}};
  facts_.pods_of_nodes["n1"] = {{{"metadata",
                                  {{"name", "train"},
                                   {"namespace", "team"},
                                   {"uid", "t"},
                                   {"ownerReferences", Json::array({owner})}}},
                                 {"spec", {{"containers", Json::array({container})}}},
                                 {"status", {{"phase", "Running"}}}}};
  Settle(6);
  EXPECT_EQ(LabelOf("n1", kState), "pod-deletion-required");
  EXPECT_TRUE(facts_.nodes["n1"].cordoned);
  EXPECT_THAT(actions_, Each("team/train"));
  facts_.pods_of_nodes["n1"] = {};
  actions_.clear();
  Settle();
  EXPECT_THAT(actions_, ElementsAre("gpu-operator/driver-n1"));
  EXPECT_EQ(LabelOf("n1", kState), "upgrade-done");
  EXPECT_FALSE(facts_.nodes["n1"].cordoned || facts_.nodes["n2"].cordoned);
  EXPECT_FALSE(facts_.pods.at("n2").pod.ready);
}

TEST_F(RolloutPlanTest, DoesNotDecideAboutPodsThatItHasNotRead) {
  Settle();
  facts_.drivers = {Blue("580")};
  for (int turn = 0; turn < 10; ++turn) Do();
  EXPECT_EQ(LabelOf("n1", kState), "wait-for-jobs-required") << "the pods of n1 were never read";
  EXPECT_THAT(Plan().pods_needed, ElementsAre("n1"));
}

TEST_F(RolloutPlanTest, WaitsUntilTheServerHasTheDaemonSet) {
  Settle();
  facts_.drivers = {Blue("580")};
  const RolloutPlan plan = Plan();
  EXPECT_THAT(plan.writes, IsEmpty());
}

TEST_F(RolloutPlanTest, CountsWhatIsBeingWrittenAsIfItWereThere) {
  Settle();
  facts_.drivers = {Blue("580")};
  Do();  // both are upgrade-required after this and the next
  Do();
  const RolloutPlan first = Plan();
  ASSERT_THAT(first.writes, ElementsAre(Key("n1")));
  facts_.being_written["n1"] = first.writes.at("n1").step;
  const RolloutPlan second = Plan();
  EXPECT_THAT(second.writes, IsEmpty()) << "n2 would be a second one";
  EXPECT_EQ(second.drivers[0].counts.underway, 1u);
}

TEST_F(RolloutPlanTest, MovesANodeToAnotherDriverByAnUpgrade) {
  Settle();
  DriverSpec green = Blue("580");
  green.name = "green";
  green.node_selector = {{"team", "green"}};
  facts_.drivers.push_back(green);
  facts_.nodes["n1"].node.labels["team"] = "green";
  facts_.nodes["n2"].node.labels["team"] = "green";
  const RolloutPlan plan = Do();
  EXPECT_THAT(plan.kept_sets, ElementsAre("nvidia-gpu-driver-blue-ubuntu22.04"));
  EXPECT_EQ(LabelOf("n1", kPool), "nvidia-gpu-driver-blue-ubuntu22.04") << "its pod is of that one";
  std::string moved_in;
  for (int turn = 0; turn < 40; ++turn) {
    for (const std::string& node : Do().pods_needed) facts_.pods_of_nodes[node] = {};
    if (moved_in.empty() && LabelOf("n1", kPool) != "nvidia-gpu-driver-blue-ubuntu22.04")
      moved_in = LabelOf("n1", kState);
  }
  EXPECT_EQ(moved_in, "pod-restart-required") << "its pod ends when the label changes";
  for (const char* node : {"n1", "n2"}) {
    EXPECT_EQ(LabelOf(node, kPool), "nvidia-gpu-driver-green-ubuntu22.04");
    EXPECT_EQ(LabelOf(node, kState), "upgrade-done");
  }
  EXPECT_THAT(facts_.daemon_sets, ElementsAre(Key("nvidia-gpu-driver-green-ubuntu22.04")));
}

TEST_F(RolloutPlanTest, KeepsThePoolOfANodeWhoseSystemIsNotSaidAnyMore) {
  Settle();
  auto& labels = facts_.nodes["n1"].node.labels;
  labels.erase("feature.node.kubernetes.io/system-os_release.ID");
  EXPECT_THAT(Plan().writes, IsEmpty());
}

TEST_F(RolloutPlanTest, KeepsEverythingOfADriverWhoseObjectCannotBeRead) {
  Settle();
  facts_.drivers.clear();
  facts_.unreadable = {"blue"};
  const RolloutPlan plan = Plan();
  EXPECT_THAT(plan.writes, IsEmpty());
  EXPECT_THAT(plan.kept_sets, ElementsAre("nvidia-gpu-driver-blue-ubuntu22.04"));
}

TEST_F(RolloutPlanTest, TakesEverythingBackWithoutDrivers) {
  Settle();
  facts_.drivers.clear();
  const RolloutPlan plan = Do();
  EXPECT_THAT(plan.daemon_sets, IsEmpty());
  EXPECT_THAT(plan.kept_sets, IsEmpty());
  for (const char* key : {kOwner, kPool, kState}) EXPECT_EQ(LabelOf("n1", key), "") << key;
  EXPECT_THAT(facts_.nodes.at("n1").annotations, IsEmpty());
  EXPECT_THAT(Plan().writes, IsEmpty());
}

TEST_F(RolloutPlanTest, NamesWhatIsMissingAndKeepsThePodsThatThereAre) {
  Settle();
  facts_.drivers[0].files.module_options = "options";
  const RolloutPlan plan = Do();
  EXPECT_THAT(plan.drivers[0].problem, HasSubstr("ConfigMap options"));
  EXPECT_TRUE(plan.drivers[0].lacks_object);
  EXPECT_THAT(plan.kept_sets, ElementsAre("nvidia-gpu-driver-blue-ubuntu22.04"));
  EXPECT_THAT(facts_.pods, UnorderedElementsAre(Key("n1"), Key("n2")));
}

TEST_F(RolloutPlanTest, SaysWhyANodeWaits) {
  Do();
  facts_.pods["n1"].pod.ready = false;
  facts_.pods["n1"].pod.trouble = "k8s-driver-manager: Error: module nvidia is used by pid 7";
  const RolloutPlan plan = Plan();
  ASSERT_THAT(plan.drivers[0].waiting, SizeIs(1));
  EXPECT_EQ(plan.drivers[0].waiting[0].reason, "DriverLoading");
  EXPECT_THAT(plan.drivers[0].waiting[0].message, HasSubstr("pid 7"));
}

TEST(DriverValidation, IsAboutTheDriverThatThePodHasLoaded) {
  RolloutPod pod{.node = "n1", .started = kPlannedAt, .ready_since = kPlannedAt};
  DriverReport report{.version = "550", .since = kPlannedAt - seconds(60), .ready = true};
  const ValidationResult early = ValidationOf(pod, &report, kPlannedAt + seconds(1));
  EXPECT_EQ(early.state, DriverValidation::kPending) << "this may be the driver before it";
  EXPECT_EQ(early.look_again, kPlannedAt + seconds(30));
  EXPECT_EQ(ValidationOf(pod, &report, kPlannedAt + seconds(30)).state, DriverValidation::kPassed);
  report.since = kPlannedAt + seconds(1);
  EXPECT_EQ(ValidationOf(pod, &report, kPlannedAt + seconds(1)).state, DriverValidation::kPassed);
  report.ready = false;
  report.message = "no device file";
  EXPECT_EQ(ValidationOf(pod, &report, kPlannedAt + seconds(1)).state, DriverValidation::kFailed);
  EXPECT_EQ(ValidationOf(pod, nullptr, kPlannedAt).state, DriverValidation::kPending);
  report.version = "";
  EXPECT_EQ(ValidationOf(pod, &report, kPlannedAt).state, DriverValidation::kFailed)
      << "there is none";
}

TEST(ReducedDriverNode, IsTheSameAfterAHeartbeat) {
  Json node = {{"metadata", {{"name", "n1"}, {"labels", {{"zone", "a"}, {kPool, "p"}}}}},
               {"spec", {{"unschedulable", true}}},
               {"status",
                {{"nodeInfo", {{"osImage", "Ubuntu 22.04.3 LTS"}, {"kernelVersion", "5.15"}}},
                 {"conditions",
                  {{{"type", "Ready"},
                    {"status", "False"},
                    {"lastHeartbeatTime", "2026-01-01T00:00:00Z"},
                    {"lastTransitionTime", "2026-01-01T00:00:00Z"}}}}}}};
  const Json before = ReducedDriverNode(node, {kPool});
  node["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:05:00Z";
  node["metadata"]["resourceVersion"] = "7";
  EXPECT_EQ(ReducedDriverNode(node, {kPool}), before);
  const RolloutNode read = RolloutNodeOf(before, {}, kPlannedAt);
  EXPECT_TRUE(read.cordoned);
  EXPECT_EQ(read.not_ready_since, kPlannedAt) << "not the time of another machine's clock";
  EXPECT_THAT(read.node.labels, ElementsAre(Pair(kPool, "p")));
}

TEST(ReducedDriverPod, SaysWhyItIsNotReady) {
  const Json pod = {
      {"metadata",
       {{"name", "d"},
        {"namespace", "x"},
        {"annotations", {{"penstock.io/driver-template", "t"}}}}},
      {"spec", {{"nodeName", "n1"}}},
      {"status",
       {{"initContainerStatuses",
         {{{"name", "k8s-driver-manager"},
           {"ready", false},
           {"restartCount", 3},
           {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}},
           {"lastState",
            {{"terminated", {{"exitCode", 1}, {"reason", "Error"}, {"message", "in use"}}}}}}}}}}};
  const RolloutPod read = RolloutPodOf(ReducedDriverPod(pod), kPlannedAt);
  EXPECT_EQ(read.node, "n1");
  EXPECT_EQ(read.pod.target, "t");
  EXPECT_EQ(read.pod.restarts, 3);
  EXPECT_EQ(read.pod.trouble, "k8s-driver-manager: CrashLoopBackOff, Error: in use");
}

}  // namespace
}  // namespace penstock::cluster
