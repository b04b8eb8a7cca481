// Tests what the operator does with DeviceConfig objects, against a fake API server in this
// process.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "operator/json_values.h"
#include "operator/operator.h"
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
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr char kKindPath[] = "/apis/amd.com/v1alpha1/deviceconfigs";
constexpr char kHere[] = "/apis/amd.com/v1alpha1/namespaces/gpu-operator/deviceconfigs/";
constexpr char kElsewhere[] = "/apis/amd.com/v1alpha1/namespaces/team/deviceconfigs/";
constexpr char kConfig[] = "/apis/amd.com/v1alpha1/namespaces/gpu-operator/deviceconfigs/default";
constexpr char kClusterPolicy[] = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy";
constexpr char kSite[] = "/apis/penstock.io/v1alpha1/penstocks/site";
constexpr char kAgents[] = "/apis/apps/v1/namespaces/gpu-operator/daemonsets/penstock-agent";
constexpr char kHostRelease[] =
    "/apis/apps/v1/namespaces/gpu-operator/daemonsets/penstock-host-release";
constexpr char kAgentsMap[] = "/api/v1/namespaces/gpu-operator/configmaps/penstock-agent";
constexpr char kExporterService[] =
    "/api/v1/namespaces/gpu-operator/services/default-metrics-exporter";
constexpr char kMonitor[] =
    "/apis/monitoring.coreos.com/v1/namespaces/gpu-operator/servicemonitors/"
    "default-metrics-exporter";
constexpr char kNvidiaClass[] = "/apis/node.k8s.io/v1/runtimeclasses/nvidia";
constexpr char kTheirs[] = "amd.node.kubernetes.io/deviceconfig-finalizer";
constexpr char kOurs[] = "penstock.io/cleanup";

class DeviceConfigTest : public testing::Test {
 protected:
  DeviceConfigTest() {
    api_.Put("/api/v1/namespaces/gpu-operator", {{"kind", "Namespace"}});
    for (const char* node : {"n1", "n2", "n3"})
      api_.Put(std::string("/api/v1/nodes/") + node, {{"kind", "Node"}});
  }

  void PutConfig(const std::string& path, const json& metadata = json::object()) {
    api_.Put(path, {{"apiVersion", "amd.com/v1alpha1"},
                    {"kind", "DeviceConfig"},
                    {"metadata", metadata},
                    {"spec", {{"driver", {{"enable", false}}}}}});
  }

