// The requests by which the operator and the cleanup change, mark and delete what is in a cluster,
// on the fake API server and on a real one.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api_servers.h"
#include "operator/definitions.h"
#include "operator/driver/gpu_pods.h"
#include "operator/driver/image_check.h"
#include "operator/embedded_files.h"
#include "operator/names.h"

namespace penstock::protocol::kube::contract {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const Resource kBudgets{"policy", "v1", "poddisruptionbudgets"};
const Resource kClaims{"resource.k8s.io", "v1", "resourceclaims"};
const Resource kClasses{"node.k8s.io", "v1", "runtimeclasses"};
const Resource kConfigs{"amd.com", "v1alpha1", "deviceconfigs"};
const Resource kDrivers{"nvidia.com", "v1alpha1", "nvidiadrivers"};
const Resource kMonitors{"monitoring.coreos.com", "v1", "servicemonitors"};
const Resource kNamespaces{"", "v1", "namespaces"};
const std::string kOperator(cluster::kManager);
const std::string kOtherUid = "11111111-2222-3333-4444-555555555555";
const std::string kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

class Changes : public ApiServer {
 protected:
  static std::string UidOf(const Json& object) { return object["metadata"].value("uid", ""); }

  static Json PodNamed(const std::string& name, const std::string& node) {
    Json pod = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", name}, {"labels", {{"app", name}}}}},
                {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    return pod;
  }

  /// A pod that runs, as its kubelet says.
  Json MakePod(const std::string& space, const std::string& name) {
    Ok(Create(kPods, space, PodNamed(name, name_), "somebody"));
    const Json status = {
        {"status",
         {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
    return Ok(Patch(kPods, space, name, kStrategicMergePatch, status, "somebody", "status"));
  }

  static Json OptionsFor(const std::string& uid) {
    return {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}};
  }

  /// As the operator's NodeWriter sends it.
  static ApiCall Evict(const std::string& space, const std::string& name, const std::string& uid) {
    const Json eviction = {{"apiVersion", "policy/v1"},
                           {"kind", "Eviction"},
                           {"metadata", {{"name", name}, {"namespace", space}}},
                           {"deleteOptions", OptionsFor(uid)}};
    return {.method = "POST",
            .path = kPods.Path(space, name, "eviction"),
            .content_type = "application/json",
            .body = eviction.dump(),
            .deadline = 60s};
  }

  static std::string OtherUid(const std::string& name, const std::string& uid) {
    return ": Operation cannot be fulfilled on Pod \"" + name +
           "\": the UID in the precondition (" + kOtherUid +
           ") does not match the UID in record (" + uid +
           "). The object might have been deleted and then recreated";
  }

  static Json DriverNamed(const std::string& name, const Json& finalizers = Json::array()) {
    return {{"apiVersion", "nvidia.com/v1alpha1"},
            {"kind", "NVIDIADriver"},
            {"metadata", {{"name", name}, {"finalizers", finalizers}}},
            {"spec", {{"version", "1"}}}};
  }

  /// As the operator and the cleanup write the list of finalizers.
  ApiCall WriteFinalizers(const std::string& name, const std::string& version,
                          const Json& finalizers) {
    return Patch(kDrivers, "", name, kMergePatch,
                 {{"metadata", {{"resourceVersion", version}, {"finalizers", finalizers}}}},
                 kOperator);
  }

  static Json SetWithImage(const std::string& image) {
    const Json labels = {{"app", "d"}};
    return {{"apiVersion", "apps/v1"},
            {"kind", "DaemonSet"},
            {"metadata", {{"name", "d"}}},
            {"spec",
             {{"selector", {{"matchLabels", labels}}},
              {"template",
               {{"metadata", {{"labels", labels}}},
                {"spec", {{"containers", {{{"name", "c"}, {"image", image}}}}}}}}}}};
  }

  /// Taints with our key; a real server adds one to each new Node.
  static std::vector<std::string> TaintsOf(const Json& node) {
    std::vector<std::string> keys;
    for (const Json& taint : node.value("/spec/taints"_json_pointer, Json::array()))
      if (const std::string key = taint["key"]; key.starts_with("example.com/"))
        keys.push_back(key.substr(key.find('/') + 1));
    return keys;
  }
};

INSTANTIATE_TEST_SUITE_P(Contract, Changes, testing::Values("fake", "real"),
                         [](const auto& where) { return where.param; });

TEST_P(Changes, AnEvictionEndsThePodThatItNamesByItsUid) {
  const std::string space = MakeNamespace();
  const Json pod = MakePod(space, "p");
  const std::string path = "POST " + kPods.Path(space, "p", "eviction");
  Watching watching(*server_, WatchFrom(kPods, space, VersionOf(pod)));
  EXPECT_EQ(VerdictOf(Evict(space, "p", kOtherUid)),
            "ABORTED: " + path + OtherUid("p", UidOf(pod)));
  EXPECT_EQ(
      VerdictOf(Evict(space, "none", UidOf(pod))),
      "NOT_FOUND: POST " + kPods.Path(space, "none", "eviction") + ": pods \"none\" not found");
  EXPECT_EQ(VerdictOf(Evict(space, "p", UidOf(pod))), "201");
  server_->Finish(kPods, space, "p");
  ASSERT_THAT(watching.Events(4),
              ElementsAre("MODIFIED p", "MODIFIED p", "MODIFIED p", "DELETED p"));
  const auto lines = watching.Lines();
  EXPECT_THAT(lines[0]["object"]["status"]["conditions"].dump(), HasSubstr("DisruptionTarget"));
  EXPECT_FALSE(lines[0]["object"]["metadata"].contains("deletionTimestamp"));
  EXPECT_TRUE(lines[1]["object"]["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(lines[1]["object"]["metadata"]["deletionGracePeriodSeconds"], 30);
  EXPECT_EQ(lines[2]["object"]["metadata"]["deletionGracePeriodSeconds"], 0) << "by its kubelet";
  EXPECT_THAT(VerdictOf(Evict(space, "p", UidOf(pod))), StartsWith("NOT_FOUND: "));
}

TEST_P(Changes, ABudgetThatAllowsNoDisruptionRefusesAnEviction) {
  const std::string space = MakeNamespace();
  const Json pod = MakePod(space, "p");
  const Json budget = {
      {"apiVersion", "policy/v1"},
      {"kind", "PodDisruptionBudget"},
      {"metadata", {{"name", "b"}}},
      {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "p"}}}}}}}};
  Ok(Create(kBudgets, space, budget, "somebody"));
  const std::string refused = "RESOURCE_EXHAUSTED: POST " + kPods.Path(space, "p", "eviction") +
                              ": Cannot evict pod as it would violate the pod's disruption budget.";
  EXPECT_EQ(VerdictOf(Evict(space, "p", UidOf(pod))), refused) << "it is not known yet";
  const auto allow = [&](int count) {
    const Json status = {{"status",
                          {{"observedGeneration", 1},
                           {"disruptionsAllowed", count},
                           {"currentHealthy", 1},
                           {"desiredHealthy", 1},
                           {"expectedPods", 1}}}};
    return Patch(kBudgets, space, "b", kMergePatch, status, "somebody", "status");
  };
  Ok(allow(0));
  EXPECT_EQ(VerdictOf(Evict(space, "p", UidOf(pod))), refused);
  EXPECT_FALSE(Ok(Get(kPods, space, "p"))["metadata"].contains("deletionTimestamp"));
  const Json other = MakePod(space, "other");
  EXPECT_EQ(VerdictOf(Evict(space, "other", UidOf(other))), "201") << "it is not its pod";
  Json waiting = PodNamed("waiting", name_);
  waiting["metadata"]["labels"]["app"] = "p";
  const std::string uid = UidOf(Ok(Create(kPods, space, waiting, "somebody")));
  EXPECT_EQ(VerdictOf(Evict(space, "waiting", uid)), "201") << "it does not run yet";
  Ok(allow(1));
  EXPECT_EQ(VerdictOf(Evict(space, "p", UidOf(pod))), "201");
  EXPECT_EQ(Ok(Get(kBudgets, space, "b"))["status"]["disruptionsAllowed"], 0);
}

