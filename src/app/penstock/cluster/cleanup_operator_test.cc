#include "app/penstock/cluster/cleanup_operator.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/core/strings.h"
#include "base/testing/manual_executor.h"

namespace penstock::app {
namespace {

using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

const char kPolicies[] = "/apis/nvidia.com/v1/clusterpolicies";
const char kDrivers[] = "/apis/nvidia.com/v1alpha1/nvidiadrivers";
const char kConfigs[] = "/apis/amd.com/v1alpha1/namespaces/gpu-operator/deviceconfigs";
const char kEverywhere[] = "/apis/amd.com/v1alpha1/deviceconfigs";
const char kElsewhere[] = "/apis/amd.com/v1alpha1/namespaces/other/deviceconfigs";

/// Answers these verbs' requests; an object with finalizers stays when it is deleted.
class CleanupOperatorTest : public testing::Test {
 protected:
  CleanupOperatorTest() {
    options_.release = "gpu-operator/gpu";
    options_.namespace_name = "gpu-operator";
  }

  void Add(const std::string& collection, const std::string& name, Json metadata = Json::object()) {
    metadata["name"] = name;
    metadata["uid"] = "uid-" + name;
    metadata["resourceVersion"] = "7";
    objects_[collection + "/" + name] = {{"metadata", metadata}};
  }

  static Json OfRelease(const std::string& space, const std::string& name) {
    return {{"annotations",
             {{"meta.helm.sh/release-namespace", space}, {"meta.helm.sh/release-name", name}}},
            {"finalizers", {"penstock.io/cleanup", "someone.example/x"}}};
  }

  static base::Result<ApiResponse> Absent() {
    return base::Error(base::Code::kNotFound, "not found");
  }

  base::Result<ApiResponse> Answer(const ApiCall& call) {
    if (const auto kinds = groups_.find(call.path); kinds != groups_.end()) {
      Json resources = Json::array();
      for (const std::string& kind : kinds->second) resources.push_back({{"name", kind}});
      return ApiResponse{200, Json{{"resources", resources}}.dump()};
    }
    calls_.push_back(call.method + " " + call.path);
    const auto found = objects_.find(call.path);
    if (call.method == "GET" && found != objects_.end())
      return ApiResponse{200, found->second.dump()};
    if (call.method == "GET") return List(call);
    if (found == objects_.end()) return Absent();
    if (call.query.contains("dryRun")) return ApiResponse{200, "{}"};
    if (call.method == "PATCH" && !refusals_.empty()) return Refuse(found->second);
    if (call.method == "DELETE" && found->second["metadata"].value("finalizers", Json()).empty())
      objects_.erase(found);
    if (call.method == "PATCH") found->second.merge_patch(Json::parse(call.body));
    return ApiResponse{200, "{}"};
  }

  /// A conflict comes of another's write, which adds a finalizer.
  base::Result<ApiResponse> Refuse(Json& object) {
    const base::Code why = refusals_.back();
    refusals_.pop_back();
    if (why == base::Code::kAborted) {
      object["metadata"]["resourceVersion"] = "8";
      object["metadata"]["finalizers"].push_back("later.example/y");
    }
    return base::Error(why, "refused");
  }

  base::Result<ApiResponse> List(const ApiCall& call) {
    if (unreadable_) return base::Error(base::Code::kUnavailable, "no answer");
    Json items = Json::array();
    if (call.path == kEverywhere) return ListElsewhere(call);
    for (const auto& [path, object] : objects_) {
      const auto selector = call.query.find("labelSelector"),
                 name = call.query.find("fieldSelector");
      const Json labels = object["metadata"].value("labels", Json::object());
      if (path.substr(0, path.rfind('/')) != call.path) continue;
      if (name != call.query.end() &&
          name->second != "metadata.name=" + path.substr(path.rfind('/') + 1))
        continue;
      if (selector != call.query.end() &&
          selector->second != "app.kubernetes.io/managed-by=" +
                                  labels.value("app.kubernetes.io/managed-by", std::string()))
        continue;
      items.push_back(object);
    }
    return ApiResponse{200, Json{{"items", items}}.dump()};
  }

  /// Of all namespaces but one.
  base::Result<ApiResponse> ListElsewhere(const ApiCall& call) {
    if (forbidden_) return base::Error(base::Code::kPermissionDenied, "may not list");
    EXPECT_EQ(call.query.at("fieldSelector"), "metadata.namespace!=gpu-operator");
    Json items = Json::array();
    for (const auto& [path, object] : objects_) {
      if (!path.starts_with(kElsewhere)) continue;
      items.push_back(object);
      items.back()["metadata"]["namespace"] = "other";
    }
    return ApiResponse{200, Json{{"items", items}}.dump()};
  }

