#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/node_state.h"
#include "app/penstock/cluster/explain_show.h"
#include "app/penstock/cluster/nodes_show.h"
#include "app/penstock/cluster/testing/cluster_sample.h"

namespace penstock::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using namespace cluster_sample;

const base::WallTime kNow = base::ParseTime("2026-11-21T04:00:00Z");

analysis::NodeView View(const api::Report& report, Json node = Node("gpu-1", 8, 8),
                        std::vector<Json> pods = {}) {
  return analysis::JoinNodes({std::move(node)}, {StateOf(report)}, pods).at(0);
}

analysis::Explanation ExplainReport(const api::Report& report, Json node = Node("gpu-1", 8, 8),
                                    analysis::PodsView pods = {}) {
  return analysis::Explain(View(report, std::move(node)), std::move(pods), false);
}

std::string Findings(const analysis::Explanation& explanation) {
  std::string text;
  for (const analysis::ExplainFinding& finding : explanation.findings)
    text += finding.what + " | " + finding.step + "\n";
  return text;
}

TEST(JoinNodes, JoinsByNameAndKeepsTheResourcesThatHaveADomain) {
  const auto views = analysis::JoinNodes({Node("gpu-2", 8, 7), Node("cpu-1", 0, 0, false)},
                                         {StateOf(Eight("gpu-2")), StateOf(Eight("left"))},
                                         {PodOfAgent("penstock-x", "gpu-2", "CrashLoopBackOff"),
                                          PodOfAgent("penstock-y", "elsewhere", "")});
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(views[0].name, "cpu-1");
  EXPECT_FALSE(views[0].report);
  EXPECT_FALSE(views[0].ready);
  EXPECT_THAT(views[1].capacity, UnorderedElementsAre(Pair("nvidia.com/gpu", 8)));
  EXPECT_THAT(views[1].allocatable, UnorderedElementsAre(Pair("nvidia.com/gpu", 7)));
  EXPECT_EQ(views[1].reported_at, "2026-11-21T03:58:00Z") << "the latest change, not the creation";
  EXPECT_EQ(views[1].report->devices.size(), 8u);
  EXPECT_EQ(views[1].agents.at(0).state, "CrashLoopBackOff");
  EXPECT_FALSE(views[2].exists);
}

TEST(JoinNodes, SurvivesObjectsOfAnotherShape) {
  const auto views = analysis::JoinNodes(
      {Json::array(), Json{{"metadata", 7}},
       Json{{"metadata", {{"name", "n"}}}, {"status", {{"capacity", "x"}}}}},
      {Json{{"metadata", {{"name", "n"}}}, {"status", {{"devices", 3}}}}}, {Json("pod")});
  ASSERT_EQ(views.size(), 1u);
  EXPECT_THAT(views[0].unreadable, HasSubstr("not a NodeState"));
}

TEST(ShowNodes, HasALineForEachNodeWithWhatIsWrong) {
  api::Report report = Eight("gpu-1");
  report.devices[3].health_state = "unhealthy";
  report.configuration = {.origin = "ConfigMap gpu/cfg, key any (default)",
                          .problem = "any:1:1: bad\nany:2:1: worse"};
  const std::string text = ShowNodes({View(Eight("gpu-0"), Node("gpu-0", 8, 8)), View(report),
                                      analysis::JoinNodes({Node("gpu-2", 0, 0)}, {}, {})[0]},
                                     false, {}, kNow);
  EXPECT_THAT(
      text,
      StartsWith("NODE   DRIVER     HEALTHY  HELD  ALLOCATORS    CONFIGURATION  REPORTED  PROBLEM\n"
                 "gpu-0  550.54.15  8/8      2     kubelet:open  defaults       2m        -\n"
                 "gpu-1  550.54.15  7/8      2     kubelet:open  key any        2m        1 "
                 "unhealthy; configuration rejected: "
                 "any:1:1: bad\n"));
  EXPECT_THAT(text, HasSubstr("\ngpu-2  -          -        -     -             -              -   "
                              "      no report: is the agent running there?\n"));
}

TEST(ShowNodes, SaysWhyTheAgentDoesNotReport) {
  const auto views = analysis::JoinNodes({Node("gpu-1", 0, 0)}, {},
                                         {PodOfAgent("penstock-x", "gpu-1", "ImagePullBackOff")});
  EXPECT_THAT(analysis::ProblemsOf(views[0]),
              ElementsAre("the agent's pod penstock-x is ImagePullBackOff"));
}

