// Tests ClusterAdapter against a fake API server in this process.
#include "adapter/cluster/cluster_adapter.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"
#include "view/conditions.h"

namespace penstock::adapter::cluster {
namespace {

using namespace std::chrono_literals;
using api::Switch;
using nlohmann::json;
using protocol::kube::FakeApi;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Labels = std::map<std::string, std::string>;

constexpr char kNode[] = "/api/v1/nodes/n1";
constexpr char kNodeState[] = "/apis/penstock.io/v1alpha1/nodestates/n1";
constexpr char kFeature[] =
    "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/penstock/nodefeatures/penstock-features-for-n1";
constexpr char kWhy[] = "penstock.io/why", kDcgm[] = "nvidia.com/gpu.deploy.dcgm",
               kNvsm[] = "nvidia.com/gpu.deploy.nvsm", kClient[] = "nvidia.com/gpu.deploy.client";
constexpr char kMap[] = "/api/v1/namespaces/penstock/configmaps/configs";

class ClusterAdapterTest : public testing::Test {
 protected:
  ClusterAdapterTest() {
    api_.Put(
        kNode,
        json::parse(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"zone": "a"}},
                                    "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}})"),
        "kubelet");
    options_.node = "n1";
    options_.namespace_name = "penstock";
    report_.node = "n1";
    report_.version = "0.1.0";
    report_.vendors = {{.vendor = "nvidia", .driver = "550.54.15"}};
    for (int i = 0; i < 2; ++i)
      report_.devices.push_back({.id = "GPU-" + std::to_string(i),
                                 .vendor = "nvidia",
                                 .model = "NVIDIA A100",
                                 .index = i,
                                 .health_state = "healthy",
                                 .health_since = "2026-11-21T03:42:00.000Z",
                                 .allocator = "kubelet"});
    report_.configuration = {.origin = "defaults", .since = "2026-11-21T03:42:00.000Z"};
    report_.conditions = {
        {.type = "Ready", .status = true, .reason = "Ready", .since = "2026-11-21T03:42:00.000Z"}};
    news_.labels = Labels{{"nvidia.com/gpu.count", "2"}, {"nvidia.com/gfd.timestamp", "100"}};
  }

  void Start() {
    adapter_ = std::make_unique<ClusterAdapter>(
        api_, options_,
        ClusterAdapter::Callbacks{
            .remote = [this](const api::RemoteConfig& remote) { assignments_.push_back(remote); },
            .nfd = [this](bool nfd) { nfd_.push_back(nfd); },
            .requests = [this](const auto& labels) { requests_.push_back(labels); },
            .state = [this](const api::AllocatorReport& report) { Reported(report); }});
    adapter_->Start();
  }

  /// As in the agent: the report contains the adapter's own state.
  void Reported(const api::AllocatorReport& report) {
    state_ = report;
    auto& allocators = report_.allocators;
    std::erase_if(allocators, [](const api::AllocatorReport& allocator) {
      return allocator.name == "cluster";
    });
    allocators.push_back(report);
    if (shown_)
      executor_.Post([this] {
        if (adapter_) adapter_->Show(News());
      });
  }

  /// As the agent has it: an equal report is the same object.
  const ClusterUpdate& News() {
    if (news_.report == nullptr || *news_.report != report_)
      news_.report = std::make_shared<const api::Report>(report_);
    return news_;
  }

  /// Shows the state; then this time passes.
  void Show(base::Duration then = {}) {
    shown_ = true;
    adapter_->Show(News());
    executor_.RunUntilIdle();
    executor_.Advance(then);
  }
  /// What the kubelet has of the node's GPUs becomes known; then this time passes.
  void KubeletHas(std::size_t capacity, std::size_t allocatable, base::Duration then = {}) {
    adapter_->ShowKubeletHas({{"nvidia.com/gpu", {capacity, allocatable}}});
    executor_.RunUntilIdle();
    executor_.Advance(then);
  }

  /// Starts, shows the state and waits until it is published.
  void Converge() {
    Start();
    Show(10s);
    api_.ForgetCalls();
  }

  /// As after a kill and a restart: the agent's times are those of its new start.
  void Restart() {
    adapter_.reset();
    for (auto& device : report_.devices) device.health_since = "2026-11-22T00:00:00.000Z";
    for (auto& condition : report_.conditions) condition.since = "2026-11-22T00:00:00.000Z";
    report_.configuration.since = "2026-11-22T00:00:00.000Z";
    (*news_.labels)["nvidia.com/gfd.timestamp"] = "200";
    Start();
  }

  std::string Label(const std::string& key) const {
    return api_.Find(kNode)->at("metadata").at("labels").value(key, "(none)");
  }
  /// Writes of the Node, without those of its status.
  long NodeWrites() const {
    return std::ranges::count_if(api_.calls(), [](const auto& call) {
      return call.method == "PATCH" && call.path == kNode;
    });
  }
  /// The agent's validation has one step, in this state.
  void Validate(const std::string& state, const std::string& reason = "") {
    report_.validation = {{.name = "driver", .state = state, .reason = reason}};
    std::erase_if(report_.conditions,
                  [](const auto& one) { return one.type == "AcceleratorsReady"; });
    for (const api::ConditionReport& one : view::ConditionsOf(report_))
      if (one.type == "AcceleratorsReady") report_.conditions.push_back(one);
    report_.conditions.back().since = "2026-11-21T03:42:00.000Z";
  }
  json Condition() const {
    const json none = json::array();
    for (const json& one : api_.Find(kNode)->at("status").value("conditions", none))
      if (one["type"] == "penstock.io/AcceleratorsReady") return one;
    return nullptr;
  }
  long StatusWrites() const {
    return std::ranges::count_if(api_.calls(), [](const auto& call) {
      return call.method == "PATCH" && call.path == std::string(kNode) + "/status";
    });
  }
  /// NFD publishes this value of a label, as nfd-master does; null: none any more.
  void NfdPublishes(const json& count) {
    const json keys = count.is_null() ? json() : json("nvidia.com/gpu.count");
    api_.Merge(kNode,
               {{"metadata",
                 {{"annotations", {{"nfd.node.kubernetes.io/feature-labels", keys}}},
                  {"labels", {{"nvidia.com/gpu.count", count}}}}}},
               "nfd-master");
  }
  std::string Annotation() const {
    return api_.Find(kNode)
        ->value(json::json_pointer("/metadata/annotations"), json::object())
        .value(kWhy, "(none)");
  }
  json Status() const {
    return api_.Find(kNodeState) == nullptr ? json(nullptr) : api_.Find(kNodeState)->at("status");
  }
  std::string Shown(const std::string& list) const {
    return api_.Find(kNode)->at("status").at(list).value("nvidia.com/gpu", "(none)");
  }

