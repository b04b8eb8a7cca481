// Tests the operator against a fake API server in this process.
#include "operator/operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "operator/json_values.h"
#include "operator/testing/definitions.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using protocol::kube::ApiCall;
using protocol::kube::FakeApi;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kPolicy[] = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy";
constexpr char kNative[] = "/apis/penstock.io/v1alpha1/penstocks/site";
constexpr char kSet[] = "/apis/apps/v1/namespaces/gpu-operator/daemonsets/penstock-agent";
constexpr char kSets[] = "/apis/apps/v1/namespaces/gpu-operator/daemonsets/";
constexpr char kRelease[] =
    "/apis/apps/v1/namespaces/gpu-operator/daemonsets/penstock-host-release";
constexpr char kReleaseMap[] = "/api/v1/namespaces/gpu-operator/configmaps/penstock-host-release";
constexpr char kState[] = "/apis/penstock.io/v1alpha1/nodestates/n1";
constexpr char kMap[] = "/api/v1/namespaces/gpu-operator/configmaps/penstock-agent";
constexpr char kService[] = "/api/v1/namespaces/gpu-operator/services/nvidia-dcgm-exporter";
constexpr char kClass[] = "/apis/node.k8s.io/v1/runtimeclasses/nvidia";
constexpr char kNode[] = "/api/v1/nodes/n1";
constexpr char kStart[] = "2026-01-01T00:00:00.000Z";
constexpr char kDriver[] = "nvidia.com/gpu.deploy.driver";
constexpr char kPresent[] = "nvidia.com/gpu.present";

const json kLabelsNamespace = {{"spec", {{"psa", {{"enabled", true}}}}}};
/// Of a DaemonSet with a pod that does not end.
const json kWaitsForPods = {{"metadata", {{"finalizers", {"foregroundDeletion"}}}}};

class OperatorTest : public testing::Test {
 protected:
  OperatorTest() {
    Put("/api/v1/namespaces/gpu-operator", {{"kind", "Namespace"}});
    Put(kNode,
        {{"kind", "Node"},
         {"metadata", {{"labels", {{"feature.node.kubernetes.io/pci-10de.present", "true"}}}}}});
    Put("/api/v1/nodes/n2", {{"kind", "Node"}, {"metadata", {{"labels", {{"zone", "a"}}}}}});
  }

  void Put(const std::string& path, json object) { api_.Put(path, std::move(object), "someone"); }

  void PutPolicy(const std::string& path = kPolicy) {
    Put(path, {{"apiVersion", "nvidia.com/v1"},
               {"kind", "ClusterPolicy"},
               {"spec", {{"driver", {{"enabled", true}}}}}});
  }

  void Start() {
    operator_ = std::make_unique<Operator>(
        api_, Operator::Options{.installation = {.namespace_name = "gpu-operator",
                                                 .image = "localhost/penstock:1"},
                                .host = "pod-1"});
    operator_->Start();
    executor_.Advance(1s);
    Establish(api_);
    executor_.Advance(5s);
  }

  /// The agents' pods run on both nodes, and report.
  void RunAgents() {
    api_.Merge(kSet, {{"status",
                       {{"observedGeneration", 1000},
                        {"desiredNumberScheduled", 2},
                        {"updatedNumberScheduled", 2},
                        {"numberReady", 2}}}});
    Report("n1", true, "Ready");
    Report("n2", false, "NoDriver");
    executor_.Advance(3s);
  }

