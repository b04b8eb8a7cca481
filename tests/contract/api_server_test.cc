// The requests of the clients in protocol/kube (client, informer, election) and of the agent, on
// the fake API server and on a real one.
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api_servers.h"
#include "operator/adoption.h"
#include "protocol/kube/informer.h"
#include "protocol/kube/lease.h"
#include "protocol/kube/watch.h"

namespace penstock::protocol::kube::contract {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(Contract, ApiServer, testing::Values("fake", "real"),
                         [](const auto& where) { return where.param; });

TEST_P(ApiServer, CreatesAnObjectOnceAndFillsInWhatIsTheServers) {
  const ApiCall create = Create(kNodes, "", Node(name_, {{"zone", "a"}}), "somebody");
  const auto answer = Do(create);
  EXPECT_EQ(Verdict(answer), "201");
  const Json node = *Parse(answer);
  EXPECT_EQ(node["kind"], "Node");
  EXPECT_EQ(node["metadata"]["name"], name_);
  EXPECT_EQ(node["metadata"]["labels"]["zone"], "a");
  EXPECT_FALSE(node["metadata"]["uid"].get<std::string>().empty());
  EXPECT_THAT(node["metadata"]["resourceVersion"].get<std::string>(),
              testing::MatchesRegex("[0-9]+"));
  EXPECT_THAT(node["metadata"]["creationTimestamp"].get<std::string>(),
              testing::MatchesRegex("....-..-..T..:..:..Z"));
  EXPECT_EQ(NodeNow()["metadata"]["uid"], node["metadata"]["uid"]);
  EXPECT_EQ(VerdictOf(create),
            "ALREADY_EXISTS: POST /api/v1/nodes: nodes \"" + name_ + "\" already exists");
}

TEST_P(ApiServer, NothingNewComesIntoANamespaceThatIsBeingDeleted) {
  const std::string space = MakeNamespace();
  const Json map = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "old"}}}};
  Ok(Apply(kConfigMaps, space, map, "somebody"));
  Ok(Delete({"", "v1", "namespaces"}, "", space));
  const Json now = Ok(Get({"", "v1", "namespaces"}, "", space));
  EXPECT_EQ(now["status"]["phase"], "Terminating");
  EXPECT_TRUE(now["metadata"].contains("deletionTimestamp"));
  const std::string why = "is forbidden: unable to create new content in namespace " + space +
                          " because it is being terminated";
  Json other = map;
  other["metadata"]["name"] = "new";
  for (const ApiCall& call : {Create(kConfigMaps, space, other, "somebody"),
                              Apply(kConfigMaps, space, other, "somebody")}) {
    const std::string verdict = VerdictOf(call);
    EXPECT_THAT(verdict, StartsWith("PERMISSION_DENIED: "));
    EXPECT_THAT(verdict, HasSubstr("configmaps \"new\" " + why));
  }
  const Json set = {{"apiVersion", "apps/v1"},
                    {"kind", "DaemonSet"},
                    {"metadata", {{"name", "new"}}},
                    {"spec",
                     {{"selector", {{"matchLabels", {{"a", "b"}}}}},
                      {"template",
                       {{"metadata", {{"labels", {{"a", "b"}}}}},
                        {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}}}}}};
  EXPECT_THAT(VerdictOf(Apply(kDaemonSets, space, set, "somebody")),
              HasSubstr("daemonsets.apps \"new\" " + why));
  Json changed = map;
  changed["data"]["key"] = "value";
  Ok(Apply(kConfigMaps, space, changed, "somebody"));
  Ok(Delete(kConfigMaps, space, "old"));
}

TEST_P(ApiServer, SaysWhatIsNotThere) {
  const std::string node = "/api/v1/nodes/" + name_;
  EXPECT_EQ(VerdictOf(Get(kNodes, "", name_)),
            "NOT_FOUND: GET " + node + ": nodes \"" + name_ + "\" not found");
  EXPECT_EQ(VerdictOf(Delete(kNodes, "", name_)),
            "NOT_FOUND: DELETE " + node + ": nodes \"" + name_ + "\" not found");
  EXPECT_EQ(VerdictOf(Patch(kNodes, "", name_, kStrategicMergePatch, {{"status", Json::object()}},
                            "penstock", "status")),
            "NOT_FOUND: PATCH " + node + "/status: nodes \"" + name_ + "\" not found");
  EXPECT_EQ(
      VerdictOf(Patch(kEvents, "default", "no", kStrategicMergePatch, {{"count", 2}}, "penstock")),
      "NOT_FOUND: PATCH /api/v1/namespaces/default/events/no: events \"no\" not found");
  EXPECT_EQ(VerdictOf(Get(kNodeStates, "", "no")),
            "NOT_FOUND: GET /apis/penstock.io/v1alpha1/nodestates/no: nodestates.penstock.io "
            "\"no\" not found");
  EXPECT_EQ(VerdictOf(Get(kDaemonSets, "default", "no")),
            "NOT_FOUND: GET /apis/apps/v1/namespaces/default/daemonsets/no: daemonsets.apps \"no\" "
            "not found");
}

TEST_P(ApiServer, SaysWhichKindsThereAre) {
  const auto names = [this](const std::string& path) {
    const Json group = Ok({.path = path});
    std::vector<std::string> all;
    for (const Json& resource : group["resources"]) all.push_back(resource["name"]);
    return all;
  };
  EXPECT_THAT(names("/apis/penstock.io/v1alpha1"), testing::Contains("nodestates"));
  EXPECT_THAT(names("/api/v1"), testing::Contains("configmaps"));
  EXPECT_EQ(
      VerdictOf({.path = "/apis/nobody.example.com/v1"}),
      "NOT_FOUND: GET /apis/nobody.example.com/v1: the server answered 404 \"404 page not found\"");
}