TEST(NodesToJson, GivesTheReportAndTheCounts) {
  const Json json = Json::parse(NodesToJson({View(Eight("gpu-1"))}));
  const Json& node = json["nodes"][0];
  EXPECT_EQ(node["name"], "gpu-1");
  EXPECT_EQ(node["devices"]["held"], 2);
  EXPECT_EQ(node["allocatable"]["nvidia.com/gpu"], 8);
  EXPECT_EQ(node["report"]["devices"].size(), 8u);
}

TEST(Explain, FindsNothingWhereAllIsWell) {
  const analysis::Explanation explanation = ExplainReport(Eight("gpu-1"));
  EXPECT_THAT(explanation.findings, IsEmpty()) << Findings(explanation);
  EXPECT_THAT(
      ShowExplanation(explanation, {}, kNow),
      AllOf(StartsWith("node gpu-1: 8 devices, 8 healthy, 2 held; nothing has changed for 2m\n\n"
                       "RESOURCE        CAPACITY  ALLOCATABLE  OFFERED  USABLE  HELD  REQUESTED\n"
                       "nvidia.com/gpu  8         8            8        8       2     0\n"),
            HasSubstr("\nnothing is wrong\n")));
}

TEST(Explain, NamesTheDevicesThatAreNotUsableAndWhy) {
  api::Report report = Eight("gpu-1");
  report.devices[3].health_state = report.devices[5].health_state = "unhealthy";
  report.devices[3].health_reason = report.devices[5].health_reason =
      "XID 79: it has fallen off the bus";
  report.devices[4].withheld = "MIG mode is enabled";
  report.devices[4].resource = "";
  report.devices[6].holders = {{.state = "outside"}};
  const analysis::Explanation explanation = ExplainReport(report, Node("gpu-1", 7, 4));
  EXPECT_EQ(explanation.resources.at(0).offered, 7);
  EXPECT_EQ(explanation.resources.at(0).usable, 4);
  EXPECT_THAT(Findings(explanation), AllOf(HasSubstr("devices 3, 5: unhealthy: XID 79"),
                                           HasSubstr("device 4: not offered: MIG mode"),
                                           HasSubstr("device 6: in use by outside processes"),
                                           Not(HasSubstr("the Node object says"))));
}

/// The first two GPUs in four shares each: three shares of the first are held, none of the second.
api::Report Shared() {
  api::Report report = Eight("gpu-1");
  for (int i = 0; i < 2; ++i) {
    api::DeviceReport& device = report.devices[i];
    device.sharing = "mps";
    device.shares = 4;
    device.free = i == 0 ? 1 : 4;
    device.isolation = "memory-per-process";
    device.holders.assign(i == 0 ? 3 : 0, {.state = "held"});
  }
  report.servers = {{.set = "nvidia.com/gpu",
                     .kind = "mps",
                     .state = "ready",
                     .clients = 3,
                     .devices = {"GPU-0", "GPU-1"}}};
  return report;
}

TEST(ShowNodes, CountsTheSharesOfNodesThatHaveSome) {
  const std::string text =
      ShowNodes({View(Eight("gpu-0"), Node("gpu-0", 8, 8)), View(Shared(), Node("gpu-1", 14, 14))},
                false, {}, kNow);
  EXPECT_THAT(text, HasSubstr("HELD  SHARES    ALLOCATORS"));
  EXPECT_THAT(text, HasSubstr("gpu-0  550.54.15  8/8      2     -         kubelet:open"));
  EXPECT_THAT(text, HasSubstr("gpu-1  550.54.15  8/8      1     5/8 free  kubelet:open"));
  const Json json = Json::parse(NodesToJson({View(Shared())}));
  EXPECT_EQ(json["nodes"][0]["devices"]["freeShares"], 5);
}

TEST(Explain, CountsShares) {
  const analysis::Explanation explanation = ExplainReport(Shared(), Node("gpu-1", 14, 14));
  EXPECT_THAT(explanation.findings, IsEmpty()) << Findings(explanation);
  EXPECT_EQ(explanation.resources.at(0).offered, 14);
  EXPECT_EQ(explanation.resources.at(0).usable, 14);
  EXPECT_EQ(explanation.resources.at(0).held, 3);
}

TEST(Explain, NamesAServerThatDoesNotServe) {
  api::Report report = Shared();
  report.servers[0].state = "waiting";
  report.servers[0].reason = "it ended at once 3 times";
  for (int i = 0; i < 2; ++i) report.devices[i].free = 0;
  const analysis::Explanation explanation = ExplainReport(report, Node("gpu-1", 14, 6));
  EXPECT_THAT(Findings(explanation), HasSubstr("the mps server of nvidia.com/gpu is waiting: it "
                                               "ended at once 3 times; its shares are advertised"));
  EXPECT_THAT(Findings(explanation), Not(HasSubstr("the Node object says")));
  EXPECT_THAT(analysis::ProblemsOf(View(report)),
              ElementsAre("the mps server of nvidia.com/gpu is waiting: it ended at once 3 times"));
}

