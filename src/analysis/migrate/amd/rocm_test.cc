// Tests the recognition of ROCm's programs in the forms in which users deploy them (testdata/), and
// the resulting plan.
#include "analysis/migrate/amd/rocm.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::analysis {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

Found FoundIn(const std::string& name) {
  const auto text = os::ReadFile(base::SourcePath("src/analysis/migrate/") + name);
  EXPECT_TRUE(text.ok());
  Found found;
  const auto read = TakeFile(*text, name, found);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message());
  return found;
}

Found FoundInText(std::string_view text) {
  Found found;
  EXPECT_TRUE(TakeFile(text, "f.yaml", found).ok());
  return found;
}

Migration ToPenstock(const Found& found, const std::string& node = "") {
  return Plan(found, Direction::kToPenstock, node);
}

std::vector<std::string> CommandsOf(const Migration& plan) {
  std::vector<std::string> commands;
  for (const Step& step : plan.steps) commands.push_back(step.command);
  return commands;
}

auto Changes(const std::string& what, const std::string& now, const std::string& then) {
  return AllOf(Field(&PlannedChange::what, what), Field(&PlannedChange::now, now),
               Field(&PlannedChange::then, then));
}

std::string DaemonSetOf(const std::string& container) {
  return "kind: DaemonSet\nmetadata: {name: d, namespace: n}\nspec: {template: {spec: {containers: "
         "[" +
         container + "]}}}\n";
}

TEST(RocmFind, KnowsProgramsByWhatTheyRunAndNvidiasPluginOfTheSameImageName) {
  const std::vector<std::pair<std::string, Part>> cases = {
      {"{name: c, image: rocm/k8s-device-plugin}", Part::kRocmPlugin},
      {"{name: c, image: 'docker.io/rocm/k8s-device-plugin:1.31.0.9', args: [-pulse=2]}",
       Part::kRocmPlugin},
      {"{name: c, image: 'docker.io/rocm/k8s-device-plugin:labeller-1.31.0.9'}",
       Part::kRocmLabeller},
      {"{name: amdgpu-dp-cntr, image: 'registry.corp:5000/k8s-device-plugin'}", Part::kRocmPlugin},
      {"{name: c, image: registry.corp/x, command: [./k8s-device-plugin]}", Part::kRocmPlugin},
      {"{name: c, image: registry.corp/x, command: [sh, -c, './k8s-node-labeller -vram']}",
       Part::kRocmLabeller},
      {"{name: c, image: 'rocm/device-metrics-exporter:v1.4.2'}", Part::kRocmExporter},
      {"{name: c, image: 'rocm/device-config-manager@sha256:00'}", Part::kRocmConfigManager},
      {"{name: c, image: 'nvcr.io/nvidia/k8s-device-plugin:v0.17.1'}", Part::kDevicePlugin},
      {"{name: c, image: k8s-device-plugin, command: [nvidia-device-plugin]}",
       Part::kDevicePlugin}};
  for (const auto& [container, part] : cases)
    EXPECT_THAT(FoundInText(DaemonSetOf(container)).workloads,
                ElementsAre(Field(&Workload::part, part)))
        << container;
}

TEST(RocmFind, ReadsSettingsAndConfigMapsFromTheManifests) {
  const Found found = FoundIn("amd/testdata/rocm.yaml");
  ASSERT_EQ(found.workloads.size(), 4u);
  const auto settings = [](const Workload& one) {
    std::vector<std::string> texts;
    for (const auto& given : one.given) texts.push_back(given.flag + "=" + given.value);
    return texts;
  };
  EXPECT_THAT(settings(found.workloads[0]),
              ElementsAre("-pulse=2", "-resource_naming_strategy=mixed"));
  EXPECT_THAT(found.workloads[0].unknown, ElementsAre("-no_such_flag=1"));
  EXPECT_EQ(found.workloads[2].config_map, "gpu-config");
  EXPECT_EQ(found.workloads[2].release, "exporter");
  EXPECT_EQ(found.workloads[3].config_map, "dcm-st");
  const Found made = FoundIn("amd/testdata/gpu-operator.yaml");
  ASSERT_EQ(made.workloads.size(), 2u);
  EXPECT_THAT(settings(made.workloads[0]),
              ElementsAre("-pulse=30", "-resource_naming_strategy=single"));
  EXPECT_EQ(made.workloads[0].device_config, "default");
}

