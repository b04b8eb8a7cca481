// Tests the recognition of NVIDIA's stack in the forms in which users deploy it (testdata/), and
// the resulting plan.
#include "analysis/migrate/nvidia/migrate.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/migrate/nvidia/migrate_offer.h"
#include "api/compat/nvidia/deploy_labels.h"
#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::analysis {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;

Found Read(const std::string& name) {
  const auto text = os::ReadFile(base::SourcePath("src/analysis/migrate/nvidia/testdata/") + name);
  EXPECT_TRUE(text.ok());
  Found found;
  const auto read = TakeFile(*text, name, found);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message());
  return found;
}

Migration PlanOf(const std::string& name, Direction direction = Direction::kToPenstock,
                 const std::string& node = "") {
  return Plan(Read(name), direction, node);
}

std::vector<std::string> Commands(const Migration& plan) {
  std::vector<std::string> commands;
  for (const Step& step : plan.steps) commands.push_back(step.command);
  return commands;
}

std::string Settings(const Workload& workload) {
  std::vector<std::string> settings;
  for (const auto& one : workload.given) settings.push_back(one.flag + "=" + one.value);
  return base::Join(settings, " ");
}

auto IsChange(const std::string& what, const std::string& now, const std::string& then) {
  return AllOf(Field(&PlannedChange::what, what), Field(&PlannedChange::now, now),
               Field(&PlannedChange::then, then));
}

TEST(MigrateFind, KnowsTheChartsDaemonSetsByWhatTheyRun) {
  const Found found = Read("nvidia-chart.yaml");
  ASSERT_EQ(found.workloads.size(), 3u);
  const Workload& plugin = found.workloads[0];
  EXPECT_EQ(plugin.part, Part::kDevicePlugin);
  EXPECT_EQ(plugin.from, "DaemonSet nvidia/nvdp-nvidia-device-plugin");
  EXPECT_EQ(plugin.release, "nvdp");
  EXPECT_EQ(plugin.chart, "nvidia-device-plugin-0.17.1");
  EXPECT_EQ(plugin.config_map, "nvidia-plugin-configs");
  EXPECT_EQ(plugin.default_key, "any");
  EXPECT_EQ(Settings(plugin),
            "--nvidia-driver-root=/run/nvidia/driver --device-list-strategy=cdi-cri "
            "--device-id-strategy=uuid")
      << "and nothing of the pod's plumbing";
  EXPECT_EQ(found.workloads[1].part, Part::kFeatureDiscovery);
  EXPECT_EQ(found.workloads[2].part, Part::kMps);
  EXPECT_EQ(found.configs.size(), 4u);
}

TEST(MigrateFind, ReadsFlagsBeforeTheEnvironmentAndNamesUnknownOnes) {
  const Found found = Read("nvidia-static.yaml");
  ASSERT_EQ(found.workloads.size(), 1u);
  EXPECT_EQ(Settings(found.workloads[0]),
            "--mig-strategy=single --pass-device-specs=true --nvidia-driver-root=/opt/nvidia "
            "--fail-on-init-error=false");
  EXPECT_THAT(found.workloads[0].unknown, ElementsAre("--no-such-flag=1"));
}

TEST(MigrateFind, ReadsTheFirstArgumentOfAContainerWithoutACommand) {
  Found found;
  ASSERT_TRUE(TakeFile("kind: DaemonSet\nspec: {template: {spec: {containers: [{image: "
                       "k8s-device-plugin, args: [--mig-strategy=mixed]}]}}}\n",
                       "f.yaml", found)
                  .ok());
  EXPECT_EQ(Settings(found.workloads.at(0)), "--mig-strategy=mixed");
}

TEST(MigrateFind, KnowsTheOperatorsParts) {
  const Found found = Read("gpu-operator.yaml");
  ASSERT_EQ(found.workloads.size(), 1u);
  EXPECT_EQ(found.workloads[0].part, Part::kDevicePlugin);
  EXPECT_EQ(found.workloads[0].policy, "cluster-policy");
  ASSERT_EQ(found.policies.size(), 1u);
  EXPECT_EQ(found.policies[0].config_map, "time-slicing-config");
  ASSERT_EQ(found.configs.size(), 1u) << "CoreDNS' file is none of the plugin's";
  EXPECT_EQ(found.configs[0].from, "ConfigMap gpu-operator/time-slicing-config, key any");
  EXPECT_THAT(found.node_features, ElementsAre("gpu-operator/nvidia-features-for-gpu-1"));
  EXPECT_EQ(found.nodes.size(), 1u);
}

TEST(MigrateFind, ReadsValuesOfTheChart) {
  const Found found = Read("nvdp-values.yaml");
  ASSERT_EQ(found.workloads.size(), 2u);
  EXPECT_EQ(
      Settings(found.workloads[0]),
      "--mig-strategy=mixed --device-list-strategy=envvar,cdi-annotations --pass-device-specs=true "
      "--nvidia-driver-root=/run/nvidia/driver");
  EXPECT_EQ(found.workloads[1].part, Part::kFeatureDiscovery);
  EXPECT_EQ(found.configs.at(0).from, "values nvdp-values.yaml, config.map.any");
}

TEST(MigrateFind, TakesAConfigurationAloneAndRefusesWhatIsNoYaml) {
  Found found;
  EXPECT_TRUE(TakeFile("version: v1\nflags: {migStrategy: none}\n", "any.yaml", found).ok());
  EXPECT_EQ(found.configs.at(0).from, "file any.yaml");
  EXPECT_TRUE(TakeFile("shopping: [milk]\n", "list.yaml", found).ok());
  EXPECT_THAT(
      found.problems,
      ElementsAre(AllOf(
          StartsWith(
              "list.yaml:1: is not a known document of NVIDIA's or ROCm's; its keys are shopping"),
          HasSubstr("helm get manifest"))));
  const auto broken = TakeFile("kind: Node\n---\nkind: [\n", "broken.yaml", found);
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message(), StartsWith("broken.yaml:"))
      << "with the line in the file, not in the document";
  EXPECT_THAT(broken.error().message(), Not(StartsWith("broken.yaml:1:")));
}