  /// Reasons of all posted Events.
  std::vector<std::string> Events() const {
    std::vector<std::string> reasons;
    for (const auto& call : api_.calls())
      if (call.method == "POST" && call.path.find("/events") != std::string::npos)
        reasons.push_back(json::parse(call.body).value("reason", ""));
    return reasons;
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  ClusterAdapter::Options options_;
  api::Report report_;
  ClusterUpdate news_;  // the rest of it
  std::vector<api::RemoteConfig> assignments_;
  std::vector<bool> nfd_;
  std::vector<std::map<std::string, std::string>> requests_;
  api::AllocatorReport state_;
  bool shown_ = false;
  std::unique_ptr<ClusterAdapter> adapter_;
};

// Steady state.

TEST_F(ClusterAdapterTest, AtRestNothingIsWritten) {
  Converge();
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_EQ(api_.Count("list"), 0u);
  EXPECT_LE(api_.Count("get"), 6u) << "the adapter reads its own object every ten minutes";
  EXPECT_EQ(state_.state, "open");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, AnAgentRestartedWritesNothingWhereNothingChanged) {
  Converge();
  executor_.Advance(1h);
  Restart();
  Show(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_EQ(Status()["devices"][0]["health"]["since"], "2026-11-21T03:42:00Z");
}

TEST_F(ClusterAdapterTest, ReadsOneNodeOnly) {
  options_.config.config_map.name = "configs";
  Start();
  Show(10s);
  for (const auto& call : api_.calls()) {
    if (call.method != "GET" || call.path == kNode || call.path == kNodeState) continue;
    EXPECT_TRUE(call.query.contains("fieldSelector")) << call.path;
  }
  EXPECT_EQ(api_.OpenStreams(), 2u);
}

// Labels.

TEST_F(ClusterAdapterTest, LabelsTheNodeAndFollowsWhatChanges) {
  Start();
  Show(100ms);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(Label("zone"), "a");
  EXPECT_THAT(api_.ManagersOf(kNode, "/metadata/labels/nvidia.com~1gpu.count"),
              ElementsAre("penstock-labels"));
  executor_.Advance(1min);
  news_.labels = Labels{{"nvidia.com/gpu.product", "A100"}};
  Show(900ms);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "(none)");
  EXPECT_EQ(Label("nvidia.com/gpu.product"), "A100");
}

TEST_F(ClusterAdapterTest, MissingDataTakesNoLabelAway) {
  Converge();
  Restart();
  news_.labels.reset();
  Show(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  news_.labels = Labels{{"nvidia.com/gpu.count", "3"}};
  Show(1s);
  news_.labels.reset();
  report_.devices[0].health_state = "unhealthy";
  Show(1h);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "3");
  EXPECT_EQ(Status()["summary"]["healthy"], 1);
}

TEST_F(ClusterAdapterTest, PassesOnWhatUsersAskForByLabels) {
  options_.requests = {"acme.com/want"};
  Converge();
  const auto label = [this](const json& value) {
    api_.Merge(kNode, {{"metadata", {{"labels", {{"acme.com/want", value}, {"other", "x"}}}}}},
               "kubectl-label");
    executor_.Advance(1s);
  };
  label("a");
  label("a");
  label("b");
  label(nullptr);
  EXPECT_THAT(requests_, ElementsAre(Labels{}, Labels{{"acme.com/want", "a"}},
                                     Labels{{"acme.com/want", "b"}}, Labels{}));
}

TEST_F(ClusterAdapterTest, AFightOverALabelIsNotFought) {
  Converge();
  for (int i = 0; i < 3600; ++i) {
    if (Label("nvidia.com/gpu.count") == "2")
      api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/gpu.count", "9"}}}}}},
                 "kubectl-label");
    executor_.Advance(1s);
  }
  EXPECT_LE(api_.Count("apply"), 30u)
      << "only labels are written; contested labels do not change the object";
  EXPECT_THAT(state_.reason, AllOf(HasSubstr("nvidia.com/gpu.count"), HasSubstr("kubectl-label")));
  EXPECT_EQ(state_.state, "open");
  executor_.Advance(20min);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, AWatchThatLagsBehindOurOwnWriteIsNotTakenForSomeoneElse) {
  Converge();
  json old = *api_.Find(kNode);
  old["metadata"]["resourceVersion"] = "1";
  old["metadata"]["labels"].erase("nvidia.com/gpu.count");
  api_.SendLine("/api/v1/nodes", json{{"type", "MODIFIED"}, {"object", old}}.dump());
  executor_.Advance(10s);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_EQ(api_.Count("get"), 0u);
}

TEST_F(ClusterAdapterTest, ALabelThatSomeoneSetOnceIsMendedOnce) {
  Converge();
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/gpu.count", nullptr}}}}}},
             "kubectl-label");
  executor_.Advance(2s);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(api_.Count("apply"), 1u);
  executor_.Advance(1h);
  EXPECT_EQ(api_.Count("apply"), 1u);
}

