// The cluster's door against an API server in this process.
#include "door/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/core/strings.h"
#include "edge/kube/fake/fake_api.h"

namespace penstock::door {
namespace {

using namespace std::chrono_literals;
using api::Switch;
using edge::kube::FakeApi;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Labels = std::map<std::string, std::string>;

constexpr char kNode[] = "/api/v1/nodes/n1";
constexpr char kNodeState[] = "/apis/penstock.io/v1alpha1/nodestates/n1";
constexpr char kFeature[] = "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/penstock/nodefeatures/penstock-features-for-n1";
constexpr char kMap[] = "/api/v1/namespaces/penstock/configmaps/configs";

class ClusterDoorTest : public testing::Test {
 protected:
  ClusterDoorTest() {
    api_.Put(kNode, json::parse(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"zone": "a"}},
                                    "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}})"),
             "kubelet");
    options_.node = "n1";
    options_.namespace_name = "penstock";
    news_.report.node = "n1";
    news_.report.version = "0.1.0";
    news_.report.vendors = {{.vendor = "nvidia", .driver = "550.54.15"}};
    for (int i = 0; i < 2; ++i)
      news_.report.devices.push_back({.id = "GPU-" + std::to_string(i),
                                      .vendor = "nvidia",
                                      .model = "NVIDIA A100",
                                      .index = i,
                                      .health_state = "healthy",
                                      .health_since = "2026-11-21T03:42:00.000Z",
                                      .door = "kubelet"});
    news_.report.configuration = {.origin = "defaults", .since = "2026-11-21T03:42:00.000Z"};
    news_.report.conditions = {{.type = "Ready", .status = true, .reason = "Ready", .since = "2026-11-21T03:42:00.000Z"}};
    news_.labels = Labels{{"nvidia.com/gpu.count", "2"}, {"nvidia.com/gfd.timestamp", "100"}};
  }

  void Start() {
    door_ = std::make_unique<ClusterDoor>(api_, options_,
                                          ClusterDoor::Callbacks{.wished = [this](const WishedConfig& wish) { wishes_.push_back(wish); },
                                                                 .nfd = [this](bool nfd) { nfd_.push_back(nfd); },
                                                                 .state = [this](const api::DoorReport& report) { Told(report); }});
    door_->Start();
  }

  /// As the agent does: its report has the door's own state in it.
  void Told(const api::DoorReport& report) {
    state_ = report;
    auto& doors = news_.report.doors;
    std::erase_if(doors, [](const api::DoorReport& door) { return door.name == "cluster"; });
    doors.push_back(report);
    if (shown_)
      executor_.Post([this] {
        if (door_) door_->Show(news_);
      });
  }

  void Show() {
    shown_ = true;
    door_->Show(news_);
    executor_.RunUntilIdle();
  }

  /// Starts, shows, and waits until all is told.
  void Converge() {
    Start();
    Show();
    executor_.Advance(10s);
    api_.ForgetCalls();
  }

  /// As an agent that is killed and comes back: its times are those of its own start.
  void StartAnew() {
    door_.reset();
    for (auto& device : news_.report.devices) device.health_since = "2026-11-22T00:00:00.000Z";
    for (auto& condition : news_.report.conditions) condition.since = "2026-11-22T00:00:00.000Z";
    news_.report.configuration.since = "2026-11-22T00:00:00.000Z";
    (*news_.labels)["nvidia.com/gfd.timestamp"] = "200";
    Start();
  }

  std::string Label(const std::string& key) const { return api_.Find(kNode)->at("metadata").at("labels").value(key, "(none)"); }
  json Status() const { return api_.Find(kNodeState) == nullptr ? json(nullptr) : api_.Find(kNodeState)->at("status"); }
  std::string Shown(const std::string& list) const { return api_.Find(kNode)->at("status").at(list).value("nvidia.com/gpu", "(none)"); }