  void PutClusterPolicy() {
    api_.Put(
        kClusterPolicy,
        {{"apiVersion", "nvidia.com/v1"}, {"kind", "ClusterPolicy"}, {"spec", json::object()}});
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

  void PutExporterConfig() {
    PutConfig(kConfig);
    api_.Merge(kConfig, {{"spec", {{"metricsExporter", {{"enable", true}}}}}});
  }
  void AskForMonitor() {
    const json prometheus = {{"serviceMonitor", {{"enable", true}}}};
    api_.Merge(kConfig, {{"spec", {{"metricsExporter", {{"prometheus", prometheus}}}}}});
  }

  /// As another program has made it. `owner`: of its controller; empty: it has none.
  void PutService(const json& owner, const std::string& manager = "helm") {
    json service = {{"apiVersion", "v1"},
                    {"kind", "Service"},
                    {"metadata", {{"labels", {{"app", "theirs"}}}}},
                    {"spec", {{"type", "NodePort"}, {"selector", {{"app", "theirs"}}}}}};
    if (!owner.empty()) service["metadata"]["ownerReferences"] = json::array({owner});
    api_.Put(kExporterService, service, manager);
  }
  void PutMonitor(const json& owner) {
    api_.Put(kMonitor,
             {{"apiVersion", "monitoring.coreos.com/v1"},
              {"kind", "ServiceMonitor"},
              {"metadata", {{"ownerReferences", json::array({owner})}}},
              {"spec", {{"selector", {{"matchLabels", {{"app", "theirs"}}}}}}}},
             "manager");
  }
  json OwnerByTheirOperator() {
    const json& config = At(kConfig);
    return {
        {"apiVersion", "amd.com/v1alpha1"}, {"kind", "DeviceConfig"}, {"name", "default"},
        {"uid", config["metadata"]["uid"]}, {"controller", true},     {"blockOwnerDeletion", true}};
  }

  void RunAgents(int nodes) {
    api_.Merge(kAgents, {{"status",
                          {{"observedGeneration", 1000},
                           {"desiredNumberScheduled", nodes},
                           {"updatedNumberScheduled", nodes},
                           {"numberReady", nodes}}}});
    executor_.Advance(3s);
  }

  /// `driver`: its version; empty: the agent found none.
  void Report(const std::string& node, const std::string& vendor, const std::string& driver,
              bool ready = true) {
    json row = {{"vendor", vendor}};
    if (!driver.empty()) row.update({{"driver", driver}, {"driverSource", "host"}});
    api_.Put("/apis/penstock.io/v1alpha1/nodestates/" + node,
             {{"kind", "NodeState"},
              {"status",
               {{"vendors", json::array({row})},
                {"conditions",
                 {{{"type", "Ready"},
                   {"status", ready ? "True" : "False"},
                   {"reason", ready ? "Ready" : "DriverMissing"}}}}}}});
    executor_.Advance(3s);
  }

  void Delete(const std::string& path) {
    api_.Merge(path, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  }

  const json& At(const std::string& path) {
    const json* found = api_.Find(path);
    if (found == nullptr) throw std::runtime_error("there is no " + path);
    return *found;
  }
  json Finalizers(const std::string& path = kConfig) {
    return At(path)["metadata"].value("finalizers", json::array());
  }
  json Status(const std::string& path = kConfig) {
    return At(path).value("status", json::object());
  }
  std::string Condition(const std::string& type, const char* key,
                        const std::string& path = kConfig) {
    for (const json& one : Status(path).value("conditions", json::array()))
      if (one["type"] == type) return one.value(key, "");
    return "(none)";
  }
  json OwnerOf(const std::string& path) {
    const json owners = At(path)["metadata"].value("ownerReferences", json::array());
    return owners.empty() ? json() : owners[0]["kind"];
  }
  json NumbersOf(const std::string& component) {
    const json found = Status().value(component, json::object());
    return {found.value("nodesMatchingSelectorNumber", -1), found.value("desiredNumber", -1),
            found.value("availableNumber", -1)};
  }
  /// Whether the one object was asked for.
  bool WasLookedFor(const std::string& path) {
    return std::ranges::any_of(api_.calls(), [&](const ApiCall& call) {
      const auto selector = call.query.find("fieldSelector");
      return selector != call.query.end() &&
             path == call.path + "/" + selector->second.substr(selector->second.find('=') + 1);
    });
  }
  /// "METHOD PATH" of what was written.
  std::vector<std::string> Writes() {
    std::vector<std::string> writes;
    for (const ApiCall& call : api_.calls())
      if (call.method != "GET") writes.push_back(call.method + " " + call.path);
    return writes;
  }
  std::vector<std::string> EventsAbout(const std::string& name) {
    std::vector<std::string> texts;
    for (const ApiCall& call : api_.calls()) {
      if (call.method != "POST" || !call.path.ends_with("/events")) continue;
      const json event = json::parse(call.body);
      if (event["involvedObject"]["name"] == name)
        texts.push_back(call.path + ": " + event["message"].get<std::string>());
    }
    return texts;
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  std::unique_ptr<Operator> operator_;
};

TEST_F(DeviceConfigTest, MakesAgentsThatItOwns) {
  PutConfig(kConfig);
  Start();
  for (const char* path : {kAgents, kAgentsMap}) EXPECT_EQ(OwnerOf(path), "DeviceConfig") << path;
  EXPECT_EQ(At(kAgents)["metadata"]["ownerReferences"][0]["uid"], At(kConfig)["metadata"]["uid"]);
  EXPECT_EQ(Finalizers(), json({kOurs}));
  EXPECT_EQ(Condition("Ready", "status"), "False");
}

TEST_F(DeviceConfigTest, AnObjectInAnotherNamespaceIsNeitherReadNorWritten) {
  for (int i = 0; i < 200; ++i) PutConfig(kElsewhere + std::to_string(i));
  Start();
  executor_.Advance(2min);
  EXPECT_EQ(api_.Find(kAgents), nullptr);
  for (const ApiCall& call : api_.calls()) {
    EXPECT_NE(call.path, kKindPath) << "of all namespaces";
    EXPECT_THAT(call.path, Not(HasSubstr("/namespaces/team/")));
  }
  PutConfig(kConfig);
  executor_.Advance(5s);
  EXPECT_NE(api_.Find(kAgents), nullptr) << "they do not fill up what is kept";
}

TEST_F(DeviceConfigTest, TheStatusCountsTheNodesWithDevicesOfTheVendor) {
  PutConfig(kConfig);
  Start();
  RunAgents(3);
  Report("n1", "amd", "6.12.0");
  Report("n2", "amd", "", false);
  Report("n3", "nvidia", "550.1");
  Report("ghost", "amd", "6.12.0");  // there is no such node
  EXPECT_EQ(NumbersOf("devicePlugin"), json({2, 2, 1}));
  EXPECT_EQ(Condition("Ready", "status"), "False");
  EXPECT_THAT(Condition("Ready", "message"), HasSubstr("1 of 2 nodes not ready: n2"));
  Report("n2", "amd", "6.12.0");
  EXPECT_EQ(NumbersOf("devicePlugin"), json({2, 2, 2}));
  EXPECT_EQ(Condition("Ready", "status"), "True");
  EXPECT_EQ(Condition("Ready", "reason"), "OperatorReady");
  EXPECT_EQ(Condition("Error", "status"), "False");
  EXPECT_EQ(Status()["observedGeneration"], At(kConfig)["metadata"]["generation"]);
  for (const char* ours : {"state", "namespace", "nodes", "drivers"})
    EXPECT_FALSE(Status().contains(ours)) << ours << " is not in the vendor's schema";
  api_.Remove("/apis/penstock.io/v1alpha1/nodestates/n2");
  executor_.Advance(3s);
  EXPECT_EQ(NumbersOf("devicePlugin"), json({1, 1, 1}));
}

TEST_F(DeviceConfigTest, APenstockObjectCountsTheNodesOfAllVendorsAndAClusterPolicyItsOwn) {
  api_.Put(kSite, {{"apiVersion", "penstock.io/v1alpha1"}, {"kind", "Penstock"}});
  PutClusterPolicy();
  Start();
  api_.Merge(
      "/api/v1/nodes/n3",
      {{"metadata", {{"labels", {{"feature.node.kubernetes.io/pci-10de.present", "true"}}}}}});
  RunAgents(2);
  Report("n1", "amd", "", false);
  Report("n3", "nvidia", "550.1");
  const json ready = {{"ready", 1}}, both = {{"ready", 1}, {"notReady", 1}};
  EXPECT_EQ(Status(kClusterPolicy)["nodes"]["byState"], ready);
  EXPECT_EQ(Status(kClusterPolicy)["state"], "ready");
  EXPECT_EQ(Status(kSite)["nodes"]["byState"], both);
  EXPECT_EQ(Status(kSite)["state"], "notReady");
  EXPECT_EQ(operator_->numbers().fleet.nodes, 2u);
}

TEST_F(DeviceConfigTest, WithoutDevicesOfTheVendorItIsReadyAndSaysSo) {
  PutConfig(kConfig);
  Start();
  RunAgents(1);
  Report("n3", "nvidia", "550.1");
  EXPECT_EQ(Condition("Ready", "status"), "True");
  EXPECT_EQ(Condition("Ready", "message"), "no node with an agent has devices of this vendor");
}

TEST_F(DeviceConfigTest, AloneItEndsStartUpTaints) {
  PutConfig(kConfig);
  Start();
  RunAgents(1);
  api_.Merge(
      "/api/v1/nodes/n1",
      {{"spec", {{"taints", json::array({{{"key", "penstock.io/accelerators-not-ready"}}})}}}});
  Report("n1", "amd", "", false);
  EXPECT_TRUE(At("/api/v1/nodes/n1")["spec"].contains("taints"));
  Report("n1", "amd", "6.12.0");
  EXPECT_FALSE(At("/api/v1/nodes/n1")["spec"].contains("taints"));
}

TEST_F(DeviceConfigTest, AtRestWritesNothingAndNeitherDoesASuccessor) {
  PutConfig(kConfig);
  Start();
  RunAgents(1);
  Report("n1", "amd", "6.12.0");
  executor_.Advance(10s);
  api_.ForgetCalls();
  executor_.Advance(10min);
  EXPECT_THAT(Writes(), IsEmpty());
  operator_.reset();
  Start();
  executor_.Advance(1min);
  EXPECT_THAT(Writes(), IsEmpty());
}

// AMD's first definitions have no conditions in the status.
TEST_F(DeviceConfigTest, AStatusOfWhichTheServerDropsAPartIsNotWrittenAgainAndAgain) {
  api_.Drop("/apis/amd.com/v1alpha1/deviceconfigs", "/status/conditions");
  PutConfig(kConfig);
  Start();
  RunAgents(2);
  Report("n1", "amd", "6.12.0");
  Report("n3", "nvidia", "550.1");
  executor_.Advance(10s);
  EXPECT_FALSE(Status().contains("conditions"));
  EXPECT_EQ(NumbersOf("devicePlugin"), json({1, 1, 1}));
  api_.ForgetCalls();
  for (int i = 0; i < 9; ++i) {  // of the kind of change that lets each status be looked at
    Report("n3", "nvidia", "560." + std::to_string(i));
    executor_.Advance(30s);
  }
  EXPECT_THAT(Writes(), Not(Contains(HasSubstr("deviceconfigs"))));
  Report("n2", "amd", "6.12.0");
  EXPECT_EQ(NumbersOf("devicePlugin"), json({2, 2, 2})) << "what it has is kept as it should be";
}

TEST_F(DeviceConfigTest, WhatAnotherClientWritesIntoAStatusOfWhichAPartIsDroppedDoesNotStay) {
  api_.Drop("/apis/amd.com/v1alpha1/deviceconfigs", "/status/conditions");
  PutConfig(kConfig);
  Start();
  RunAgents(2);
  Report("n1", "amd", "6.12.0");
  for (const auto later : {10s, 1s, 100s}) {
    SCOPED_TRACE(later.count());
    executor_.Advance(later);
    const json other = {{"nodesMatchingSelectorNumber", 7}};
    api_.Merge(kConfig, {{"status", {{"devicePlugin", other}}}});
    executor_.Advance(8s);
    EXPECT_EQ(NumbersOf("devicePlugin"), json({1, 1, 1}));
  }
}

TEST_F(DeviceConfigTest, ADefinitionThatGetsAFieldOfTheStatusHasItFilledIn) {
  api_.Drop("/apis/amd.com/v1alpha1/deviceconfigs", "/status/conditions");
  PutConfig(kConfig);
  Start();
  RunAgents(2);
  Report("n1", "amd", "6.12.0");
  api_.Heal();
  executor_.Advance(11min);
  Report("n3", "nvidia", "550.1");
  EXPECT_EQ(Condition("Ready", "status"), "True");
}

TEST_F(DeviceConfigTest, AServiceOfSomeoneElseStaysAndIsNamed) {
  const json theirs = {{"apiVersion", "apps/v1"},
                       {"kind", "Deployment"},
                       {"name", "web"},
                       {"uid", "theirs"},
                       {"controller", true}};
  for (const json& owner : {json::object(), theirs}) {
    SCOPED_TRACE(owner.dump());
    PutExporterConfig();
    PutService(owner);
    const json before = At(kExporterService);
    Start();
    RunAgents(1);
    Report("n1", "amd", "6.12.0");
    executor_.Advance(2min);
    EXPECT_EQ(At(kExporterService), before);
    EXPECT_EQ(Condition("Ready", "status"), "False");
    EXPECT_EQ(Condition("Error", "message"),
              "Service default-metrics-exporter is someone else's and stays as it is: delete or "
              "rename it; `kubectl get services default-metrics-exporter -o yaml "
              "--show-managed-fields` shows whose it is");
    EXPECT_NE(api_.Find(kAgents), nullptr) << "everything else is written";
    api_.Remove(kExporterService);
    executor_.Advance(1min);
    EXPECT_EQ(OwnerOf(kExporterService), "DeviceConfig");
    EXPECT_EQ(Condition("Error", "status"), "False");
    EXPECT_EQ(Condition("Ready", "status"), "True");
    operator_.reset();
    for (const char* path : {kExporterService, kConfig}) api_.Remove(path);
  }
}

TEST_F(DeviceConfigTest, AServiceOfSomeoneElseHoldsNoDeletedObject) {
  PutExporterConfig();
  PutService({});
  const json before = At(kExporterService);
  PutClusterPolicy();
  Start();
  Delete(kClusterPolicy);
  executor_.Advance(2min);
  EXPECT_THAT(Finalizers(kClusterPolicy), IsEmpty()) << Status(kClusterPolicy).dump(1);
  Delete(kConfig);
  executor_.Advance(2min);
  EXPECT_THAT(Finalizers(), IsEmpty());
  EXPECT_EQ(At(kExporterService), before);
}

TEST_F(DeviceConfigTest, ServicesOfTheOperatorThatIsReplacedAreTakenOver) {
  for (const bool beside : {false, true}) {
    SCOPED_TRACE(beside);
    PutExporterConfig();
    PutService(OwnerByTheirOperator(), "manager");
    if (beside) PutClusterPolicy();
    Start();
    EXPECT_EQ(At(kExporterService)["metadata"]["labels"]["app.kubernetes.io/managed-by"],
              "penstock-operator");
    EXPECT_EQ(At(kExporterService)["spec"]["ports"][0]["port"], 5000);
    EXPECT_EQ(At(kExporterService)["metadata"]["ownerReferences"].size(), 1u)
        << "a server refuses two";
    EXPECT_EQ(OwnerOf(kExporterService), beside ? "ClusterPolicy" : "DeviceConfig");
    if (!beside) PutClusterPolicy();
    if (beside) Delete(kClusterPolicy);
    executor_.Advance(1min);
    EXPECT_EQ(At(kExporterService)["metadata"]["ownerReferences"].size(), 1u);
    EXPECT_EQ(OwnerOf(kExporterService), beside ? "DeviceConfig" : "ClusterPolicy");
    EXPECT_EQ(operator_->numbers().problems, 0u);
    operator_.reset();
    for (const char* path : {kExporterService, kConfig, kClusterPolicy}) api_.Remove(path);
  }
}

TEST_F(DeviceConfigTest, OfAServiceThatWasTakenOverNoOldPortStays) {
  for (const int before : {5000, 5500}) {
    SCOPED_TRACE(before);
    PutExporterConfig();
    AskForMonitor();
    PutService(OwnerByTheirOperator(), "manager");
    api_.Merge(kExporterService,
               {{"spec", {{"ports", {{{"name", "exporter-port"}, {"port", before}}}}}}}, "manager");
    PutMonitor(OwnerByTheirOperator());
    Start();
    for (const int port : {5000, 5001}) {
      api_.Merge(kConfig, {{"spec", {{"metricsExporter", {{"port", port}}}}}});
      executor_.Advance(5s);
      ASSERT_EQ(At(kExporterService)["spec"]["ports"].size(), 1u) << At(kExporterService).dump(1);
      EXPECT_EQ(At(kExporterService)["spec"]["ports"][0]["port"], port);
    }
    EXPECT_EQ(At(kExporterService)["metadata"]["labels"]["app"], "theirs");
    EXPECT_FALSE(At(kMonitor)["spec"]["selector"]["matchLabels"].contains("app"))
        << "it would select nothing";
    EXPECT_EQ(operator_->numbers().problems, 0u);
    operator_.reset();
    for (const char* path : {kExporterService, kMonitor, kConfig}) api_.Remove(path);
  }
}

TEST_F(DeviceConfigTest, AServiceThatSomeoneMakesWhileItIsWrittenStaysTheirs) {
  PutExporterConfig();
  Start();
  api_.ForgetCalls();
  api_.SetDelay(200ms);
  api_.Remove(kExporterService);
  for (int i = 0; i < 200 && !WasLookedFor(kExporterService); ++i) executor_.Advance(10ms);
  ASSERT_TRUE(WasLookedFor(kExporterService));
  ASSERT_EQ(api_.Find(kExporterService), nullptr);
  PutService({});
  const json before = At(kExporterService);
  executor_.Advance(1min);
  EXPECT_EQ(At(kExporterService), before);
  EXPECT_THAT(Condition("Error", "message"), HasSubstr("someone else's"));
}

TEST_F(DeviceConfigTest, AServiceWhoseLabelSomeoneRemovesIsStillOurs) {
  PutExporterConfig();
  Start();
  api_.Merge(kExporterService, {{"metadata",
                                 {{"labels", {{"app.kubernetes.io/managed-by", nullptr}}},
                                  {"ownerReferences", json::array()}}},
                                {"spec", {{"type", "NodePort"}}}});
  executor_.Advance(1min);
  EXPECT_EQ(At(kExporterService)["spec"]["type"], "ClusterIP");
  EXPECT_EQ(OwnerOf(kExporterService), "DeviceConfig");
  EXPECT_EQ(operator_->numbers().problems, 0u);
}

TEST_F(DeviceConfigTest, OfTwoTheOlderIsInForceAndTheOtherSaysSo) {
  PutConfig(kConfig);
  executor_.Advance(1min);
  const std::string second = std::string(kHere) + "a-younger-one";
  PutConfig(second);
  Start();
  RunAgents(1);
  EXPECT_EQ(At(kAgents)["metadata"]["ownerReferences"][0]["name"], "default");
  EXPECT_EQ(Condition("Ready", "reason", second), "Ignored");
  EXPECT_EQ(Condition("Ready", "message", second),
            "DeviceConfig default is in force, since it is older; delete one of the two");
  EXPECT_FALSE(Status(second).contains("devicePlugin"));
  Delete(kConfig);
  executor_.Advance(30s);
  EXPECT_EQ(At(kAgents)["metadata"]["ownerReferences"][0]["name"], "a-younger-one");
  EXPECT_THAT(Finalizers(), IsEmpty()) << Status().dump(1);
}

TEST_F(DeviceConfigTest, AnObjectThatCannotBeReadChangesNothingAndSaysWhy) {
  PutConfig(kConfig);
  Start();
  const json before = At(kAgents);
  api_.Merge(kConfig, {{"spec", {{"driver", "yes"}}}});
  executor_.Advance(3s);
  EXPECT_EQ(At(kAgents), before);
  EXPECT_EQ(Condition("Error", "status"), "True");
  EXPECT_EQ(Condition("Error", "reason"), "ValidationError");
  EXPECT_THAT(Condition("Error", "message"), HasSubstr("spec.driver"));
}

TEST_F(DeviceConfigTest, WhileItCannotBeReadOthersClaimNoSuccess) {
  constexpr char kWhy[] =
      "DeviceConfig gpu-operator/default cannot be read: until it is corrected "
      "or deleted";
  PutClusterPolicy();
  PutConfig(kConfig);
  Start();
  RunAgents(1);
  Report("n3", "nvidia", "550.1");
  ASSERT_EQ(Condition("Ready", "status", kClusterPolicy), "True");
  const auto observed = [this] {
    return Status(kClusterPolicy)["conditions"][0].value("observedGeneration", 0);
  };
  const int before = observed();
  ASSERT_EQ(before, At(kClusterPolicy)["metadata"]["generation"].get<int>());
  api_.Merge(kConfig, {{"spec", {{"driver", "yes"}}}});
  executor_.Advance(3s);
  api_.Merge(kClusterPolicy, {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}});
  executor_.Advance(10s);
  EXPECT_EQ(Condition("Ready", "status", kClusterPolicy), "False");
  EXPECT_EQ(TextAt(At(kClusterPolicy), "/status/state"), "notReady");
  EXPECT_THAT(Condition("Error", "message", kClusterPolicy), StartsWith(kWhy));
  EXPECT_EQ(observed(), before) << "nothing of the new one was written";
  EXPECT_EQ(Condition("Error", "reason"), "ValidationError");
  api_.Merge(kConfig, {{"spec", {{"driver", {{"enable", false}}}}}});
  executor_.Advance(3s);
  RunAgents(1);
  EXPECT_EQ(Condition("Ready", "status", kClusterPolicy), "True");
  EXPECT_EQ(observed(), before + 1);
  api_.Merge(kConfig, {{"spec", {{"driver", "yes"}}}});
  executor_.Advance(3s);
  Delete(kClusterPolicy);
  executor_.Advance(10s);
  EXPECT_EQ(Condition("Ready", "reason", kClusterPolicy), "Deleting");
  EXPECT_THAT(Condition("Ready", "message", kClusterPolicy), HasSubstr(kWhy));
}

TEST_F(DeviceConfigTest, ADeletedObjectIsHeldUntilAllIsTakenBack) {
  PutConfig(kConfig);
  Start();
  api_.Fail({.status = 500, .times = -1, .method = "DELETE", .path = kAgents});
  Delete(kConfig);
  executor_.Advance(30s);
  EXPECT_EQ(Condition("Ready", "reason"), "Deleting");
  EXPECT_THAT(Condition("Ready", "message"), HasSubstr("DaemonSet penstock-agent"));
  EXPECT_FALSE(Status().contains("state"));
  EXPECT_EQ(Finalizers(), json({kOurs}));
  api_.Heal();
  executor_.Advance(2min);
  for (const char* path : {kAgents, kAgentsMap}) EXPECT_EQ(api_.Find(path), nullptr) << path;
  EXPECT_THAT(Finalizers(), IsEmpty());
  EXPECT_THAT(EventsAbout("default"),
              Contains(StartsWith("/api/v1/namespaces/gpu-operator/events: everything")));
}

// An object of the cluster cannot have an owner in a namespace.
TEST_F(DeviceConfigTest, TheClusterPolicyOwnsWhatBothWantAndHandsItOver) {
  PutConfig(kConfig);
  Start();
  EXPECT_EQ(OwnerOf(kAgents), "DeviceConfig");
  PutClusterPolicy();
  executor_.Advance(5s);
  for (const char* path : {kAgents, kAgentsMap, kNvidiaClass})
    EXPECT_EQ(OwnerOf(path), "ClusterPolicy") << path;
  EXPECT_EQ(At(kAgents)["metadata"]["ownerReferences"].size(), 1u);
  RunAgents(1);
  Report("n1", "amd", "6.12.0");
  EXPECT_EQ(NumbersOf("devicePlugin"), json({1, 1, 1}));
  EXPECT_EQ(TextAt(At(kClusterPolicy), "/status/state"), "ready");
  Delete(kClusterPolicy);
  executor_.Advance(2min);
  EXPECT_THAT(Finalizers(kClusterPolicy), IsEmpty()) << Status(kClusterPolicy).dump(1);
  EXPECT_EQ(api_.Find(kNvidiaClass), nullptr);
  EXPECT_EQ(OwnerOf(kAgents), "DeviceConfig");
  api_.Remove(kClusterPolicy);
  Delete(kConfig);
  executor_.Advance(2min);
  EXPECT_EQ(api_.Find(kAgents), nullptr);
  EXPECT_THAT(Finalizers(), IsEmpty());
}

// Agents were on all nodes, and their hosts have what they wrote.
TEST_F(DeviceConfigTest, HostsOfAPolicyThatWentFirstAreTakenBackWithTheLastOneWhateverItSelects) {
  PutConfig(kConfig);
  api_.Merge(kConfig, {{"spec", {{"selector", {{"vendor", "amd"}}}}}});
  PutClusterPolicy();
  Start();
  const auto selected = [this](const char* set) {
    return At(set)["spec"]["template"]["spec"]["nodeSelector"].value("vendor", "(all)");
  };
  EXPECT_EQ(selected(kAgents), "(all)");
  Delete(kClusterPolicy);
  executor_.Advance(10s);
  api_.Remove(kClusterPolicy);
  EXPECT_EQ(selected(kAgents), "amd");
  api_.Put("/apis/penstock.io/v1alpha1/nodestates/had-one", {{"kind", "NodeState"}});
  executor_.Advance(3s);
  Delete(kConfig);
  executor_.Advance(3s);
  EXPECT_EQ(selected(kHostRelease), "(all)");
  EXPECT_THAT(At(kHostRelease).dump(), AllOf(HasSubstr("had-one"), HasSubstr("amd")));
}

TEST_F(DeviceConfigTest, AnObjectOfAnotherOperatorGetsAnEventAndNothingElse) {
  const json status = {
      {"conditions",
       {{{"type", "Ready"}, {"status", "True"}, {"reason", "OperatorReady"}, {"message", ""}}}}};
  PutConfig(kConfig, {{"finalizers", {kTheirs}}});
  api_.Merge(kConfig, {{"status", status}});
  Start();
  executor_.Advance(10min);
  EXPECT_EQ(api_.Find(kAgents), nullptr);
  EXPECT_EQ(Status(), status);
  EXPECT_EQ(Finalizers(), json({kTheirs}));
  EXPECT_THAT(Writes(), Not(Contains(HasSubstr("deviceconfigs/default"))));
  EXPECT_THAT(EventsAbout("default"),
              ElementsAre(AllOf(StartsWith("/api/v1/namespaces/gpu-operator/events: another"),
                                HasSubstr(kTheirs))));
  Delete(kConfig);
  executor_.Advance(1min);
  EXPECT_THAT(Writes(), Not(Contains(HasSubstr("deviceconfigs/default"))));
}

TEST_F(DeviceConfigTest, AnotherOperatorsObjectDoesNotKeepAYoungerOneFromBeingInForce) {
  PutConfig(std::string(kHere) + "a-theirs", {{"finalizers", {kTheirs}}});
  executor_.Advance(1min);
  PutConfig(kConfig);
  Start();
  EXPECT_EQ(At(kAgents)["metadata"]["ownerReferences"][0]["name"], "default");
}

TEST_F(DeviceConfigTest, AnObjectThatAnotherOperatorTakesOverIsTakenBackAndItsStatusKept) {
  PutConfig(kConfig);
  Start();
  RunAgents(1);
  Report("n1", "amd", "6.12.0");
  for (const bool restarts : {false, false, false, false, true}) {
    SCOPED_TRACE(restarts);
    const json status = Status();
    if (restarts) operator_.reset();
    api_.Merge(kConfig, {{"metadata", {{"finalizers", {kOurs, kTheirs}}}}});
    if (restarts) Start();
    executor_.Advance(2min);
    EXPECT_EQ(api_.Find(kAgents), nullptr);
    EXPECT_EQ(Finalizers(), json({kTheirs}));
    EXPECT_EQ(Status(), status);
    api_.Merge(kConfig, {{"metadata", {{"finalizers", json::array()}}}});
    executor_.Advance(10s);
    EXPECT_NE(api_.Find(kAgents), nullptr) << "the other operator is gone";
    EXPECT_EQ(Finalizers(), json({kOurs}));
    EXPECT_THAT(Status().dump(), Not(HasSubstr("again and again"))) << "it was this operator's";
  }
}

TEST_F(DeviceConfigTest, MoreThanCanBeKeptChangeNothingUntilSomeAreDeleted) {
  PutClusterPolicy();
  PutConfig(kConfig);
  Start();
  RunAgents(1);
  Report("n1", "amd", "6.12.0");
  const json before = At(kAgents)["spec"], ready = Status(kClusterPolicy);
  ASSERT_EQ(ready["state"], "ready");
  executor_.Advance(1min);
  for (int i = 0; i < 200; ++i) PutConfig(kHere + std::string("a-") + std::to_string(i));
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts);
    if (restarts) operator_.reset();
    api_.Merge(kClusterPolicy,
               {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}, {"status", ready}});
    if (restarts) Start();
    executor_.Advance(5min);
    EXPECT_EQ(At(kAgents)["spec"], before);
    EXPECT_THAT(Finalizers(), ElementsAre(kOurs));
    EXPECT_THAT(Condition("Error", "message", kClusterPolicy),
                HasSubstr("more deviceconfigs in the namespace gpu-operator than 100"));
    EXPECT_EQ(Condition("Ready", "status", kClusterPolicy), "False");
    EXPECT_EQ(TextAt(At(kClusterPolicy), "/status/state"), "notReady");
    api_.ForgetCalls();
    executor_.Advance(10min);
    EXPECT_THAT(Writes(), IsEmpty());
  }
  for (int i = 0; i < 200; ++i) api_.Remove(kHere + std::string("a-") + std::to_string(i));
  executor_.Advance(5min);
  EXPECT_EQ(At(kAgents)["spec"]["template"]["metadata"]["labels"]["team"], "a");
  EXPECT_EQ(Condition("Error", "status", kClusterPolicy), "False");
  EXPECT_EQ(Condition("Ready", "status"), "True");
}