TEST_F(ClusterAdapterTest, LabelsOfOthersAreNeverTouched) {
  Converge();
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/mig.config", "all-1g.5gb"}}}}}},
             "kubectl-label");
  news_.labels = Labels{{"nvidia.com/gpu.count", "1"}};
  Show(1s);
  EXPECT_EQ(Label("nvidia.com/mig.config"), "all-1g.5gb");
  EXPECT_EQ(Label("zone"), "a");
}

TEST_F(ClusterAdapterTest, NoNodeIsMadeByLabellingOneThatIsGone) {
  Converge();
  api_.Fail({.status = 0, .times = 1, .method = "PATCH", .path = kNode});
  (*news_.labels)["a/b"] = "1";
  Show();
  api_.Remove(kNode);
  executor_.Advance(1h);
  EXPECT_EQ(api_.Find(kNode), nullptr);
  EXPECT_EQ(state_.state, "waiting");
  EXPECT_THAT(state_.reason, HasSubstr("Node n1 does not exist"));
}

TEST_F(ClusterAdapterTest, ANodeThatIsMadeAgainIsLabelledAgain) {
  Converge();
  api_.Remove(kNode);
  executor_.Advance(1s);
  api_.Put(kNode,
           json::parse(R"({"apiVersion": "v1", "kind": "Node", "status": {"capacity": {}}})"),
           "kubelet");
  executor_.Advance(10s);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(api_.Find(kNodeState)->at("metadata").at("ownerReferences").at(0).at("uid"),
            api_.Find(kNode)->at("metadata").at("uid"));
}

TEST_F(ClusterAdapterTest, AnNfdBesideUsIsReportedAndLeftAlone) {
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
  EXPECT_EQ(NodeWrites(), 0);
  EXPECT_THAT(state_.reason,
              HasSubstr("NFD publishes other values than the agent's of nvidia.com/gpu.count:"));
  api_.Merge(
      kNode,
      json::parse(R"({"metadata": {"annotations": {"nfd.node.kubernetes.io/feature-labels": null},
    "labels": {"feature.node.kubernetes.io/pci-10de.present": null, "nvidia.com/gpu.count": null}}})"),
      "nfd-master");
  executor_.Advance(1s);
  EXPECT_THAT(nfd_, ElementsAre(true, false));
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(Label("feature.node.kubernetes.io/pci-10de.present"), "true");
}

// Annotations beside the labels.

TEST_F(ClusterAdapterTest, AnAnnotationIsWrittenWithTheLabelsAndTakenAway) {
  news_.annotations = {{kWhy, ""}};
  Converge();
  EXPECT_EQ(api_.Writes(), 0u);
  (*news_.labels)["nvidia.com/mig.config.state"] = "failed";
  news_.annotations = {{kWhy, "all: 0: held"}};
  Show(900ms);
  EXPECT_EQ(Annotation(), "all: 0: held");
  EXPECT_EQ(NodeWrites(), 1);
  news_.annotations = {{kWhy, "all: 0: held by pod ml/a"}};
  Show(900ms);
  EXPECT_EQ(Annotation(), "all: 0: held by pod ml/a");
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  news_.labels->erase("nvidia.com/mig.config.state");
  news_.annotations = {{kWhy, ""}};
  Show(900ms);
  EXPECT_EQ(Annotation(), "(none)");
  EXPECT_EQ(NodeWrites(), 3);
}

TEST_F(ClusterAdapterTest, AnAnnotationOfAnEarlierAgentIsTakenAwayAndTheSameIsNotWrittenAgain) {
  news_.annotations = {{kWhy, "all: 0: held"}};
  Converge();
  Restart();
  Show(1h);
  EXPECT_EQ(api_.Writes(), 0u);
  Restart();
  news_.annotations = {{kWhy, ""}};
  Show(10s);
  EXPECT_EQ(Annotation(), "(none)");
}

TEST_F(ClusterAdapterTest, AFightOverAnAnnotationIsNotFought) {
  news_.annotations = {{kWhy, "ours"}};
  Converge();
  for (int i = 0; i < 100; ++i) {
    api_.Merge(kNode, {{"metadata", {{"annotations", {{kWhy, "theirs " + std::to_string(i)}}}}}},
               "kubectl");
    executor_.Advance(1s);
  }
  EXPECT_LE(NodeWrites(), 1);
}

// Clients.

TEST_F(ClusterAdapterTest, ClientsAreStoppedAndStartedByTheirLabels) {
  options_.clients = {{kDcgm, "paused"}, {kNvsm, "paused"}, {kClient, "paused"}};
  api_.Merge(kNode, {{"metadata", {{"labels", {{kDcgm, "true"}, {kNvsm, "false"}}}}}}, "operator");
  news_.pause.emplace();
  Converge();
  EXPECT_EQ(api_.Writes(), 0u);
  news_.pause = {kDcgm, kNvsm, kClient};
  Show(1s);
  EXPECT_EQ(Label(kDcgm), "paused");
  EXPECT_EQ(Label(kNvsm), "false");
  EXPECT_EQ(Label(kClient), "(none)");
  EXPECT_THAT(requests_.back(), testing::Contains(testing::Pair(kDcgm, "paused")));
  news_.pause->clear();
  Show(1s);
  EXPECT_EQ(Label(kDcgm), "true");
  EXPECT_EQ(NodeWrites(), 2);
}

TEST_F(ClusterAdapterTest, ClientsThatAnEarlierAgentStoppedAreStartedBeforeLabelsAreKnown) {
  options_.clients = {{kDcgm, "paused"}};
  api_.Merge(kNode, {{"metadata", {{"labels", {{kDcgm, "paused"}}}}}}, "penstock-clients");
  news_.labels.reset();
  Start();
  Show(10s);
  EXPECT_EQ(Label(kDcgm), "paused") << "whether a change goes on is not known yet";
  news_.pause.emplace();
  Show(10s);
  EXPECT_EQ(Label(kDcgm), "true");
}