TEST_P(ApiServer, AnswersForAKindThatIsNotInstalled) {
  const std::string path = kNotInstalled.Path("", "x");
  const std::string why = ": the server answered 404 \"404 page not found\"";
  const Json object = {
      {"apiVersion", "nobody.example.com/v1"}, {"kind", "Thing"}, {"metadata", {{"name", "x"}}}};
  EXPECT_EQ(VerdictOf(Get(kNotInstalled, "", "x")), "NOT_FOUND: GET " + path + why);
  EXPECT_EQ(VerdictOf(Apply(kNotInstalled, "", object, "penstock")),
            "NOT_FOUND: PATCH " + path + why);
  EXPECT_EQ(VerdictOf(List(kNotInstalled, "", {{"limit", "500"}})),
            "NOT_FOUND: GET " + kNotInstalled.Path() + why);
  Watching watching(*server_, StreamingList(kNotInstalled, ""));
  EXPECT_EQ(watching.End(), "NOT_FOUND: GET " + kNotInstalled.Path() + why);
}

TEST_P(ApiServer, NamesTheUserAndTheRightWhereSomethingIsForbidden) {
  const auto forbidden = [this](const ApiCall& call) {
    return Verdict(server_->DoAsStranger(call));
  };
  const std::string user = "User \"penstock\" cannot ",
                    cluster = " in API group \"\" at the cluster scope";
  const std::string rule = "missing RBAC rule: {apiGroups: [\"\"], resources: [\"nodes";
  EXPECT_THAT(
      forbidden(List(kNodes, "", {{"limit", "500"}, {"resourceVersion", "0"}})),
      AllOf(StartsWith("PERMISSION_DENIED: GET /api/v1/nodes: nodes is forbidden: " + user +
                       "list resource \"nodes\"" + cluster),
            HasSubstr(rule + "\"], verbs: [\"list\"]}, in a ClusterRole bound to penstock")));
  EXPECT_THAT(forbidden(Get(kNodes, "", "n")),
              StartsWith("PERMISSION_DENIED: GET /api/v1/nodes/n: nodes \"n\" is forbidden: " +
                         user + "get resource \"nodes\"" + cluster));
  EXPECT_THAT(
      forbidden(Apply(kNodes, "", Node("n"), "penstock-labels")),
      AllOf(HasSubstr(": nodes \"n\" is forbidden: " + user + "patch resource \"nodes\"" + cluster),
            HasSubstr(rule + "\"], resourceNames: [\"n\"], verbs: [\"patch\"]}")));
  EXPECT_THAT(
      forbidden(Patch(kNodes, "", "n", kStrategicMergePatch, Json::object(), "penstock", "status")),
      HasSubstr(": nodes \"n\" is forbidden: " + user + "patch resource \"nodes/status\"" +
                cluster));
  EXPECT_THAT(
      forbidden(Create(kEvents, "default",
                       {{"apiVersion", "v1"}, {"kind", "Event"}, {"metadata", {{"name", "e"}}}},
                       "penstock")),
      HasSubstr(": events is forbidden: " + user +
                "create resource \"events\" in API group \"\" in the namespace \"default\""));
  EXPECT_THAT(
      forbidden(Get(kNodeStates, "", "n")),
      HasSubstr(": nodestates.penstock.io \"n\" is forbidden: " + user +
                "get resource \"nodestates\" in API group \"penstock.io\" at the cluster scope"));
  EXPECT_THAT(forbidden(Delete(kNodeStates, "", "n")),
              HasSubstr(user + "delete resource \"nodestates\""));
  EXPECT_THAT(forbidden({.method = "PUT",
                         .path = kLeases.Path("default", "l"),
                         .content_type = "application/json",
                         .body = "{}"}),
              HasSubstr(user + "update resource \"leases\" in API group \"coordination.k8s.io\" in "
                               "the namespace \"default\""));
  EXPECT_EQ(Verdict(server_->DoUnauthenticated(Get(kNodes, "", "n"))),
            "UNAUTHENTICATED: GET /api/v1/nodes/n: Unauthorized");
}

TEST_P(ApiServer, ApplyOwnsItsLabelsAndRemovesThoseItNoLongerNames) {
  const Json made = MakeNode({{"theirs", "1"}});
  const auto apply = [&](const Json& labels) {
    return Apply(kNodes, "", Node(name_, labels), "penstock-labels");
  };
  const auto answer = Do(apply({{"nvidia.com/gpu.count", "8"}, {"d", "2"}}));
  EXPECT_EQ(Verdict(answer), "200");
  const Json node = *Parse(answer);
  EXPECT_EQ(node["metadata"]["labels"],
            Json({{"theirs", "1"}, {"nvidia.com/gpu.count", "8"}, {"d", "2"}}));
  EXPECT_THAT(OwnersOf(node),
              UnorderedElementsAre("somebody Update: f:theirs",
                                   "penstock-labels Apply: f:d f:nvidia.com/gpu.count"));
  EXPECT_NE(VersionOf(node), VersionOf(made));
  EXPECT_EQ(VersionOf(Ok(apply({{"nvidia.com/gpu.count", "8"}, {"d", "2"}}))), VersionOf(node))
      << "what changes nothing is no write";
  EXPECT_EQ(Ok(apply({{"d", "3"}}))["metadata"]["labels"], Json({{"theirs", "1"}, {"d", "3"}}));
}