TEST(MigrateFind, NamesWhatWasGivenByMistake) {
  const auto problems = [](std::string_view text) {
    Found found;
    EXPECT_TRUE(TakeFile(text, "f.yaml", found).ok());
    return found.problems;
  };
  EXPECT_THAT(
      problems("# values\n\ngrafana: {enabled: true}\nalertmanager: {}\n"),
      ElementsAre(HasSubstr(
          ": is not a known document of NVIDIA's or ROCm's; its keys are alertmanager, grafana")));
  EXPECT_THAT(problems("kind: Node\n---\n\napiVersion: apps/v1\nmetadata: {name: cut}\n"),
              ElementsAre(HasSubstr("f.yaml:4: is a Kubernetes object without a kind")));
  EXPECT_THAT(problems("kind: DaemonSet\nmetadata: {name: nvdp}\n"),
              ElementsAre(HasSubstr("DaemonSet nvdp has no containers")));
  EXPECT_THAT(problems("kind: Secret\ntype: helm.sh/release.v1\nmetadata: {name: "
                       "sh.helm.release.v1.nvdp.v3, labels: {name: nvdp}}\n"),
              ElementsAre(HasSubstr("helm get manifest nvdp")));
  EXPECT_THAT(problems("SDRzSUFBQUFBQUFDLyt4OWEzUGJPTExvWA==\n"),
              ElementsAre(HasSubstr("is not a map of keys")));
  EXPECT_THAT(problems("---\n# nothing\n---\n{}\n"), IsEmpty());
}

TEST(MigrateFind, SurvivesObjectsOfAnotherShape) {
  Found found;
  for (const char* text :
       {R"({"kind":"DaemonSet"})",
        R"({"kind":"DaemonSet","spec":{"template":{"spec":{"containers":[7,{"command":"x"}]}}}})",
        R"({"kind":"ConfigMap","data":[1]})", R"({"kind":"Node"})",
        R"({"kind":"PodList","items":{}})", R"([1])"})
    TakeObject(nlohmann::json::parse(text), found);
  EXPECT_THAT(found.workloads, IsEmpty());
  EXPECT_THAT(found.nodes, IsEmpty());
}

TEST(FilesOfTheStack, AreFoundOnAMachine) {
  const os::TemporaryFolder root;
  root.Write("etc/kubernetes/node-feature-discovery/features.d/gfd", "nvidia.com/gpu.count=8\n");
  root.Write("var/lib/kubelet/device-plugins/nvidia-gpu.sock", "");
  root.Write("var/lib/kubelet/device-plugins/penstock-nvidia.com-gpu-1-0.sock", "");
  root.Write("var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json", "{}");  // the agent's file has
                                                                          // the same name
  EXPECT_THAT(FilesOfTheStack(root.path()),
              ElementsAre("/etc/kubernetes/node-feature-discovery/features.d/gfd",
                          "/var/lib/kubelet/device-plugins/nvidia-gpu.sock"));
}

TEST(MigratePlan, OfTheChartGoesByHelmAndKeepsTheValues) {
  const Migration plan = PlanOf("nvidia-chart.yaml");
  EXPECT_THAT(
      Commands(plan),
      ElementsAre("kubectl -n nvidia get configmap nvidia-plugin-configs -o yaml | penstock config "
                  "check --lenient -",
                  "helm -n nvidia get values nvdp -o yaml > values.yaml",
                  "helm -n nvidia install penstock deploy/helm/penstock -f values.yaml --set "
                  "image.repository=localhost/penstock,image.tag=null --set runtimeClassName=null "
                  "--set securityContext=null",
                  "helm -n nvidia uninstall nvdp", "kubectl penstock nodes"));
  EXPECT_THAT(plan.not_yet,
              Not(Contains(AnyOf(HasSubstr("cdi"), HasSubstr("sharing.timeSlicing")))));
  EXPECT_THAT(
      plan.remarks,
      Contains(HasSubstr("mps-control-daemon: the agent starts and supervises MPS itself")));
  ASSERT_EQ(plan.problems.size(), 1u);
  EXPECT_THAT(plan.problems[0],
              AllOf(HasSubstr("key wrong: "), HasSubstr("\"serial\" is none of uuid, index")));
  EXPECT_THAT(plan.remarks,
              Contains(AllOf(HasSubstr("key slip: "), HasSubstr("did you mean \"migStrategy\"?"))));
  EXPECT_THAT(plan.resources, Contains(IsChange("nvidia.com/gpu.shared", "32", "32")));
}

TEST(MigratePlan, ReportsOfFilesOnlyWhereTheirPartIsThere) {
  const auto files = [](const std::string& name) {
    std::vector<std::string> names;
    for (const PlannedChange& change : PlanOf(name).files) names.push_back(change.what);
    return names;
  };
  EXPECT_EQ(files("nvidia-chart.yaml").size(), 4u);
  EXPECT_THAT(files("nvidia-static.yaml"), ElementsAre(HasSubstr("nvidia-gpu.sock")));
  EXPECT_THAT(Plan({}, Direction::kToPenstock, "").files, IsEmpty());
}

TEST(MigratePlan, OfAPlainManifestDeletesTheDaemonSetAfterOursIsThere) {
  EXPECT_THAT(
      Commands(PlanOf("nvidia-static.yaml")),
      ElementsAre("helm -n penstock install penstock deploy/helm/penstock --create-namespace",
                  "kubectl -n kube-system delete daemonset nvidia-device-plugin-daemonset",
                  "kubectl penstock nodes"));
}

TEST(MigratePlan, OfAllNodesUnderTheOperatorPutsOurOperatorInItsPlace) {
  EXPECT_THAT(
      Commands(PlanOf("gpu-operator.yaml")),
      ElementsAre("kubectl -n gpu-operator get configmap time-slicing-config -o yaml | penstock "
                  "config check --lenient -",
                  "helm -n gpu-operator get values gpu-operator -o yaml > values.yaml",
                  "helm -n gpu-operator uninstall gpu-operator --wait",
                  "helm -n gpu-operator install gpu-operator penstock/gpu-operator -f values.yaml "
                  "--set penstock.image.repository=localhost/penstock",
                  "kubectl get nodefeatures -A | grep nvidia-features-for-",
                  "kubectl penstock nodes"));
}