  /// Reasons of all Events there are.
  std::vector<std::string> Events() const {
    std::vector<std::string> reasons;
    for (const auto& call : api_.calls())
      if (call.method == "POST" && call.path.find("/events") != std::string::npos)
        reasons.push_back(json::parse(call.body).value("reason", ""));
    return reasons;
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  ClusterDoor::Options options_;
  ClusterNews news_;
  std::vector<WishedConfig> wishes_;
  std::vector<bool> nfd_;
  api::DoorReport state_;
  bool shown_ = false;
  std::unique_ptr<ClusterDoor> door_;
};

// At rest.

TEST_F(ClusterDoorTest, AtRestNothingIsWritten) {
  Converge();
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_EQ(api_.Count("list"), 0u);
  EXPECT_LE(api_.Count("get"), 6u) << "one look at its own object each ten minutes";
  EXPECT_EQ(state_.state, "open");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterDoorTest, AnAgentStartedAnewWritesNothingWhereNothingChanged) {
  Converge();
  executor_.Advance(1h);
  StartAnew();
  Show();
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_EQ(Status()["devices"][0]["health"]["since"], "2026-11-21T03:42:00Z");
}

TEST_F(ClusterDoorTest, ReadsOneNodeOnly) {
  options_.config.config_map.name = "configs";
  Start();
  Show();
  executor_.Advance(10s);
  for (const auto& call : api_.calls()) {
    if (call.method != "GET" || call.path == kNode || call.path == kNodeState) continue;
    EXPECT_TRUE(call.query.contains("fieldSelector")) << call.path;
  }
  EXPECT_EQ(api_.OpenStreams(), 2u);
}

// Labels.

TEST_F(ClusterDoorTest, LabelsTheNodeAndFollowsWhatChanges) {
  Start();
  Show();
  executor_.Advance(100ms);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(Label("zone"), "a");
  EXPECT_THAT(api_.ManagersOf(kNode, "/metadata/labels/nvidia.com~1gpu.count"), ElementsAre("penstock-labels"));
  executor_.Advance(1min);
  news_.labels = Labels{{"nvidia.com/gpu.product", "A100"}};
  Show();
  executor_.Advance(900ms);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "(none)");
  EXPECT_EQ(Label("nvidia.com/gpu.product"), "A100");
}

TEST_F(ClusterDoorTest, MissingDataTakesNoLabelAway) {
  Converge();
  StartAnew();
  news_.labels.reset();
  Show();
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  news_.labels = Labels{{"nvidia.com/gpu.count", "3"}};
  Show();
  executor_.Advance(1s);
  news_.labels.reset();
  news_.report.devices[0].health_state = "unhealthy";
  Show();
  executor_.Advance(1h);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "3");
  EXPECT_EQ(Status()["summary"]["healthy"], 1);
}

TEST_F(ClusterDoorTest, AFightOverALabelIsNotFought) {
  Converge();
  for (int i = 0; i < 3600; ++i) {
    if (Label("nvidia.com/gpu.count") == "2")
      api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/gpu.count", "9"}}}}}}, "kubectl-label");
    executor_.Advance(1s);
  }
  EXPECT_LE(api_.Count("apply"), 30u) << "labels alone: the fight is no news for the object";
  EXPECT_THAT(state_.reason, AllOf(HasSubstr("nvidia.com/gpu.count"), HasSubstr("kubectl-label")));
  EXPECT_EQ(state_.state, "open");
  executor_.Advance(20min);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterDoorTest, AWatchThatLagsBehindOurOwnWriteIsNotTakenForSomebodyElse) {
  Converge();
  json old = *api_.Find(kNode);
  old["metadata"]["resourceVersion"] = "1";
  old["metadata"]["labels"].erase("nvidia.com/gpu.count");
  api_.SendLine("/api/v1/nodes", json{{"type", "MODIFIED"}, {"object", old}}.dump());
  executor_.Advance(10s);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_EQ(api_.Count("get"), 0u);
}

TEST_F(ClusterDoorTest, ALabelThatSomebodySetOnceIsMendedOnce) {
  Converge();
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/gpu.count", nullptr}}}}}}, "kubectl-label");
  executor_.Advance(2s);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(api_.Count("apply"), 1u);
  executor_.Advance(1h);
  EXPECT_EQ(api_.Count("apply"), 1u);
}