TEST(Explain, NamesTheStepOfTheValidationThatFailed) {
  api::Report report = Eight("gpu-1");
  report.validation = {{.name = "driver", .state = "passed"},
                       {.name = "compute",
                        .state = "failed",
                        .reason = "cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802)",
                        .remedy = "start nvidia-fabricmanager"},
                       {.name = "plugin", .state = "waiting"}};
  EXPECT_THAT(analysis::ProblemsOf(View(report)), ElementsAre("validation: compute failed"));
  EXPECT_EQ(Findings(ExplainReport(report)),
            "the step compute of its validation failed: cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802) "
            "| start nvidia-fabricmanager\n");
}

TEST(Explain, SaysThatTheDriverOfTheNodeIsBeingReplaced) {
  Json node = Node("gpu-1", 8, 8);
  node["spec"]["unschedulable"] = true;
  Json& state = node["metadata"]["labels"]["nvidia.com/gpu-driver-upgrade-state"];
  state = "upgrade-done";
  EXPECT_EQ(Findings(ExplainReport(Eight("gpu-1"), node)),
            "the node is cordoned: no new pod is put on it | kubectl uncordon gpu-1\n");
  state = "pod-deletion-required";
  EXPECT_EQ(Findings(ExplainReport(Eight("gpu-1"), node)),
            "the upgrade of its driver is in the state pod-deletion-required | `kubectl penstock "
            "policies NAME` says what it waits for\n"
            "the node is cordoned: no new pod is put on it | the upgrade uncordons it, if it "
            "cordoned it\n");
}

TEST(Explain, ReportsThoseWhoComeBackFromThoseWhoComeAndGo) {
  api::Report report = Eight("gpu-1");
  report.devices[3].health_state = "unhealthy";
  report.devices[3].health_reason = "XID 48: double-bit error";
  report.devices[3].probation_until = "2026-11-21T04:00:07Z";
  report.devices[3].relapses = 4;
  report.devices[3].free = 0;
  EXPECT_THAT(Findings(ExplainReport(report, Node("gpu-1", 8, 7))),
              AllOf(HasSubstr("device 3: unhealthy: XID 48: double-bit error | wait: it is offered "
                              "again automatically"),
                    HasSubstr("device 3: failed again soon after each recovery, 4 times;")));
}

TEST(Explain, SaysWhatIsNotOfferedAsConfigured) {
  api::Report report = Shared();
  report.devices[1].withheld = "held whole by ml/train-0";
  EXPECT_THAT(
      Findings(ExplainReport(report, Node("gpu-1", 14, 14))),
      HasSubstr(
          "device 1: not offered as configured: held whole by ml/train-0 | fix this on the node"));
}

TEST(Explain, SeesThatTheKubeletSaysSomethingElse) {
  EXPECT_THAT(
      Findings(ExplainReport(Eight("gpu-1"), Node("gpu-1", 8, 5))),
      HasSubstr(
          "nvidia.com/gpu: the Node object says 5 of 8, the agent advertises 8 of 8 | wait 10 s"));
}

TEST(Explain, SaysThatAnEarlierPluginLeftAName) {
  Json node = Node("gpu-1", 8, 8);
  node["status"]["capacity"]["nvidia.com/mig-1g.5gb"] = "0";
  EXPECT_THAT(Findings(ExplainReport(Eight("gpu-1"), node)),
              HasSubstr("nvidia.com/mig-1g.5gb: 0, left by a device plugin that was removed"));
}

TEST(Explain, SaysWhoServesInstead) {
  api::Report report = Eight("gpu-1");
  report.allocators[0] = {.name = "kubelet",
                          .state = "stepped-back",
                          .reason = "nvidia-device-plugin serves nvidia.com/gpu"};
  EXPECT_THAT(Findings(ExplainReport(report)),
              HasSubstr("the allocator kubelet is stepped-back: nvidia-device-plugin serves "
                        "nvidia.com/gpu | remove"));
}

TEST(Explain, ReportsWhichConfigurationIsNotInForce) {
  api::Report report = Eight("gpu-1");
  report.configuration = {.origin = "defaults",
                          .problem = "any:3:1: bad",
                          .problem_origin = "ConfigMap gpu/cfg, key any",
                          .not_yet = {"sharing"}};
  EXPECT_THAT(Findings(ExplainReport(report)),
              AllOf(HasSubstr("(ConfigMap gpu/cfg, key any) is not in force: any:3:1: bad"),
                    HasSubstr("not supported yet: sharing")));
}