TEST_F(ClusterAdapterTest, AFalseThatAUserSetsAtTheSameMomentStays) {
  options_.clients = {{kDcgm, "paused"}};
  api_.Merge(kNode, {{"metadata", {{"labels", {{kDcgm, "true"}}}}}}, "operator");
  news_.pause.emplace();
  Converge();
  news_.pause = {kDcgm};
  adapter_->Show(News());
  // The adapter decides before it hears of this.
  api_.Merge(kNode, {{"metadata", {{"labels", {{kDcgm, "false"}}}}}}, "kubectl-label");
  executor_.Advance(1min);
  EXPECT_EQ(Label(kDcgm), "false");
}

TEST_F(ClusterAdapterTest, WithoutLabelsOfTheNodeNoClientIsStopped) {
  options_.clients = {{kDcgm, "paused"}};
  options_.labels.node = Switch::kOff;
  api_.Merge(kNode, {{"metadata", {{"labels", {{kDcgm, "true"}}}}}}, "operator");
  news_.pause = {kDcgm};
  Converge();
  EXPECT_EQ(Label(kDcgm), "true");
}

// Labels that are switched off.

TEST_F(ClusterAdapterTest, LabelsThatTheAgentWroteGoOnceTheyAreSwitchedOff) {
  Converge();
  ASSERT_EQ(Label("nvidia.com/gpu.count"), "2");
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/gpu.product", "mine"}}}}}}, "kubectl");
  options_.labels.node = Switch::kOff;
  Restart();
  Show(10s);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "(none)");
  EXPECT_EQ(Label("nvidia.com/gfd.timestamp"), "(none)");
  EXPECT_EQ(Label("nvidia.com/gpu.product"), "mine") << "of another field manager";
  EXPECT_EQ(Label("zone"), "a");
  EXPECT_EQ(NodeWrites(), 1);
  report_.version = "0.2.0";
  Show(30min);
  Restart();
  Show(10s);
  EXPECT_EQ(NodeWrites(), 1);
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, LabelsThatNfdMaintainsStayWhenLabelsAreSwitchedOff) {
  Converge();
  api_.Merge(
      kNode,
      {{"metadata",
        {{"annotations", {{"nfd.node.kubernetes.io/feature-labels", "nvidia.com/gpu.count"}}}}}},
      "nfd-master");
  options_.labels.node = Switch::kOff;
  Restart();
  Show(10s);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(Label("nvidia.com/gfd.timestamp"), "(none)");
}

TEST_F(ClusterAdapterTest, LabelsThatMayNotBeTakenBackAreSaidAndNotTriedAgain) {
  Converge();
  options_.labels.node = Switch::kOff;
  api_.Forbid("PATCH", kNode);
  Restart();
  Show(1h);
  EXPECT_EQ(NodeWrites(), 1) << "at rest nothing is asked of the server";
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_THAT(state_.reason, AllOf(HasSubstr("labels.node is off"),
                                   HasSubstr("kubectl penstock cleanup --node n1"),
                                   HasSubstr(R"(resources: ["nodes"])")));
}

TEST_F(ClusterAdapterTest, LabelsAreTakenBackOnceTheServerAnswers) {
  Converge();
  options_.labels.node = Switch::kOff;
  api_.Fail({.status = 503, .times = 3, .method = "PATCH", .path = kNode});
  Restart();
  Show(5min);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "(none)");
}

// The report before the labels.

TEST_F(ClusterAdapterTest, TheObjectIsWrittenWhileLabelsHaveToWait) {
  news_.labels.reset();
  news_.known = true;
  Start();
  Show(10s);
  EXPECT_EQ(Status()["summary"]["healthy"], 2);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "(none)");
  EXPECT_EQ(NodeWrites(), 0);
  news_.labels = Labels{{"nvidia.com/gpu.count", "2"}};
  Show(1s);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
}

// Labels through NFD.

TEST_F(ClusterAdapterTest, ANodeFeatureCarriesTheLabelsInsteadOfTheNode) {
  options_.labels.node_feature = Switch::kAuto;
  Converge();
  ASSERT_NE(api_.Find(kFeature), nullptr);
  EXPECT_EQ(api_.Find(kFeature)->at("spec").at("labels").at("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(api_.Find(kFeature)->at("metadata").at("labels").at("nfd.node.kubernetes.io/node-name"),
            "n1");
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "(none)");
  news_.labels = Labels{{"nvidia.com/gpu.count", "1"}};
  Show(900ms);
  EXPECT_EQ(api_.Find(kFeature)->at("spec").at("labels"), json({{"nvidia.com/gpu.count", "1"}}));
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), 1u);
}

TEST_F(ClusterAdapterTest, WhatNfdHasFromOurOwnObjectIsNotItsOwnFinding) {
  options_.labels.node_feature = Switch::kOn;
  news_.labels = Labels{{"feature.node.kubernetes.io/pci-10de.present", "true"}};
  Converge();
  const auto nfd_lists = [this](const std::string& keys) {
    api_.Merge(kNode,
               {{"metadata", {{"annotations", {{"nfd.node.kubernetes.io/feature-labels", keys}}}}}},
               "nfd-master");
    executor_.Advance(1s);
  };
  nfd_lists("pci-10de.present");
  EXPECT_THAT(nfd_, ElementsAre(false));
  nfd_lists("pci-10de.present,kernel-version.full");
  EXPECT_THAT(nfd_, ElementsAre(false, true));
  EXPECT_FALSE(api_.Find(kFeature)->contains(
      json::json_pointer("/spec/labels/feature.node.kubernetes.io~1pci-10de.present")));
  const auto writes = api_.Writes();
  executor_.Advance(1h);
  EXPECT_EQ(api_.Writes(), writes);
}