TEST_F(ClusterDoorTest, LabelsOfOthersAreNeverTouched) {
  Converge();
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/mig.config", "all-1g.5gb"}}}}}}, "kubectl-label");
  news_.labels = Labels{{"nvidia.com/gpu.count", "1"}};
  Show();
  executor_.Advance(1s);
  EXPECT_EQ(Label("nvidia.com/mig.config"), "all-1g.5gb");
  EXPECT_EQ(Label("zone"), "a");
}

TEST_F(ClusterDoorTest, NoNodeIsMadeByLabellingOneThatIsGone) {
  Converge();
  api_.Fail({.status = 0, .times = 1, .method = "PATCH", .path = kNode});
  (*news_.labels)["a/b"] = "1";
  Show();
  api_.Remove(kNode);
  executor_.Advance(1h);
  EXPECT_EQ(api_.Find(kNode), nullptr);
  EXPECT_EQ(state_.state, "waiting");
  EXPECT_THAT(state_.reason, HasSubstr("there is no Node n1"));
}

TEST_F(ClusterDoorTest, ANodeThatIsMadeAnewIsLabelledAnew) {
  Converge();
  api_.Remove(kNode);
  executor_.Advance(1s);
  api_.Put(kNode, json::parse(R"({"apiVersion": "v1", "kind": "Node", "status": {"capacity": {}}})"), "kubelet");
  executor_.Advance(10s);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(api_.Find(kNodeState)->at("metadata").at("ownerReferences").at(0).at("uid"), api_.Find(kNode)->at("metadata").at("uid"));
}

TEST_F(ClusterDoorTest, AnNfdBesideUsIsToldAndLeftAlone) {
  api_.Merge(kNode, json::parse(R"({"metadata": {
    "annotations": {"nfd.node.kubernetes.io/feature-labels": "pci-10de.present,nvidia.com/gpu.count"},
    "labels": {"feature.node.kubernetes.io/pci-10de.present": "true", "nvidia.com/gpu.count": "8"}}})"),
             "nfd-master");
  news_.labels = Labels{{"nvidia.com/gpu.count", "2"},
                        {"a/b", "1"},
                        {"feature.node.kubernetes.io/pci-10de.present", "true"},
                        {"feature.node.kubernetes.io/x", "1"}};
  Converge();
  EXPECT_THAT(nfd_, ElementsAre(true));
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "8");
  EXPECT_EQ(Label("a/b"), "1");
  EXPECT_EQ(Label("feature.node.kubernetes.io/x"), "(none)");
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  api_.Merge(kNode, json::parse(R"({"metadata": {"annotations": {"nfd.node.kubernetes.io/feature-labels": null},
    "labels": {"feature.node.kubernetes.io/pci-10de.present": null, "nvidia.com/gpu.count": null}}})"),
             "nfd-master");
  executor_.Advance(1s);
  EXPECT_THAT(nfd_, ElementsAre(true, false));
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(Label("feature.node.kubernetes.io/pci-10de.present"), "true");
}

// Labels through NFD.

TEST_F(ClusterDoorTest, ANodeFeatureCarriesTheLabelsInsteadOfTheNode) {
  options_.labels.node_feature = Switch::kAuto;
  Converge();
  ASSERT_NE(api_.Find(kFeature), nullptr);
  EXPECT_EQ(api_.Find(kFeature)->at("spec").at("labels").at("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(api_.Find(kFeature)->at("metadata").at("labels").at("nfd.node.kubernetes.io/node-name"), "n1");
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "(none)");
  news_.labels = Labels{{"nvidia.com/gpu.count", "1"}};
  Show();
  executor_.Advance(900ms);
  EXPECT_EQ(api_.Find(kFeature)->at("spec").at("labels"), json({{"nvidia.com/gpu.count", "1"}}));
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 1u);
}