TEST(MigratePlan, OfOneNodeUnderTheOperatorGoesByLabelsThatDoNotSwitchTheAgentOff) {
  EXPECT_THAT(
      Commands(PlanOf("gpu-operator.yaml", Direction::kToPenstock, "gpu-1")),
      AllOf(Contains("helm -n gpu-operator install penstock deploy/helm/penstock --set "
                     "config.name=time-slicing-config --set config.default=any --set "
                     "migStrategy=single"),
            Contains("kubectl label node gpu-1 nvidia.com/gpu.deploy.device-plugin=penstock "
                     "nvidia.com/gpu.deploy.gpu-feature-discovery=penstock "
                     "nvidia.com/gpu.deploy.mig-manager=penstock --overwrite"),
            Not(Contains(HasSubstr("uninstall")))));
  for (const char* service : {"device-plugin", "gpu-feature-discovery", "mig-manager"})
    EXPECT_EQ(
        api::compat::ServicesOf({{std::string("nvidia.com/gpu.deploy.") + service, "penstock"}}),
        api::compat::NodeServices{});
}

TEST(MigratePlan, KnowsTheOperatorsReleaseByItsClusterPolicy) {
  Found found;
  const auto take = [&found](nlohmann::json metadata) {
    metadata["name"] = "cluster-policy";
    found = {};
    TakeObject({{"kind", "ClusterPolicy"}, {"metadata", std::move(metadata)}}, found);
    return Commands(Plan(found, Direction::kToPenstock, ""));
  };
  EXPECT_THAT(take({{"annotations",
                     {{"meta.helm.sh/release-name", "gpus"},
                      {"meta.helm.sh/release-namespace", "accelerators"}}}}),
              AllOf(Contains("helm -n accelerators get values gpus -o yaml > values.yaml"),
                    Contains("helm -n accelerators uninstall gpus --wait"),
                    Contains(StartsWith("helm -n accelerators install gpu-operator "))));
  EXPECT_THAT(
      take({{"labels",
             {{"app.kubernetes.io/managed-by", "Helm"}, {"app.kubernetes.io/instance", "gpus"}}}}),
      Contains("helm -n gpu-operator uninstall gpus --wait"));
}

TEST(MigratePlan, OfTheOperatorsValuesInstallsWithThem) {
  Found found;
  ASSERT_TRUE(TakeFile("operator: {}\ndevicePlugin: {enabled: true}\ngfd: {}\n"
                       "dcgmExporter: {image: dcgm-exporter, version: 4.1.1-4.0.4-ubuntu22.04}\n",
                       "mine.yaml", found)
                  .ok());
  EXPECT_THAT(Commands(Plan(found, Direction::kToPenstock, "")),
              ElementsAre("helm -n gpu-operator uninstall gpu-operator --wait",
                          "helm -n gpu-operator install gpu-operator penstock/gpu-operator -f "
                          "mine.yaml --set penstock.image.repository=localhost/penstock --set "
                          "penstock.spec.node.telemetry.hostLabel=Hostname",
                          "kubectl penstock nodes"));
}

TEST(MigratePlan, WhereOurOperatorHasThePolicyRemovesWhatNvidiasLeft) {
  Found found = Read("gpu-operator.yaml");
  found.workloads.push_back({.part = Part::kPenstock,
                             .kind = "DaemonSet",
                             .name = "penstock-agent",
                             .namespace_name = "gpu-operator",
                             .policy = "cluster-policy"});
  EXPECT_THAT(
      Commands(Plan(found, Direction::kToPenstock, "")),
      AllOf(Contains("kubectl -n gpu-operator delete daemonset nvidia-device-plugin-daemonset"),
            Not(Contains(HasSubstr("helm"))), Not(Contains(HasSubstr("penstock-agent")))));
}

TEST(MigratePlan, TheChartThatServedOneNodeGoesBeforeOurOperatorComes) {
  Found found = Read("gpu-operator.yaml");
  found.workloads.push_back({.part = Part::kPenstock,
                             .kind = "DaemonSet",
                             .name = "penstock",
                             .namespace_name = "gpus",
                             .release = "pen"});
  EXPECT_THAT(Commands(Plan(found, Direction::kToPenstock, "")),
              Contains("helm -n gpus uninstall pen --wait"));
}

TEST(MigratePlan, RemovesLabelsByWhichNvidiasProgramsHavePausedPods) {
  Found found = Read("gpu-operator.yaml");
  found.nodes[0].labels["nvidia.com/gpu.deploy.device-plugin"] = "paused-for-driver-upgrade";
  found.nodes[0].labels["nvidia.com/gpu.deploy.dcgm"] = "paused-for-driver-upgrade";
  found.nodes.push_back(found.nodes[0]);
  found.nodes[1].name = "gpu-2";
  found.nodes.push_back({.name = "gpu-3"});
  found.nodes[2].labels["nvidia.com/gpu.deploy.gpu-feature-discovery"] = "false";
  const Migration plan = Plan(found, Direction::kToPenstock, "");
  const std::vector<std::string> commands = Commands(plan);
  const auto at = [&commands](const std::string& text) {
    const auto contains = [&text](const std::string& one) {
      return one.find(text) != std::string::npos;
    };
    return static_cast<std::size_t>(std::ranges::find_if(commands, contains) - commands.begin());
  };
  EXPECT_THAT(commands, Contains("kubectl label node gpu-1 gpu-2 nvidia.com/gpu.deploy.dcgm- "
                                 "nvidia.com/gpu.deploy.device-plugin-"));
  EXPECT_LT(at("uninstall"), at("label node")) << "else its programs set them again";
  EXPECT_LT(at("label node"), at("install gpu-operator penstock"));
  EXPECT_THAT(plan.remarks,
              Contains(StartsWith("nvidia.com/gpu.deploy.gpu-feature-discovery=false (gpu-3)")));
  found.policies.clear();
  found.workloads.clear();
  EXPECT_THAT(Commands(Plan(found, Direction::kToPenstock, "")),
              Contains(commands.at(at("label node"))))
      << "the operator may be gone already";
}