TEST_P(ApiServer, ApplyTakesAForeignValueAndSharesAnEqualOne) {
  MakeNode({{"x", "1"}, {"y", "1"}});
  const Json node = Ok(Apply(kNodes, "", Node(name_, {{"x", "2"}, {"y", "1"}}), "penstock-labels"));
  EXPECT_EQ(node["metadata"]["labels"], Json({{"x", "2"}, {"y", "1"}}));
  EXPECT_THAT(OwnersOf(node),
              UnorderedElementsAre("somebody Update: f:y", "penstock-labels Apply: f:x f:y"));
  // Shared labels stay with their other owner; labels that were taken over are removed.
  EXPECT_EQ(Ok(Apply(kNodes, "", Node(name_), "penstock-labels"))["metadata"]["labels"],
            Json({{"y", "1"}}));
}

TEST_P(ApiServer, APortThatAnotherWroteStaysBesideItsSuccessorUntilItIsAdopted) {
  const std::string space = MakeNamespace();
  Json theirs = Service(9400);
  theirs["metadata"]["labels"] = {{"app", "theirs"}};
  theirs["metadata"]["ownerReferences"] = {Owner("a-policy", true), Owner("another", false)};
  theirs["spec"]["type"] = "NodePort";
  theirs["spec"]["selector"] = {{"app", "theirs"}};
  Ok(Create(kServices, space, theirs, "gpu-operator"));
  // As a controller goes on: it reads the object, and writes all of it.
  Replace(kServices, space, "s", {{"spec", {{"sessionAffinity", "ClientIP"}}}});
  const auto apply = [&](int port) {
    return Apply(kServices, space, Service(port), "penstock-operator");
  };
  Ok(apply(9400));
  EXPECT_THAT(VerdictOf(apply(9500)), HasSubstr("Duplicate value: \"metrics\""));

  const Json found = Ok(Get(kServices, space, "s"));
  const Json adoption = cluster::AdoptionOf(found, "v1");
  const auto adopt = [&] {
    return Patch(kServices, space, "s", kMergePatch, adoption, "penstock-operator");
  };
  const Json adopted = Ok(adopt());
  EXPECT_EQ(adopted["spec"], found["spec"]) << "it serves on";
  EXPECT_THAT(VerdictOf(adopt()), HasSubstr("the object has been modified"));
  Json wanted = Service(9500);
  wanted["metadata"]["ownerReferences"] = {Owner("our-policy", true)};
  wanted["metadata"]["resourceVersion"] = VersionOf(adopted);
  const auto apply_wanted = [&] { return Apply(kServices, space, wanted, "penstock-operator"); };
  const Json ours = Ok(apply_wanted());
  ASSERT_EQ(ours["spec"]["ports"].size(), 1u) << ours.dump(1);
  EXPECT_EQ(ours["spec"]["ports"][0]["port"], 9500);
  EXPECT_EQ(ours["spec"].value("clusterIP", ""), found["spec"].value("clusterIP", ""));
  EXPECT_THAT(OwnersOfSpec(ours), ElementsAre("penstock-operator Apply"));
  EXPECT_EQ(ours["metadata"]["labels"]["app"], "theirs") << "someone may select it by this";
  EXPECT_EQ(ours["metadata"]["ownerReferences"].size(), 2u);
  EXPECT_THAT(VerdictOf(apply_wanted()), HasSubstr("the object has been modified"));
  EXPECT_EQ(Ok(apply(9600))["spec"]["ports"].size(), 1u);
}

TEST_P(ApiServer, WhatSomeoneElseHasMadeMeanwhileIsNotAppliedOverWithoutForce) {
  const std::string space = MakeNamespace();
  Json theirs = Service(80);
  theirs["spec"]["selector"] = {{"app", "theirs"}};
  const Json made = Ok(Create(kServices, space, theirs, "somebody"));
  EXPECT_THAT(VerdictOf(Apply(kServices, space, Service(9400), "penstock-operator", false)),
              StartsWith("ABORTED: "));
  EXPECT_EQ(VersionOf(Ok(Get(kServices, space, "s"))), VersionOf(made));
}

TEST_P(ApiServer, AValueThatAnotherChangesIsNoLongerOurs) {
  MakeNode();
  Ok(Apply(kNodes, "", Node(name_, {{"x", "1"}, {"y", "1"}}), "penstock-labels"));
  const Json node = Replace(kNodes, "", name_, {{"metadata", {{"labels", {{"x", "2"}}}}}});
  EXPECT_THAT(OwnersOf(node),
              testing::IsSupersetOf({"somebody Update: f:x", "penstock-labels Apply: f:y"}));
}

TEST_P(ApiServer, ApplyNamesTheNodeByItsUid) {
  const Json made = MakeNode();
  Json object = Node(name_, {{"x", "1"}});
  object["metadata"]["uid"] = made["metadata"]["uid"];
  EXPECT_EQ(VerdictOf(Apply(kNodes, "", object, "penstock-labels")), "200");
  object["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  EXPECT_EQ(VerdictOf(Apply(kNodes, "", object, "penstock-labels")),
            "INVALID_ARGUMENT: PATCH /api/v1/nodes/" + name_ + ": Node \"" + name_ +
                "\" is invalid: metadata.uid: Invalid value: "
                "\"11111111-2222-3333-4444-555555555555\": field is immutable");
  Ok(Delete(kNodes, "", name_));
  EXPECT_EQ(VerdictOf(Apply(kNodes, "", object, "penstock-labels")),
            "ABORTED: PATCH /api/v1/nodes/" + name_ +
                ": Operation cannot be fulfilled on nodes \"" + name_ +
                "\": uid mismatch: the provided object specified uid "
                "11111111-2222-3333-4444-555555555555, and no existing object was found");
}