TEST_F(ClusterAdapterTest, WithoutNfdTheLabelsGoStraightOnTheNode) {
  options_.labels.node_feature = Switch::kAuto;
  api_.NotInstalled("/apis/nfd.k8s-sigs.io/");
  Converge();
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(state_.reason, "") << "NFD was not requested";
  executor_.Advance(1h);
  EXPECT_LE(api_.Requests(), 12u * 2 + 6u + 16u)
      << "checked every five minutes, in addition to its own object and the watches";
  api_.Heal();
  executor_.Advance(6min);
  ASSERT_NE(api_.Find(kFeature), nullptr);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2") << "the label stays until NFD publishes it";
}

// A NodeFeature that is switched off.

class FormerFeatureTest : public ClusterAdapterTest {
 protected:
  /// NFD has published what an agent's NodeFeature carried, and the next agent writes none.
  void SwitchOff() {
    options_.labels.node_feature = Switch::kOn;
    Converge();
    NfdPublishes("2");
    options_.labels.node_feature = Switch::kOff;
    news_.labels = Labels{{"nvidia.com/gpu.count", "1"}};
    Restart();
  }
  long FeatureRequests(const std::string& method) const {
    return std::ranges::count_if(api_.calls(), [&](const auto& call) {
      return call.method == method && call.path == kFeature;
    });
  }
};

TEST_F(FormerFeatureTest, GoesAndTheNodeGetsItsLabels) {
  SwitchOff();
  Show(10s);
  EXPECT_EQ(api_.Find(kFeature), nullptr);
  NfdPublishes(nullptr);
  executor_.Advance(1s);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "1");
  executor_.Advance(1h);
  EXPECT_EQ(FeatureRequests("GET"), 1);
  EXPECT_EQ(FeatureRequests("DELETE"), 1);
  EXPECT_EQ(state_.reason, "");
}

TEST_F(FormerFeatureTest, GoesAlsoWhereThereAreNoLabelsAnyMore) {
  options_.labels.node_feature = Switch::kOn;
  Converge();
  NfdPublishes("2");
  options_.labels.node = options_.labels.node_feature = Switch::kOff;
  Restart();
  news_.labels = Labels{};
  Show(10s);
  EXPECT_EQ(api_.Find(kFeature), nullptr);
}

TEST_F(FormerFeatureTest, IsLookedForOnceNfdHasSomethingOfIt) {
  Converge();
  api_.Merge(kNode,
             {{"metadata",
               {{"annotations", {{"nfd.node.kubernetes.io/feature-labels", "pci-10de.present"}}}}}},
             "nfd-master");
  executor_.Advance(1h);
  EXPECT_EQ(FeatureRequests("GET"), 0);
  NfdPublishes("2");
  executor_.Advance(1s);
  EXPECT_EQ(FeatureRequests("GET"), 1);
}

TEST_F(FormerFeatureTest, OfAnotherStays) {
  api_.Put(kFeature, json{{"apiVersion", "nfd.k8s-sigs.io/v1alpha1"}, {"kind", "NodeFeature"}},
           "gpu-feature-discovery");
  NfdPublishes("2");
  Converge();
  EXPECT_NE(api_.Find(kFeature), nullptr);
  EXPECT_EQ(state_.reason, "");
}

TEST_F(FormerFeatureTest, ThatWasMadeAgainMeanwhileStays) {
  SwitchOff();
  api_.SetLateAnswers(1ms);
  Show();
  while (FeatureRequests("GET") == 0) executor_.Advance(1ms);
  api_.Remove(kFeature);
  api_.Put(kFeature, {{"apiVersion", "nfd.k8s-sigs.io/v1alpha1"}, {"kind", "NodeFeature"}});
  executor_.Advance(1min);
  EXPECT_EQ(FeatureRequests("DELETE"), 1);
  EXPECT_NE(api_.Find(kFeature), nullptr);
}

TEST_F(FormerFeatureTest, ThatMayNotBeDeletedIsNamedWithTheCommandForIt) {
  SwitchOff();
  api_.Forbid("DELETE", kFeature);
  Show(1h);
  EXPECT_EQ(FeatureRequests("DELETE"), 1) << "at rest nothing is asked of the server";
  EXPECT_THAT(state_.reason,
              AllOf(HasSubstr("labels.nodeFeature is off"),
                    HasSubstr("`kubectl -n penstock delete nodefeature penstock-features-for-n1`"),
                    HasSubstr(R"(resources: ["nodefeatures"])")));
  EXPECT_EQ(state_.state, "open");
  api_.Remove(kFeature);
  NfdPublishes(nullptr);
  executor_.Advance(1s);
  EXPECT_EQ(state_.reason, "");
}

TEST_F(FormerFeatureTest, IsDeletedOnceTheServerAnswers) {
  SwitchOff();
  api_.Fail({.status = 503, .times = 2, .method = "GET", .path = kFeature});
  api_.Fail({.status = 503, .times = 3, .method = "DELETE", .path = kFeature});
  Show(5min);
  EXPECT_EQ(api_.Find(kFeature), nullptr);
}

TEST_F(FormerFeatureTest, OtherValuesThatNfdKeepsAreReported) {
  SwitchOff();
  api_.Forbid("GET", kFeature);
  Show(2min);
  EXPECT_EQ(state_.reason, "") << "NFD takes its time";
  executor_.Advance(2min);
  EXPECT_THAT(state_.reason,
              AllOf(HasSubstr("NFD publishes other values"), HasSubstr("nvidia.com/gpu.count"),
                    HasSubstr("delete nodefeature penstock-features-for-n1")));
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  NfdPublishes("1");
  executor_.Advance(1s);
  EXPECT_EQ(state_.reason, "");
}

// Remote configuration.