TEST_P(Changes, ADeletionNamesThePodByItsUid) {
  const std::string space = MakeNamespace();
  const Json pod = MakePod(space, "p");
  const Json unplaced = Ok(Create(kPods, space, PodNamed("unplaced", ""), "somebody"));
  Watching watching(*server_, WatchFrom(kPods, space, VersionOf(unplaced)));
  EXPECT_EQ(VerdictOf(Delete(kPods, space, "p", kOtherUid)),
            "ABORTED: DELETE " + kPods.Path(space, "p") + OtherUid("p", UidOf(pod)));
  EXPECT_EQ(VerdictOf(Delete(kPods, space, "p", UidOf(pod))), "200");
  server_->Finish(kPods, space, "p");
  EXPECT_EQ(VerdictOf(Delete(kPods, space, "unplaced", UidOf(unplaced))), "200");
  EXPECT_THAT(watching.Events(5), ElementsAre("MODIFIED p", "MODIFIED p", "DELETED p",
                                              "MODIFIED unplaced", "DELETED unplaced"))
      << "no kubelet ends what is on no node";
  EXPECT_EQ(VerdictOf(Delete(kPods, space, "p", UidOf(pod))),
            "NOT_FOUND: DELETE " + kPods.Path(space, "p") + ": pods \"p\" not found");
}