TEST(MigratePlan, SaysWhatGoesWithTheOperatorAndWhatOurOperatorMakes) {
  Found found = Read("gpu-operator.yaml");
  for (const auto& [part, name] :
       {std::pair(Part::kExporter, "nvidia-dcgm-exporter"), std::pair(Part::kToolkit, "toolkit"),
        std::pair(Part::kHostEngine, "nvidia-dcgm")})
    found.workloads.push_back({.part = part,
                               .kind = "DaemonSet",
                               .name = name,
                               .namespace_name = "gpu-operator",
                               .from = name,
                               .policy = "cluster-policy",
                               .labels = {{"app", name}}});
  found.endpoints.push_back({.kind = "Service",
                             .name = "nvidia-dcgm-exporter",
                             .selects = {{"app", "nvidia-dcgm-exporter"}}});
  found.runtime_classes.push_back({"nvidia", "nvidia"});
  const Migration plan = Plan(found, Direction::kToPenstock, "");
  EXPECT_THAT(plan.objects,
              ElementsAre(AllOf(Field(&PlannedChange::what, "RuntimeClass nvidia"),
                                Field(&PlannedChange::note, StartsWith("made again by")))));
  EXPECT_THAT(plan.remarks, AllOf(Contains(StartsWith("toolkit: goes with NVIDIA's operator")),
                                  Contains(StartsWith("nvidia-dcgm: goes with NVIDIA's"))));
  const Migration of_one = Plan(found, Direction::kToPenstock, "gpu-1");
  EXPECT_THAT(of_one.remarks, AllOf(Contains(StartsWith("toolkit: stays")),
                                    Contains(StartsWith("nvidia-dcgm: not used"))));
  EXPECT_EQ(of_one.objects.size(), 2u);
}

TEST(MigratePlan, NamesProgramsWhoseSettingsAreNotInTheOperatorsValues) {
  Found found = Read("gpu-operator.yaml");
  const Found exporter = Read("dcgm-exporter.yaml");
  found.workloads.push_back(exporter.workloads[0]);
  EXPECT_THAT(Plan(found, Direction::kToPenstock, "").remarks,
              Contains(StartsWith(exporter.workloads[0].from + ": not the ClusterPolicy's")));
}

TEST(MigratePlan, ReportsWhatBecomesOfResourcesAndLabelsOfANodeThatShares) {
  const Migration plan = PlanOf("gpu-operator.yaml");
  EXPECT_THAT(plan.resources, ElementsAre(IsChange("nvidia.com/gpu", "8", "8")));
  EXPECT_THAT(plan.labels,
              AllOf(Contains(IsChange("nvidia.com/gpu.imex-domain", "left-over.1", "")),
                    Contains(IsChange("nvidia.com/gpu.replicas.Tesla-T4", "", "4")),
                    Contains(IsChange("nvidia.com/gpu.present.Tesla-T4", "", "true"))));
  for (const char* kept :
       {"nvidia.com/gpu.product", "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"})
    for (const PlannedChange& change : plan.labels)
      EXPECT_NE(change.what, kept) << "as GPU Feature Discovery said it";
  for (const PlannedChange& change : plan.labels)
    EXPECT_THAT(change.what, AllOf(Not(HasSubstr("gpu.deploy")), Not(HasSubstr("timestamp")),
                                   Not(HasSubstr("gpu.machine"))));
  EXPECT_THAT(plan.remarks,
              Contains(HasSubstr("NFD removes its nvidia.com labels from the nodes")));
}

TEST(MigratePlan, CountsNodesOfOneKindTogether) {
  Found found = Read("gpu-operator.yaml");
  found.nodes.push_back(found.nodes[0]);
  found.nodes.back().name = "gpu-2";
  EXPECT_EQ(Plan(found, Direction::kToPenstock, "").resources.at(0).nodes, 2);
  EXPECT_EQ(Plan(found, Direction::kToPenstock, "gpu-2").resources.at(0).nodes, 1);
}

TEST(MigratePlan, HasAWayBack) {
  Found found = Read("gpu-operator.yaml");
  found.workloads = {{.part = Part::kPenstock,
                      .kind = "DaemonSet",
                      .name = "p",
                      .namespace_name = "gpus",
                      .from = "DaemonSet gpus/p",
                      .release = "pen"}};
  found.nodes[0].labels["nvidia.com/gpu.count.Tesla-T4"] = "2";
  const Migration plan = Plan(found, Direction::kToNvidia, "");
  EXPECT_THAT(Commands(plan),
              AllOf(Contains("helm -n gpus uninstall pen"), Contains("kubectl penstock cleanup")));
  EXPECT_THAT(plan.labels, ElementsAre(IsChange("nvidia.com/gpu.count.Tesla-T4", "2", "")));
}