TEST(RocmFind, ReadsValuesOfRocmsCharts) {
  const Found plugin = FoundInText(
      "labeller: {enabled: true}\ndp: {image: {tag: 1.31.0.2}, args: [-pulse=5]}\n"
      "node_selector_enabled: true\n");
  EXPECT_THAT(plugin.workloads, UnorderedElementsAre(Field(&Workload::part, Part::kRocmLabeller),
                                                     Field(&Workload::part, Part::kRocmPlugin)));
  const Found exporter = FoundInText(
      "image: {repository: docker.io/rocm/device-metrics-exporter}\nconfigMap: gpu-config\n"
      "serviceMonitor: {enabled: true}\n");
  ASSERT_EQ(exporter.workloads.size(), 1u);
  EXPECT_EQ(exporter.workloads[0].part, Part::kRocmExporter);
  EXPECT_THAT(CommandsOf(ToPenstock(exporter)),
              Contains(HasSubstr("penstock.telemetry.exporterConfigMap=gpu-config")));
  const Found manager =
      FoundInText("image: {repository: rocm/device-config-manager}\nconfigMap: dcm-st\n");
  EXPECT_THAT(CommandsOf(ToPenstock(manager)),
              Contains(HasSubstr("penstock.parts.modeProfilesConfigMap=dcm-st")));
  const Found all = FoundInText("kmm: {enabled: true}\ndeviceConfig: {spec: {}}\n");
  EXPECT_THAT(
      ToPenstock(all).remarks,
      Contains(HasSubstr("DeviceConfig default: Penstock's operator (chart gpu-operator) reads")));
  for (const Found* found : {&plugin, &exporter, &manager, &all})
    EXPECT_THAT(found->problems, IsEmpty());
}

TEST(RocmFind, SurvivesObjectsOfAnotherShape) {
  for (const char* text :
       {R"({"kind":"DeviceConfig"})", R"({"kind":"DeviceConfig","apiVersion":1,"metadata":[]})",
        R"({"kind":"Node","metadata":{"name":"n"},"spec":{"taints":{"key":1}}})",
        R"({"kind":"DaemonSet","spec":{"template":{"spec":{"containers":[
            {"image":"rocm/k8s-device-plugin","args":["-pulse","-",7]},
            {"image":"rocm/device-metrics-exporter","volumeMounts":[{"mountPath":"////"}]}]}}}})",
        R"({"dp":{"args":{"a":1}}})"}) {
    Found found = FoundInText(text);
    for (const Direction direction : {Direction::kToPenstock, Direction::kToNvidia})
      (void)Plan(found, direction, "");
  }
}

TEST(RocmFind, FilesOfThisMachine) {
  const os::TemporaryFolder root;
  root.Write("var/lib/kubelet/device-plugins/amd.com_gpu", "");
  root.Write("etc/cdi/amd.json", "{}");
  const auto files = FilesOfTheStack(root.path());
  EXPECT_THAT(files, UnorderedElementsAre("/var/lib/kubelet/device-plugins/amd.com_gpu",
                                          "/etc/cdi/amd.json"));
  Found found = FoundIn("amd/testdata/rocm.yaml");
  found.files = files;
  EXPECT_THAT(ToPenstock(found).files,
              UnorderedElementsAre(Changes("/etc/cdi/amd.json", "written by amd-ctk", "unchanged"),
                                   Changes("/var/lib/kubelet/device-plugins/amd.com_*",
                                           "the plugin's sockets", "penstock-amd.com-*.sock")));
}