TEST_F(DeviceConfigTest, TheDefinitionOfAnotherOperatorStaysAndIsUsed) {
  const auto path = [](const std::string& name) {
    return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name;
  };
  const json theirs = {
      {"kind", "CustomResourceDefinition"},
      {"metadata", {{"annotations", {{"controller-gen.kubebuilder.io/version", "v0.17.0"}}}}},
      {"spec", {{"scope", "theirs"}}}};
  for (const char* name : {"deviceconfigs.amd.com", "clusterpolicies.nvidia.com"})
    api_.Put(path(name), theirs);
  PutConfig(kConfig);
  Start();
  EXPECT_EQ(At(path("deviceconfigs.amd.com"))["spec"], theirs["spec"]);
  EXPECT_EQ(At(path("clusterpolicies.nvidia.com"))["spec"]["scope"], "Cluster")
      << "NVIDIA's operator does not run beside this one";
  EXPECT_NE(api_.Find(kAgents), nullptr);
}

TEST_F(DeviceConfigTest, AServerWithoutTheKindHasNoneOfItsObjects) {
  api_.NotInstalled("/apis/amd.com/");
  PutClusterPolicy();
  Start();
  EXPECT_EQ(api_.Find(kAgents), nullptr) << "a server that starts serves it soon";
  executor_.Advance(90s);
  EXPECT_EQ(OwnerOf(kAgents), "ClusterPolicy");
  RunAgents(1);
  Report("n3", "nvidia", "550.1");
  EXPECT_EQ(TextAt(At(kClusterPolicy), "/status/state"), "ready") << Status(kClusterPolicy).dump(1);
  api_.Heal();
  PutConfig(kConfig);
  executor_.Advance(3min);
  EXPECT_EQ(Finalizers(), json({kOurs}));
}