TEST_F(ClusterDoorTest, WhatNfdHasFromOurOwnObjectIsNotItsOwnFinding) {
  options_.labels.node_feature = Switch::kOn;
  news_.labels = Labels{{"feature.node.kubernetes.io/pci-10de.present", "true"}};
  Converge();
  const auto nfd_lists = [this](const std::string& keys) {
    api_.Merge(kNode, {{"metadata", {{"annotations", {{"nfd.node.kubernetes.io/feature-labels", keys}}}}}}, "nfd-master");
    executor_.Advance(1s);
  };
  nfd_lists("pci-10de.present");
  EXPECT_THAT(nfd_, ElementsAre(false));
  nfd_lists("pci-10de.present,kernel-version.full");
  EXPECT_THAT(nfd_, ElementsAre(false, true));
  EXPECT_FALSE(api_.Find(kFeature)->contains(json::json_pointer("/spec/labels/feature.node.kubernetes.io~1pci-10de.present")));
  const auto writes = api_.Writes();
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), writes);
}

TEST_F(ClusterDoorTest, WithoutNfdTheLabelsGoStraightOnTheNode) {
  options_.labels.node_feature = Switch::kAuto;
  api_.NotInstalled("/apis/nfd.k8s-sigs.io/");
  Converge();
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(state_.reason, "") << "nobody asked for NFD";
  executor_.Advance(1h);
  EXPECT_LE(api_.Requests(), 12u * 2 + 6u + 16u) << "looked for every five minutes, beside its own object and the watches";
  api_.Heal();
  executor_.Advance(6min);
  ASSERT_NE(api_.Find(kFeature), nullptr);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2") << "no gap while NFD has not taken it up";
}

// Wishes.