TEST_P(Changes, DefinitionsAreAppliedAndEstablished) {
  const std::string none = "nobodies.nobody.example.com";
  EXPECT_EQ(VerdictOf(Get(kDefinitions, "", none)),
            "NOT_FOUND: GET " + kDefinitions.Path("", none) +
                ": customresourcedefinitions.apiextensions.k8s.io \"" + none + "\" not found");
  const auto definitions = cluster::EmbeddedObjects("CustomResourceDefinition");
  ASSERT_TRUE(definitions.ok()) << definitions.error().ToString();
  ASSERT_THAT(*definitions, Not(IsEmpty()));
  for (const Json& one : *definitions) {
    const std::string name = one["metadata"]["name"];
    const Json completed = cluster::Completed(one);
    const Json applied = Ok(Apply(kDefinitions, "", completed, kOperator));
    for (const auto& [key, value] : completed["metadata"]["annotations"].items())
      EXPECT_EQ(applied["metadata"]["annotations"][key], value) << name << " " << key;
    server_->Establish(name);
    const auto is_established = [](const Json& condition) {
      return condition["type"] == "Established" && condition["status"] == "True";
    };
    bool established = false;
    for (const auto end = std::chrono::steady_clock::now() + kWithin;
         !established && std::chrono::steady_clock::now() < end;) {
      const Json conditions =
          Ok(Get(kDefinitions, "", name)).value("/status/conditions"_json_pointer, Json::array());
      established = std::ranges::any_of(conditions, is_established);
    }
    EXPECT_TRUE(established) << name;
    EXPECT_EQ(VersionOf(Ok(Apply(kDefinitions, "", completed, kOperator))),
              VersionOf(Ok(Get(kDefinitions, "", name))))
        << "what changes nothing is no write, and takes no status away";
  }
}