/// A node of eight A100 with the resources that the plugin offers for a file, and the plugin with
/// that file.
Found EightA100(const std::string& file, std::map<std::string, std::int64_t> capacity) {
  Found found;
  found.workloads = {{.part = Part::kDevicePlugin,
                      .kind = "DaemonSet",
                      .name = "nvdp",
                      .namespace_name = "gpu",
                      .from = "DaemonSet gpu/nvdp",
                      .config_map = "plugin"}};
  TakeObject({{"kind", "ConfigMap"},
              {"metadata", {{"name", "plugin"}, {"namespace", "gpu"}}},
              {"data", {{"any", file}}}},
             found);
  LabelledNode node{.name = "gpu-1", .capacity = std::move(capacity)};
  node.labels = {{"nvidia.com/gpu.count", "8"},
                 {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                 {"nvidia.com/gpu.memory", "40960"}};
  found.nodes = {node};
  return found;
}

nlohmann::json PodThatAsksFor(const std::string& resource) {
  return {{"kind", "Pod"},
          {"metadata", {{"name", "train"}, {"namespace", "ml"}}},
          {"spec",
           {{"containers", {{{"name", "c"}, {"resources", {{"limits", {{resource, "1"}}}}}}}}}}};
}

TEST(MigratePlan, SaysWhatKeysThatNvidiaIgnoresDoHereAndHowToLeaveThemIgnored) {
  Found found = EightA100(
      "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, rename: "
      "nvidia.com/shared-gpu, devices: 2, replicas: "
      "4}]}}\n",
      {{"nvidia.com/gpu", 32}});
  TakeObject(PodThatAsksFor("nvidia.com/gpu"), found);
  const Migration plan = Plan(found, Direction::kToPenstock, "");
  EXPECT_THAT(plan.resources, ElementsAre(IsChange("nvidia.com/gpu", "32", "6"),
                                          IsChange("nvidia.com/shared-gpu", "", "8")));
  EXPECT_THAT(plan.resources.at(0).note, HasSubstr("as-nvidia"));
  EXPECT_THAT(plan.lost,
              Contains("nvidia.com/gpu: 32 now, 6 then on 1 node; used by Pod ml/train"));
  EXPECT_THAT(Commands(plan),
              Contains(HasSubstr("--set penstock.config.devicePlugin.configFiles=as-nvidia")));
}

TEST(MigratePlan, SaysWhenAResourceGetsAnotherName) {
  const std::string file = "version: v1\nresources: {gpus: [{pattern: '*A100*', name: a100}]}\n";
  const Migration plan = Plan(EightA100(file, {{"nvidia.com/gpu", 8}}), Direction::kToPenstock, "");
  EXPECT_THAT(plan.resources, ElementsAre(IsChange("nvidia.com/a100", "", "8"),
                                          IsChange("nvidia.com/gpu", "8", "")));
  EXPECT_THAT(plan.lost, Contains("nvidia.com/gpu: 8 now, none then on 1 node"));
  Found alone;
  ASSERT_TRUE(TakeFile(file, "any.yaml", alone).ok());
  EXPECT_THAT(
      Plan(alone, Direction::kToPenstock, "").resources,
      ElementsAre(IsChange("nvidia.com/a100", "", "8"), IsChange("nvidia.com/gpu", "8", "")))
      << "of eight such GPUs";
}

TEST(MigratePlan, KeepsMigDevices) {
  const Migration plan =
      Plan(EightA100("version: v1\n", {{"nvidia.com/mig-1g.5gb", 56}}), Direction::kToPenstock, "");
  EXPECT_THAT(plan.resources, Contains(IsChange("nvidia.com/mig-1g.5gb", "56", "56")));
  EXPECT_THAT(plan.lost, Not(Contains(HasSubstr("mig-1g.5gb"))));
  Found single = EightA100("version: v1\n", {{"nvidia.com/gpu", 56}});
  single.nodes[0].labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb";
  const Migration of_single = Plan(single, Direction::kToPenstock, "");
  EXPECT_THAT(of_single.resources, Contains(IsChange("nvidia.com/gpu", "56", "56")));
  EXPECT_THAT(of_single.lost, IsEmpty());
}

/// A ClusterPolicy whose MIG manager has these settings, a ConfigMap with two layouts, and a node
/// with the label.
Found WithMigManager(const std::string& config, const std::string& label,
                     const std::string& key = "config.yaml") {
  Found found;
  const std::string text =
      "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: cluster-policy}\n"
      "spec: {mig: {strategy: mixed}, migManager: {config: " +
      config +
      ", gpuClientsConfig: {name: our-clients}}}\n---\n"
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: our-layouts, namespace: gpus}\ndata:\n  " +
      key +
      ": |\n    version: v1\n    mig-configs:\n"
      "      ours: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n"
      "      whole: [{devices: all, mig-enabled: false}]\n---\n"
      "apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {nvidia.com/mig.config: " +
      label + "}}\n";
  const auto read = TakeFile(text, "cluster.yaml", found);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message());
  return found;
}

TEST(MigratePlan, TakesTheMigManagersLayoutsAlong) {
  const Found found = WithMigManager("{name: our-layouts, default: whole}", "ours");
  EXPECT_THAT(Commands(Plan(found, Direction::kToPenstock, "")),
              Contains("helm -n gpus get values gpu-operator -o yaml > values.yaml"));
  const Migration plan = Plan(found, Direction::kToPenstock, "a");
  EXPECT_THAT(plan.problems, IsEmpty());
  EXPECT_THAT(plan.found, Contains("ConfigMap gpus/our-layouts, key config.yaml: layouts of GPUs"));
  EXPECT_THAT(
      Commands(plan),
      AllOf(Contains("helm -n gpus install penstock deploy/helm/penstock --set "
                     "migStrategy=mixed --set migManager.config.default=whole --set "
                     "migManager.config.name=our-layouts"),
            Contains(HasSubstr("nvidia.com/gpu.deploy.mig-manager=penstock")),
            Contains(HasSubstr("get configmap our-layouts -o yaml | penstock config check"))));
  EXPECT_THAT(plan.remarks,
              AllOf(Contains(HasSubstr("nvidia.com/mig.config=ours (a): the agent")),
                    Contains(HasSubstr("--set migManager.gpuClientsConfig.name=our-clients"))));
  EXPECT_THAT(plan.not_yet, IsEmpty());
}

TEST(MigratePlan, CopiesLayoutsThatAreUnderAnotherKey) {
  EXPECT_THAT(
      Commands(Plan(WithMigManager("{name: our-layouts}", "ours", "layouts"),
                    Direction::kToPenstock, "a")),
      AllOf(Contains("kubectl -n gpus get configmap our-layouts -o jsonpath='{.data.layouts}' > "
                     "layouts.yaml"),
            Contains("kubectl -n gpus create configmap penstock-layouts "
                     "--from-file=config.yaml=layouts.yaml"),
            Contains(HasSubstr("--set migManager.config.name=penstock-layouts"))));
}