TEST(Explain, ReportsALabelThatHasNoEffect) {
  Json node = Node("gpu-1", 8, 8);
  node["metadata"]["labels"]["nvidia.com/device-plugin.config"] = "a100";
  api::Report report = Eight("gpu-1");
  EXPECT_THAT(Findings(ExplainReport(report, node)),
              HasSubstr("device-plugin.config=a100 has no effect: defaults is in force"));
  report.configuration.origin =
      "ConfigMap gpu/cfg, key a100 (label nvidia.com/device-plugin.config)";
  EXPECT_THAT(Findings(ExplainReport(report, node)), IsEmpty());
  report.configuration.origin = "ConfigMap gpu/cfg, key a1000 (default)";
  EXPECT_THAT(Findings(ExplainReport(report, node)), HasSubstr("has no effect"));
}

TEST(Explain, KnowsWithoutAReportWhereToLook) {
  const auto view = [](std::vector<Json> pods) {
    return analysis::JoinNodes({Node("gpu-1", 0, 0)}, {}, pods)[0];
  };
  EXPECT_THAT(Findings(analysis::Explain(view({}), {}, false)),
              HasSubstr("no Penstock pod on it | check that the DaemonSet's node selector"));
  EXPECT_THAT(Findings(analysis::Explain(view({PodOfAgent("penstock-x", "gpu-1", "")}), {}, false)),
              HasSubstr("kubectl -n penstock logs penstock-x"));
  EXPECT_THAT(Findings(analysis::Explain(view({}), {}, true)),
              HasSubstr("the cluster does not have the kind NodeState"));
}

TEST(Explain, CountsWhoAsksAndWhoWaits) {
  const analysis::PodsView pods = analysis::ReadPods(
      {Pod("a", "gpu-1", 5), Pod("b", "gpu-1", 3), Pod("done", "gpu-1", 4, "Succeeded"),
       Pod("other", "gpu-2", 8), Pod("c", "", 2, "Pending")},
      "gpu-1", {"nvidia.com/gpu"});
  EXPECT_EQ(pods.requested.at("nvidia.com/gpu"), 8);
  ASSERT_EQ(pods.waiting.size(), 1u);
  const analysis::Explanation explanation =
      ExplainReport(Eight("gpu-1"), Node("gpu-1", 8, 8), pods);
  EXPECT_THAT(Findings(explanation),
              HasSubstr("nvidia.com/gpu: all 8 are allocated, and 1 pod waits"));
  EXPECT_THAT(
      ShowExplanation(explanation, {}, kNow),
      HasSubstr(
          "waiting: ml/c for 2 of nvidia.com/gpu: 0/4 nodes are available: 4 Insufficient\n"));
}

TEST(ReadPods, CountsAnInitContainerOnlyWhereItAsksForMore) {
  Json pod = Pod("a", "gpu-1", 2);
  pod["spec"]["initContainers"] = {
      {{"name", "first"}, {"resources", {{"limits", {{"nvidia.com/gpu", "3"}}}}}}};
  EXPECT_EQ(analysis::ReadPods({pod}, "gpu-1", {"nvidia.com/gpu"}).requested.at("nvidia.com/gpu"),
            3);
}

TEST(ExplanationToJson, HasTheNumbersAndTheNextSteps) {
  const Json json =
      Json::parse(ExplanationToJson(ExplainReport(Eight("gpu-1"), Node("gpu-1", 8, 5))));
  EXPECT_EQ(json["resources"][0]["allocatable"], 5);
  EXPECT_THAT(json["findings"][0]["next"].get<std::string>(), HasSubstr("wait 10 s"));
  EXPECT_EQ(json["configuration"]["origin"], "defaults");
}

Json Labelled(const std::string& name, Json labels) {
  return {{"metadata", {{"name", name}, {"labels", std::move(labels)}}}};
}