TEST_P(ApiServer, ADryRunShowsWhatWouldBeAndChangesNothing) {
  MakeNode({{"theirs", "1"}});
  const Json before = Ok(Apply(kNodes, "", Node(name_, {{"ours", "1"}}), "penstock-labels"));
  ApiCall call = Apply(kNodes, "", Node(name_), "penstock-labels");
  call.query["dryRun"] = "All";
  EXPECT_EQ(Ok(call)["metadata"]["labels"], Json({{"theirs", "1"}}));
  EXPECT_EQ(NodeNow()["metadata"]["labels"], Json({{"theirs", "1"}, {"ours", "1"}}));
  EXPECT_EQ(VersionOf(NodeNow()), VersionOf(before));
  Ok(Apply(kNodeStates, "", NodeState(name_), "penstock"));
  call = Delete(kNodeStates, "", name_);
  call.query["dryRun"] = "All";
  EXPECT_EQ(VerdictOf(call), "200");
  EXPECT_EQ(VerdictOf(Get(kNodeStates, "", name_)), "200");
}

TEST_P(ApiServer, ApplyMakesANodeStateAndChangesItsStatus) {
  const auto made =
      Do(Apply(kNodeStates, "", NodeState(name_, {{"summary", {{"devices", 8}}}}), "penstock"));
  EXPECT_EQ(Verdict(made), "201");
  const Json changed =
      Ok(Apply(kNodeStates, "", NodeState(name_, {{"summary", {{"devices", 7}}}}), "penstock"));
  EXPECT_EQ(changed["status"]["summary"]["devices"], 7);
  EXPECT_EQ(changed["metadata"]["uid"], (*Parse(made))["metadata"]["uid"]);
  const Json found = Ok(Get(kNodeStates, "", name_));
  EXPECT_EQ(found["status"]["summary"], Json({{"devices", 7}}));
  EXPECT_THAT(OwnersOf(found), ElementsAre("penstock Apply:"));
  EXPECT_EQ(VerdictOf(Delete(kNodeStates, "", name_)), "200");
  EXPECT_THAT(VerdictOf(Delete(kNodeStates, "", name_)), StartsWith("NOT_FOUND: "));
}

TEST_P(ApiServer, ApplyMakesANodeFeatureInANamespace) {
  const std::string space = MakeNamespace();
  const Json feature = {
      {"apiVersion", "nfd.k8s-sigs.io/v1alpha1"},
      {"kind", "NodeFeature"},
      {"metadata", {{"name", "f"}, {"labels", {{"nfd.node.kubernetes.io/node-name", "n1"}}}}},
      {"spec", {{"labels", {{"nvidia.com/gpu.count", "8"}}}}}};
  EXPECT_EQ(VerdictOf(Apply(kNodeFeatures, space, feature, "penstock")), "201");
  const Json found = Ok(Get(kNodeFeatures, space, "f"));
  EXPECT_EQ(found["spec"]["labels"], Json({{"nvidia.com/gpu.count", "8"}}));
  EXPECT_EQ(found["metadata"]["namespace"], space);
  EXPECT_THAT(OwnersOf(found), ElementsAre("penstock Apply: f:nfd.node.kubernetes.io/node-name"));
  EXPECT_THAT(NamesOf(Ok(List(kNodeFeatures, space, {{"limit", "500"}}))), ElementsAre("f"));
  const std::string uid = found["metadata"]["uid"];
  EXPECT_THAT(VerdictOf(Delete(kNodeFeatures, space, "f", "11111111-2222-3333-4444-555555555555")),
              AllOf(StartsWith("ABORTED: "), HasSubstr("does not match the UID in record")));
  EXPECT_EQ(VerdictOf(Delete(kNodeFeatures, space, "f", uid)), "200");
}

TEST_P(ApiServer, NumbersOfANodeAreWrittenThroughItsStatus) {
  MakeNode({{"a", "1"}});
  const Json numbers = {
      {"status",
       {{"capacity", {{"nvidia.com/gpu", "8"}}}, {"allocatable", {{"nvidia.com/gpu", "7"}}}}}};
  const auto answer =
      Do(Patch(kNodes, "", name_, kStrategicMergePatch, numbers, "penstock", "status"));
  EXPECT_EQ(Verdict(answer), "200");
  const Json node = *Parse(answer);
  EXPECT_EQ(node["status"]["capacity"], Json({{"nvidia.com/gpu", "8"}}));
  EXPECT_EQ(node["status"]["allocatable"], Json({{"nvidia.com/gpu", "7"}}));
  EXPECT_EQ(node["metadata"]["labels"], Json({{"a", "1"}}));
  EXPECT_THAT(OwnersOf(node),
              UnorderedElementsAre("somebody Update: f:a", "penstock Update/status:"));
  const Json other = {{"status", {{"capacity", {{"amd.com/gpu", "1"}}}}}};
  EXPECT_EQ(Ok(Patch(kNodes, "", name_, kStrategicMergePatch, other, "penstock",
                     "status"))["status"]["capacity"],
            Json({{"nvidia.com/gpu", "8"}, {"amd.com/gpu", "1"}}));
  // A write to the node itself neither changes nor loses its status.
  const Json relabelled =
      Replace(kNodes, "", name_,
              {{"metadata", {{"labels", {{"a", "2"}}}}}, {"status", {{"capacity", nullptr}}}});
  EXPECT_EQ(relabelled["metadata"]["labels"]["a"], "2");
  EXPECT_EQ(relabelled["status"]["capacity"]["nvidia.com/gpu"], "8");
}