class RemoteTest : public ClusterAdapterTest {
 protected:
  RemoteTest() {
    options_.config.config_map.name = "configs";
    options_.config.config_map.node_label = "nvidia.com/device-plugin.config";
  }
  void PutMap(const json& data) {
    api_.Put(kMap, {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", data}}, "kubectl");
  }
  const api::RemoteConfig& Last() const { return assignments_.back(); }
};

TEST_F(RemoteTest, TheLabelChoosesAndEveryChangeIsReportedAtOnce) {
  PutMap({{"a100", "replicas: 4"}, {"t4", "replicas: 2"}});
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/device-plugin.config", "t4"}}}}}});
  Start();
  executor_.Advance(100ms);
  ASSERT_EQ(assignments_.size(), 1u) << "no new assignment while only half of the input is known";
  EXPECT_EQ(Last().text, "replicas: 2");
  api_.Merge(kNode, {{"metadata", {{"labels", {{"nvidia.com/device-plugin.config", "a100"}}}}}});
  executor_.Advance(100ms);
  EXPECT_EQ(Last().text, "replicas: 4");
  EXPECT_EQ(Last().origin,
            "ConfigMap penstock/configs, key a100 (label nvidia.com/device-plugin.config)");
  EXPECT_EQ(assignments_.size(), 2u);
}

TEST_F(RemoteTest, GO412AndGO1144AnEditOfTheConfigMapIsSeenAtOnce) {
  PutMap({{"any", "replicas: 4"}});
  Start();
  executor_.Advance(100ms);
  PutMap({{"any", "replicas: 8"}});
  executor_.Advance(100ms);
  EXPECT_EQ(Last().text, "replicas: 8");
}

TEST_F(RemoteTest, DP364AKeyOrAConfigMapThatIsTakenAwayIsAProblemUntilItIsBack) {
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

TEST_F(RemoteTest, ARightThatIsMissingIsReportedByName) {
  api_.Forbid("GET", "/api/v1/namespaces/penstock/configmaps");
  api_.Forbid("WATCH", "/api/v1/namespaces/penstock/configmaps");
  Start();
  Show(1min);
  EXPECT_THAT(Last().problem, HasSubstr("configmaps"));
  EXPECT_THAT(state_.reason, HasSubstr("configmaps"));
  EXPECT_EQ(state_.state, "open");
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2") << "the other functions continue";
  api_.Heal();
  PutMap({{"any", "replicas: 4"}});
  executor_.Advance(10min);
  EXPECT_EQ(Last().text, "replicas: 4");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, WithoutAConfigMapNothingIsDesired) {
  Converge();
  EXPECT_THAT(assignments_, ElementsAre(api::RemoteConfig{}));
}

// The NodeState object.

TEST_F(ClusterAdapterTest, TheNodesObjectIsWrittenOnceASecondAtMostAndTheLastStateWins) {
  Converge();
  ASSERT_FALSE(Status().is_null());
  EXPECT_EQ(api_.Find(kNodeState)->at("metadata").at("ownerReferences").at(0).at("name"), "n1");
  for (int i = 0; i < 50; ++i) {
    report_.devices[0].health_reason = "look " + std::to_string(i);
    Show(100ms);
  }
  executor_.Advance(2s);
  EXPECT_LE(api_.Writes(), 7u);
  EXPECT_GE(api_.Writes(), 4u);
  EXPECT_EQ(Status()["devices"][0]["health"]["reason"], "look 49");
}

TEST_F(ClusterAdapterTest, AChangeShowsOnTheNodesObjectWithinASecond) {
  Converge();
  report_.devices[0].health_state = "unhealthy";
  Show(900ms);
  EXPECT_EQ(Status()["summary"]["healthy"], 1);
}

TEST_F(ClusterAdapterTest, WithoutItsKindTheNodesObjectIsLookedForRarelyAndInSilence) {
  api_.NotInstalled("/apis/penstock.io/");
  Converge();
  EXPECT_EQ(state_.reason, "");
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  for (int i = 0; i < 60; ++i) {
    report_.devices[0].health_reason = std::to_string(i);
    Show(1min);
  }
  EXPECT_LE(api_.Count("get") + api_.Count("apply"), 26u);
  api_.Heal();
  executor_.Advance(6min);
  EXPECT_EQ(Status()["devices"][0]["health"]["reason"], "59");
}

TEST_F(ClusterAdapterTest, AnObjectThatIsAskedForAndCannotBeIsReportedWithWhatToDo) {
  options_.config.node_state = Switch::kOn;
  api_.NotInstalled("/apis/penstock.io/");
  Converge();
  EXPECT_THAT(state_.reason, HasSubstr("cluster.nodeState"));
}

TEST_F(ClusterAdapterTest, ANodesObjectThatWasDeletedComesBack) {
  Converge();
  api_.Remove(kNodeState);
  executor_.Advance(11min);
  EXPECT_FALSE(Status().is_null());
}

TEST_F(ClusterAdapterTest, SwitchedOffThereIsNoObjectAndNoEvent) {
  options_.config.node_state = options_.config.events = options_.config.node_status = Switch::kOff;
  options_.labels.node = Switch::kOff;
  Converge();
  report_.devices[0].health_state = "unhealthy";
  Show();
  KubeletHas(2, 1, 1h);
  EXPECT_EQ(api_.Writes(), 0u);
  EXPECT_TRUE(Status().is_null());
}

// Node status.

TEST_F(ClusterAdapterTest, TheConditionOfTheNodeIsWrittenWhenItDiffersAndNeverAgain) {
  Validate("passed");
  Converge();
  EXPECT_EQ(Condition()["status"], "True");
  executor_.Advance(1h);
  EXPECT_EQ(StatusWrites(), 0);
  Validate("failed", "it is gone");
  Show(100ms);
  EXPECT_EQ(Condition()["status"], "False");
  EXPECT_EQ(Condition()["reason"], "DriverFailed");
  EXPECT_EQ(Condition()["message"], "driver: it is gone");
  Show(1h);
  EXPECT_EQ(StatusWrites(), 1);
}

TEST_F(ClusterAdapterTest, WhatTheKubeletWritesDoesNotHideTheCondition) {
  Validate("passed");
  Converge();
  for (const char* time : {"2026-11-27T02:00:00Z", "2026-11-27T02:05:00Z"}) {
    json node = *api_.Find(kNode);
    node["status"]["conditions"].push_back(
        {{"type", "MemoryPressure"}, {"status", "False"}, {"lastHeartbeatTime", time}});
    api_.Put(kNode, node, "kubelet");
    executor_.Advance(5min);
  }
  EXPECT_EQ(StatusWrites(), 0);
  EXPECT_EQ(Condition()["status"], "True");
}

TEST_F(ClusterAdapterTest, AConditionThatAnotherClientChangesIsRestored) {
  Validate("passed");
  Converge();
  json node = *api_.Find(kNode);
  node["status"]["conditions"] = json::array();
  api_.Put(kNode, node, "kubelet");
  executor_.Advance(5s);
  EXPECT_EQ(Condition()["status"], "True");
}

TEST_F(ClusterAdapterTest, ARestartedAgentThatHasNotDecidedLeavesATrueCondition) {
  Validate("passed");
  Converge();
  executor_.Advance(1h);
  Validate("waiting", "not yet");
  Restart();
  Show(20s);
  EXPECT_EQ(Condition()["status"], "True");
  Show(20s);
  EXPECT_EQ(Condition()["status"], "False") << "it has had its time";
  EXPECT_EQ(Condition()["reason"], "DriverWaiting");
}

TEST_F(ClusterAdapterTest, ARestartedAgentReportsAFailureAtOnce) {
  Validate("passed");
  Converge();
  executor_.Advance(1h);
  Validate("failed", "it is gone");
  Restart();
  Show(2s);
  EXPECT_EQ(Condition()["status"], "False");
}

TEST_F(ClusterAdapterTest, TheConditionCanBeSwitchedOff) {
  options_.config.ready_condition = Switch::kOff;
  Validate("passed");
  Converge();
  EXPECT_TRUE(Condition().is_null());
}

TEST_F(ClusterAdapterTest, AConditionThatIsSwitchedOffGoes) {
  Validate("passed");
  Converge();
  ASSERT_EQ(Condition()["status"], "True");
  options_.config.ready_condition = Switch::kOff;
  Restart();
  Show(10s);
  EXPECT_TRUE(Condition().is_null());
  EXPECT_EQ(StatusWrites(), 1);
  EXPECT_EQ(api_.Find(kNode)->at("status").at("capacity").at("cpu"), "8");
  Show(1h);
  EXPECT_EQ(StatusWrites(), 1);
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, AConditionOfAnotherStaysWhereOursIsSwitchedOff) {
  const json condition = {{"type", "penstock.io/AcceleratorsReady"}, {"status", "True"}};
  api_.Merge(kNode, {{"status", {{"conditions", json::array({condition})}}}}, "someone");
  options_.config.ready_condition = Switch::kOff;
  Validate("failed", "it is gone");
  Converge();
  EXPECT_EQ(Condition()["status"], "True");
}

TEST_F(ClusterAdapterTest, AConditionThatMayNotBeRemovedIsNamedWithTheCommandForIt) {
  Validate("passed");
  Converge();
  options_.config.ready_condition = Switch::kOff;
  api_.Forbid("PATCH", std::string(kNode) + "/status");
  Restart();
  Show(1h);
  EXPECT_EQ(StatusWrites(), 1) << "at rest nothing is asked of the server";
  EXPECT_THAT(state_.reason,
              AllOf(HasSubstr("cluster.readyCondition is off"),
                    HasSubstr("kubectl patch node n1 --subresource=status"),
                    HasSubstr(R"({"$patch":"delete","type":"penstock.io/AcceleratorsReady"})"),
                    HasSubstr(R"(resources: ["nodes/status"])")));
}

TEST_F(ClusterAdapterTest, WhatTheKubeletHasShowsOnTheNodeAtOnceByOnePatch) {
  Converge();
  KubeletHas(2, 1, 50ms);
  EXPECT_EQ(Shown("capacity"), "2");
  EXPECT_EQ(Shown("allocatable"), "1");
  EXPECT_EQ(api_.Writes(), 1u);
  ASSERT_FALSE(api_.calls().empty());
  const auto patch = std::find_if(api_.calls().begin(), api_.calls().end(),
                                  [](const auto& call) { return call.method == "PATCH"; });
  EXPECT_EQ(patch->path, std::string(kNode) + "/status");
  EXPECT_EQ(patch->content_type, protocol::kube::kStrategicMergePatch);
  KubeletHas(2, 1, 1h);
  EXPECT_EQ(api_.Writes(), 1u) << "the Node already has these values";
}

TEST_F(ClusterAdapterTest, WhatTheKubeletWroteItselfIsNotWrittenAgain) {
  Converge();
  api_.Merge(
      kNode,
      {{"status",
        {{"capacity", {{"nvidia.com/gpu", "2"}}}, {"allocatable", {{"nvidia.com/gpu", "2"}}}}}},
      "kubelet");
  executor_.RunUntilIdle();
  KubeletHas(2, 2, 1s);
  EXPECT_EQ(api_.Writes(), 0u);
}

TEST_F(ClusterAdapterTest, ANewerOfferOvertakesNumbersThatCouldNotBeWritten) {
  Converge();
  api_.Fail({.status = 503, .times = 1, .method = "PATCH"});
  KubeletHas(2, 2);
  KubeletHas(2, 1, 2s);
  EXPECT_EQ(Shown("allocatable"), "1");
}

TEST_F(ClusterAdapterTest, NumbersThatTheKubeletMayNotHaveAnyMoreAreNotWritten) {
  Converge();
  api_.Fail({.status = 503, .times = 1, .method = "PATCH"});
  KubeletHas(8, 8);
  adapter_->ShowKubeletHas({});
  executor_.Advance(2s);
  EXPECT_EQ(Shown("capacity"), "(none)");
  KubeletHas(2, 2, 2s);
  EXPECT_EQ(Shown("capacity"), "2");
}

TEST_F(ClusterAdapterTest, NumbersThatAreNotNewAnyMoreAreNotWritten) {
  Converge();
  api_.Fail({.status = 503, .times = -1, .method = "PATCH"});
  KubeletHas(2, 2, 5s);
  api_.Heal();
  executor_.Advance(1h);
  EXPECT_EQ(Shown("capacity"), "(none)");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, WithoutTheRightToPatchNodeStatusTheKubeletsTickHasToDo) {
  api_.Forbid("PATCH", std::string(kNode) + "/status");
  Converge();
  KubeletHas(2, 2, 1s);
  EXPECT_THAT(state_.reason, HasSubstr("/status"));
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(api_.Count("patch"), 1u);
  executor_.Advance(10min);
  EXPECT_THAT(state_.reason, HasSubstr("/status")) << "no attempt was made since";
  EXPECT_THAT(Status()["allocators"][0]["reason"].get<std::string>(), HasSubstr("/status"))
      << "the problem is visible without a shell on the node";
  api_.Heal();
  KubeletHas(2, 1, 1s);
  EXPECT_EQ(Shown("allocatable"), "1");
  EXPECT_EQ(state_.reason, "");
}

// Events.

TEST_F(ClusterAdapterTest, ReportsWhatHappenedAsEventsOnTheNode) {
  Converge();
  EXPECT_THAT(Events(), IsEmpty());
  report_.devices[1].health_state = "unhealthy";
  report_.devices[1].health_reason = "XID 79";
  Show(1s);
  EXPECT_THAT(Events(), ElementsAre("DeviceUnhealthy"));
  for (const auto& call : api_.calls()) {
    if (call.method != "POST") continue;
    const json event = json::parse(call.body);
    EXPECT_EQ(event["involvedObject"]["kind"], "Node");
    EXPECT_EQ(event["involvedObject"]["name"], "n1");
    EXPECT_EQ(event["type"], "Warning");
  }
}

TEST_F(ClusterAdapterTest, AnAgentRestartedReportsOnlyWhatChangedMeanwhile) {
  report_.devices[1].health_state = "unhealthy";
  Converge();
  Restart();
  report_.devices[0].health_state = "gone";
  Show(10s);
  EXPECT_THAT(Events(), ElementsAre("DeviceGone"));
}

TEST_F(ClusterAdapterTest, EventsDoNotWaitForAnObjectThatCannotBe) {
  api_.Forbid("", "/apis/penstock.io/");
  Converge();
  EXPECT_THAT(state_.reason, HasSubstr("nodestates"));
  report_.devices[0].health_state = "gone";
  Show(1s);
  EXPECT_THAT(Events(), ElementsAre("DeviceGone"));
}

// Faults.

TEST_F(ClusterAdapterTest, ARightOnNodesThatIsMissingIsReportedAndTheRestGoesOn) {
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

TEST_F(ClusterAdapterTest, LabelsThatMayNotBeWrittenAreTriedRarely) {
  api_.Forbid("PATCH", kNode);
  Converge();
  EXPECT_THAT(state_.reason, HasSubstr("nodes"));
  EXPECT_FALSE(Status().is_null());
  for (int i = 0; i < 60; ++i) {
    (*news_.labels)["a/b"] = std::to_string(i);
    Show(1min);
  }
  EXPECT_LE(api_.Count("apply"), 30u);
  api_.Heal();
  executor_.Advance(6min);
  EXPECT_EQ(Label("a/b"), "59");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, AnApiServerThatIsAwayIsWaitedForAndThenHasTheLastState) {
  Converge();
  api_.SetUp(false);
  executor_.Advance(1min);
  for (int i = 3; i < 20; ++i) {
    (*news_.labels)["nvidia.com/gpu.count"] = std::to_string(i);
    report_.devices[0].health_reason = std::to_string(i);
    Show(10s);
  }
  EXPECT_NE(state_.reason, "");
  EXPECT_EQ(state_.state, "waiting");
  api_.ForgetCalls();
  api_.SetUp(true);
  executor_.Advance(2min);
  EXPECT_LE(api_.Count("apply"), 2u) << "one apply for the labels, one for the object";
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "19");
  EXPECT_EQ(Status()["devices"][0]["health"]["reason"], "19");
  EXPECT_EQ(state_.state, "open");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, AWriteWhoseAnswerIsLostIsNotTakenForSomeoneElses) {
  Converge();
  api_.Fail({.status = 0, .times = 1, .method = "PATCH", .after_the_deed = true});
  (*news_.labels)["nvidia.com/gpu.count"] = "3";
  Show(1min);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "3");
  EXPECT_EQ(state_.reason, "");
}

TEST_F(ClusterAdapterTest, AAllocatorThatIsGoneAnswersNothing) {
  Start();
  Show();
  api_.SetSilent(true);
  executor_.Advance(5ms);
  const std::uint64_t asked = api_.Requests();
  const std::size_t assignments = assignments_.size(), answers = nfd_.size();
  const std::string state_before = state_.state + state_.reason;
  EXPECT_GT(asked, 0u);
  adapter_.reset();
  api_.SetSilent(false);
  executor_.Advance(1min);
  EXPECT_EQ(api_.Requests(), asked);
  EXPECT_EQ(api_.OpenStreams(), 0u);
  EXPECT_EQ(assignments_.size(), assignments);
  EXPECT_EQ(nfd_.size(), answers);
  EXPECT_EQ(state_.state + state_.reason, state_before);
}

}  // namespace
}  // namespace penstock::adapter::cluster