TEST_F(DeviceConfigTest, AKindThatTheServerNoLongerHasIsNoErrorOfOthersAndHasNoObjects) {
  PutClusterPolicy();
  PutConfig(kConfig);
  Start();
  RunAgents(1);
  Report("n3", "nvidia", "550.1");
  ASSERT_EQ(TextAt(At(kClusterPolicy), "/status/state"), "ready");
  api_.NotInstalled("/apis/amd.com/");
  api_.Disconnect();
  executor_.Advance(40s);
  EXPECT_EQ(Condition("Error", "status", kClusterPolicy), "False");
  EXPECT_EQ(operator_->numbers().policies, 2u) << "a server that starts serves it soon";
  executor_.Advance(2min);
  EXPECT_EQ(operator_->numbers().policies, 1u);
  EXPECT_EQ(operator_->numbers().problems, 0u);
  EXPECT_EQ(Condition("Error", "status", kClusterPolicy), "False");
  EXPECT_EQ(TextAt(At(kClusterPolicy), "/status/state"), "ready") << Status(kClusterPolicy).dump(1);
  api_.Heal();
  executor_.Advance(3min);
  EXPECT_EQ(operator_->numbers().policies, 2u) << "with the same object as before";
}

TEST_F(DeviceConfigTest, NothingIsTakenBackBecauseAServerLacksAnotherKindThatItHad) {
  PutClusterPolicy();
  Start();
  api_.NotInstalled("/apis/nvidia.com/");
  api_.Disconnect();
  executor_.Advance(10min);
  EXPECT_NE(api_.Find(kAgents), nullptr);
  EXPECT_GT(operator_->numbers().problems, 0u);
}