TEST_P(ApiServer, ConditionsAreMergedByTheirType) {
  MakeNode();
  const auto patch = [&](const Json& condition) {
    const Json status = {{"status", {{"conditions", Json::array({condition})}}}};
    const Json node =
        Ok(Patch(kNodes, "", name_, kStrategicMergePatch, status, "penstock", "status"));
    std::vector<std::string> types;
    for (const Json& one : node["status"]["conditions"])
      types.push_back(one["type"].get<std::string>() + " " + one["status"].get<std::string>());
    return types;
  };
  EXPECT_THAT(patch({{"type", "Ready"}, {"status", "True"}}), ElementsAre("Ready True"));
  EXPECT_THAT(patch({{"type", "GPU"}, {"status", "True"}}),
              UnorderedElementsAre("Ready True", "GPU True"));
  EXPECT_THAT(patch({{"type", "GPU"}, {"status", "False"}}),
              UnorderedElementsAre("Ready True", "GPU False"));
  EXPECT_THAT(patch({{"type", "GPU"}, {"$patch", "delete"}}), ElementsAre("Ready True"));
}

TEST_P(ApiServer, AMergePatchReplacesWhatItNames) {
  MakeNode({{"a", "1"}, {"b", "1"}});
  const Json labels = {{"metadata", {{"labels", {{"a", nullptr}, {"c", "1"}}}}}};
  EXPECT_EQ(Ok(Patch(kNodes, "", name_, kMergePatch, labels, "somebody"))["metadata"]["labels"],
            Json({{"b", "1"}, {"c", "1"}}));
}

TEST_P(ApiServer, AnUnforcedApplyIsAConflictOverAnothersValue) {
  MakeNode();
  Ok(Apply(kNodes, "", Node(name_, {{"x", "1"}}), "nfd"));
  EXPECT_EQ(VerdictOf(Apply(kNodes, "", Node(name_, {{"x", "2"}}), "penstock", false)),
            "ABORTED: PATCH /api/v1/nodes/" + name_ +
                ": Apply failed with 1 conflict: conflict with \"nfd\": .metadata.labels.x");
}

TEST_P(ApiServer, AnEventIsMadeOnceAndCountsOn) {
  const Json event = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"name", name_}, {"namespace", "default"}}},
      {"involvedObject", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", "n1"}}},
      {"type", "Warning"},
      {"reason", "DeviceUnhealthy"},
      {"message", "one"},
      {"source", {{"component", "penstock"}, {"host", "n1"}}},
      {"reportingComponent", "penstock"},
      {"reportingInstance", "n1"},
      {"firstTimestamp", "2026-01-02T03:04:05Z"},
      {"lastTimestamp", "2026-01-02T03:04:05Z"},
      {"count", 1}};
  EXPECT_EQ(VerdictOf(Create(kEvents, "default", event, "penstock")), "201");
  EXPECT_EQ(VerdictOf(Create(kEvents, "default", event, "penstock")),
            "ALREADY_EXISTS: POST /api/v1/namespaces/default/events: events \"" + name_ +
                "\" already exists");
  const Json patch = {{"count", 2}, {"lastTimestamp", "2026-01-02T03:05:05Z"}, {"message", "two"}};
  const Json counted =
      Ok(Patch(kEvents, "default", name_, kStrategicMergePatch, patch, "penstock"));
  EXPECT_EQ(counted["count"], 2);
  EXPECT_EQ(counted["message"], "two");
  EXPECT_EQ(counted["lastTimestamp"], "2026-01-02T03:05:05Z");
  EXPECT_EQ(counted["firstTimestamp"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(counted["involvedObject"]["uid"], "n1");
}

TEST_P(ApiServer, ALeaseIsRenewedOnlyFromItsNewestVersion) {
  const Json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                      {"kind", "Lease"},
                      {"metadata", {{"name", name_}}},
                      {"spec",
                       {{"holderIdentity", "a"},
                        {"leaseDurationSeconds", 15},
                        {"renewTime", "2026-01-02T03:04:05.000000Z"}}}};
  Json old = Ok(Create(kLeases, "default", lease, "penstock"));
  const auto put = [this](const Json& object) {
    return Do({.method = "PUT",
               .path = kLeases.Path("default", name_),
               .query = {{"fieldManager", "penstock"}},
               .content_type = "application/json",
               .body = object.dump()});
  };
  Json newer = old;
  newer["spec"]["holderIdentity"] = "b";
  const auto answer = put(newer);
  EXPECT_EQ(Verdict(answer), "200");
  EXPECT_EQ((*Parse(answer))["spec"]["holderIdentity"], "b");
  EXPECT_EQ((*Parse(answer))["spec"]["renewTime"], "2026-01-02T03:04:05.000000Z");
  EXPECT_EQ(Verdict(put(old)),
            "ABORTED: PUT " + kLeases.Path("default", name_) +
                ": Operation cannot be fulfilled on leases.coordination.k8s.io \"" + name_ +
                "\": the object has been modified; please apply your changes to the latest version "
                "and try again");
  old["metadata"]["name"] = name_ + "-other";
  EXPECT_EQ(VerdictOf(Get(kLeases, "default", name_ + "-other")),
            "NOT_FOUND: GET " + kLeases.Path("default", name_ + "-other") +
                ": leases.coordination.k8s.io \"" + name_ + "-other\" not found");
}