TEST(RocmPlan, KeepsNamesProfilesAndTheExportersFile) {
  const Migration plan = ToPenstock(FoundIn("amd/testdata/rocm.yaml"));
  EXPECT_EQ(plan.from, "ROCm's programs");
  EXPECT_THAT(
      CommandsOf(plan),
      ElementsAre(
          "kubectl -n dcm get configmap dcm-st -o jsonpath='{.data.config\\.json}' > dcm-st.json",
          "kubectl -n gpu-metrics create configmap dcm-st --from-file=config.json=dcm-st.json",
          "helm -n gpu-metrics install penstock deploy/helm/penstock --set "
          "penstock.config.parts.strategy=mixed --set "
          "penstock.parts.modeProfilesConfigMap=dcm-st --set "
          "penstock.telemetry.exporterConfigMap=gpu-config",
          "kubectl -n kube-system delete daemonset amdgpu-device-plugin-daemonset",
          "kubectl -n kube-system delete daemonset amdgpu-labeller-daemonset",
          "helm -n dcm uninstall dcm", "helm -n gpu-metrics uninstall exporter",
          "kubectl penstock nodes"));
  EXPECT_THAT(plan.steps[2].why, StartsWith("its agents wait beside AMD's plugin"));
  EXPECT_THAT(plan.resources, UnorderedElementsAre(Changes("amd.com/cpx_nps4", "64", "64"),
                                                   Changes("amd.com/gpu", "2", "")));
  EXPECT_THAT(plan.labels, ElementsAre(Changes("beta.amd.com/gpu.firmware.*", "set", "set")));
  EXPECT_THAT(plan.objects,
              ElementsAre(Changes("Service gpu-metrics/exporter-amdgpu-metrics-exporter",
                                  "port 5000", "")));
  for (const auto* rows : {&plan.resources, &plan.labels, &plan.files, &plan.objects})
    EXPECT_THAT(*rows, Each(Field(&PlannedChange::what, Not(HasSubstr("nvidia")))));
}

TEST(RocmPlan, SaysWhatIsLostAndForWhom) {
  const Migration plan = ToPenstock(FoundIn("amd/testdata/rocm.yaml"));
  EXPECT_THAT(plan.lost, UnorderedElementsAre(
                             AllOf(StartsWith("metric amd_pcie_rx: "),
                                   HasSubstr("used by PrometheusRule monitoring/gpus")),
                             "amd.com/gpu: 2 now, none then on 1 node; used by Pod studio/render"));
  EXPECT_THAT(plan.metrics, ElementsAre(Changes("amd_pcie_rx", "shown", "")));
}

TEST(RocmPlan, RemarksOnEachSettingWithoutAnEquivalent) {
  const Migration plan = ToPenstock(FoundIn("amd/testdata/rocm.yaml"));
  for (const char* text :
       {"-pulse=2: health is read in any case", "-no_such_flag=1 is not a setting", "HealthService",
        "dcm.amd.com/gpu-config-profile=cpx (mi300-1): the agent follows this label"})
    EXPECT_THAT(plan.remarks, Contains(HasSubstr(text)));
  EXPECT_THAT(plan.remarks, Not(Contains(HasSubstr("gfd.timestamp"))));
  EXPECT_THAT(plan.problems, ElementsAre(HasSubstr("kubectl taint node mi300-1 amd-dcm-")))
      << "a profile that is wrong and that nobody uses is none";
}

TEST(RocmPlan, AProfileThatIsWrongOrMissingIsToBeFixedFirst) {
  Found found = FoundIn("amd/testdata/rocm.yaml");
  found.nodes[0].taints.clear();
  found.nodes[0].labels["dcm.amd.com/gpu-config-profile"] = "invalcomputetype";
  EXPECT_THAT(ToPenstock(found).problems, ElementsAre(HasSubstr("XPX")));
  found.nodes[0].labels["dcm.amd.com/gpu-config-profile"] = "spx";
  EXPECT_THAT(ToPenstock(found).problems,
              ElementsAre(HasSubstr("ConfigMap dcm-st has no such profile")));
  EXPECT_THAT(ToPenstock(found, "radeon-1").problems, IsEmpty()) << "of another node";
  for (ConfigMap& map : found.config_maps) map.data["config.json"] = "{";
  EXPECT_THAT(ToPenstock(found).problems,
              UnorderedElementsAre(HasSubstr("dcm-st, key config.json"),
                                   HasSubstr("gpu-config, key config.json")));
}