class WishTest : public ClusterDoorTest {
 protected:
  WishTest() { options_.config.config_map.name = "configs"; }
  void PutMap(const json& data) { api_.Put(kMap, {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", data}}, "kubectl"); }
  const WishedConfig& Last() const { return wishes_.back(); }
};

TEST_F(WishTest, TheLabelChoosesAndEveryChangeIsToldAtOnce) {
  PutMap({{"a100", "replicas: 4"}, {"t4", "replicas: 2"}});
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/device-plugin.config", "t4"}}}}}});
  Start();
  executor_.Advance(100ms);
  ASSERT_EQ(wishes_.size(), 1u) << "no other wish while only half of it is known";
  EXPECT_EQ(Last().text, "replicas: 2");
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/device-plugin.config", "a100"}}}}}});
  executor_.Advance(100ms);
  EXPECT_EQ(Last().text, "replicas: 4");
  EXPECT_EQ(Last().origin, "ConfigMap penstock/configs, key a100 (label nvidia.com/device-plugin.config)");
  EXPECT_EQ(wishes_.size(), 2u);
}

TEST_F(WishTest, GO412AndGO1144AnEditOfTheConfigMapIsSeenAtOnce) {
  PutMap({{"any", "replicas: 4"}});
  Start();
  executor_.Advance(100ms);
  PutMap({{"any", "replicas: 8"}});
  executor_.Advance(100ms);
  EXPECT_EQ(Last().text, "replicas: 8");
}

TEST_F(WishTest, DP364AKeyOrAConfigMapThatIsTakenAwayIsAProblemUntilItIsBack) {
  PutMap({{"any", "replicas: 4"}, {"b", "x: 1"}});
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/device-plugin.config", "any"}}}}}});
  Start();
  executor_.Advance(100ms);
  EXPECT_THAT(Last().problem, IsEmpty());
  PutMap({{"b", "x: 1"}});
  executor_.Advance(100ms);
  EXPECT_THAT(Last().problem, HasSubstr("there is no key any"));
  api_.Remove(kMap);
  executor_.Advance(100ms);
  EXPECT_THAT(Last().problem, HasSubstr("there is no ConfigMap penstock/configs"));
  PutMap({{"any", "replicas: 4"}});
  executor_.Advance(100ms);
  EXPECT_EQ(Last().text, "replicas: 4");
  EXPECT_THAT(Last().problem, IsEmpty());
}

TEST_F(WishTest, ARightThatIsMissingIsToldByName) {
  api_.Forbid("GET", "/api/v1/namespaces/penstock/configmaps");
  api_.Forbid("WATCH", "/api/v1/namespaces/penstock/configmaps");
  Start();
  Show();
  executor_.Advance(1min);
  EXPECT_THAT(Last().problem, HasSubstr("configmaps"));
  EXPECT_THAT(state_.reason, HasSubstr("configmaps"));
  EXPECT_EQ(state_.state, "open");
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2") << "the rest goes on";
  api_.Heal();
  PutMap({{"any", "replicas: 4"}});
  executor_.Advance(10min);
  EXPECT_EQ(Last().text, "replicas: 4");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterDoorTest, WithoutAConfigMapNothingIsWished) {
  Converge();
  EXPECT_THAT(wishes_, ElementsAre(WishedConfig{}));
}

// The node's own object.

TEST_F(ClusterDoorTest, TheNodesObjectIsWrittenOnceASecondAtMostAndTheLastStateWins) {
  Converge();
  ASSERT_FALSE(Status().is_null());
  EXPECT_EQ(api_.Find(kNodeState)->at("metadata").at("ownerReferences").at(0).at("name"), "n1");
  for (int i = 0; i < 50; ++i) {
    news_.report.devices[0].health_reason = "look " + std::to_string(i);
    Show();
    executor_.Advance(100ms);
  }
  executor_.Advance(2s);
  EXPECT_LE(api_.Writes(), 7u);
  EXPECT_GE(api_.Writes(), 4u);
  EXPECT_EQ(Status()["devices"][0]["health"]["reason"], "look 49");
}

TEST_F(ClusterDoorTest, AChangeShowsOnTheNodesObjectWithinASecond) {
  Converge();
  news_.report.devices[0].health_state = "unhealthy";
  Show();
  executor_.Advance(900ms);
  EXPECT_EQ(Status()["summary"]["healthy"], 1);
}

TEST_F(ClusterDoorTest, WithoutItsKindTheNodesObjectIsLookedForRarelyAndInSilence) {
  api_.NotInstalled("/apis/penstock.io/");
  Converge();
  EXPECT_EQ(state_.reason, "");
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  for (int i = 0; i < 60; ++i) {
    news_.report.devices[0].health_reason = std::to_string(i);
    Show();
    executor_.Advance(1min);
  }
  EXPECT_LE(api_.Count("get") + api_.Count("apply"), 26u);
  api_.Heal();
  executor_.Advance(6min);
  EXPECT_EQ(Status()["devices"][0]["health"]["reason"], "59");
}

TEST_F(ClusterDoorTest, AnObjectThatIsAskedForAndCannotBeIsToldWithWhatToDo) {
  options_.config.node_state = Switch::kOn;
  api_.NotInstalled("/apis/penstock.io/");
  Converge();
  EXPECT_THAT(state_.reason, HasSubstr("cluster.nodeState"));
}

TEST_F(ClusterDoorTest, ANodesObjectThatWasDeletedComesBack) {
  Converge();
  api_.Remove(kNodeState);
  executor_.Advance(11min);
  EXPECT_FALSE(Status().is_null());
}

TEST_F(ClusterDoorTest, SwitchedOffThereIsNoObjectAndNoEvent) {
  options_.config.node_state = options_.config.events = options_.config.node_status = Switch::kOff;
  options_.labels.node = Switch::kOff;
  Converge();
  news_.report.devices[0].health_state = "unhealthy";
  Show();
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 1}}});
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_TRUE(Status().is_null());
}

// Node status at once.

TEST_F(ClusterDoorTest, WhatTheKubeletHasShowsOnTheNodeAtOnceByOnePatch) {
  Converge();
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 1}}});
  executor_.Advance(50ms);
  EXPECT_EQ(Shown("capacity"), "2");
  EXPECT_EQ(Shown("allocatable"), "1");
  EXPECT_EQ(api_.Writes(), 1u);
  ASSERT_FALSE(api_.calls().empty());
  const auto patch = std::find_if(api_.calls().begin(), api_.calls().end(), [](const auto& call) { return call.method == "PATCH"; });
  EXPECT_EQ(patch->path, std::string(kNode) + "/status");
  EXPECT_EQ(patch->content_type, edge::kube::kStrategicMergePatch);
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 1}}});
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 1u) << "the Node says so already";
}