TEST_P(ApiServer, ALeaderIsElectedAndGivesItsLeaseBack) {
  std::promise<void> leading;
  std::unique_ptr<LeaderElection> election;
  server_->OnLoop([&] {
    election = std::make_unique<LeaderElection>(
        server_->api(),
        LeaderElection::Options{.namespace_name = "default", .name = name_, .identity = "a"},
        LeaderElection::Callbacks{.leading = [&] { leading.set_value(); },
                                  .stopped = [](const std::string&) {}});
    election->Start();
  });
  ASSERT_EQ(leading.get_future().wait_for(kWithin), std::future_status::ready);
  EXPECT_EQ(Ok(Get(kLeases, "default", name_))["spec"]["holderIdentity"], "a");
  server_->OnLoop([&] { election.reset(); });
  Json lease;
  for (const auto end = std::chrono::steady_clock::now() + kWithin;
       std::chrono::steady_clock::now() < end;) {
    lease = Ok(Get(kLeases, "default", name_));
    if (lease["spec"].value("holderIdentity", "") != "a") break;
  }
  EXPECT_EQ(lease["spec"].value("holderIdentity", ""), "");
}

TEST_P(ApiServer, ADaemonSetHasItsNumbersInItsStatus) {
  const Json labels = {{"app", "d"}};
  const Json set = {{"apiVersion", "apps/v1"},
                    {"kind", "DaemonSet"},
                    {"metadata", {{"name", name_}}},
                    {"spec",
                     {{"selector", {{"matchLabels", labels}}},
                      {"template",
                       {{"metadata", {{"labels", labels}}},
                        {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}}}}}};
  Ok(Create(kDaemonSets, "default", set, "somebody"));
  const Json status = {{"status",
                        {{"currentNumberScheduled", 3},
                         {"numberMisscheduled", 0},
                         {"desiredNumberScheduled", 3},
                         {"numberReady", 2},
                         {"observedGeneration", 1}}}};
  Ok(Patch(kDaemonSets, "default", name_, kStrategicMergePatch, status, "somebody", "status"));
  const Json found = Ok(Get(kDaemonSets, "default", name_));
  EXPECT_EQ(found["metadata"]["generation"], 1);
  EXPECT_EQ(found["status"]["numberReady"], 2);
  EXPECT_EQ(found["status"]["desiredNumberScheduled"], 3);
  EXPECT_EQ(found["status"]["observedGeneration"], 1);
}

TEST_P(ApiServer, ListsInPagesWhoseObjectsHaveNoKind) {
  const std::string space = MakeNamespace();
  EXPECT_EQ(Ok(List(kConfigMaps, space, {{"limit", "2"}}))["items"], Json::array());
  for (const char* name : {"a", "b", "c"})
    Ok(Create(kConfigMaps, space, ConfigMap(name, "v"), "somebody"));
  const Json first = Ok(List(kConfigMaps, space, {{"limit", "2"}}));
  EXPECT_EQ(first["kind"], "ConfigMapList");
  EXPECT_EQ(first["apiVersion"], "v1");
  EXPECT_THAT(NamesOf(first), ElementsAre("a", "b"));
  EXPECT_FALSE(first["items"][0].contains("kind"));
  EXPECT_TRUE(first["items"][0]["metadata"].contains("managedFields"));
  // An object that is created between two pages is not on the second page.
  Ok(Create(kConfigMaps, space, ConfigMap("d", "v"), "somebody"));
  const Json second =
      Ok(List(kConfigMaps, space, {{"limit", "2"}, {"continue", first["metadata"]["continue"]}}));
  EXPECT_THAT(NamesOf(second), ElementsAre("c"));
  EXPECT_EQ(VersionOf(second), VersionOf(first));
  EXPECT_EQ(second["metadata"].value("continue", ""), "");
}

TEST_P(ApiServer, AListOfAnyVersionIsWholeWhateverItsLimit) {
  const std::string space = MakeNamespace();
  Json last;
  for (const char* name : {"a", "b", "c"})
    last = Ok(Create(kConfigMaps, space, ConfigMap(name, "v"), "somebody"));
  // A cache may lag: repeat until it has the last object.
  Json list;
  for (const auto end = std::chrono::steady_clock::now() + kWithin;
       std::chrono::steady_clock::now() < end;) {
    list = Ok(List(kConfigMaps, space, {{"limit", "2"}, {"resourceVersion", "0"}}));
    if (list["items"].size() == 3) break;
  }
  EXPECT_THAT(NamesOf(list), ElementsAre("a", "b", "c"));
  EXPECT_EQ(list["metadata"].value("continue", ""), "");
  EXPECT_GE(std::stoll(VersionOf(list)), std::stoll(VersionOf(last)));
}

TEST_P(ApiServer, APageAfterACompactionIsExpired) {
  const std::string space = MakeNamespace();
  for (const char* name : {"a", "b", "c"})
    Ok(Create(kConfigMaps, space, ConfigMap(name, "v"), "somebody"));
  const Json first = Ok(List(kConfigMaps, space, {{"limit", "2"}}));
  Ok(Create(kConfigMaps, space, ConfigMap("d", "v"), "somebody"));
  server_->Compact();
  EXPECT_THAT(
      VerdictOf(
          List(kConfigMaps, space, {{"limit", "2"}, {"continue", first["metadata"]["continue"]}})),
      StartsWith(
          "OUT_OF_RANGE: GET " + kConfigMaps.Path(space) +
          ": The provided continue parameter is too old to display a consistent list result."));
}