Json PodThatSelects(Json spec) {
  return {{"metadata", {{"namespace", "ml"}, {"name", "train"}}},
          {"spec", std::move(spec)},
          {"status",
           {{"conditions",
             {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/2 nodes"}}}}}}};
}

const char kProduct[] = "nvidia.com/gpu.product";
const std::vector<Json> kLabelled = {
    Labelled("n1", {{kProduct, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, {"zone", "a"}}),
    Labelled("n2", {{kProduct, "Tesla-T4"}, {"zone", "b"}})};

std::string PlacementFindings(Json spec) {
  std::string text;
  for (const auto& one : analysis::Place(PodThatSelects(std::move(spec)), kLabelled).findings)
    text += one.what + " | " + one.step + "\n";
  return text;
}

TEST(PodPlacement, NamesTheSelectorThatNoNodeMeetsAndTheNearestValue) {
  EXPECT_EQ(PlacementFindings({{"nodeSelector", {{kProduct, "A100-SXM4-40GB-MIG-1g.5gb"}}}}),
            "no node has nvidia.com/gpu.product=A100-SXM4-40GB-MIG-1g.5gb, which its "
            "spec.nodeSelector needs | the nearest value is NVIDIA-A100-SXM4-40GB-MIG-1g.5gb, of "
            "node n1: change spec.nodeSelector, or the node\n");
  EXPECT_THAT(PlacementFindings({{"nodeSelector", {{kProduct, "H200"}}}}),
              HasSubstr("values NVIDIA-A100-SXM4-40GB-MIG-1g.5gb, Tesla-T4"));
  EXPECT_THAT(PlacementFindings({{"nodeSelector", {{"nvidia.com/gpu.prodcut", "Tesla-T4"}}}}),
              HasSubstr("the nearest one that nodes have is nvidia.com/gpu.product"));
  EXPECT_THAT(PlacementFindings({{"nodeSelector", {{"pool", "x"}}}}),
              HasSubstr("no node has this label with any value: set it on a node"));
}

TEST(PodPlacement, NamesWhatNodesHaveOnlyApart) {
  EXPECT_THAT(PlacementFindings({{"nodeSelector", {{kProduct, "Tesla-T4"}, {"zone", "a"}}}}),
              HasSubstr("no node has all of nvidia.com/gpu.product=Tesla-T4 (n2), zone=a (n1)"));
}

TEST(PodPlacement, ExplainsTheTermsOfAnAffinity) {
  const auto affinity = [](Json terms) {
    return Json{{"affinity",
                 {{"nodeAffinity",
                   {{"requiredDuringSchedulingIgnoredDuringExecution",
                     {{"nodeSelectorTerms", std::move(terms)}}}}}}}};
  };
  const auto term = [](const char* operation, Json values) {
    return Json{{"matchExpressions",
                 {{{"key", kProduct}, {"operator", operation}, {"values", std::move(values)}}}}};
  };
  EXPECT_THAT(PlacementFindings(affinity({term("In", {"Tesla-T40", "H200"})})),
              AllOf(HasSubstr("nvidia.com/gpu.product In Tesla-T40, H200"),
                    HasSubstr("the nearest value is Tesla-T4, of node n2")));
  const Json either = affinity({term("In", {"H200"}), term("NotIn", {"Tesla-T4"})});
  EXPECT_THAT(analysis::Place(PodThatSelects(either), kLabelled).matching, ElementsAre("n1"));
  EXPECT_THAT(PlacementFindings(either), IsEmpty());
  // A term without a requirement matches no node; that of a DaemonSet's pod names its node.
  Json of_node;
  of_node["matchFields"] = {{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n2"}}}};
  const Json placed = affinity(Json::array({Json::object(), of_node}));
  EXPECT_THAT(analysis::Place(PodThatSelects(placed), kLabelled).matching, ElementsAre("n2"));
  EXPECT_THAT(PlacementFindings(affinity(Json::array({Json::object()}))),
              HasSubstr("are empty, and match no node"));
  EXPECT_THAT(PlacementFindings(affinity(
                  Json::array({term("NotIn", {"Tesla-T4", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"})}))),
              HasSubstr("| nodes have the values NVIDIA"));
}

TEST(PodPlacement, SaysWhereAPodIsOrMayBe) {
  Json pod = PodThatSelects({{"nodeSelector", {{"zone", "a"}}}});
  EXPECT_EQ(ShowPlacement(analysis::Place(pod, kLabelled), {}),
            "pod ml/train is not scheduled: 0/2 nodes\nby their labels it may be on n1; `penstock "
            "explain NODE` says what such a node has\n");
  pod["spec"]["nodeName"] = "n2";
  EXPECT_EQ(ShowPlacement(analysis::Place(pod, kLabelled), {}), "pod ml/train is on node n2\n");
  for (const Json& strange : {Json(), Json("pod"), Json{{"spec", {{"nodeSelector", 7}}}}})
    EXPECT_THAT(analysis::Place(strange, {Json(), Json::array()}).findings, IsEmpty());
}

}  // namespace
}  // namespace penstock::app