TEST(MigratePlan, LeavesOutTheOperatorsOwnLayoutsAndItsDefault) {
  const Migration plan =
      Plan(WithMigManager("{name: default-mig-parted-config, default: all-disabled}", "all-1g.5gb"),
           Direction::kToPenstock, "a");
  EXPECT_THAT(Commands(plan), Not(Contains(HasSubstr("migManager.config"))));
  EXPECT_THAT(plan.problems, IsEmpty());
  EXPECT_THAT(plan.remarks, Contains(HasSubstr("from the profiles of each node's GPUs")));
}

TEST(MigratePlan, NamesALabelWithoutALayoutAndALayoutThatIsWrong) {
  EXPECT_THAT(
      Plan(WithMigManager("{name: our-layouts}", "theirs"), Direction::kToPenstock, "").problems,
      ElementsAre(HasSubstr("nvidia.com/mig.config=theirs (a): the layouts in ConfigMap "
                            "gpus/our-layouts, key config.yaml have no such name")));
  Found wrong = WithMigManager("{name: our-layouts}", "ours");
  wrong.layouts.at(0).text = "version: v1\nmig-configs: {ours: 1}\n";
  EXPECT_THAT(Plan(wrong, Direction::kToPenstock, "").problems,
              ElementsAre(HasSubstr("not a list of rules")));
}

TEST(MigratePlan, RemovesAMigManagerOfItsOwn) {
  Found found;
  ASSERT_TRUE(
      TakeFile("kind: DaemonSet\nmetadata: {name: mig, namespace: x}\nspec: {template: "
               "{spec: {volumes: [{name: v, configMap: {name: ours}}], containers: [{image: "
               "r/k8s-mig-manager:v0.12, env: [{name: CONFIG_FILE, value: "
               "/mig-parted-config/config.yaml}], volumeMounts: [{name: v, mountPath: "
               "/mig-parted-config}]}]}}}\n",
               "mig.yaml", found)
          .ok());
  EXPECT_EQ(found.workloads.at(0).config_map, "ours");
  EXPECT_THAT(Commands(Plan(found, Direction::kToPenstock, "")),
              AllOf(Contains("kubectl -n x delete daemonset mig"),
                    Contains(HasSubstr("--set migManager.config.name=ours"))));
}

TEST(MigratePlan, LosesNothingOfWholeAndSharedGpus) {
  EXPECT_THAT(
      Plan(EightA100("version: v1\n", {{"nvidia.com/gpu", 8}}), Direction::kToPenstock, "").lost,
      IsEmpty());
  const Migration shared = Plan(EightA100("version: v1\nSharing: {timeslicing: {resources: [{name: "
                                          "gpu, replicas: 4}], maxShares: 4}}\n",
                                          {{"nvidia.com/gpu", 32}}),
                                Direction::kToPenstock, "");
  EXPECT_THAT(shared.resources, ElementsAre(IsChange("nvidia.com/gpu", "32", "32")));
  EXPECT_THAT(shared.lost, IsEmpty())
      << "a file as people have it, in another case and with a key that nobody knows";
  EXPECT_THAT(Commands(shared), Not(Contains(HasSubstr("as-nvidia"))));
}

TEST(MigratePlan, GoesByTheKeyThatTheNodesLabelNames) {
  Found found = EightA100("version: v1\n", {{"nvidia.com/gpu", 8}});
  found.config_maps[0].data["shared"] =
      "version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}\n";
  found.nodes[0].labels["nvidia.com/device-plugin.config"] = "shared";
  EXPECT_THAT(Plan(found, Direction::kToPenstock, "").resources,
              ElementsAre(IsChange("nvidia.com/gpu", "8", "16")));
  found.nodes[0].labels["nvidia.com/device-plugin.config"] = "none-such";
  const Migration plan = Plan(found, Direction::kToPenstock, "");
  EXPECT_THAT(plan.remarks, Contains(AllOf(StartsWith("gpu-1: there is no key none-such"),
                                           HasSubstr("is based on its labels"))));
  EXPECT_THAT(plan.resources, ElementsAre(IsChange("nvidia.com/gpu", "8", "8")));
}

TEST(MigratePlan, PredictsNoLabelOfADriverThatNoLabelReports) {
  for (const PlannedChange& change :
       Plan(EightA100("version: v1\n", {{"nvidia.com/gpu", 8}}), Direction::kToPenstock, "").labels)
    EXPECT_THAT(change.what, Not(StartsWith("nvidia.com/cuda.")));
}

TEST(MigratePlan, NamesPodsThatTakeGpusWithoutAskingOrSelectLabelsThatGo) {
  Found found = Read("gpu-operator.yaml");
  TakeObject(
      {{"kind", "Pod"},
       {"metadata", {{"name", "watch"}, {"namespace", "mon"}}},
       {"spec",
        {{"runtimeClassName", "nvidia"},
         {"containers", {{{"env", {{{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "all"}}}}}}}}}},
      found);
  TakeObject(
      {{"kind", "Deployment"},
       {"metadata", {{"name", "d"}}},
       {"spec",
        {{"template",
          {{"spec", {{"nodeSelector", {{"nvidia.com/gpu.imex-domain", "left-over.1"}}}}}}}}}},
      found);
  const Migration plan = Plan(found, Direction::kToPenstock, "");
  EXPECT_THAT(plan.remarks,
              AllOf(Contains(HasSubstr("without a resource, in Pod mon/watch:")),
                    Contains(HasSubstr("NVIDIA's runtimeClassName in Pod mon/watch:"))));
  EXPECT_THAT(plan.lost, ElementsAre("label nvidia.com/gpu.imex-domain: left-over.1 now, none then "
                                     "on 1 node; used by Deployment d"));
}