TEST_P(Changes, ADefinitionIsDeletedAfterATry) {
  const std::string name = "notes.contract.example.com";
  const Json version = {{"name", "v1"},
                        {"served", true},
                        {"storage", true},
                        {"schema", {{"openAPIV3Schema", {{"type", "object"}}}}}};
  Ok(Apply(kDefinitions, "",
           {{"apiVersion", "apiextensions.k8s.io/v1"},
            {"kind", "CustomResourceDefinition"},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"group", "contract.example.com"},
              {"names", {{"kind", "Note"}, {"plural", "notes"}}},
              {"scope", "Cluster"},
              {"versions", Json::array({version})}}}},
           kOperator));
  ApiCall call = Delete(kDefinitions, "", name);
  call.query["dryRun"] = "All";
  EXPECT_EQ(VerdictOf(call), "200");
  EXPECT_FALSE(Ok(Get(kDefinitions, "", name))["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(VerdictOf(Delete(kDefinitions, "", name)), "200");
  // A real server deletes its objects first.
  std::string verdict;
  for (const auto end = std::chrono::steady_clock::now() + kWithin;
       !verdict.starts_with("NOT_FOUND: ") && std::chrono::steady_clock::now() < end;)
    verdict = VerdictOf(Get(kDefinitions, "", name));
  EXPECT_THAT(verdict, StartsWith("NOT_FOUND: "));
}

TEST_P(Changes, AStatusIsMergedApartFromTheRest) {
  const Json made = Ok(Create(kDrivers, "", DriverNamed(name_), "somebody"));
  EXPECT_EQ(made["metadata"]["generation"], 1);
  const auto patch = [&](const Json& change, const std::string& subresource = "") {
    return Ok(Patch(kDrivers, "", name_, kMergePatch, change, kOperator, subresource));
  };
  const Json ready = {{"type", "Ready"},
                      {"status", "True"},
                      {"reason", "Reconciled"},
                      {"message", "all"},
                      {"lastTransitionTime", "2026-01-02T03:04:05Z"}};
  const Json written = patch({{"metadata", {{"labels", {{"x", "y"}}}}},
                              {"spec", {{"version", "2"}}},
                              {"status", {{"state", "ready"}, {"conditions", {ready}}}}},
                             "status");
  EXPECT_EQ(written["status"], Json({{"state", "ready"}, {"conditions", {ready}}}));
  EXPECT_EQ(written["spec"]["version"], "1");
  EXPECT_FALSE(written["metadata"].contains("labels"));
  EXPECT_EQ(written["metadata"]["generation"], 1);
  EXPECT_NE(VersionOf(written), VersionOf(made));
  EXPECT_EQ(VersionOf(patch({{"status", {{"state", "ready"}}}}, "status")), VersionOf(written))
      << "what changes nothing is no write";

  const Json changed = patch({{"metadata", {{"labels", {{"x", "y"}}}}},
                              {"spec", {{"version", "2"}}},
                              {"status", {{"state", "notReady"}}}});
  EXPECT_EQ(changed["spec"]["version"], "2");
  EXPECT_EQ(changed["metadata"]["labels"]["x"], "y");
  EXPECT_EQ(changed["status"], written["status"]);
  EXPECT_EQ(changed["metadata"]["generation"], 2);
  EXPECT_EQ(patch({{"metadata", {{"labels", {{"x", "z"}}}}}})["metadata"]["generation"], 2);
  EXPECT_EQ(patch({{"status", {{"conditions", nullptr}}}}, "status")["status"],
            Json({{"state", "ready"}}));
}

TEST_P(Changes, TheGenerationOfADaemonSetCountsItsSpecAlone) {
  const std::string space = MakeNamespace();
  const auto apply = [&](const Json& object) {
    return Ok(Apply(kDaemonSets, space, object, kOperator))["metadata"]["generation"];
  };
  EXPECT_EQ(apply(SetWithImage("i")), 1);
  EXPECT_EQ(apply(SetWithImage("j")), 2);
  Json labelled = SetWithImage("j");
  labelled["metadata"]["labels"]["x"] = "y";
  EXPECT_EQ(apply(labelled), 2);
  const Json status = {{"status",
                        {{"currentNumberScheduled", 1},
                         {"numberMisscheduled", 0},
                         {"desiredNumberScheduled", 1},
                         {"numberReady", 1},
                         {"observedGeneration", 2}}}};
  const Json reported =
      Ok(Patch(kDaemonSets, space, "d", kStrategicMergePatch, status, "somebody", "status"));
  EXPECT_EQ(reported["metadata"]["generation"], 2);
  EXPECT_EQ(reported["status"]["observedGeneration"], 2);
}

TEST_P(Changes, FinalizersHoldADeletedObject) {
  const std::string ours(cluster::kFinalizer), theirs = "someone.example/x";
  const Json made = Ok(Create(kDrivers, "", DriverNamed(name_, {theirs}), "somebody"));
  EXPECT_EQ(VerdictOf(WriteFinalizers(name_, "1", {theirs, ours})),
            "ABORTED: PATCH " + kDrivers.Path("", name_) +
                ": Operation cannot be fulfilled on nvidiadrivers.nvidia.com \"" + name_ +
                "\": " + kModified);
  const Json held = Ok(WriteFinalizers(name_, VersionOf(made), {theirs, ours}));
  EXPECT_EQ(held["metadata"]["finalizers"], Json({theirs, ours}));
  EXPECT_EQ(held["metadata"]["generation"], 1);
  Watching watching(*server_, [&] {
    ApiCall call = WatchFrom(kDrivers, "", VersionOf(held));
    call.query["fieldSelector"] = "metadata.name=" + name_;
    return call;
  }());

  EXPECT_EQ(VerdictOf(Delete(kDrivers, "", name_)), "200");
  EXPECT_EQ(VerdictOf(Delete(kDrivers, "", name_)), "200");
  const Json deleted = Ok(Get(kDrivers, "", name_));
  EXPECT_THAT(deleted["metadata"]["deletionTimestamp"].get<std::string>(),
              testing::MatchesRegex("....-..-..T..:..:..Z"));
  EXPECT_EQ(deleted["metadata"]["finalizers"], Json({theirs, ours}));
  EXPECT_EQ(deleted["metadata"]["generation"], 2) << "the deletion counts as a change";
  EXPECT_EQ(UidOf(deleted), UidOf(made));
  const Json said = Ok(Patch(kDrivers, "", name_, kMergePatch,
                             {{"status", {{"state", "notReady"}}}}, kOperator, "status"));
  EXPECT_EQ(said["status"]["state"], "notReady");
  EXPECT_EQ(said["metadata"]["deletionTimestamp"], deleted["metadata"]["deletionTimestamp"]);

  ApiCall tried = WriteFinalizers(name_, VersionOf(said), Json::array());
  tried.query["dryRun"] = "All";
  Ok(tried);
  const Json left = Ok(WriteFinalizers(name_, VersionOf(said), {theirs}));
  EXPECT_EQ(left["metadata"]["finalizers"], Json({theirs}));
  EXPECT_EQ(VerdictOf(WriteFinalizers(name_, VersionOf(left), Json::array())), "200");
  EXPECT_THAT(VerdictOf(Get(kDrivers, "", name_)), StartsWith("NOT_FOUND: "));
  EXPECT_THAT(watching.Events(4), ElementsAre("MODIFIED " + name_, "MODIFIED " + name_,
                                              "MODIFIED " + name_, "DELETED " + name_));
}

TEST_P(Changes, AReplacementDoesNotTakeADeletionBack) {
  Ok(Create(kDrivers, "", DriverNamed(name_, {"someone.example/x"}), "somebody"));
  EXPECT_EQ(VerdictOf(Delete(kDrivers, "", name_)), "200");
  const Json deleted = Ok(Get(kDrivers, "", name_))["metadata"];
  ASSERT_TRUE(deleted.contains("deletionTimestamp"));
  const Json unmarked = {
      {"metadata", {{"deletionTimestamp", nullptr}, {"deletionGracePeriodSeconds", nullptr}}}};
  const Json replaced = Replace(kDrivers, "", name_, unmarked)["metadata"];
  for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds"})
    EXPECT_EQ(replaced[field], deleted[field]) << field;
  Ok(WriteFinalizers(name_, replaced["resourceVersion"], Json::array()));
}

TEST_P(Changes, AForegroundDeletionIsMarkedFirst) {
  const std::string space = MakeNamespace();
  const Json set = Ok(Apply(kDaemonSets, space, SetWithImage("i"), kOperator));
  Watching watching(*server_, WatchFrom(kDaemonSets, space, VersionOf(set)));
  ApiCall call = Delete(kDaemonSets, space, "d");
  call.query["propagationPolicy"] = "Foreground";
  EXPECT_EQ(VerdictOf(call), "200");
  server_->Finish(kDaemonSets, space, "d");
  ASSERT_THAT(watching.Events(2), ElementsAre("MODIFIED d", "DELETED d"));
  const Json marked = watching.Lines()[0]["object"]["metadata"];
  EXPECT_TRUE(marked.contains("deletionTimestamp"));
  EXPECT_EQ(marked["finalizers"], Json({"foregroundDeletion"}));
  EXPECT_EQ(marked["generation"], 2);
  EXPECT_THAT(VerdictOf(call), StartsWith("NOT_FOUND: "));
}

TEST_P(Changes, ABackgroundDeletionEndsTheWaitForDependents) {
  const std::string space = MakeNamespace();
  Ok(Create(kConfigMaps, space,
            {{"apiVersion", "v1"},
             {"kind", "ConfigMap"},
             {"metadata", {{"name", "m"}, {"finalizers", {"foregroundDeletion"}}}}},
            "somebody"));
  ApiCall call = Delete(kConfigMaps, space, "m");
  call.query["propagationPolicy"] = "Background";
  EXPECT_EQ(VerdictOf(call), "200");
  EXPECT_THAT(VerdictOf(Get(kConfigMaps, space, "m")), StartsWith("NOT_FOUND: "));
}

TEST_P(Changes, TaintsAreWrittenOverTheNodeThatWasRead) {
  Json object = Node(name_);
  const Json keeps = {{"key", "example.com/keeps"}, {"effect", "NoSchedule"}};
  object["spec"]["taints"] = {keeps, {{"key", "example.com/goes"}, {"effect", "NoExecute"}}};
  const Json node = Ok(Create(kNodes, "", object, "somebody"));
  EXPECT_THAT(TaintsOf(node), ElementsAre("keeps", "goes"));
  const auto patch = [&](const std::string& uid, const std::string& version, const Json& taints) {
    return Patch(kNodes, "", name_, kMergePatch,
                 {{"metadata", {{"uid", uid}, {"resourceVersion", version}}},
                  {"spec", {{"taints", taints}}}},
                 kOperator);
  };
  const std::string path = "PATCH " + kNodes.Path("", name_);
  EXPECT_EQ(VerdictOf(patch(kOtherUid, VersionOf(node), Json::array({keeps}))),
            "INVALID_ARGUMENT: " + path + ": Node \"" + name_ +
                "\" is invalid: metadata.uid: Invalid value: \"" + kOtherUid +
                "\": field is immutable");
  const Json written = Ok(patch(UidOf(node), VersionOf(node), Json::array({keeps})));
  EXPECT_THAT(TaintsOf(written), ElementsAre("keeps"));
  const std::string modified = "ABORTED: " + path + ": Operation cannot be fulfilled on nodes \"" +
                               name_ + "\": " + kModified;
  EXPECT_EQ(VerdictOf(patch(UidOf(node), VersionOf(node), nullptr)), modified);
  EXPECT_EQ(VerdictOf(patch(kOtherUid, VersionOf(node), nullptr)), modified)
      << "a node of that name that was made anew";
  EXPECT_THAT(TaintsOf(Ok(patch(UidOf(node), VersionOf(written), nullptr))), IsEmpty());
  EXPECT_FALSE(NodeNow()["spec"].contains("taints"));
}

TEST_P(Changes, AStepOfANodeIsWrittenOverTheNodeThatWasRead) {
  const Json node = MakeNode({{"old", "1"}});
  const auto patch = [&](const Json& read, const Json& labels, const Json& cordon) {
    return Patch(kNodes, "", name_, kMergePatch,
                 {{"metadata",
                   {{"uid", UidOf(read)},
                    {"resourceVersion", VersionOf(read)},
                    {"labels", labels},
                    {"annotations", {{"example.com/step", "2"}, {"example.com/gone", nullptr}}}}},
                  {"spec", {{"unschedulable", cordon}}}},
                 kOperator);
  };
  const Json cordoned = Ok(patch(node, {{"old", nullptr}, {"new", "1"}}, true));
  EXPECT_EQ(cordoned["metadata"]["labels"], Json({{"new", "1"}}));
  EXPECT_EQ(cordoned["metadata"]["annotations"], Json({{"example.com/step", "2"}}));
  EXPECT_EQ(cordoned["spec"]["unschedulable"], true);
  EXPECT_EQ(VerdictOf(patch(node, {{"new", "2"}}, nullptr)),
            "ABORTED: PATCH " + kNodes.Path("", name_) +
                ": Operation cannot be fulfilled on nodes \"" + name_ + "\": " + kModified);
  const Json freed = Ok(patch(cordoned, {{"new", "2"}}, nullptr));
  EXPECT_FALSE(freed.value("/spec/unschedulable"_json_pointer, false));
}

TEST_P(Changes, APodThatPullsAnImageIsMadeOnceAndGoesAtOnce) {
  const std::string space = MakeNamespace();
  Json set = SetWithImage("example.com/driver:1");
  set["metadata"]["namespace"] = space;
  Json& of_set = set["spec"]["template"]["spec"];
  of_set["containers"][0]["imagePullPolicy"] = "IfNotPresent";
  of_set["serviceAccountName"] = "default";
  of_set["imagePullSecrets"] = {{{"name", "secret"}}};
  of_set["tolerations"] = {{{"operator", "Exists"}}};
  const cluster::ImageCheck check = cluster::ImageCheckOf(set, {name_});
  Json pod = cluster::ImageCheckPod(check, name_);
  pod["metadata"]["ownerReferences"] = {Owner("a-policy", true)};
  const std::string name = pod["metadata"]["name"];

  ApiCall stream = StreamingList(kPods, space);
  stream.query["labelSelector"] = std::string(cluster::kImageCheckLabel);
  Watching watching(*server_, stream);
  ASSERT_THAT(watching.Events(1), ElementsAre("BOOKMARK end of list"));
  Ok(Create(kPods, space, PodNamed("another", name_), "somebody"));
  const auto made = Do(Create(kPods, space, pod, kOperator));
  EXPECT_EQ(Verdict(made), "201");
  EXPECT_EQ(cluster::ReducedCheckPod(*Parse(made))["check"], check.name);
  EXPECT_EQ(cluster::ReducedCheckPod(*Parse(made))["node"], name_);
  EXPECT_EQ(VerdictOf(Create(kPods, space, pod, kOperator)),
            "ALREADY_EXISTS: POST " + kPods.Path(space) + ": pods \"" + name + "\" already exists");
  const Json waits = {{"reason", "ErrImagePull"}, {"message", "not found"}};
  const Json status = {{"status",
                        {{"phase", "Pending"},
                         {"containerStatuses",
                          {{{"name", "image"},
                            {"image", check.image},
                            {"imageID", ""},
                            {"ready", false},
                            {"restartCount", 0},
                            {"state", {{"waiting", waits}}}}}}}}};
  const Json waiting =
      Ok(Patch(kPods, space, name, kStrategicMergePatch, status, "somebody", "status"));
  EXPECT_EQ(cluster::ReducedCheckPod(waiting)["answer"], "ErrImagePull");
  EXPECT_EQ(VerdictOf(Delete(kPods, space, name)), "200");
  EXPECT_THAT(watching.Events(5),
              ElementsAre("BOOKMARK end of list", "ADDED " + name, "MODIFIED " + name,
                          "MODIFIED " + name, "DELETED " + name))
      << "it has no time to end";
}

TEST_P(Changes, DaemonSetsThatAreNotTheOperatorsAreShownWithTheirOwners) {
  const std::string space = MakeNamespace();
  const auto make = [&](const std::string& name, const Json& labels) {
    Json set = SetWithImage("localhost/penstock:1");
    set["metadata"] = {{"name", name}, {"labels", labels}};
    set["metadata"]["ownerReferences"] = {Owner("a-policy", true)};
    Ok(Create(kDaemonSets, space, set, "somebody"));
  };
  make("ours", {{std::string(cluster::kManagedBy), kOperator}});
  make("theirs", {{std::string(cluster::kManagedBy), "gpu-operator"}});
  make("unlabelled", Json::object());
  ApiCall stream = StreamingList(kDaemonSets, space);
  stream.query["labelSelector"] = std::string(cluster::kSelectorOfOthers);
  stream.accept = kMetadataOfEvents;
  Watching watching(*server_, stream);
  ASSERT_THAT(watching.Events(3),
              ElementsAre("ADDED theirs", "ADDED unlabelled", "BOOKMARK end of list"));
  const Json theirs = watching.Lines()[0]["object"];
  EXPECT_EQ(theirs["metadata"]["ownerReferences"][0]["controller"], true);
  EXPECT_FALSE(theirs.contains("spec"));
  Ok(Delete(kDaemonSets, space, "theirs"));
  EXPECT_THAT(watching.Events(4), testing::Contains("DELETED theirs"));
}

TEST_P(Changes, ARuntimeClassIsAppliedAndDeleted) {
  const Json object = {
      {"apiVersion", "node.k8s.io/v1"},
      {"kind", "RuntimeClass"},
      {"metadata", {{"name", name_}, {"labels", {{std::string(cluster::kManagedBy), kOperator}}}}},
      {"handler", "nvidia"}};
  EXPECT_EQ(VerdictOf(Apply(kClasses, "", object, kOperator, false)), "201");
  ApiCall stream = StreamingList(kClasses, "");
  stream.query["labelSelector"] = std::string(cluster::kSelector);
  Watching watching(*server_, stream);
  EXPECT_THAT(watching.Events(2), ElementsAre("ADDED " + name_, "BOOKMARK end of list"));
  EXPECT_EQ(Ok(Get(kClasses, "", name_))["handler"], "nvidia");
  ApiCall call = Delete(kClasses, "", name_);
  call.query["propagationPolicy"] = "Background";
  EXPECT_EQ(VerdictOf(call), "200");
  EXPECT_THAT(watching.Events(3),
              ElementsAre("ADDED " + name_, "BOOKMARK end of list", "DELETED " + name_));
}

TEST_P(Changes, AClusterWithoutMonitorsSaysSo) {
  const std::string why = ": the server answered 404 \"404 page not found\"";
  EXPECT_EQ(VerdictOf({.path = "/apis/monitoring.coreos.com/v1"}),
            "NOT_FOUND: GET /apis/monitoring.coreos.com/v1" + why);
  ApiCall stream = StreamingList(kMonitors, "default");
  stream.query["labelSelector"] = std::string(cluster::kSelector);
  Watching watching(*server_, stream);
  EXPECT_EQ(watching.End(), "NOT_FOUND: GET " + kMonitors.Path("default") + why);
  const Json monitor = {{"apiVersion", "monitoring.coreos.com/v1"},
                        {"kind", "ServiceMonitor"},
                        {"metadata", {{"name", "m"}}}};
  EXPECT_EQ(VerdictOf(Apply(kMonitors, "default", monitor, kOperator)),
            "NOT_FOUND: PATCH " + kMonitors.Path("default", "m") + why);
}

TEST_P(Changes, AClaimShowsTheDevicesThatItHolds) {
  const std::string space = MakeNamespace();
  const Json claim = {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceClaim"},
      {"metadata", {{"name", name_}}},
      {"spec",
       {{"devices",
         {{"requests",
           {{{"name", "gpu"}, {"exactly", {{"deviceClassName", "gpu.nvidia.com"}}}}}}}}}}};
  const Json made = Ok(Create(kClaims, space, claim, "somebody"));
  EXPECT_FALSE(cluster::HoldsDevices(made));
  // The operator lists those of all namespaces.
  Watching watching(*server_, StreamingList(kClaims, ""));
  EXPECT_THAT(watching.Events(2), ElementsAre("ADDED " + name_, "BOOKMARK end of list"));
  const Json result = {
      {"request", "gpu"}, {"driver", "gpu.nvidia.com"}, {"pool", "n1"}, {"device", "gpu-0"}};
  const Json status = {{"status", {{"allocation", {{"devices", {{"results", {result}}}}}}}}};
  const Json held = Ok(Patch(kClaims, space, name_, kMergePatch, status, "somebody", "status"));
  EXPECT_TRUE(cluster::HoldsDevices(held));
  ASSERT_THAT(watching.Events(3),
              ElementsAre("ADDED " + name_, "BOOKMARK end of list", "MODIFIED " + name_));
  EXPECT_TRUE(cluster::HoldsDevices(watching.Lines()[2]["object"]));
  Ok(Delete(kClaims, space, name_));
}

TEST_P(Changes, ANamespaceHasTheLabelsThatAreApplied) {
  MakeNamespace();
  const auto apply = [&](const Json& labels) {
    return Ok(Apply(kNamespaces, "",
                    {{"apiVersion", "v1"},
                     {"kind", "Namespace"},
                     {"metadata", {{"name", name_}, {"labels", labels}}}},
                    kOperator));
  };
  const std::string key = "pod-security.kubernetes.io/enforce";
  const Json marked = apply({{key, "privileged"}});
  EXPECT_EQ(marked["metadata"]["labels"][key], "privileged");
  EXPECT_THAT(OwnersOf(Ok(Get(kNamespaces, "", name_))),
              Contains("penstock-operator Apply: f:" + key));
  EXPECT_FALSE(apply(Json::object())["metadata"].value("labels", Json::object()).contains(key));
}

TEST_P(Changes, ObjectsOfOtherNamespacesAreFoundByOne) {
  const std::string space = MakeNamespace();
  const auto elsewhere = [&](const std::string& but) {
    return Ok(List(kConfigs, "",
                   {{"fieldSelector", "metadata.namespace!=" + but}, {"limit", "1"}}))["items"];
  };
  EXPECT_THAT(elsewhere(space), IsEmpty());
  const Json config = {{"apiVersion", "amd.com/v1alpha1"},
                       {"kind", "DeviceConfig"},
                       {"metadata", {{"name", name_}}},
                       {"spec", Json::object()}};
  Ok(Create(kConfigs, space, config, "somebody"));
  EXPECT_THAT(elsewhere(space), IsEmpty());
  const Json found = elsewhere("default");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["metadata"]["namespace"], space);
  EXPECT_EQ(found[0]["metadata"]["name"], name_);
  Ok(Delete(kConfigs, space, name_));
}