// The server deletes what is in the namespace, and waits for finalizers.
TEST_F(DeviceConfigTest, ANamespaceThatIsBeingDeletedDoesNotWaitForWhatAnotherPolicyWants) {
  PutExporterConfig();
  PutClusterPolicy();
  Start();
  RunAgents(1);
  ASSERT_THAT(Finalizers(kConfig), ElementsAre(kOurs));
  api_.Merge("/api/v1/namespaces/gpu-operator",
             {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  for (const char* path : {kAgents, kAgentsMap, kExporterService}) api_.Remove(path);
  executor_.Advance(5s);
  Delete(kConfig);
  executor_.Advance(15s);
  EXPECT_THAT(Finalizers(kConfig), IsEmpty()) << Status(kConfig).dump(1);
  EXPECT_THAT(Condition("Error", "message", kClusterPolicy), HasSubstr("it is being terminated"));
}

TEST_F(DeviceConfigTest, ARefusalBeforeTheKindIsMissedLeavesNoProblem) {
  PutClusterPolicy();
  api_.Forbid("", "/apis/amd.com/");
  Start();
  executor_.Advance(100s);
  EXPECT_EQ(operator_->numbers().problems, 1u);
  api_.Heal();
  api_.NotInstalled("/apis/amd.com/");
  executor_.Advance(3min);
  EXPECT_EQ(operator_->numbers().problems, 0u);
  EXPECT_EQ(OwnerOf(kAgents), "ClusterPolicy");
}

TEST_F(DeviceConfigTest, AKindIsMissedForAWholeMinuteBeforeItHasNoObjects) {
  PutClusterPolicy();
  api_.Fail({.status = 404, .times = 1, .path = "/apis/amd.com/"});
  api_.Fail({.status = 503, .times = -1, .path = "/apis/amd.com/"});
  Start();
  executor_.Advance(25s);
  api_.Heal();
  api_.NotInstalled("/apis/amd.com/");
  executor_.Advance(50s);
  EXPECT_EQ(api_.Find(kAgents), nullptr) << "it is missed since 50 s at most";
  executor_.Advance(50s);
  EXPECT_NE(api_.Find(kAgents), nullptr);
}

TEST_F(DeviceConfigTest, WithoutTheRightToReadItNothingIsTakenBackAndOthersSayWhy) {
  PutConfig(kConfig);
  PutClusterPolicy();
  Start();
  RunAgents(1);
  Report("n3", "nvidia", "550.1");
  operator_.reset();
  const json before = Status(kClusterPolicy);
  ASSERT_EQ(before["state"], "ready");
  api_.Forbid("WATCH", "/apis/amd.com/v1alpha1/namespaces/gpu-operator/deviceconfigs");
  api_.Forbid("GET", "/apis/amd.com/v1alpha1/namespaces/gpu-operator/deviceconfigs");
  Start();
  EXPECT_EQ(Status(kClusterPolicy), before) << "a server that starts refuses everything";
  executor_.Advance(10min);
  api_.Put(kSite, {{"apiVersion", "penstock.io/v1alpha1"}, {"kind", "Penstock"}});
  executor_.Advance(10s);
  EXPECT_NE(api_.Find(kAgents), nullptr);
  for (const char* path : {kClusterPolicy, kSite})
    EXPECT_THAT(Condition("Error", "message", path), HasSubstr("missing RBAC rule")) << path;
  EXPECT_THAT(Finalizers(kSite), IsEmpty()) << "it has caused nothing yet";
  EXPECT_EQ(Condition("FieldsServed", "status", kClusterPolicy), "True") << "it is not known";
  EXPECT_EQ(Status(kClusterPolicy)["nodes"], before["nodes"]);
  Delete(kClusterPolicy);
  executor_.Advance(1min);
  EXPECT_EQ(Condition("Ready", "reason", kClusterPolicy), "Deleting");
  api_.Heal();
  executor_.Advance(3min);
  EXPECT_THAT(Finalizers(kClusterPolicy), IsEmpty());
}

}  // namespace
}  // namespace penstock::cluster