  ApiServer Server() {
    return [this](const ApiCall& call) { return Answer(call); };
  }

  CleanupOutcome Delete(const std::function<void()>& meanwhile = [] {}) {
    return DeletePolicies(Server(), options_, 5s, clock_, [&](base::Duration by) {
      clock_.Advance(by);
      meanwhile();
    });
  }

  CleanupOutcome After() {
    CleanupOutcome outcome;
    CleanAfterOperator(
        Server(), options_, 5s, clock_, [this](base::Duration by) { clock_.Advance(by); }, outcome);
    if (options_.crds) DeleteDefinitions(Server(), options_, outcome);
    return outcome;
  }

  std::map<std::string, Json> objects_;
  std::map<std::string, std::vector<std::string>> groups_ = {
      {"/apis/nvidia.com/v1", {"clusterpolicies"}},
      {"/apis/nvidia.com/v1alpha1", {"nvidiadrivers"}},
      {"/apis/amd.com/v1alpha1", {"deviceconfigs"}},
      {"/api/v1", {"configmaps", "services"}},
      {"/apis/apps/v1", {"daemonsets"}}};
  std::vector<std::string> calls_;
  bool forbidden_ = false;            // to list what is in other namespaces
  bool unreadable_ = false;           // any list
  std::vector<base::Code> refusals_;  // of the next PATCHes, the last first
  CleanupOptions options_;
  base::FakeClock clock_;
};

TEST_F(CleanupOperatorTest, DeletesThePoliciesOfTheReleaseAndWaitsForTheOperator) {
  Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
  Add(kDrivers, "default", OfRelease("gpu-operator", "gpu"));
  Add(kDrivers, "mine", {{"finalizers", {"penstock.io/cleanup"}}});
  Add(kDrivers, "other", OfRelease("gpu-operator", "gp"));
  int waited = 0;
  const auto outcome = Delete([&] {
    if (++waited == 2) objects_.erase(std::string(kPolicies) + "/cluster-policy");
    if (waited == 3) objects_.erase(std::string(kDrivers) + "/default");
  });
  EXPECT_EQ(waited, 3);
  EXPECT_THAT(outcome.removed, ElementsAre("ClusterPolicy cluster-policy", "NVIDIADriver default"));
  EXPECT_THAT(outcome.remarks, IsEmpty());
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_EQ(objects_.size(), 2u) << "those of users and of other releases stay";
}

TEST_F(CleanupOperatorTest, DeletesInTheNamespaceOfTheReleaseAlone) {
  Add(kConfigs, "amd", OfRelease("gpu-operator", "gpu"));
  Add(kConfigs, "mine");
  Add(kElsewhere, "amd", OfRelease("gpu-operator", "gpu"));
  const auto outcome = Delete([&] { objects_.erase(std::string(kConfigs) + "/amd"); });
  EXPECT_THAT(outcome.removed, ElementsAre("DeviceConfig gpu-operator/amd"));
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(outcome.remarks, IsEmpty());
  EXPECT_EQ(objects_.size(), 2u);
}

TEST_F(CleanupOperatorTest, RemovesTheFinalizerOfAnObjectInTheOperatorsNamespace) {
  Add(kConfigs, "amd", OfRelease("", ""));
  Add(kElsewhere, "theirs", OfRelease("", ""));
  EXPECT_THAT(After().removed,
              ElementsAre("the finalizer penstock.io/cleanup of DeviceConfig gpu-operator/amd"));
  EXPECT_EQ(objects_[std::string(kConfigs) + "/amd"]["metadata"]["finalizers"],
            Json({"someone.example/x"}));
  EXPECT_EQ(objects_[std::string(kElsewhere) + "/theirs"]["metadata"]["finalizers"].size(), 2u);
}

TEST_F(CleanupOperatorTest, AnOperatorThatDoesNotFinishDoesNotHoldTheUninstall) {
  Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
  const auto outcome = Delete();
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(outcome.remarks,
              ElementsAre(HasSubstr("ClusterPolicy cluster-policy: the operator did not finish "
                                    "within 5s; `penstock cleanup --cluster --operator`")));
  EXPECT_EQ(objects_[std::string(kPolicies) + "/cluster-policy"]["metadata"]["finalizers"],
            Json({"someone.example/x"}));
}

TEST_F(CleanupOperatorTest, AFinalizerThatIsRefusedForTheTimeBeingIsRemovedFromWhatIsThereThen) {
  const Json kept = {"someone.example/x", "later.example/y"};
  const std::string path = std::string(kPolicies) + "/cluster-policy";
  const std::vector<base::Code> refusals = {base::Code::kUnavailable, base::Code::kAborted};
  Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
  refusals_ = refusals;
  const auto outcome = Delete();
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_EQ(objects_[path]["metadata"]["finalizers"], kept) << "another's write is not undone";
  Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
  refusals_ = refusals;
  const auto after = After();
  EXPECT_THAT(after.failures, IsEmpty());
  EXPECT_EQ(objects_[path]["metadata"]["finalizers"], kept);
}

TEST_F(CleanupOperatorTest, AFinalizerOfAnObjectThatWentOrWasMadeAgainIsNotTriedAgain) {
  const std::string path = std::string(kPolicies) + "/cluster-policy";
  for (const bool made_again : {false, true}) {
    Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
    refusals_ = {base::Code::kAborted};
    const auto outcome = Delete([&] {
      if (!refusals_.empty()) return;
      if (!made_again) objects_.erase(path);
      if (made_again) objects_[path]["metadata"]["uid"] = "another";
    });
    EXPECT_THAT(outcome.failures, IsEmpty());
    EXPECT_EQ(std::ranges::count(calls_, "PATCH " + path), 1);
    EXPECT_EQ(objects_.contains(path), made_again);
    calls_.clear();
  }
}

TEST_F(CleanupOperatorTest, AFinalizerThatStaysRefusedIsAFailure) {
  const std::string path = std::string(kPolicies) + "/cluster-policy";
  Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
  refusals_.assign(1, base::Code::kPermissionDenied);
  EXPECT_THAT(Delete().failures, ElementsAre("ClusterPolicy cluster-policy: refused"));
  EXPECT_EQ(std::ranges::count(calls_, "PATCH " + path), 1) << "it would be refused again";
  refusals_.assign(1000, base::Code::kUnavailable);
  const base::TimePoint begun = clock_.Now();
  EXPECT_THAT(Delete().failures, ElementsAre("ClusterPolicy cluster-policy: refused"));
  EXPECT_LE(clock_.Now() - begun, 30s) << "the uninstall goes on";
}

TEST_F(CleanupOperatorTest, APolicyThatCannotBeReadWhenTheTimeoutPassesIsReleasedOnceItCan) {
  Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
  const base::TimePoint begun = clock_.Now();
  const auto outcome = Delete([&] { unreadable_ = clock_.Now() - begun < 8s; });
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_EQ(objects_[std::string(kPolicies) + "/cluster-policy"]["metadata"]["finalizers"],
            Json({"someone.example/x"}));
}

TEST_F(CleanupOperatorTest, APolicyThatWasMadeAgainMeanwhileIsNotWaitedFor) {
  Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
  const auto outcome = Delete(
      [&] { objects_[std::string(kPolicies) + "/cluster-policy"]["metadata"]["uid"] = "another"; });
  EXPECT_THAT(outcome.remarks, IsEmpty());
}

TEST_F(CleanupOperatorTest, WithoutTheKindsThereIsNothingToDo) {
  groups_.clear();
  EXPECT_THAT(Delete().removed, IsEmpty());
  const auto after = After();
  EXPECT_THAT(after.removed, IsEmpty());
  EXPECT_THAT(after.failures, IsEmpty());
}

TEST_F(CleanupOperatorTest, RemovesWhatTheOperatorLeftAndNothingOfOthers) {
  const Json ours = {{"labels", {{"app.kubernetes.io/managed-by", "penstock-operator"}}}};
  const std::string space = "/namespaces/gpu-operator/";
  Add("/apis/apps/v1" + space + "daemonsets", "penstock-agent", ours);
  Add("/api/v1" + space + "services", "nvidia-dcgm-exporter", ours);
  Add("/api/v1" + space + "configmaps", "theirs");
  Add("/apis/coordination.k8s.io/v1" + space + "leases", "penstock-operator");
  Add(kPolicies, "mine", OfRelease("", ""));
  const auto outcome = After();
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(outcome.removed,
              ElementsAre("DaemonSet gpu-operator/penstock-agent",
                          "Service gpu-operator/nvidia-dcgm-exporter",
                          "the finalizer penstock.io/cleanup of ClusterPolicy mine",
                          "Lease gpu-operator/penstock-operator"));
  EXPECT_EQ(objects_.size(), 2u);
  EXPECT_EQ(objects_[std::string(kPolicies) + "/mine"]["metadata"]["finalizers"],
            Json({"someone.example/x"}));
  EXPECT_THAT(After().removed, IsEmpty());
}

TEST_F(CleanupOperatorTest, SaysThatAgentsHaveNotEnded) {
  Add("/apis/apps/v1/namespaces/gpu-operator/daemonsets", "penstock-agent",
      {{"labels", {{"app.kubernetes.io/managed-by", "penstock-operator"}}},
       {"finalizers", {"foregroundDeletion"}}});
  const auto outcome = After();
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(outcome.remarks, ElementsAre(HasSubstr("agents have not ended within 5s")));
}

TEST_F(CleanupOperatorTest, RemovesTheDefinitionsOnRequestAlone) {
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  Add(crds, "clusterpolicies.nvidia.com");
  Add(crds, "deviceconfigs.amd.com");
  Add(crds, "nodestates.penstock.io");
  Add(crds, "nodefeatures.nfd.k8s-sigs.io");
  After();
  EXPECT_EQ(objects_.size(), 4u);
  options_.crds = true;
  EXPECT_THAT(After().removed, ElementsAre("CustomResourceDefinition clusterpolicies.nvidia.com",
                                           "CustomResourceDefinition deviceconfigs.amd.com",
                                           "CustomResourceDefinition nodestates.penstock.io"));
  EXPECT_EQ(objects_.size(), 1u);
}

TEST_F(CleanupOperatorTest, TheDefinitionOfAnotherOperatorStays) {
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const char* name : {"clusterpolicies.nvidia.com", "deviceconfigs.amd.com"}) {
    Add(crds, name);
    objects_[crds + "/" + name]["metadata"]["annotations"] = {
        {"controller-gen.kubebuilder.io/version", "v0.17.0"}};
  }
  options_.crds = true;
  const CleanupOutcome outcome = After();
  EXPECT_THAT(outcome.removed, ElementsAre("CustomResourceDefinition clusterpolicies.nvidia.com"));
  EXPECT_THAT(outcome.remarks, ElementsAre(HasSubstr("deviceconfigs.amd.com stays")));
  auto& annotations = objects_[crds + "/deviceconfigs.amd.com"]["metadata"]["annotations"];
  annotations["penstock.io/version"] = "0.2.0";
  EXPECT_THAT(After().removed, IsEmpty()) << "the other operator has applied it over this one's";
  annotations = {{"penstock.io/version", "0.2.0"}};
  EXPECT_THAT(After().removed, ElementsAre("CustomResourceDefinition deviceconfigs.amd.com"));
}

TEST_F(CleanupOperatorTest, ADefinitionWithObjectsInOtherNamespacesStays) {
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  Add(crds, "clusterpolicies.nvidia.com");
  Add(crds, "deviceconfigs.amd.com");
  Add(kElsewhere, "mine");
  options_.crds = true;
  options_.dry_run = true;
  EXPECT_THAT(After().remarks, ElementsAre(HasSubstr("DeviceConfig other/mine would be deleted")));
  options_.dry_run = false;
  const CleanupOutcome outcome = After();
  EXPECT_THAT(outcome.removed, ElementsAre("CustomResourceDefinition clusterpolicies.nvidia.com"));
  EXPECT_THAT(outcome.remarks, ElementsAre(HasSubstr("kubectl delete crd deviceconfigs.amd.com")));
  EXPECT_THAT(outcome.failures, IsEmpty()) << "the uninstall goes on";
  objects_.erase(std::string(kElsewhere) + "/mine");
  Add(kConfigs, "ours");
  EXPECT_THAT(After().removed, ElementsAre("CustomResourceDefinition deviceconfigs.amd.com"));
}

TEST_F(CleanupOperatorTest, ADefinitionStaysWhereOtherNamespacesCannotBeRead) {
  Add("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "deviceconfigs.amd.com");
  options_.crds = forbidden_ = true;
  const CleanupOutcome outcome = After();
  EXPECT_THAT(outcome.removed, IsEmpty());
  EXPECT_THAT(outcome.failures, ElementsAre(HasSubstr("deviceconfigs.amd.com stays")));
}

TEST_F(CleanupOperatorTest, ADryRunChangesNothingAndDoesNotWait) {
  Add(kPolicies, "cluster-policy", OfRelease("gpu-operator", "gpu"));
  options_.dry_run = true;
  EXPECT_THAT(Delete([] { FAIL(); }).removed, ElementsAre("ClusterPolicy cluster-policy"));
  EXPECT_THAT(After().removed, Contains(HasSubstr("the finalizer")));
  EXPECT_EQ(objects_.begin()->second["metadata"]["finalizers"].size(), 2u);
}

}  // namespace
}  // namespace penstock::app