TEST(MigrateFind, ReadsTheExporterAndWhatAsksForItsSeries) {
  const Found found = Read("dcgm-exporter.yaml");
  ASSERT_EQ(found.workloads.size(), 1u);
  const Workload& exporter = found.workloads[0];
  EXPECT_EQ(exporter.part, Part::kExporter);
  EXPECT_EQ(Settings(exporter),
            "--kubernetes=true --address=:9400 --kubernetes-enable-pod-labels=true");
  EXPECT_THAT(exporter.unknown, ElementsAre("--no-such-flag"));
  EXPECT_EQ(exporter.counters_map, "exporter-metrics-config-map");
  EXPECT_THAT(found.counters, ElementsAre(Field(&ConfigFile::key, "metrics")));
  EXPECT_THAT(
      found.queries,
      ElementsAre(Field(&Query::name, "PrometheusRule monitoring/gpus"),
                  Field(&Query::name, "ConfigMap monitoring/gpu-dashboard, dashboard gpus.json"),
                  Field(&Query::name, "HorizontalPodAutoscaler serving/inference")));
}

TEST(MigratePlan, KeepsTheExportersNamesAndNamesWhatIsLost) {
  const Migration plan = PlanOf("dcgm-exporter.yaml");
  EXPECT_THAT(plan.metrics, ElementsAre(IsChange("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "shown", "")));
  EXPECT_THAT(plan.lost,
              ElementsAre(AllOf(
                  StartsWith("metric DCGM_FI_PROF_GR_ENGINE_ACTIVE: for GPUs before Hopper"),
                  HasSubstr("used by ConfigMap monitoring/gpu-dashboard, dashboard gpus.json"))));
  EXPECT_THAT(
      plan.objects,
      UnorderedElementsAre(IsChange("label of each series", "Hostname", "Hostname"),
                           IsChange("job", "dcgm-exporter", "dcgm-exporter"),
                           IsChange("Service monitoring/dcgm-exporter", "port 9400", ""),
                           IsChange("RuntimeClass nvidia", "handler nvidia", "handler nvidia")));
  EXPECT_THAT(
      Commands(plan),
      ElementsAre(
          "kubectl -n monitoring get configmap exporter-metrics-config-map -o "
          "jsonpath='{.data.metrics}' > counters.csv",
          AllOf(
              StartsWith("helm -n penstock install penstock"),
              HasSubstr("--set-file penstock.telemetry.counters=counters.csv"),
              HasSubstr("--set penstock.telemetry.hostLabel=Hostname"),
              HasSubstr(
                  R"('penstock.metrics.serviceMonitor.relabelings=[{"targetLabel":"job","replacement":"dcgm-exporter"}]')")),
          "helm -n monitoring uninstall dcgm", "kubectl penstock nodes"));
}

TEST(MigratePlan, OfTheExportersValuesReadsItsMetricsAndArguments) {
  Found found;
  ASSERT_TRUE(TakeFile("image: {repository: registry.corp/nvidia/dcgm-exporter, tag: "
                       "4.6.0-4.8.3-distroless}\narguments: [-c, \"5000\"]\n"
                       "serviceMonitor: {enabled: true}\ncustomMetrics: |\n  DCGM_FI_DEV_GPU_UTIL, "
                       "gauge, u\n  DCGM_FI_DEV_NO_SUCH, gauge, n\n",
                       "values.yaml", found)
                  .ok());
  ASSERT_EQ(found.workloads.size(), 1u);
  EXPECT_EQ(Settings(found.workloads[0]), "--collect-interval=5000");
  const Migration plan = Plan(found, Direction::kToPenstock, "");
  EXPECT_THAT(plan.problems, ElementsAre(HasSubstr("DCGM_FI_DEV_NO_SUCH")));
  EXPECT_TRUE(plan.host_label.empty()) << "this release has hostname";
  found.workloads[0].image = "r:5000/dcgm-exporter:4.4.1-4.5.2-ubuntu22.04@sha256:0123";
  EXPECT_EQ(Plan(found, Direction::kToPenstock, "").host_label, "Hostname");
}

// Whatever the exporter's container calls the folder, the agents' pods see it under its own name.
TEST(MigratePlan, KeepsTheFolderInWhichJobsAreListed) {
  const auto install = [](const Found& found, const std::string& node = "") {
    const auto commands = Commands(Plan(found, Direction::kToPenstock, node));
    return *std::ranges::find_if(commands, [](const std::string& one) {
      return one.find("install penstock") != std::string::npos;
    });
  };
  Found found;
  TakeObject({{"kind", "DaemonSet"},
              {"metadata", {{"name", "dcgm-exporter"}, {"namespace", "monitoring"}}},
              {"spec",
               {{"template",
                 {{"spec",
                   {{"volumes", {{{"name", "jobs"}, {"hostPath", {{"path", "/run/slurm"}}}}}},
                    {"containers",
                     {{{"name", "exporter"},
                       {"image", "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3"},
                       {"env", {{{"name", "DCGM_HPC_JOB_MAPPING_DIR"}, {"value", "/jobs/gpus"}}}},
                       {"volumeMounts", {{{"name", "jobs"}, {"mountPath", "/jobs"}}}}}}}}}}}}}},
             found);
  ASSERT_EQ(found.workloads.size(), 1u);
  EXPECT_THAT(install(found), HasSubstr(" --set penstock.telemetry.jobDirectory=/run/slurm/gpus"));
  EXPECT_THAT(Plan(found, Direction::kToPenstock, "").not_yet, IsEmpty());

  Found values;
  ASSERT_TRUE(TakeFile("image: {repository: nvcr.io/nvidia/k8s/dcgm-exporter}\n"
                       "hpcJobMapping: {enabled: true, directory: /run/jobs}\n",
                       "values.yaml", values)
                  .ok());
  EXPECT_THAT(install(values), HasSubstr("penstock.telemetry.jobDirectory=/run/jobs"));

  Found policy;
  TakeObject({{"kind", "ClusterPolicy"},
              {"metadata", {{"name", "p"}}},
              {"spec", {{"dcgmExporter", {{"hpcJobMapping", {{"enabled", true}}}}}}}},
             policy);
  EXPECT_THAT(install(policy, "gpu-1"),
              HasSubstr("penstock.telemetry.jobDirectory=/var/lib/dcgm-exporter/job-mapping"));
}

TEST(MigratePlan, WillNotGuessBetweenTwoPluginsOfTheSameNodes) {
  const auto plugin = [](const std::string& name, const std::string& selector) {
    return "---\nkind: DaemonSet\nmetadata: {name: " + name +
           "}\nspec: {template: {spec: {nodeSelector: " + selector +
           ", containers: [{name: c, image: k8s-device-plugin}]}}}\n";
  };
  const std::string nodes =
      "---\nkind: Node\nmetadata: {name: a, labels: {pool: a}}\n---\nkind: Node\nmetadata: {name: "
      "b, labels: {pool: b}}\n";
  const auto problems = [](const std::string& text) {
    Found found;
    EXPECT_TRUE(TakeFile(text, "f.yaml", found).ok());
    return Plan(found, Direction::kToPenstock, "").problems;
  };
  EXPECT_THAT(problems(nodes + plugin("one", "{pool: a}") + plugin("two", "{pool: b}")), IsEmpty());
  EXPECT_THAT(problems(nodes + plugin("one", "{}") + plugin("two", "{pool: b}")),
              ElementsAre(StartsWith(
                  "2 device plugins serve the same nodes: DaemonSet one, DaemonSet two")));
}

TEST(MigratePlan, QuotesNamesForTheShell) {
  Found found;
  ASSERT_TRUE(TakeFile("kind: DaemonSet\nmetadata: {name: \"x; echo 'now' $PATH\"}\nspec: "
                       "{template: {spec: {containers: [{image: "
                       "k8s-device-plugin}]}}}\n",
                       "f.yaml", found)
                  .ok());
  EXPECT_THAT(Commands(Plan(found, Direction::kToPenstock, "")),
              Contains(R"(kubectl delete daemonset 'x; echo '\''now'\'' $PATH')"));
}

TEST(MigratePlan, OfAPolicyAloneGoesByWhatItWillMake) {
  Found found;
  ASSERT_TRUE(
      TakeFile(
          "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: p}\n"
          "spec:\n  devicePlugin: {enabled: true, env: [{name: DEVICE_LIST_STRATEGY, value: "
          "envvar}], args: [--no-such]}\n"
          "  dcgmExporter: {image: dcgm-exporter, version: 4.1.1-4.0.4-ubuntu22.04, config: {name: "
          "counters}}\n"
          "---\nkind: ConfigMap\nmetadata: {name: counters, namespace: gpu}\n"
          "data: {dcgm-metrics.csv: \"DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT, gauge, hot\"}\n",
          "f.yaml", found)
          .ok());
  const Migration plan = Plan(found, Direction::kToPenstock, "");
  EXPECT_THAT(plan.found,
              Contains("ClusterPolicy p, devicePlugin: device plugin (of ClusterPolicy p)"));
  EXPECT_THAT(plan.remarks,
              Contains(HasSubstr("devicePlugin: --no-such is not a setting of the plugin")));
  EXPECT_EQ(plan.host_label, "Hostname");
  EXPECT_THAT(
      Commands(Plan(found, Direction::kToPenstock, "gpu-1")),
      AllOf(Contains(HasSubstr(
                "-n gpu get configmap counters -o jsonpath='{.data.dcgm-metrics\\.csv}'")),
            Contains("kubectl label node gpu-1 nvidia.com/gpu.deploy.dcgm-exporter=penstock "
                     "--overwrite")));
  found.policies.front().operands.clear();
  EXPECT_THAT(Plan(found, Direction::kToPenstock, "").host_label, IsEmpty());
}

TEST(MigratePlan, OfAValuesFileLeavesNvidiasImageOut) {
  EXPECT_THAT(Commands(PlanOf("nvdp-values.yaml")),
              Contains(HasSubstr(" -f nvdp-values.yaml --set image.repository=")));
}

TEST(MigrateFind, ReportsValuesOfEitherChartFromAConfiguration) {
  Found found;
  ASSERT_TRUE(TakeFile("config: {map: {}}\nresources: {}\nmigStrategy: null\ndevicePlugin: "
                       "{enabled: true}\nnfd: {nameOverride: x}\n",
                       "v.yaml", found)
                  .ok());
  EXPECT_THAT(found.configs, IsEmpty());
  ASSERT_EQ(found.workloads.size(), 1u);
  EXPECT_EQ(found.workloads[0].from, "values v.yaml");
  ASSERT_TRUE(TakeFile("operator: {}\ndevicePlugin: {config: {name: c}}\n", "o.yaml", found).ok());
  EXPECT_EQ(found.policies.at(0).config_map, "c");
  ASSERT_TRUE(TakeFile("version: v1\nflags: &f {}\nmigStrategy: none\n", "p.yaml", found).ok());
  EXPECT_EQ(found.configs.size(), 1u);
}

TEST(OfferOf, KeepsEveryLabelOfWholeGpusAsItIs) {
  LabelledNode node = Read("gpu-operator.yaml").nodes.at(0);
  auto& now = node.labels;
  now["nvidia.com/gpu.product"] = "Tesla-T4";
  now["nvidia.com/gpu.replicas"] = "1";
  now["nvidia.com/gpu.sharing-strategy"] = "none";
  const auto then = OfferOf({}, GpusOf(node, {})).labels;
  for (const char* key :
       {"cuda.driver-version.full", "cuda.driver-version.major", "cuda.runtime-version.full",
        "gpu.compute.major", "gpu.count", "gpu.family", "gpu.memory", "gpu.product", "gpu.replicas",
        "gpu.sharing-strategy", "mps.capable"})
    EXPECT_THAT(then, Contains(Pair("nvidia.com/" + std::string(key),
                                    now["nvidia.com/" + std::string(key)])));
  EXPECT_THAT(GpusOf({}, {}).devices, IsEmpty());
  EXPECT_THAT(GpusOf({.labels = {{"nvidia.com/gpu.count", "1000000000"}}}, {}).devices, IsEmpty());
}

}  // namespace
}  // namespace penstock::analysis