TEST(RocmPlan, NamesFollowTheStrategyThatThePluginHas) {
  const std::string nodes =
      "---\nkind: Node\nmetadata: {name: a, labels: {amd.com/gpu.compute-memory-partition: "
      "spx_nps1}}\nstatus: {capacity: {amd.com/gpu: '8'}}\n"
      "---\nkind: Node\nmetadata: {name: b}\nstatus: {capacity: {amd.com/spx_nps1: '4', "
      "amd.com/cpx_nps1: '32'}}\n";
  const auto resources = [&nodes](const std::string& flags) {
    return ToPenstock(FoundInText(DaemonSetOf("{name: c, image: rocm/k8s-device-plugin, args: [" +
                                              flags + "]}") +
                                  nodes))
        .resources;
  };
  EXPECT_THAT(resources("-resource_naming_strategy=mixed"),
              UnorderedElementsAre(
                  Changes("amd.com/gpu", "8", ""), Changes("amd.com/spx_nps1", "", "8"),
                  Changes("amd.com/spx_nps1", "4", "4"), Changes("amd.com/cpx_nps1", "32", "32")));
  EXPECT_THAT(resources("--resource_naming_strategy, single"),
              UnorderedElementsAre(
                  Changes("amd.com/gpu", "8", "8"), Changes("amd.com/gpu", "", "32"),
                  Changes("amd.com/spx_nps1", "4", ""), Changes("amd.com/cpx_nps1", "32", "")));
}

TEST(RocmPlan, UnderAmdsOperatorItIsTheOperatorThatRemovesThem) {
  const Migration plan = ToPenstock(FoundIn("amd/testdata/gpu-operator.yaml"));
  EXPECT_THAT(plan.found,
              Contains("DaemonSet kube-amd-gpu/default-device-plugin: AMD's device plugin (of "
                       "DeviceConfig default)"));
  EXPECT_THAT(
      CommandsOf(plan),
      AllOf(Contains(StartsWith("kubectl -n kube-amd-gpu patch deviceconfig default --type merge")),
            Not(Contains(HasSubstr("delete daemonset")))));
  EXPECT_THAT(plan.remarks, Contains(HasSubstr("this plan is for the chart penstock")));
}

TEST(RocmPlan, OfBothVendorsHasOneInstallation) {
  Found found = FoundIn("nvidia/testdata/nvidia-static.yaml");
  const auto text = os::ReadFile(base::SourcePath("src/analysis/migrate/amd/testdata/rocm.yaml"));
  ASSERT_TRUE(TakeFile(*text, "rocm.yaml", found).ok());
  const Migration plan = ToPenstock(found);
  EXPECT_EQ(plan.from, "NVIDIA's stack and ROCm's programs");
  const auto commands = CommandsOf(plan);
  EXPECT_EQ(std::ranges::count_if(
                commands,
                [](const std::string& one) { return one.find("install penstock ") != one.npos; }),
            1);
  EXPECT_THAT(
      commands,
      AllOf(Contains("kubectl -n kube-system delete daemonset nvidia-device-plugin-daemonset"),
            Contains("kubectl -n kube-system delete daemonset "
                     "amdgpu-device-plugin-daemonset")));
  EXPECT_THAT(plan.remarks, Contains(HasSubstr("gfd.timestamp")));
}

TEST(RocmPlan, QuotesNamesForTheShell) {
  const Found found = FoundInText(
      "kind: DaemonSet\nmetadata: {name: d, namespace: \"n; reboot\"}\nspec: {template: {spec: "
      "{volumes: [{name: v, configMap: {name: \"x'y\"}}], containers: [{name: c, image: "
      "rocm/device-config-manager, volumeMounts: [{name: v, mountPath: "
      "/etc/config-manager}]}]}}}\n");
  for (const std::string& command : CommandsOf(ToPenstock(found)))
    EXPECT_THAT(command, AllOf(Not(HasSubstr("n; reboot ")), Not(HasSubstr("=x'y"))));
}

}  // namespace
}  // namespace penstock::analysis