TEST_F(ClusterDoorTest, WhatTheKubeletWroteItselfIsNotWrittenAgain) {
  Converge();
  api_.Merge(kNode, {{"status", {{"capacity", {{"nvidia.com/gpu", "2"}}}, {"allocatable", {{"nvidia.com/gpu", "2"}}}}}}, "kubelet");
  executor_.RunUntilIdle();
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 2}}});
  executor_.Advance(1s);
  EXPECT_EQ(api_.Writes(), 0u);
}

TEST_F(ClusterDoorTest, ANewerOfferOvertakesNumbersThatCouldNotBeWritten) {
  Converge();
  api_.Fail({.status = 503, .times = 1, .method = "PATCH"});
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 2}}});
  executor_.RunUntilIdle();
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 1}}});
  executor_.Advance(2s);
  EXPECT_EQ(Shown("allocatable"), "1");
}

TEST_F(ClusterDoorTest, NumbersThatTheKubeletMayNotHaveAnyMoreAreNotWritten) {
  Converge();
  api_.Fail({.status = 503, .times = 1, .method = "PATCH"});
  door_->ShowKubeletHas({{"nvidia.com/gpu", {8, 8}}});
  executor_.RunUntilIdle();
  door_->ShowKubeletHas({});
  executor_.Advance(2s);
  EXPECT_EQ(Shown("capacity"), "(none)");
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 2}}});
  executor_.Advance(2s);
  EXPECT_EQ(Shown("capacity"), "2");
}

TEST_F(ClusterDoorTest, NumbersThatAreNotNewAnyMoreAreNotWritten) {
  Converge();
  api_.Fail({.status = 503, .times = -1, .method = "PATCH"});
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 2}}});
  executor_.Advance(5s);
  api_.Heal();
  executor_.Advance(1h);
  EXPECT_EQ(Shown("capacity"), "(none)");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterDoorTest, WithoutTheRightToPatchNodeStatusTheKubeletsTickHasToDo) {
  api_.Forbid("PATCH", std::string(kNode) + "/status");
  Converge();
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 2}}});
  executor_.Advance(1s);
  EXPECT_THAT(state_.reason, HasSubstr("/status"));
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(api_.Count("patch"), 1u);
  executor_.Advance(10min);
  EXPECT_THAT(state_.reason, HasSubstr("/status")) << "nothing was tried since";
  EXPECT_THAT(Status()["doors"][0]["reason"].get<std::string>(), HasSubstr("/status")) << "who has no shell on the node sees it, too";
  api_.Heal();
  door_->ShowKubeletHas({{"nvidia.com/gpu", {2, 1}}});
  executor_.Advance(1s);
  EXPECT_EQ(Shown("allocatable"), "1");
  EXPECT_EQ(state_.reason, "");
}

// Events.

TEST_F(ClusterDoorTest, TellsWhatHappenedAsEventsOnTheNode) {
  Converge();
  EXPECT_THAT(Events(), IsEmpty());
  news_.report.devices[1].health_state = "unhealthy";
  news_.report.devices[1].health_reason = "XID 79";
  Show();
  executor_.Advance(1s);
  EXPECT_THAT(Events(), ElementsAre("DeviceUnhealthy"));
  for (const auto& call : api_.calls()) {
    if (call.method != "POST") continue;
    const json event = json::parse(call.body);
    EXPECT_EQ(event["involvedObject"]["kind"], "Node");
    EXPECT_EQ(event["involvedObject"]["name"], "n1");
    EXPECT_EQ(event["type"], "Warning");
  }
}