  /// Of the pods that take back what agents left, so many have done it.
  void ReleaseHosts(int ready, int pods = 2) {
    api_.Merge(kRelease, {{"status",
                           {{"observedGeneration", 1000},
                            {"desiredNumberScheduled", pods},
                            {"updatedNumberScheduled", pods},
                            {"numberReady", ready}}}});
  }
  void DeletePolicy() {
    api_.Merge(kPolicy, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  }
  bool IsHeld() { return !At(kPolicy)["metadata"].value("finalizers", json::array()).empty(); }

  /// What the kubelet of the node reports of it.
  void SetKubelet(const char* ready) {
    api_.Merge(kNode, {{"status", {{"conditions", {{{"type", "Ready"}, {"status", ready}}}}}}});
  }

  /// A pod that is not ready does not start.
  void PutAgentPod(const std::string& node, const std::string& name, bool ready) {
    json pod = {
        {"kind", "Pod"},
        {"metadata",
         {{"labels",
           {{"app.kubernetes.io/managed-by", "penstock-operator"},
            {"app.kubernetes.io/instance", "penstock-agent"}}}}},
        {"spec", {{"nodeName", node}}},
        {"status", {{"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}}}};
    if (!ready)
      pod["status"]["containerStatuses"] = {
          {{"name", "agent"},
           {"restartCount", 3},
           {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}}};
    Put("/api/v1/namespaces/gpu-operator/pods/penstock-agent-" + name, pod);
  }

  /// `source`: of the driver that the agent has opened.
  void Report(const std::string& node, bool ready, const std::string& reason,
              const std::string& source = "host", const std::string& since = kStart) {
    json vendor = {{"vendor", "nvidia"}};
    if (!source.empty())
      vendor.update({{"driver", "550.1"}, {"driverSource", source}, {"driverSince", since}});
    Put("/apis/penstock.io/v1alpha1/nodestates/" + node,
        {{"kind", "NodeState"},
         {"status",
          {{"vendors", json::array({vendor})},
           {"conditions",
            {{{"type", "Ready"},
              {"status", ready ? "True" : "False"},
              {"reason", reason},
              {"lastTransitionTime", kStart}}}}}}});
  }

  const json& At(const std::string& path) {
    const json* found = api_.Find(path);
    if (found == nullptr) throw std::runtime_error("there is no " + path);
    return *found;
  }
  std::string State(const std::string& path = kPolicy) { return TextAt(At(path), "/status/state"); }
  json Condition(const std::string& type, const std::string& path = kPolicy) {
    for (const json& one : At(path)["status"]["conditions"])
      if (one["type"] == type) return one;
    return {};
  }
  /// A DaemonSet of this namespace that the object with this uid controls, as another operator
  /// makes it.
  void PutOperand(const std::string& name, const json& uid) {
    Put(std::string(kSets) + name,
        {{"kind", "DaemonSet"},
         {"metadata",
          {{"labels", {{"app.kubernetes.io/managed-by", "gpu-operator"}}},
           {"ownerReferences",
            {{{"apiVersion", "nvidia.com/v1"},
              {"kind", "ClusterPolicy"},
              {"name", "cluster-policy"},
              {"uid", uid},
              {"controller", true}}}}}}});
  }
  std::string NamespaceLabel() {
    return TextAt(At("/api/v1/namespaces/gpu-operator"),
                  "/metadata/labels/pod-security.kubernetes.io~1enforce");
  }
  std::string Label(const std::string& node, const std::string& key) {
    return At("/api/v1/nodes/" + node)["metadata"]["labels"].value(key, "(none)");
  }
  std::vector<std::string> Written() {
    std::vector<std::string> paths;
    for (const ApiCall& call : api_.calls())
      if (call.method != "GET") paths.push_back(call.method + " " + call.path);
    return paths;
  }

  /// "Normal TakenBack ClusterPolicy cluster-policy: everything that it caused was taken back".
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    for (const ApiCall& call : api_.calls()) {
      if (call.method != "POST" || !call.path.ends_with("/events")) continue;
      const json event = json::parse(call.body);
      events.push_back(TextAt(event, "/type") + " " + TextAt(event, "/reason") + " " +
                       TextAt(event, "/involvedObject/kind") + " " +
                       TextAt(event, "/involvedObject/name") + ": " + TextAt(event, "/message"));
    }
    return events;
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  std::unique_ptr<Operator> operator_;
};

TEST_F(OperatorTest, MakesWhatAClusterPolicyAsksFor) {
  PutPolicy();
  Start();
  EXPECT_EQ(At(kSet)["spec"]["template"]["spec"]["containers"][0]["image"], "localhost/penstock:1");
  EXPECT_THAT(At(kMap)["data"]["node.yaml"].get<std::string>(),
              HasSubstr("driverRoot: \"/driver-root\""));
  EXPECT_EQ(At(kService)["spec"]["ports"][0]["port"], 9400);
  EXPECT_EQ(At(kClass)["handler"], "nvidia");
  for (const char* path : {kSet, kMap, kService, kClass})
    EXPECT_EQ(At(path)["metadata"]["ownerReferences"][0]["name"], "cluster-policy") << path;
  EXPECT_EQ(State(), "notReady");
}

TEST_F(OperatorTest, LabelsTheNodesWithDevicesOnly) {
  PutPolicy();
  Start();
  EXPECT_EQ(Label("n1", kDriver), "true");
  EXPECT_EQ(Label("n1", kPresent), "true");
  EXPECT_EQ(At("/api/v1/nodes/n2")["metadata"]["labels"], json({{"zone", "a"}}));
}

TEST_F(OperatorTest, MarksADriverOfTheHostAlsoWhileItsNodeIsBeingWritten) {
  PutPolicy();
  Start();
  RunAgents();
  EXPECT_EQ(Label("n1", kDriver), "pre-installed");
  api_.SetLateAnswers(100ms);
  for (auto after = 0ms; after < 600ms; after += 20ms) {
    api_.Remove("/apis/penstock.io/v1alpha1/nodestates/n1");
    api_.Merge(kNode, {{"metadata", {{"labels", {{kDriver, "false"}}}}}});
    executor_.Advance(1s);
    api_.Merge(kNode, {{"metadata", {{"labels", {{kDriver, nullptr}}}}}});
    executor_.Advance(after);
    Report("n1", true, "Ready");
    executor_.Advance(5s);
    EXPECT_EQ(Label("n1", kDriver), "pre-installed")
        << after.count() << " ms after the write began";
  }
}

TEST_F(OperatorTest, GO1018WhatToDoWhereTheHostsDriverIsGoneStandsInTheStatus) {
  PutPolicy();
  Start();
  RunAgents();
  ASSERT_EQ(Label("n1", kDriver), "pre-installed");
  Report("n1", false, "DriverMissing", "");
  executor_.Advance(3s);
  const json& named = At(kPolicy)["status"]["nodes"]["notReady"][0];
  EXPECT_EQ(named["reason"], "DriverMissing");
  EXPECT_THAT(
      named["message"].get<std::string>(),
      testing::StartsWith("the node is labelled nvidia.com/gpu.deploy.driver=pre-installed"));
  EXPECT_EQ(Label("n1", kDriver), "pre-installed") << "only a user knows that it gets another";
  api_.Merge(kNode, {{"metadata", {{"labels", {{kDriver, nullptr}}}}}});
  executor_.Advance(3s);
  EXPECT_EQ(Label("n1", kDriver), "true");
  EXPECT_EQ(At(kPolicy)["status"]["nodes"]["notReady"][0].value("message", ""), "");
}

TEST_F(OperatorTest, ALabelThatIsTakenBackBeforeTheAnswerAboutItIsWrittenAgain) {
  PutPolicy();
  Start();
  RunAgents();
  const json without = {{"metadata", {{"labels", {{kPresent, nullptr}}}}}};
  api_.SetLateAnswers(100ms);
  for (auto after = 0ms; after < 300ms; after += 20ms) {
    api_.Merge(kNode, without);
    executor_.Advance(after);
    api_.Merge(kNode, without);
    executor_.Advance(5s);
    EXPECT_EQ(Label("n1", kPresent), "true") << after.count() << " ms after it was gone first";
    executor_.Advance(30min);  // it is not taken back again and again
  }
}

TEST_F(OperatorTest, ALabelThatAPolicyNoLongerNamesGoesAtOnce) {
  const auto put = [this](const json& labels) {
    Put(kNative, {{"apiVersion", "penstock.io/v1alpha1"},
                  {"kind", "Penstock"},
                  {"metadata", {{"name", "site"}, {"uid", "uid-site"}}},
                  {"spec", {{"nodeLabels", {{"labels", labels}}}}}});
    executor_.Advance(3s);
  };
  put({{"example.com/pool", "a"}, {"example.com/tier", "1"}});
  Start();
  EXPECT_EQ(Label("n1", "example.com/pool"), "a");
  EXPECT_EQ(Label("n1", "example.com/tier"), "1");
  put({{"example.com/tier", "1"}});
  EXPECT_EQ(Label("n1", "example.com/pool"), "(none)");
  EXPECT_EQ(Label("n1", "example.com/tier"), "1");
  put(json::object());
  EXPECT_EQ(Label("n1", "example.com/tier"), "(none)");
}

class RemovedLabelsTest : public OperatorTest {
 protected:
  void PutNative(const std::string& path, const std::string& label) {
    Put(path, {{"apiVersion", "penstock.io/v1alpha1"},
               {"kind", "Penstock"},
               {"spec", {{"nodeLabels", {{"labels", {{label, "true"}}}}}}}});
  }
  void Delete(const std::string& path) {
    api_.Merge(path, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
    executor_.Advance(3s);
  }
  /// While n1 cannot be written.
  void DeleteBeforeARestart(const std::string& path) {
    api_.Fail({.status = 500, .times = -1, .method = "PATCH", .path = kNode});
    Delete(path);
    operator_.reset();
    api_.Heal();
    Start();
    executor_.Advance(30s);
  }
};

TEST_F(RemovedLabelsTest, AnOperatorThatStartsRemovesThoseOfADeletedPolicy) {
  PutPolicy();
  PutNative(kNative, "example.com/x");
  Start();
  ASSERT_EQ(Label("n1", "example.com/x"), "true");
  DeleteBeforeARestart(kNative);
  EXPECT_EQ(Label("n1", "example.com/x"), "(none)");
  EXPECT_EQ(Label("n1", kPresent), "true");
  EXPECT_THAT(ListAt(At(kNative), "/metadata/finalizers"), IsEmpty());
}

TEST_F(RemovedLabelsTest, AnOperatorThatStartsRemovesThoseOfAllDeletedPolicies) {
  const std::string next = "/apis/penstock.io/v1alpha1/penstocks/that-follows";
  PutNative(kNative, "example.com/x");
  PutNative(next, "example.com/y");
  Start();
  api_.Fail({.status = 500, .times = -1, .method = "PATCH", .path = kSet});
  Delete(kNative);
  ASSERT_EQ(Label("n1", "example.com/y"), "true");
  DeleteBeforeARestart(next);
  EXPECT_EQ(Label("n1", "example.com/x"), "(none)");
  EXPECT_EQ(Label("n1", "example.com/y"), "(none)");
}

TEST_F(OperatorTest, ANodeThatOptsOutBesideAWriteLosesItsLabels) {
  PutPolicy();
  Start();
  const std::string opt_out = "nvidia.com/gpu.deploy.operands";
  api_.SetDelay(100ms);
  for (auto after = 0ms; after < 400ms; after += 20ms) {
    api_.Merge(kNode, {{"metadata", {{"labels", {{kPresent, nullptr}}}}}});
    executor_.Advance(after);
    api_.Merge(kNode, {{"metadata", {{"labels", {{opt_out, "false"}}}}}});
    executor_.Advance(1min);
    EXPECT_EQ(Label("n1", kDriver), "(none)") << after.count() << " ms after another change";
    api_.Merge(kNode, {{"metadata", {{"labels", {{opt_out, nullptr}}}}}});
    executor_.Advance(30min);  // it is not written again and again
    EXPECT_NE(Label("n1", kDriver), "(none)");
  }
}

TEST_F(OperatorTest, ALabelThatAUserTakesBackAFewTimesIsAProblemForHalfAMinute) {
  PutPolicy();
  Start();
  RunAgents();
  const auto take_back = [&](int times) {
    for (int i = 0; i < times; ++i) {
      api_.Merge(kNode, {{"metadata", {{"labels", {{kPresent, nullptr}}}}}});
      executor_.Advance(3s);
      EXPECT_EQ(Label("n1", kPresent), "true");
    }
  };
  take_back(2);
  EXPECT_EQ(State(), "ready");
  take_back(2);
  EXPECT_EQ(Condition("Ready")["reason"], "ReconcileFailed");
  EXPECT_THAT(Condition("Error")["message"].get<std::string>(),
              testing::HasSubstr("get -o yaml node n1 --show-managed-fields"));
  executor_.Advance(36s);
  EXPECT_EQ(State(), "ready") << At(kPolicy)["status"].dump(1);
}

// A node's own credentials may write its Node's managed fields, and neither of these.
TEST_F(OperatorTest, WhatANodeClaimsInOurNameStaysAsItIs) {
  constexpr char kTier[] = "node-restriction.kubernetes.io/tier";
  for (const std::string manager : {"penstock-operator", "penstock-labels"}) {
    const json claimed = {{"apiVersion", "v1"},
                          {"kind", "Node"},
                          {"metadata",
                           {{"name", manager},
                            {"labels",
                             {{"feature.node.kubernetes.io/pci-10de.present", "true"},
                              {kDriver, "true"},
                              {kTier, "restricted"}}}}},
                          {"spec", {{"taints", {{{"key", "example.com/reserved"}}}}}}};
    api_.Do(protocol::kube::Apply({"", "v1", "nodes"}, "", claimed, manager), [](const auto&) {});
  }
  executor_.Advance(1s);
  PutPolicy();
  Start();
  RunAgents();
  const auto check = [&](const char* when) {
    for (const std::string node : {"penstock-operator", "penstock-labels"}) {
      EXPECT_EQ(Label(node, kTier), "restricted") << node << when;
      EXPECT_TRUE(At("/api/v1/nodes/" + node)["spec"].contains("taints")) << node << when;
    }
  };
  EXPECT_EQ(Label("penstock-operator", kPresent), "true");
  check("with the policy");
  DeletePolicy();
  executor_.Advance(10min);
  EXPECT_EQ(Label("penstock-operator", kPresent), "(none)");
  check("without one");
}

TEST_F(OperatorTest, AFailedWriteOfANodeIsNoProblemOnceTheNodeHasEverything) {
  PutPolicy();
  Start();
  RunAgents();
  const json complete = At(kNode)["metadata"]["labels"];
  api_.SetLateAnswers(500ms);
  for (auto after = 0ms; after < 1200ms; after += 200ms) {
    api_.Fail({.status = 500, .times = 1, .method = "PATCH", .path = kNode});
    api_.Merge(kNode, {{"metadata", {{"labels", {{kDriver, nullptr}}}}}});
    executor_.Advance(after);
    api_.Merge(kNode, {{"metadata", {{"labels", complete}}}});
    executor_.Advance(30s);
    EXPECT_EQ(State(), "ready") << after.count() << At(kPolicy)["status"].dump(1);
    api_.Heal();
  }
}

TEST_F(OperatorTest, IsReadyOnceTheNodesAre) {
  PutPolicy();
  Start();
  RunAgents();
  EXPECT_EQ(State(), "ready");
  EXPECT_EQ(Condition("Ready")["reason"], "Reconciled");
  EXPECT_EQ(At(kPolicy)["status"]["nodes"]["byState"], json({{"ready", 1}}));
  Report("n1", false, "DriverMissing");
  executor_.Advance(3s);
  EXPECT_EQ(State(), "notReady");
  EXPECT_EQ(Condition("Ready")["reason"], "DriverNotReady");
  EXPECT_EQ(At(kPolicy)["status"]["nodes"]["notReady"][0]["name"], "n1");
}

TEST_F(OperatorTest, AStartUpTaintEndsWithTheFirstReportWithoutAFailedStep) {
  PutPolicy();
  Put(kNative, {{"apiVersion", "penstock.io/v1alpha1"},
                {"kind", "Penstock"},
                {"spec", {{"startupTaints", {"example.com/wait"}}}}});
  Start();
  api_.Merge(kNode, {{"spec", {{"taints", json::array({{{"key", "example.com/wait"}}})}}}});
  RunAgents();
  EXPECT_FALSE(At(kNode)["spec"].contains("taints"));
  Report("n1", false, "DriverMissing");
  executor_.Advance(1s);
  api_.Merge(kNode, {{"spec", {{"taints", json::array({{{"key", "example.com/wait"}}})}}}});
  json report = At("/apis/penstock.io/v1alpha1/nodestates/n1");
  report["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}},
                                    {{"type", "AcceleratorsReady"}, {"status", "False"}}};
  Put("/apis/penstock.io/v1alpha1/nodestates/n1", report);
  executor_.Advance(5s);
  EXPECT_TRUE(At(kNode)["spec"].contains("taints"));
  report["status"]["conditions"][1]["status"] = "True";
  Put("/apis/penstock.io/v1alpha1/nodestates/n1", report);
  executor_.Advance(5s);
  EXPECT_FALSE(At(kNode)["spec"].contains("taints"));
}

TEST_F(OperatorTest, AStartUpTaintEndsAlsoWhereNoLabelShowsTheDevices) {
  constexpr char kOther[] = "/api/v1/nodes/n2";
  PutPolicy();
  Put(kNative, {{"apiVersion", "penstock.io/v1alpha1"},
                {"kind", "Penstock"},
                {"spec", {{"startupTaints", {"example.com/wait"}}}}});
  Start();
  api_.Merge(kOther, {{"spec", {{"taints", json::array({{{"key", "example.com/wait"}}})}}}});
  RunAgents();
  Report("n2", false, "NoDevices");
  executor_.Advance(5s);
  EXPECT_TRUE(At(kOther)["spec"].contains("taints"));
  Report("n2", true, "Ready");
  executor_.Advance(5s);
  EXPECT_FALSE(At(kOther)["spec"].contains("taints"));
  EXPECT_EQ(At(kPolicy)["status"]["nodes"]["byState"], json({{"ready", 1}}));
}

TEST_F(OperatorTest, SaysWhyAgentsAreNotReadyAndReadsTheirPodsOnlyMeanwhile) {
  PutPolicy();
  Start();
  RunAgents();
  const auto reads_pods = [this] {
    return std::ranges::any_of(api_.calls(), [](const ApiCall& call) {
      const auto selector = call.query.find("labelSelector");
      return call.path.ends_with("/pods") && selector != call.query.end() &&
             selector->second.find("penstock-agent") != std::string::npos;
    });
  };
  api_.ForgetCalls();
  executor_.Advance(1min);
  EXPECT_FALSE(reads_pods());
  PutAgentPod("n1", "x", false);
  api_.Merge(kSet, {{"status", {{"numberReady", 1}}}});
  executor_.Advance(5s);
  EXPECT_EQ(Condition("Ready")["message"], "agents: 1 ready and 2 current, of 2 nodes");
  EXPECT_FALSE(reads_pods()) << "a roll-out that gets on";
  executor_.Advance(10s);
  EXPECT_EQ(Condition("Ready")["message"],
            "agents: 1 ready and 2 current, of 2 nodes; n1: agent: CrashLoopBackOff");
  const auto nodes_by = [this](const char* what) { return At(kPolicy)["status"]["nodes"][what]; };
  EXPECT_EQ(nodes_by("byReason"), json({{"AgentNotReady", 1}}));
  PutAgentPod("n1", "y", true);
  executor_.Advance(3s);
  EXPECT_EQ(nodes_by("byState"), json({{"ready", 1}}))
      << "an agent that does not start beside one that runs";
  api_.Merge(kSet, {{"status", {{"numberReady", 2}}}});
  executor_.Advance(20min);
  EXPECT_EQ(State(), "ready");
  api_.ForgetCalls();
  executor_.Advance(30min);
  EXPECT_FALSE(reads_pods());
}

TEST_F(OperatorTest, AnAgentThatWaitsForItsNodeOrEndsWithItIsNotReady) {
  PutPolicy();
  SetKubelet("True");
  Start();
  RunAgents();
  api_.Merge(kSet, {{"status", {{"numberReady", 1}}}});
  executor_.Advance(15s);
  const auto nodes_by = [this](const char* what) { return At(kPolicy)["status"]["nodes"][what]; };
  EXPECT_EQ(nodes_by("byState"), json({{"ready", 1}})) << "without a pod its report counts";
  const std::string path = "/api/v1/namespaces/gpu-operator/pods/penstock-agent-x";
  PutAgentPod("", "x", false);
  const json place = {
      {"matchFields", {{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n1"}}}}}};
  api_.Merge(path, {{"spec",
                     {{"affinity",
                       {{"nodeAffinity",
                         {{"requiredDuringSchedulingIgnoredDuringExecution",
                           {{"nodeSelectorTerms", json::array({place})}}}}}}}}}});
  executor_.Advance(3s);
  EXPECT_EQ(nodes_by("byReason"), json({{"AgentNotReady", 1}}));
  api_.Remove(path);
  executor_.Advance(3s);
  EXPECT_EQ(nodes_by("byState"), json({{"ready", 1}}));
  PutAgentPod("n1", "x", false);
  api_.Merge(path, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(3s);
  EXPECT_EQ(nodes_by("byReason"), json({{"AgentNotReady", 1}}));
  EXPECT_EQ(Condition("Ready")["message"], "agents: 1 ready and 2 current, of 2 nodes")
      << "that a pod ends is no trouble";
}

TEST_F(OperatorTest, ANodeThatIsGoneIsNamedWithTheCause) {
  PutPolicy();
  SetKubelet("True");  // as it said last
  Start();
  RunAgents();
  const std::string path = "/api/v1/namespaces/gpu-operator/pods/penstock-agent-x";
  PutAgentPod("n1", "x", true);  // as its kubelet said last
  api_.Merge(path, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  api_.Merge(kSet, {{"status", {{"updatedNumberScheduled", 1}}}});
  executor_.Advance(30s);
  const std::string message = "agents: 2 ready and 1 current, of 2 nodes";
  EXPECT_EQ(Condition("Ready")["message"], message);
  executor_.Advance(1min);
  EXPECT_THAT(TextAt(Condition("Ready"), "/message"),
              HasSubstr(message + "; n1: terminating for over a minute: the node's kubelet"));
  const json nodes = At(kPolicy)["status"]["nodes"]["notReady"];
  EXPECT_THAT(TextAt(nodes, "/0/message"), HasSubstr("the node's kubelet")) << nodes;
  api_.Remove(path);
  PutAgentPod("n1", "y", false);
  executor_.Advance(3s);
  EXPECT_EQ(Condition("Ready")["message"], message + "; n1: agent: CrashLoopBackOff");
}

TEST_F(OperatorTest, ANodeThatIsGoneIsNamedAtOnceByItsNodeObject) {
  PutPolicy();
  Start();
  RunAgents();
  const std::string path = "/api/v1/namespaces/gpu-operator/pods/penstock-agent-x";
  SetKubelet("Unknown");
  PutAgentPod("n1", "x", true);
  api_.Merge(path, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  api_.Merge(kSet, {{"status", {{"updatedNumberScheduled", 1}}}});
  executor_.Advance(15s);
  const std::string message = "agents: 2 ready and 1 current, of 2 nodes; n1: terminating, and ";
  EXPECT_THAT(TextAt(Condition("Ready"), "/message"),
              HasSubstr(message + "the kubelet does not report the node as ready"));
  EXPECT_EQ(At(kPolicy)["status"]["nodes"]["byReason"], json({{"AgentNotReady", 1}}));
  const json status = At(kPolicy)["status"];
  operator_.reset();
  api_.ForgetCalls();
  Start();
  EXPECT_EQ(At(kPolicy)["status"], status) << "an operator that starts takes nothing back";
  executor_.Advance(5min);
  EXPECT_EQ(At(kPolicy)["status"], status);
  EXPECT_THAT(Written(), Not(Contains(HasSubstr("cluster-policy/status"))));
  SetKubelet("True");
  PutAgentPod("n1", "x", false);
  api_.Merge(path, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(3s);
  EXPECT_THAT(TextAt(Condition("Ready"), "/message"), HasSubstr("terminating for over a minute"))
      << "the kubelet responds again, and the pod stays";
}

TEST_F(OperatorTest, ANodeThatIsDeletedIsNamedAtOnce) {
  PutPolicy();
  Start();
  RunAgents();
  PutAgentPod("n3", "x", true);
  api_.Merge("/api/v1/namespaces/gpu-operator/pods/penstock-agent-x",
             {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  api_.Merge(kSet, {{"status", {{"updatedNumberScheduled", 1}}}});
  executor_.Advance(15s);
  EXPECT_THAT(TextAt(Condition("Ready"), "/message"),
              HasSubstr("; n3: terminating, and there is no Node of this name"));
}

TEST_F(OperatorTest, AtRestWritesNothing) {
  PutPolicy();
  Start();
  RunAgents();
  executor_.Advance(10s);
  api_.ForgetCalls();
  executor_.Advance(30min);
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(OperatorTest, ASuccessorWritesNothingWhereAllIsAsItShould) {
  PutPolicy();
  Start();
  RunAgents();
  executor_.Advance(10s);
  operator_.reset();
  api_.ForgetCalls();
  operator_ = std::make_unique<Operator>(
      api_, Operator::Options{
                .installation = {.namespace_name = "gpu-operator", .image = "localhost/penstock:1"},
                .host = "pod-2"});
  operator_->Start();
  executor_.Advance(1min);
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(OperatorTest, AChangedFieldWritesOnlyWhatDiffers) {
  PutPolicy();
  Start();
  RunAgents();
  executor_.Advance(10s);
  api_.ForgetCalls();
  api_.Merge(kPolicy, {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}});
  executor_.Advance(1s);
  EXPECT_EQ(At(kSet)["spec"]["template"]["metadata"]["labels"]["team"], "a");
  EXPECT_THAT(Written(), Contains(std::string("PATCH ") + kSet).Times(1));
  EXPECT_THAT(Written(), Not(Contains(HasSubstr("configmaps"))));
  EXPECT_THAT(Written(), Not(Contains(HasSubstr("/nodes/"))));
}

TEST_F(OperatorTest, PoliciesThatAreAppliedTogetherRollTheAgentsOutOnce) {
  PutPolicy();
  Start();
  RunAgents();
  api_.ForgetCalls();
  api_.Merge(kPolicy, {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}});
  executor_.Advance(300ms);
  Put(kNative, {{"apiVersion", "penstock.io/v1alpha1"},
                {"kind", "Penstock"},
                {"spec", {{"node", {{"health", {{"probation", "7s"}}}}}}}});
  executor_.Advance(5s);
  EXPECT_THAT(At(kMap)["data"].dump(), HasSubstr("7s"));
  EXPECT_EQ(std::ranges::count(Written(), std::string("PATCH ") + kSet), 1);
}

TEST_F(OperatorTest, AChangeIsWrittenAlsoAfterAnAnswerThatCameLaterThanTheWatch) {
  PutPolicy();
  Start();
  RunAgents();
  api_.SetLateAnswers(200ms);
  const auto label = [this](const char* value) {
    api_.Merge(kPolicy, {{"spec", {{"daemonsets", {{"labels", {{"team", value}}}}}}}});
  };
  label("a");
  executor_.Advance(600ms);
  ASSERT_EQ(At(kSet)["spec"]["template"]["metadata"]["labels"]["team"], "a");
  api_.Merge(kSet, {{"status", {{"numberReady", 1}}}});  // its controller, before we are answered
  executor_.Advance(300ms);
  label("b");
  executor_.Advance(1s);
  EXPECT_EQ(At(kSet)["spec"]["template"]["metadata"]["labels"]["team"], "b");
  api_.Merge(kPolicy, {{"spec", {{"dcgmExporter", {{"enabled", false}}}}}});
  executor_.Advance(1s);
  ASSERT_EQ(api_.Find(kService), nullptr);
  api_.Merge(kPolicy, {{"spec", {{"dcgmExporter", {{"enabled", true}}}}}});
  executor_.Advance(1s);
  EXPECT_NE(api_.Find(kService), nullptr);
}

TEST_F(OperatorTest, AChangeIsWrittenAlsoIfTheWatchNeverShowsTheOneBefore) {
  PutPolicy();
  Start();
  RunAgents();
  api_.Fail(
      {.times = -1, .method = "WATCH", .path = "/apis/apps/v1/namespaces/gpu-operator/daemonsets"});
  api_.EndStreams();
  executor_.Advance(1s);
  const auto label = [this](const char* value) {
    api_.Merge(kPolicy, {{"spec", {{"daemonsets", {{"labels", {{"team", value}}}}}}}});
  };
  // Without a watch, it is listed again after times that are chosen at random.
  const auto is_written = [this](const char* value) {
    const auto is_there = [&] {
      return TextAt(At(kSet), "/spec/template/metadata/labels/team") == value;
    };
    for (int i = 0; i < 600 && !is_there(); ++i) executor_.Advance(100ms);
    return is_there();
  };
  label("a");
  ASSERT_TRUE(is_written("a"));
  label("b");
  EXPECT_TRUE(is_written("b"));
}

TEST_F(OperatorTest, RestoresWhatOthersChange) {
  PutPolicy();
  Start();
  api_.Merge(kMap, {{"data", {{"node.yaml", "other"}}}});
  executor_.Advance(1s);
  EXPECT_NE(At(kMap)["data"]["node.yaml"], "other");
  api_.Remove(kService);
  executor_.Advance(10s);
  EXPECT_NE(api_.Find(kService), nullptr);
}

TEST_F(OperatorTest, ADisagreementWithAnotherProgramIsSaidAndDoesNotFloodTheServer) {
  PutPolicy();
  Start();
  RunAgents();
  ASSERT_EQ(State(), "ready");
  api_.ForgetCalls();
  for (int i = 0; i < 300; ++i) {  // another program takes both back in every second
    if (Label("n1", kPresent) == "true")
      api_.Merge(kNode, {{"metadata", {{"labels", {{kPresent, nullptr}}}}}});
    api_.Merge(kSet, {{"spec", {{"template", {{"spec", {{"priorityClassName", "x"}}}}}}}});
    executor_.Advance(1s);
  }
  const auto count = [this](const std::string& path) {
    return std::ranges::count(Written(), "PATCH " + path);
  };
  EXPECT_LE(count(kNode), 14);
  EXPECT_LE(count(kSet), 14);
  EXPECT_GE(count(kNode), 6) << "it does not give up";
  EXPECT_EQ(State(), "notReady");
  const std::string message = TextAt(Condition("Error"), "/message");
  EXPECT_THAT(message, HasSubstr("kubectl get -o yaml node n1 --show-managed-fields"));
  EXPECT_THAT(message, HasSubstr("DaemonSet penstock-agent"));
  executor_.Advance(20min);  // the other program has ended
  EXPECT_EQ(Label("n1", kPresent), "true");
  EXPECT_EQ(State(), "ready");
}

TEST_F(OperatorTest, WhatAReplacedOperatorLeftIsNamedUntilItIsGone) {
  PutPolicy();
  for (const char* name :
       {"nvidia-device-plugin-daemonset", "gpu-feature-discovery", "nvidia-dcgm-exporter"})
    PutOperand(name, At(kPolicy)["metadata"]["uid"]);
  PutOperand("of-another-policy", "7");
  Put(std::string(kSets) + "log-collector", {{"kind", "DaemonSet"}});
  Start();
  RunAgents();
  const std::string rest = "`kubectl delete daemonset -n gpu-operator nvidia-dcgm-exporter`";
  EXPECT_EQ(State(), "notReady");
  EXPECT_EQ(Condition("Ready")["reason"], "ReconcileFailed");
  EXPECT_THAT(TextAt(Condition("Error"), "/message"),
              HasSubstr("`kubectl delete daemonset -n gpu-operator gpu-feature-discovery "
                        "nvidia-dcgm-exporter nvidia-device-plugin-daemonset`"));
  EXPECT_TRUE(Condition("OperandsReplaced").is_null());
  for (const char* name : {"nvidia-device-plugin-daemonset", "gpu-feature-discovery"}) {
    ASSERT_NE(api_.Find(std::string(kSets) + name), nullptr) << "it is named and not deleted";
    api_.Remove(std::string(kSets) + name);
  }
  executor_.Advance(3s);
  EXPECT_EQ(State(), "ready") << "what only reads is a warning";
  EXPECT_EQ(Condition("Error")["status"], "False");
  EXPECT_EQ(Condition("OperandsReplaced")["status"], "False");
  EXPECT_EQ(Condition("OperandsReplaced")["reason"], "OperandsLeft");
  EXPECT_THAT(TextAt(Condition("OperandsReplaced"), "/message"), HasSubstr(rest));
  EXPECT_THAT(Events(), Contains(AllOf(testing::StartsWith("Warning OperandsLeft ClusterPolicy"),
                                       HasSubstr(rest)))
                            .Times(1));
  api_.Remove(std::string(kSets) + "nvidia-dcgm-exporter");
  executor_.Advance(3s);
  EXPECT_EQ(State(), "ready");
  EXPECT_TRUE(Condition("OperandsReplaced").is_null());
}

TEST_F(OperatorTest, WhatIsLeftIsNamedAsSoonAsItIsThereAndCostsNothingMeanwhile) {
  PutPolicy();
  Start();
  RunAgents();
  ASSERT_EQ(State(), "ready");
  const std::string plugin = std::string(kSets) + "nvidia-device-plugin-daemonset";
  PutOperand("nvidia-device-plugin-daemonset", At(kPolicy)["metadata"]["uid"]);
  executor_.Advance(3s);
  EXPECT_EQ(State(), "notReady");
  api_.ForgetCalls();
  for (int ready = 0; ready < 5; ++ready) {
    api_.Merge(plugin, {{"status", {{"numberReady", ready}}}});
    executor_.Advance(20s);
  }
  EXPECT_EQ(api_.Requests(), 0u);
  const json status = At(kPolicy)["status"];
  operator_.reset();
  api_.Fail({.status = 503, .times = -1, .path = "/apis/apps/v1/namespaces/gpu-operator/"});
  Start();
  EXPECT_EQ(At(kPolicy)["status"], status) << "another operator, which has not read it yet";
  api_.Heal();
  executor_.Advance(1min);
  EXPECT_EQ(At(kPolicy)["status"], status);
}

TEST_F(OperatorTest, WhatWasMadeForAPolicyThatHasNoEffectIsLeftAlone) {
  const std::string second = "/apis/nvidia.com/v1/clusterpolicies/a-younger-one";
  PutPolicy();
  executor_.Advance(1min);
  PutPolicy(second);
  PutOperand("nvidia-driver-daemonset", At(second)["metadata"]["uid"]);
  Start();
  RunAgents();
  EXPECT_EQ(State(), "ready");
  PutOperand("nvidia-driver-daemonset", At(kPolicy)["metadata"]["uid"]);
  executor_.Advance(3s);
  EXPECT_EQ(State(), "notReady");
  EXPECT_THAT(TextAt(Condition("Error"), "/message"), HasSubstr("unload it as they end"));
}

TEST_F(OperatorTest, ADeletedPolicyDoesNotWaitForWhatAReplacedOperatorLeft) {
  PutPolicy();
  PutOperand("nvidia-device-plugin-daemonset", At(kPolicy)["metadata"]["uid"]);
  Start();
  RunAgents();
  ASSERT_EQ(State(), "notReady");
  DeletePolicy();
  executor_.Advance(3s);
  EXPECT_EQ(Condition("Ready")["reason"], "Deleting");
  EXPECT_THAT(At(kPolicy)["status"].dump(), Not(HasSubstr("kubectl delete daemonset")));
  executor_.Advance(10min);
  EXPECT_FALSE(IsHeld());
}

TEST_F(OperatorTest, ADefinitionThatGoesHoldsUpNoPolicy) {
  constexpr char kMonitors[] = "/apis/monitoring.coreos.com/";
  PutPolicy();
  Start();
  RunAgents();
  ASSERT_EQ(State(), "ready");
  api_.Fail({.status = 404, .times = -1, .path = kMonitors});
  executor_.Advance(30min);  // by then its watch has ended
  json policy = At(kPolicy);
  policy["spec"]["dcgmExporter"]["serviceMonitor"] = {{"enabled", true}};
  Put(kPolicy, policy);
  executor_.Advance(10s);
  EXPECT_EQ(State(), "ready") << Condition("Ready").dump(1);
  EXPECT_EQ(Condition("Ready")["observedGeneration"], At(kPolicy)["metadata"]["generation"]);
  api_.Heal();
  executor_.Advance(10min);
  EXPECT_NE(api_.Find(std::string(kMonitors) +
                      "v1/namespaces/gpu-operator/servicemonitors/nvidia-dcgm-exporter"),
            nullptr);
  EXPECT_EQ(State(), "ready");
}

TEST_F(OperatorTest, TheOldestPolicyIsInForceAndOthersSayFor) {
  const std::string second = "/apis/nvidia.com/v1/clusterpolicies/a-younger-one";
  PutPolicy();
  executor_.Advance(1min);
  PutPolicy(second);
  Start();
  EXPECT_EQ(State(second), "ignored");
  EXPECT_THAT(Condition("Ready", second)["message"].get<std::string>(),
              HasSubstr("cluster-policy is in force"));
  EXPECT_EQ(At(kSet)["metadata"]["ownerReferences"][0]["name"], "cluster-policy");
}

TEST_F(OperatorTest, APenstockObjectIsReadOverAClusterPolicy) {
  PutPolicy();
  Put(kNative, {{"apiVersion", "penstock.io/v1alpha1"},
                {"kind", "Penstock"},
                {"spec", {{"hostPaths", {{"driverRoot", "/opt/accelerators"}}}}}});
  Start();
  EXPECT_THAT(At(kMap)["data"]["node.yaml"].get<std::string>(),
              HasSubstr("driverContainerRoot: \"/opt/accelerators\""));
  EXPECT_EQ(State(kNative), State());
}

TEST_F(OperatorTest, APolicyThatCannotBeReadChangesNothingAndSaysWhy) {
  PutPolicy();
  Start();
  const json before = At(kSet);
  api_.Merge(kPolicy, {{"spec", {{"migManager", {{"enabled", "perhaps"}}}}}});
  executor_.Advance(3s);
  EXPECT_EQ(At(kSet), before);
  EXPECT_EQ(State(), "notReady");
  EXPECT_EQ(Condition("Error")["status"], "True");
  EXPECT_THAT(Condition("Error")["message"].get<std::string>(), HasSubstr("migManager.enabled"));
}

TEST_F(OperatorTest, AMissingPermissionIsInTheStatus) {
  PutPolicy();
  api_.Forbid("PATCH", "/api/v1/namespaces/gpu-operator/services");
  Start();
  EXPECT_NE(api_.Find(kSet), nullptr);
  executor_.Advance(2min);
  EXPECT_EQ(Condition("Error")["reason"], "ReconcileFailed");
  EXPECT_THAT(Condition("Error")["message"].get<std::string>(), HasSubstr("services"));
  const json before = At(kPolicy)["status"];
  Start();
  EXPECT_EQ(At(kPolicy)["status"], before) << "another operator";
  executor_.Advance(2min);
  EXPECT_EQ(At(kPolicy)["status"], before);
}

// Lists are refused before the policies are known.
TEST_F(OperatorTest, AMissingRuleStaysSaidWhileAnotherOperatorStarts) {
  PutPolicy();
  for (const char* method : {"GET", "WATCH"})
    api_.Forbid(method, "/api/v1/namespaces/gpu-operator/services");
  Start();
  executor_.Advance(2min);
  ASSERT_THAT(TextAt(Condition("Error"), "/message"), HasSubstr("missing RBAC rule"));
  const json before = At(kPolicy)["status"];
  Establish(api_, "False");  // as of definitions that are being upgraded
  Start();
  for (int i = 0; i < 120; ++i) {
    executor_.Advance(1s);
    ASSERT_EQ(At(kPolicy)["status"], before) << i;
  }
}

TEST_F(OperatorTest, ADefinitionOfAnEarlierReleaseIsUpgradedAndThatOfALaterOneStays) {
  const auto path = [](const std::string& name) {
    return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name;
  };
  const auto of_release = [](const std::string& version) {
    return json{
        {"kind", "CustomResourceDefinition"},
        {"metadata",
         {{"annotations", {{"penstock.io/version", version}, {"penstock.io/applied", version}}}}},
        {"spec", {{"scope", "of " + version}}}};
  };
  Put(path("clusterpolicies.nvidia.com"), of_release("0.0.9"));
  Put(path("penstocks.penstock.io"), of_release("999.0.0"));
  PutPolicy();
  Start();
  EXPECT_EQ(At(path("clusterpolicies.nvidia.com"))["spec"]["scope"], "Cluster");
  EXPECT_EQ(At(path("penstocks.penstock.io"))["spec"]["scope"], "of 999.0.0");
  EXPECT_NE(api_.Find(kSet), nullptr) << "the later one is used as it is";
}

TEST_F(OperatorTest, AFinalizerIsWrittenOnceHoweverLateTheWatchShowsIt) {
  api_.SetLateWatches(3s);
  PutPolicy();
  Start();
  for (int i = 0; i < 40; ++i) {  // what changes about nodes makes a pass each
    Report("n1", i % 2 == 0, "Ready");
    executor_.Advance(100ms);
  }
  executor_.Advance(10s);
  EXPECT_TRUE(IsHeld());
  EXPECT_EQ(std::ranges::count_if(api_.calls(),
                                  [](const ApiCall& call) {
                                    return call.method == "PATCH" && call.path == kPolicy &&
                                           call.body.find("finalizers") != std::string::npos;
                                  }),
            1);
}

TEST_F(OperatorTest, ADeletedPolicyIsHeldUntilAllIsTakenBack) {
  PutPolicy();
  Start();
  EXPECT_EQ(At(kPolicy)["metadata"]["finalizers"], json({"penstock.io/cleanup"}));
  api_.Fail({.status = 500, .times = -1, .method = "DELETE", .path = kSet});
  api_.Merge(kPolicy, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(30s);
  EXPECT_EQ(Condition("Ready")["reason"], "Deleting");
  EXPECT_THAT(Condition("Ready")["message"].get<std::string>(),
              HasSubstr("to be taken back: DaemonSet penstock-agent"));
  EXPECT_THAT(At(kPolicy)["metadata"].value("finalizers", json::array()), Not(IsEmpty()));
  EXPECT_THAT(Events(), Not(Contains(HasSubstr("TakenBack")))) << "something is left";
  ReleaseHosts(2);
  api_.Heal();
  executor_.Advance(2min);
  for (const char* path : {kSet, kMap, kService, kClass})
    EXPECT_EQ(api_.Find(path), nullptr) << path;
  EXPECT_EQ(Label("n1", kDriver), "(none)");
  EXPECT_THAT(At(kPolicy)["metadata"].value("finalizers", json::array()), IsEmpty());
  const std::string taken_back =
      "Normal TakenBack ClusterPolicy cluster-policy: everything that it caused was taken back: "
      "its objects, and labels and annotations of 1 node (n1), and what agents left on the hosts "
      "of 2 of 2 nodes";
  EXPECT_EQ(std::ranges::count(Events(), taken_back), 1) << testing::PrintToString(Events());
}

TEST_F(OperatorTest, NodesOfWhichSomethingIsLeftAreNamedUpToTwenty) {
  for (int i = 3; i <= 23; ++i) Put("/api/v1/nodes/n" + std::to_string(i), At(kNode));
  PutPolicy();
  Start();
  api_.Fail({.status = 500, .times = -1, .method = "PATCH", .path = "/api/v1/nodes/n7"});
  api_.Merge(kPolicy, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(30s);
  EXPECT_THAT(Condition("Ready")["message"].get<std::string>(),
              HasSubstr("labels and annotations of 1 node (n7)"));
  ReleaseHosts(2);
  api_.Heal();
  executor_.Advance(2min);
  EXPECT_THAT(Events(), Contains(AllOf(HasSubstr("labels and annotations of 22 nodes (n1, n10, "),
                                       HasSubstr("n7 and 2 more)"))));
}

TEST_F(OperatorTest, WhatAgentsLeftIsTakenBackAlsoWhereTheirPolicyCannotBeReadAnyMore) {
  PutPolicy();
  Start();
  RunAgents();
  ASSERT_TRUE(IsHeld());
  operator_.reset();
  api_.Merge(kPolicy, {{"spec", {{"mig", {{"strategy", "sometimes"}}}}}});
  DeletePolicy();
  Start();
  executor_.Advance(15s);
  EXPECT_NE(api_.Find(kRelease), nullptr);
  EXPECT_TRUE(IsHeld());
  ReleaseHosts(2);
  executor_.Advance(15s);
  EXPECT_EQ(api_.Find(kState), nullptr);
  EXPECT_FALSE(IsHeld());
}

TEST_F(OperatorTest, WhatAgentsLeftOnHostsIsTakenBackByPodsBeforeAPolicyGoes) {
  PutPolicy();
  Start();
  RunAgents();
  DeletePolicy();
  executor_.Advance(3s);
  EXPECT_EQ(api_.Find(kSet), nullptr);
  const json set = At(kRelease);
  EXPECT_FALSE(set["metadata"].contains("ownerReferences"))
      << "who deletes first what the policy owns would delete it again and again";
  const json pod = set["spec"]["template"]["spec"];
  const json& container = pod["containers"][0];
  const auto command = [&](const json& words) { return words.dump(); };
  EXPECT_THAT(command(container["command"]), HasSubstr(R"("--host","--keep-state","--linger")"));
  EXPECT_THAT(command(container["readinessProbe"]), HasSubstr(R"("--keep-state","--check")"));
  EXPECT_EQ(pod["automountServiceAccountToken"], false);
  for (const char* of_agents : {"args", "ports", "livenessProbe", "startupProbe"})
    EXPECT_FALSE(container.contains(of_agents)) << of_agents;
  EXPECT_NE(set["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"], "penstock-agent");
  EXPECT_TRUE(IsHeld());
  ReleaseHosts(1);
  PutAgentPod("n2", "x", false);
  api_.Merge(
      "/api/v1/namespaces/gpu-operator/pods/penstock-agent-x",
      {{"metadata", {{"labels", {{"app.kubernetes.io/instance", "penstock-host-release"}}}}}});
  executor_.Advance(12s);
  EXPECT_THAT(TextAt(Condition("Ready"), "/message"),
              HasSubstr("what agents left on the hosts of 1 of 2 nodes: n2: agent: "
                        "CrashLoopBackOff"));
  api_.Merge(kState, {{"status", {{"summary", {{"held", 1}}}}}});
  EXPECT_NE(api_.Find(kState), nullptr) << "an agent that has not ended would write it again";
  ReleaseHosts(2);
  executor_.Advance(12s);
  EXPECT_FALSE(IsHeld());
  EXPECT_EQ(api_.Find(kRelease), nullptr);
  EXPECT_EQ(api_.Find(kReleaseMap), nullptr);
  EXPECT_EQ(api_.Find(kState), nullptr);
  EXPECT_THAT(Events(),
              Contains(AllOf(testing::StartsWith("Normal TakenBack"),
                             EndsWith("and what agents wrote to 2 nodes (n1, n2), and what "
                                      "agents left on the hosts of 2 of 2 nodes, but for the CDI "
                                      "specifications of 1 node (n1), whose devices are held"))));
}

TEST_F(OperatorTest, NothingIsTakenBackBecauseTheWatchOfThePolicyThatFollowsLags) {
  PutPolicy();
  Start();
  RunAgents();
  api_.Fail({.status = 503,
             .times = -1,
             .method = "WATCH",
             .path = "/apis/penstock.io/v1alpha1/penstocks"});
  api_.Disconnect();
  executor_.Advance(20s);
  Put(kNative, {{"apiVersion", "penstock.io/v1alpha1"}, {"kind", "Penstock"}});
  DeletePolicy();
  executor_.Advance(10s);
  EXPECT_TRUE(TextAt(At(kSet), "/metadata/deletionTimestamp").empty());
  EXPECT_EQ(api_.Find(kRelease), nullptr);
  EXPECT_TRUE(IsHeld());
  api_.Heal();
  executor_.Advance(2min);
  EXPECT_FALSE(IsHeld());
  EXPECT_TRUE(TextAt(At(kSet), "/metadata/deletionTimestamp").empty());
  EXPECT_EQ(api_.Find(kRelease), nullptr);
}

TEST_F(OperatorTest, PodsThatTakeBackMayRunAlsoWhereThePolicyThatLabelledTheNamespaceWentFirst) {
  PutPolicy();
  api_.Merge(kPolicy, kLabelsNamespace);
  Put(kNative, {{"apiVersion", "penstock.io/v1alpha1"}, {"kind", "Penstock"}});
  Start();
  RunAgents();
  EXPECT_EQ(NamespaceLabel(), "privileged");
  DeletePolicy();
  executor_.Advance(10s);
  ASSERT_FALSE(IsHeld());
  api_.Remove(kPolicy);
  EXPECT_EQ(NamespaceLabel(), "") << "the policies in force do not ask for it";
  api_.Merge(kNative, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(3s);
  ASSERT_NE(api_.Find(kRelease), nullptr);
  EXPECT_EQ(NamespaceLabel(), "privileged");
  operator_.reset();
  Start();
  ASSERT_NE(api_.Find(kRelease), nullptr);
  EXPECT_EQ(NamespaceLabel(), "privileged") << "no policy says any more that it was asked for";
  ReleaseHosts(2);
  executor_.Advance(12s);
  EXPECT_EQ(NamespaceLabel(), "");
  EXPECT_THAT(At(kNative)["metadata"].value("finalizers", json::array()), IsEmpty());
}

TEST_F(OperatorTest, TheNamespaceIsLabelledNoMoreForPoliciesThatCameAfterEverythingWasTakenBack) {
  PutPolicy();
  api_.Merge(kPolicy, kLabelsNamespace);
  Start();
  DeletePolicy();
  executor_.Advance(3s);
  EXPECT_EQ(NamespaceLabel(), "privileged");
  ReleaseHosts(2);
  executor_.Advance(12s);
  ASSERT_FALSE(IsHeld());
  api_.Remove(kPolicy);
  PutPolicy();
  executor_.Advance(10s);
  DeletePolicy();
  executor_.Advance(3s);
  ASSERT_NE(api_.Find(kRelease), nullptr);
  EXPECT_EQ(NamespaceLabel(), "");
}

TEST_F(OperatorTest, ANodeThatLeavesTheClusterWhileHostsAreTakenBackHoldsNoPolicy) {
  PutPolicy();
  Start();
  RunAgents();
  DeletePolicy();
  executor_.Advance(3s);
  ReleaseHosts(1, 1);
  executor_.Advance(3s);
  EXPECT_TRUE(IsHeld()) << "the other node is there";
  api_.Remove("/api/v1/nodes/n2");
  executor_.Advance(12s);
  EXPECT_FALSE(IsHeld());
  EXPECT_THAT(Events(), Contains(AllOf(testing::StartsWith("Normal TakenBack"),
                                       EndsWith("the hosts of 1 of 1 nodes"))));
}

TEST_F(OperatorTest, AKindThatIsNotServedAnyMoreHoldsTheLastPolicyOnlyForAWhile) {
  PutPolicy();
  Start();
  RunAgents();
  api_.NotInstalled("/apis/penstock.io/v1alpha1/penstocks");
  DeletePolicy();
  executor_.Advance(30s);
  EXPECT_TRUE(TextAt(At(kSet), "/metadata/deletionTimestamp").empty())
      << "a server that starts does not serve all kinds at first";
  executor_.Advance(2min);
  ASSERT_NE(api_.Find(kRelease), nullptr);
  ReleaseHosts(2);
  executor_.Advance(12s);
  EXPECT_FALSE(IsHeld());
}

TEST_F(OperatorTest, ANodeThatDoesNotRespondHoldsAPolicyForAMinuteAndIsNamed) {
  PutPolicy();
  Start();
  RunAgents();
  api_.Merge(kSet, kWaitsForPods);
  DeletePolicy();
  executor_.Advance(3s);
  ReleaseHosts(1);
  api_.Merge(kRelease, kWaitsForPods);
  PutAgentPod("n2", "x", false);
  api_.Merge(
      "/api/v1/namespaces/gpu-operator/pods/penstock-agent-x",
      {{"metadata", {{"labels", {{"app.kubernetes.io/instance", "penstock-host-release"}}}}}});
  executor_.Advance(50s);
  EXPECT_TRUE(IsHeld());
  executor_.Advance(25s);
  EXPECT_FALSE(IsHeld()) << "its pods of both DaemonSets hold it together";
  for (const char* path : {kSet, kRelease})
    EXPECT_EQ(api_.Find(path), nullptr) << "its pod would keep the name from the next policy";
  EXPECT_EQ(api_.Find(kState), nullptr);
  EXPECT_THAT(
      Events(),
      Contains(AllOf(testing::StartsWith("Warning TakenBack"), HasSubstr("but not everywhere"),
                     HasSubstr("the hosts of 1 of 2 nodes (n2: agent: CrashLoopBackOff; "
                               "`penstock cleanup --host --keep-state` takes it back on a node"))));
}

TEST_F(OperatorTest, ANodeThatDoesNotRespondKeepsNoAgentsFromANewPolicy) {
  PutPolicy();
  Start();
  RunAgents();
  api_.Merge(kSet, kWaitsForPods);
  DeletePolicy();
  executor_.Advance(3s);
  PutPolicy("/apis/nvidia.com/v1/clusterpolicies/next");
  executor_.Advance(30s);
  EXPECT_FALSE(TextAt(At(kSet), "/metadata/deletionTimestamp").empty());
  executor_.Advance(40s);
  EXPECT_TRUE(TextAt(At(kSet), "/metadata/deletionTimestamp").empty());
  EXPECT_EQ(api_.Find(kRelease), nullptr);
}

TEST_F(OperatorTest, ADriverThatTakesLongToEndKeepsTheNameOfItsDaemonSet) {
  const std::string driver =
      "/apis/apps/v1/namespaces/gpu-operator/daemonsets/nvidia-driver-daemonset-x";
  Put(driver, {{"kind", "DaemonSet"},
               {"metadata",
                {{"finalizers", {"foregroundDeletion"}},
                 {"labels",
                  {{"app.kubernetes.io/managed-by", "penstock-operator"},
                   {"penstock.io/driver-pool", "x"}}}}}});
  PutPolicy();
  Start();
  RunAgents();
  executor_.Advance(3min);
  ASSERT_NE(api_.Find(driver), nullptr) << "another one would begin beside it";
  EXPECT_FALSE(TextAt(At(driver), "/metadata/deletionTimestamp").empty());
}

TEST_F(OperatorTest, HostsStayWhereAnotherPolicyIsInForceAndAgentsComeBackAtOnce) {
  PutPolicy();
  Start();
  RunAgents();
  DeletePolicy();
  executor_.Advance(3s);
  ASSERT_NE(api_.Find(kRelease), nullptr);
  PutPolicy("/apis/nvidia.com/v1/clusterpolicies/next");
  executor_.Advance(10s);
  EXPECT_EQ(api_.Find(kRelease), nullptr);
  EXPECT_NE(api_.Find(kSet), nullptr);
  EXPECT_NE(api_.Find(kState), nullptr);
  EXPECT_FALSE(IsHeld());
}

// Also where the last policy leaves engines as they are: another one before may have had them
// configured, and a node may have been given up with it.
TEST_F(OperatorTest, AnOperatorThatStartsMeanwhileGoesOnTakingBack) {
  PutPolicy();
  api_.Merge(kPolicy, {{"spec", {{"toolkit", {{"enabled", false}}}}}});
  Start();
  DeletePolicy();
  executor_.Advance(3s);
  ASSERT_NE(api_.Find(kRelease), nullptr);
  operator_.reset();
  Start();
  ASSERT_NE(api_.Find(kRelease), nullptr);
  EXPECT_TRUE(IsHeld());
  ReleaseHosts(2);
  executor_.Advance(12s);
  EXPECT_FALSE(IsHeld());
}

TEST_F(OperatorTest, ANamespaceThatIsBeingDeletedIsSaidAndNotFlooded) {
  PutPolicy();
  Start();
  RunAgents();
  api_.Merge("/api/v1/namespaces/gpu-operator",
             {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  api_.ForgetCalls();
  for (const char* path : {kSet, kMap, kService}) api_.Remove(path);
  executor_.Advance(20s);
  EXPECT_EQ(State(), "notReady");
  EXPECT_EQ(Condition("Error")["reason"], "ReconcileFailed");
  const std::string why =
      "unable to create new content in namespace gpu-operator because it is being terminated";
  EXPECT_THAT(TextAt(Condition("Error"), "/message"), HasSubstr(why));
  EXPECT_THAT(Events(), Contains(testing::AllOf(testing::StartsWith("Warning ReconcileFailed"),
                                                HasSubstr(why))));
  api_.ForgetCalls();
  executor_.Advance(1h);
  EXPECT_LE(api_.Writes(), 3u * 15u) << "three objects, every five minutes";
  EXPECT_NE(api_.Find(kClass), nullptr) << "what is not in that namespace stays";

  api_.Merge(kPolicy, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(1min);
  EXPECT_EQ(api_.Find(kClass), nullptr);
  EXPECT_EQ(Label("n1", kDriver), "(none)");
  EXPECT_THAT(At(kPolicy)["metadata"].value("finalizers", json::array()), IsEmpty());
}

TEST_F(OperatorTest, WhatWasTakenBackIsSaidOnceAlsoWhereTheAnswerToTheRemovalIsLost) {
  for (const bool is_refused_first : {false, true}) {
    PutPolicy();
    Start();
    DeletePolicy();
    executor_.Advance(20s);
    api_.ForgetCalls();
    ReleaseHosts(2);
    if (is_refused_first) {
      api_.Fail({.status = 500, .times = -1, .method = "PATCH", .path = kPolicy});
      executor_.Advance(2min);
      api_.Heal();
    }
    api_.Fail(
        {.status = 0, .times = -1, .method = "PATCH", .path = kPolicy, .after_the_deed = true});
    executor_.Advance(2min);
    EXPECT_FALSE(IsHeld());
    EXPECT_THAT(Events(), testing::Contains(HasSubstr("TakenBack")).Times(1)) << is_refused_first;
    EXPECT_THAT(Written(),
                Not(Contains(testing::StartsWith("PATCH /api/v1/namespaces/default/events"))));
    api_.Heal();
    api_.Remove(kPolicy);
    executor_.Advance(1min);
  }
}

TEST_F(OperatorTest, ADeletedPolicyIsHeldAlsoWhereAStatusComesFirst) {
  PutPolicy();
  Start();
  RunAgents();
  api_.Merge(kPolicy, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(10ms);
  api_.Merge(kSet, {{"status", {{"numberReady", 1}}}});
  executor_.Advance(350ms);
  EXPECT_THAT(At(kPolicy)["metadata"].value("finalizers", json::array()), Not(IsEmpty()))
      << "what it caused is still there";
  executor_.Advance(2min);
  EXPECT_EQ(api_.Find(kSet), nullptr);
  EXPECT_THAT(At(kPolicy)["metadata"].value("finalizers", json::array()), IsEmpty());
}

TEST_F(OperatorTest, ANodeThatIsGoneBeforeTheAnswerAboutItHoldsNoPolicy) {
  PutPolicy();
  Start();
  const std::string gone = "/api/v1/nodes/n3";
  api_.SetLateAnswers(500ms);
  for (auto after = 0ms; after < 1000ms; after += 50ms) {
    Put(gone,
        {{"kind", "Node"},
         {"metadata", {{"labels", {{"feature.node.kubernetes.io/pci-10de.present", "true"}}}}}});
    executor_.Advance(after);
    api_.Remove(gone);
    executor_.Advance(2s);
  }
  api_.Merge(kPolicy, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(20s);
  ReleaseHosts(2);
  executor_.Advance(40s);
  EXPECT_THAT(At(kPolicy)["metadata"].value("finalizers", json::array()), IsEmpty())
      << At(kPolicy)["status"].dump(1);
}

TEST_F(OperatorTest, AnApiServerThatIsGoneForAWhileIsLivedThrough) {
  PutPolicy();
  Start();
  api_.SetUp(false);
  executor_.Advance(5min);
  api_.SetUp(true);
  api_.Merge(kPolicy, {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}});
  executor_.Advance(2min);
  EXPECT_EQ(At(kSet)["spec"]["template"]["metadata"]["labels"]["team"], "a");
}

// What it refused stands until it is asked again, which may be after it permits to write a status.
TEST_F(OperatorTest, AnApiServerThatHasNotReadItsRolesYetIsNoMissingRule) {
  PutPolicy();
  Start();
  RunAgents();
  ASSERT_EQ(State(), "ready");
  for (const char* method : {"GET", "WATCH"})
    api_.Fail({.status = 403, .times = -1, .method = method});
  api_.EndStreams();
  api_.Merge(kPolicy, {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}});
  executor_.Advance(25s);
  api_.Heal();
  for (int i = 0; i < 120; ++i) {
    Report("n1", true, "Ready", "host", std::to_string(i));
    executor_.Advance(1s);
    ASSERT_EQ(Condition("Error")["status"], "False") << i << ": " << Condition("Error");
  }
  EXPECT_EQ(At(kSet)["spec"]["template"]["metadata"]["labels"]["team"], "a");
  api_.Forbid("WATCH", "/api/v1/nodes");
  api_.Forbid("GET", "/api/v1/nodes");
  api_.EndStreams();
  executor_.Advance(3min);
  EXPECT_THAT(TextAt(Condition("Error"), "/message"), HasSubstr("missing RBAC rule"));
  EXPECT_EQ(State(), "notReady");
  api_.Heal();
  executor_.Advance(3min);
  EXPECT_EQ(Condition("Error")["status"], "False");
}

// A server that has just started does not know its roles yet, and refuses everything.
TEST_F(OperatorTest, AnApiServerThatDiesWhileAgentsStartIsLivedThrough) {
  for (const auto after : {0ms, 40ms, 100ms}) {
    SCOPED_TRACE(after.count());
    operator_ = std::make_unique<Operator>(
        api_, Operator::Options{.installation = {.namespace_name = "gpu-operator",
                                                 .image = "localhost/penstock:1"},
                                .host = "pod-1"});
    operator_->Start();
    executor_.Advance(1s);
    Establish(api_);
    executor_.Advance(5s);
    PutPolicy();
    api_.SetLateAnswers(10ms);
    executor_.Advance(after);
    api_.SetUp(false);
    executor_.Advance(4s);
    api_.SetUp(true);
    api_.Fail({.status = 403, .times = -1});
    executor_.Advance(2s);
    api_.Heal();
    executor_.Advance(35s);
    RunAgents();
    executor_.Advance(60s);
    EXPECT_EQ(State(), "ready") << At(kPolicy)["status"].dump(1);
    api_.SetLateAnswers({});
    api_.Remove(kPolicy);
    executor_.Advance(90s);
    ASSERT_EQ(api_.Find(kSet), nullptr);
  }
}

TEST_F(OperatorTest, CountsItsReconciliationsForTheMetrics) {
  PutPolicy();
  Start();
  RunAgents();
  ASSERT_EQ(State(), "ready");
  executor_.Advance(1h);
  Operator::Numbers numbers = operator_->numbers();
  EXPECT_EQ(numbers.device_nodes, 1u);
  ASSERT_EQ(numbers.policy_states.size(), 1u);
  EXPECT_EQ(numbers.policy_states[0].kind, "ClusterPolicy");
  EXPECT_TRUE(numbers.policy_states[0].ready);
  EXPECT_TRUE(numbers.passes.last_ready);
  EXPECT_FALSE(numbers.passes.last_failed);
  EXPECT_EQ(numbers.passes.succeeded, executor_.clock().Wall()) << "also at rest";
  const std::uint64_t passes = numbers.passes.all;

  const base::WallTime until = executor_.clock().Wall();
  Report("n1", false, "NoDriver");
  executor_.Advance(10min);
  numbers = operator_->numbers();
  EXPECT_FALSE(numbers.policy_states[0].ready);
  EXPECT_FALSE(numbers.passes.last_ready);
  EXPECT_GT(numbers.passes.all, passes);
  EXPECT_EQ(numbers.passes.failed, 0u) << "not ready is no failure";
  ASSERT_TRUE(numbers.passes.succeeded);
  EXPECT_GE(*numbers.passes.succeeded, until) << "it was ready until then";
  EXPECT_LE(*numbers.passes.succeeded, until + 5s);

  api_.Merge(kPolicy, {{"spec", {{"migManager", {{"enabled", "perhaps"}}}}}});
  executor_.Advance(10s);
  EXPECT_TRUE(operator_->numbers().passes.last_failed);
  EXPECT_GT(operator_->numbers().passes.failed, 0u);
}

}  // namespace
}  // namespace penstock::cluster