/// Servers whose feature is off; real_test.py starts such a one for this suite alone.
class WithoutStreamingLists : public ApiServer {
 protected:
  WithoutStreamingLists() { streaming_lists_ = StreamingLists::kInvalid; }
};

INSTANTIATE_TEST_SUITE_P(Older, WithoutStreamingLists, testing::Values("fake", "real"),
                         [](const auto& where) { return where.param; });

TEST_P(WithoutStreamingLists, AreRefusedAndPagesAreServed) {
  const std::string space = MakeNamespace();
  Ok(Create(kConfigMaps, space, ConfigMap("a", "1"), "somebody"));
  Watching refused(*server_, StreamingList(kConfigMaps, space));
  EXPECT_EQ(refused.End(),
            "INVALID_ARGUMENT: GET " + kConfigMaps.Path(space) +
                ": ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
                "sendInitialEvents is forbidden for watch unless the WatchList feature gate is "
                "enabled");
  const Json list = Ok(List(kConfigMaps, space, {{"limit", "500"}}));
  EXPECT_THAT(NamesOf(list), ElementsAre("a"));
  Watching watching(*server_, WatchFrom(kConfigMaps, space, VersionOf(list)));
  Ok(Create(kConfigMaps, space, ConfigMap("b", "1"), "somebody"));
  EXPECT_THAT(watching.Events(1), ElementsAre("ADDED b"));
}

}  // namespace
}  // namespace penstock::protocol::kube::contract