TEST_F(ClusterDoorTest, AnAgentStartedAnewTellsOnlyWhatChangedMeanwhile) {
  news_.report.devices[1].health_state = "unhealthy";
  Converge();
  StartAnew();
  news_.report.devices[0].health_state = "gone";
  Show();
  executor_.Advance(10s);
  EXPECT_THAT(Events(), ElementsAre("DeviceGone"));
}

TEST_F(ClusterDoorTest, EventsDoNotWaitForAnObjectThatCannotBe) {
  api_.Forbid("", "/apis/penstock.io/");
  Converge();
  EXPECT_THAT(state_.reason, HasSubstr("nodestates"));
  news_.report.devices[0].health_state = "gone";
  Show();
  executor_.Advance(1s);
  EXPECT_THAT(Events(), ElementsAre("DeviceGone"));
}

// Faults.

TEST_F(ClusterDoorTest, ARightOnNodesThatIsMissingIsToldAndTheRestGoesOn) {
  api_.Forbid("", "/api/v1/nodes");
  Converge();
  EXPECT_EQ(state_.state, "waiting");
  EXPECT_THAT(state_.reason, HasSubstr("nodes"));
  EXPECT_FALSE(Status().is_null());
  executor_.Advance(1h);
  EXPECT_LE(api_.Requests(), 300u);
  api_.Heal();
  executor_.Advance(10min);
  EXPECT_EQ(state_.state, "open");
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
}

TEST_F(ClusterDoorTest, LabelsThatMayNotBeWrittenAreTriedRarely) {
  api_.Forbid("PATCH", kNode);
  Converge();
  EXPECT_THAT(state_.reason, HasSubstr("nodes"));
  EXPECT_FALSE(Status().is_null());
  for (int i = 0; i < 60; ++i) {
    (*news_.labels)["a/b"] = std::to_string(i);
    Show();
    executor_.Advance(1min);
  }
  EXPECT_LE(api_.Count("apply"), 30u);
  api_.Heal();
  executor_.Advance(6min);
  EXPECT_EQ(Label("a/b"), "59");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterDoorTest, AnApiServerThatIsAwayIsWaitedForAndThenHasTheLastState) {
  Converge();
  api_.SetUp(false);
  executor_.Advance(1min);
  for (int i = 3; i < 20; ++i) {
    (*news_.labels)["nvidia.com/gpu.count"] = std::to_string(i);
    news_.report.devices[0].health_reason = std::to_string(i);
    Show();
    executor_.Advance(10s);
  }
  EXPECT_NE(state_.reason, "");
  EXPECT_EQ(state_.state, "waiting");
  api_.ForgetCalls();
  api_.SetUp(true);
  executor_.Advance(2min);
  EXPECT_LE(api_.Count("apply"), 2u) << "one for the labels, one for the object";
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "19");
  EXPECT_EQ(Status()["devices"][0]["health"]["reason"], "19");
  EXPECT_EQ(state_.state, "open");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterDoorTest, AWriteWhoseAnswerIsLostIsNotTakenForSomebodyElses) {
  Converge();
  api_.Fail({.status = 0, .times = 1, .method = "PATCH", .after_the_deed = true});
  (*news_.labels)["nvidia.com/gpu.count"] = "3";
  Show();
  executor_.Advance(1min);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "3");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterDoorTest, ADoorThatIsGoneAnswersNothing) {
  Start();
  Show();
  api_.SetSilent(true);
  executor_.Advance(5ms);
  const std::uint64_t asked = api_.Requests();
  const std::size_t wishes = wishes_.size(), answers = nfd_.size();
  const std::string state_before = state_.state + state_.reason;
  EXPECT_GT(asked, 0u);
  door_.reset();
  api_.SetSilent(false);
  executor_.Advance(1min);
  EXPECT_EQ(api_.Requests(), asked);
  EXPECT_EQ(api_.OpenStreams(), 0u);
  EXPECT_EQ(wishes_.size(), wishes);
  EXPECT_EQ(nfd_.size(), answers);
  EXPECT_EQ(state_.state + state_.reason, state_before);
}

}  // namespace
}  // namespace penstock::door