TEST_P(ApiServer, SelectsByNameByNodeAndByLabel) {
  const std::string space = MakeNamespace();
  for (const char* name : {"a", "b"})
    Ok(Create(kConfigMaps, space, ConfigMap(name, "v", {{"is", name}}), "somebody"));
  EXPECT_THAT(NamesOf(Ok(List(kConfigMaps, space,
                              {{"limit", "500"}, {"fieldSelector", "metadata.name=b"}}))),
              ElementsAre("b"));
  EXPECT_THAT(NamesOf(Ok(List(kConfigMaps, "", {{"limit", "500"}, {"labelSelector", "is=a"}}))),
              testing::Contains("a"));
  EXPECT_THAT(NamesOf(Ok(List(kConfigMaps, space, {{"limit", "500"}, {"labelSelector", "is=a"}}))),
              ElementsAre("a"));
  for (const char* on : {"on", "off"}) {
    const Json pod = {
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", {{"name", std::string("pod-") + on}}},
        {"spec",
         {{"nodeName", name_ + "-" + on}, {"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
    Ok(Create(kPods, space, pod, "somebody"));
  }
  EXPECT_THAT(
      NamesOf(Ok(List(kPods, "",
                      {{"limit", "500"}, {"fieldSelector", "spec.nodeName=" + name_ + "-on"}}))),
      ElementsAre("pod-on"));
  Ok(Apply(kNodeStates, "", NodeState(name_ + "-1"), "penstock"));
  Ok(Apply(kNodeStates, "", NodeState(name_ + "-2"), "penstock"));
  EXPECT_THAT(
      NamesOf(Ok(List(kNodeStates, "",
                      {{"limit", "500"}, {"fieldSelector", "metadata.name=" + name_ + "-2"}}))),
      ElementsAre(name_ + "-2"));
}

TEST_P(ApiServer, AStreamingListEndsWithABookmarkAndGoesOnInOrder) {
  const std::string space = MakeNamespace();
  for (const char* name : {"a", "b"})
    Ok(Create(kConfigMaps, space, ConfigMap(name, "1"), "somebody"));
  Watching watching(*server_, StreamingList(kConfigMaps, space));
  EXPECT_THAT(watching.Events(3), ElementsAre("ADDED a", "ADDED b", "BOOKMARK end of list"));
  Replace(kConfigMaps, space, "b", {{"data", {{"key", "2"}}}});
  Ok(Create(kConfigMaps, space, ConfigMap("c", "1"), "somebody"));
  const std::string before = VersionOf(Ok(Get(kConfigMaps, space, "a")));
  Ok(Delete(kConfigMaps, space, "a"));
  ASSERT_THAT(watching.Events(6), ElementsAre("ADDED a", "ADDED b", "BOOKMARK end of list",
                                              "MODIFIED b", "ADDED c", "DELETED a"));
  const auto lines = watching.Lines();
  EXPECT_EQ(lines[0]["object"]["kind"], "ConfigMap");
  EXPECT_EQ(lines[0]["object"]["apiVersion"], "v1");
  EXPECT_TRUE(lines[0]["object"]["metadata"].contains("managedFields"));
  EXPECT_EQ(lines[3]["object"]["data"]["key"], "2");
  EXPECT_GT(std::stoll(VersionOf(lines[5]["object"])), std::stoll(before))
      << "the version of its end, to go on from";
  EXPECT_GT(std::stoll(VersionOf(lines[5]["object"])), std::stoll(VersionOf(lines[4]["object"])));
}

TEST_P(ApiServer, AStreamingListOfOneObjectSeesNoOther) {
  const std::string space = MakeNamespace();
  Ok(Create(kConfigMaps, space, ConfigMap("a", "1"), "somebody"));
  Watching watching(*server_, StreamingList(kConfigMaps, space, "metadata.name=b"));
  EXPECT_THAT(watching.Events(1), ElementsAre("BOOKMARK end of list"));
  Replace(kConfigMaps, space, "a", {{"data", {{"key", "2"}}}});
  Ok(Create(kConfigMaps, space, ConfigMap("b", "1"), "somebody"));
  EXPECT_THAT(watching.Events(2), ElementsAre("BOOKMARK end of list", "ADDED b"));
}

TEST_P(ApiServer, AnObjectThatASelectorLosesIsDeletedForIt) {
  const std::string space = MakeNamespace();
  Ok(Create(kConfigMaps, space, ConfigMap("a", "1", {{"is", "x"}}), "somebody"));
  ApiCall call = StreamingList(kConfigMaps, space);
  call.query["labelSelector"] = "is=x";
  Watching watching(*server_, call);
  EXPECT_THAT(watching.Events(2), ElementsAre("ADDED a", "BOOKMARK end of list"));
  Replace(kConfigMaps, space, "a", {{"metadata", {{"labels", {{"is", "y"}}}}}});
  EXPECT_THAT(watching.Events(3), ElementsAre("ADDED a", "BOOKMARK end of list", "DELETED a"));
  Replace(kConfigMaps, space, "a", {{"metadata", {{"labels", {{"is", "x"}}}}}});
  EXPECT_THAT(watching.Events(4),
              ElementsAre("ADDED a", "BOOKMARK end of list", "DELETED a", "ADDED a"));
}

TEST_P(ApiServer, AWatchGoesOnFromAVersion) {
  const std::string space = MakeNamespace();
  Ok(Create(kConfigMaps, space, ConfigMap("a", "1"), "somebody"));
  const std::string version = VersionOf(Ok(List(kConfigMaps, space, {{"limit", "500"}})));
  Replace(kConfigMaps, space, "a", {{"data", {{"key", "2"}}}});
  Ok(Delete(kConfigMaps, space, "a"));
  Watching watching(*server_, WatchFrom(kConfigMaps, space, version));
  EXPECT_THAT(watching.Events(2), ElementsAre("MODIFIED a", "DELETED a"));
}

// A server that ignores the parameters of a streaming list, and has no bookmarks, treats the
// informer's request like this.
TEST_P(ApiServer, AWatchWithoutAVersionBeginsWithWhatIsThereAndReportsNoEndOfIt) {
  const std::string space = MakeNamespace();
  for (const char* name : {"a", "b"})
    Ok(Create(kConfigMaps, space, ConfigMap(name, "1"), "somebody"));
  Watching watching(*server_,
                    {.path = kConfigMaps.Path(space), .query = {{"timeoutSeconds", "300"}}});
  EXPECT_THAT(watching.Events(2), UnorderedElementsAre("ADDED a", "ADDED b"));
  Ok(Create(kConfigMaps, space, ConfigMap("c", "1"), "somebody"));
  EXPECT_THAT(watching.Events(3), UnorderedElementsAre("ADDED a", "ADDED b", "ADDED c"));
}

TEST_P(ApiServer, AWatchFromBeforeAllThatIsKnownIsExpiredByAnEvent) {
  Ok(Apply(kNodeStates, "", NodeState(name_), "penstock"));
  Watching watching(*server_, WatchFrom(kNodeStates, "", "1"));
  ASSERT_THAT(watching.Events(1), ElementsAre("ERROR 410"));
  EXPECT_EQ(watching.End(), "ok");
  const Json status = watching.Lines()[0]["object"];
  EXPECT_EQ(status["kind"], "Status");
  EXPECT_EQ(status["reason"], "Expired");
  EXPECT_THAT(status["message"].get<std::string>(), StartsWith("too old resource version: 1 ("));
}

TEST_P(ApiServer, AWatchEndsAfterTheTimeThatItAskedForWithABookmarkBefore) {
  const std::string space = MakeNamespace();
  Ok(Create(kConfigMaps, space, ConfigMap("a", "1"), "somebody"));
  const std::string version = VersionOf(Ok(List(kConfigMaps, space, {{"limit", "500"}})));
  ApiCall call = WatchFrom(kConfigMaps, space, version);
  call.query["timeoutSeconds"] = "10";
  Watching watching(*server_, call);
  const Json seen = Ok(Create(kConfigMaps, space, ConfigMap("b", "1"), "somebody"));
  ASSERT_THAT(watching.Events(1), ElementsAre("ADDED b"));
  Ok(Create(kConfigMaps, "default", ConfigMap(name_, "1"),
            "somebody"));  // not part of this watch, but newer
  server_->Bookmark();
  EXPECT_EQ(watching.End(), "ok");
  EXPECT_THAT(watching.Events(1), ElementsAre("ADDED b"));
  ASSERT_FALSE(watching.Bookmarks().empty());
  EXPECT_GT(std::stoll(VersionOf(watching.Bookmarks()[0]["object"])), std::stoll(VersionOf(seen)));
}

TEST_P(ApiServer, ListsAndWatchesMayHaveMetadataAlone) {
  const std::string space = MakeNamespace();
  const auto selector = "spec.nodeName=" + name_;
  ApiCall pages{.path = kPods.Path(),
                .query = {{"limit", "500"}, {"fieldSelector", selector}},
                .accept = std::string(kMetadataOfLists)};
  EXPECT_THAT(DecodePage(Do(pages)->body)->objects, IsEmpty());
  const Json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", "p"}, {"labels", {{"team", "x"}}}}},
      {"spec", {{"nodeName", name_}, {"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
  Ok(Create(kPods, space, pod, "somebody"));
  const Json list = Ok(pages);
  EXPECT_EQ(list["kind"], "PartialObjectMetadataList");
  EXPECT_EQ(list["apiVersion"], "meta.k8s.io/v1");
  ASSERT_THAT(NamesOf(list), ElementsAre("p"));
  EXPECT_FALSE(list["items"][0].contains("spec"));
  EXPECT_EQ(list["items"][0]["metadata"]["labels"]["team"], "x");
  ApiCall stream = StreamingList(kPods, "", selector);
  stream.accept = kMetadataOfEvents;
  Watching watching(*server_, stream);
  ASSERT_THAT(watching.Events(2), ElementsAre("ADDED p", "BOOKMARK end of list"));
  const Json object = watching.Lines()[0]["object"];
  EXPECT_EQ(object["kind"], "PartialObjectMetadata");
  EXPECT_FALSE(object.contains("spec"));
  EXPECT_EQ(object["metadata"]["labels"]["team"], "x");
  EXPECT_FALSE(object["metadata"]["uid"].get<std::string>().empty());
}

// Combines the cases above as the agent uses them.
TEST_P(ApiServer, AnInformerOfMetadataKnowsWhatComesAndGoes) {
  const std::string space = MakeNamespace();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> seen;
  const auto say = [&](const std::string& what) {
    std::lock_guard lock(mutex);
    seen.push_back(what);
    changed.notify_all();
  };
  const auto wait = [&](std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kWithin, [&] { return seen.size() >= count; });
    return seen;
  };
  Ok(Create(kConfigMaps, space, ConfigMap("a", "1"), "somebody"));
  std::unique_ptr<Informer> informer;
  server_->OnLoop([&] {
    Informer::Options options{
        .resource = kConfigMaps, .namespace_name = space, .metadata_only = true};
    informer = std::make_unique<Informer>(
        server_->api(), options,
        Informer::Handlers{
            .changed =
                [&](const Json& object) {
                  say("has " + object["metadata"]["name"].get<std::string>());
                },
            .removed = [&](const std::string&, const std::string& name) { say("lost " + name); },
            .synced = [&] { say("synced"); },
            .problem =
                [&](const base::Status& why) { say(why.ok() ? "well" : why.error().ToString()); }});
    informer->Start();
  });
  EXPECT_THAT(wait(2), ElementsAre("has a", "synced"));
  Ok(Create(kConfigMaps, space, ConfigMap("b", "1"), "somebody"));
  Ok(Delete(kConfigMaps, space, "a"));
  EXPECT_THAT(wait(4), ElementsAre("has a", "synced", "has b", "lost a"));
  server_->OnLoop([&] { informer.reset(); });
}

}  // namespace
}  // namespace penstock::protocol::kube::contract
