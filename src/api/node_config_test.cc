#include "api/node_config.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/listen.h"
#include "base/document.h"

namespace penstock::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::string kHeader = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n";

std::string ErrorOf(const base::Result<NodeConfig>& result) { return result.ok() ? "" : result.error().message(); }

NodeConfig Parsed(const std::string& text) {
  auto config = ParseNodeConfig(kHeader + text, "node.yaml");
  EXPECT_TRUE(config.ok()) << ErrorOf(config);
  return config.value_or({});
}

TEST(NodeConfig, ReadsEveryKey) {
  const NodeConfig config = Parsed(R"(node: {name: gpu-7}
paths:
  {driverRoot: /d, nvmlLibrary: /n.so, sysfsRoot: /s, devRoot: /v, procRoot: /p, cdiRoot: /c, kubeletDir: /k, stateDir: /st, runDir: /r}
doors:
  kubelet: {enabled: off}
  local: {enabled: true, group: lab}
  assign: [{devices: ["GPU-1", 0, "*A100*"], door: local}, {door: none}]
health: {poll: 1500ms, probation: 1m}
http: {listen: "[::1]:1"}
devicePlugin: {deviceIDStrategy: index}
labels: {node: off, nodeFeature: auto, featuresFile: /f, hostFeatures: on, timestamp: false, machineTypeFile: /m}
cluster:
  {enabled: on, kubeconfig: /kc, namespace: ns, nodeState: off, events: off, nodeStatus: false,
   config: {configMap: cm, namespace: other, default: a100, fallback: [single], nodeLabel: example.com/config}}
)");
  EXPECT_EQ(config.node_name, "gpu-7");
  EXPECT_EQ(config.paths.driver_root, "/d");
  EXPECT_EQ(config.paths.nvml_library, "/n.so");
  EXPECT_EQ(config.paths.sysfs_root, "/s");
  EXPECT_EQ(config.paths.dev_root, "/v");
  EXPECT_EQ(config.paths.proc_root, "/p");
  EXPECT_EQ(config.paths.cdi_root, "/c");
  EXPECT_EQ(config.paths.kubelet_dir, "/k");
  EXPECT_EQ(config.paths.state_dir, "/st");
  EXPECT_EQ(config.paths.run_dir, "/r");
  EXPECT_EQ(config.kubelet_door, Switch::kOff);
  EXPECT_EQ(config.local_door, Switch::kOn);
  EXPECT_EQ(config.local_group, "lab");
  ASSERT_EQ(config.doors.size(), 2u);
  EXPECT_THAT(config.doors[0].devices, ElementsAre("GPU-1", "0", "*A100*"));
  EXPECT_EQ(config.doors[0].door, "local");
  EXPECT_TRUE(config.doors[1].devices.empty());
  EXPECT_EQ(config.health.poll, 1500ms);
  EXPECT_EQ(config.health.probation, 1min);
  EXPECT_EQ(config.listen, "[::1]:1");
  EXPECT_EQ(config.device_ids, DeviceIds::kIndex);
  const LabelsConfig labels = {Switch::kOff, Switch::kAuto, "/f", Switch::kOn, false, "/m"};
  EXPECT_EQ(config.labels, labels);
  const ClusterConfig cluster = {
      Switch::kOn, "/kc", "ns", Switch::kOff, Switch::kOff, Switch::kOff, {"cm", "other", "a100", {"single"}, "example.com/config"}};
  EXPECT_EQ(config.cluster, cluster);
  EXPECT_EQ(ToYaml(Parsed(ToYaml(config).substr(kHeader.size()))), ToYaml(config));
}

TEST(NodeConfig, WhatItPrintsReadsBackTheSame) {
  NodeConfig config = Parsed("");
  EXPECT_EQ(ToYaml(config), ToYaml(Parsed(ToYaml(config).substr(kHeader.size()))));

  config.node_name = "n\"1\\";
  config.doors = {{.devices = {"*A100*", "0"}, .door = "local"}, {.devices = {}, .door = "none"}};
  config.health.poll = 250ms;
  config.local_door = Switch::kOn;
  const std::string text = ToYaml(config);
  const auto again = ParseNodeConfig(text, "printed");
  ASSERT_TRUE(again.ok()) << ErrorOf(again) << text;
  EXPECT_EQ(ToYaml(*again), text);
  EXPECT_EQ(again->node_name, config.node_name);
  EXPECT_EQ(again->health.poll, 250ms);
}

TEST(NodeConfig, AMinimalFileMeansTheDefaults) { EXPECT_EQ(ToYaml(Parsed("")), ToYaml(NodeConfig{})); }

TEST(NodeConfig, TellsAllProblemsAtOnceWithPlaceAndHint) {
  const auto result = ParseNodeConfig(
      "apiVersion: penstock.io/v1\nkind: NodeConfig\n"
      "paths:\n  drivrRoot: /x\n  runDir: run\n"
      "doors:\n  kubelet: {enabled: maybe}\n  assign:\n    - {devices: [1.5], dor: local}\n"
      "health: {poll: 5}\nhttp: {listen: \"9400\"}\nhttps: 1\n",
      "n.yaml");
  const std::string error = ErrorOf(result);
  EXPECT_THAT(error, HasSubstr("n.yaml:1:13: apiVersion: is \"penstock.io/v1\"; this program reads \"penstock.io/v1alpha1\""));
  EXPECT_THAT(error, HasSubstr("n.yaml:4:3: unknown key \"paths.drivrRoot\"; did you mean \"driverRoot\"?"));
  EXPECT_THAT(error, HasSubstr("n.yaml:5:11: paths.runDir: \"run\" must be an absolute path"));
  EXPECT_THAT(error, HasSubstr("n.yaml:7:22: doors.kubelet.enabled: \"maybe\" is none of auto, on, off"));
  EXPECT_THAT(error, HasSubstr("doors.assign[0].devices: an item must be a device's id"));
  EXPECT_THAT(error, HasSubstr("doors.assign[0].door is missing"));
  EXPECT_THAT(error, HasSubstr("did you mean \"door\"?"));
  EXPECT_THAT(error, HasSubstr("n.yaml:10:16: health.poll: \"5\" is not a duration (it has no unit)"));
  EXPECT_THAT(error, HasSubstr("n.yaml:11:16: http.listen: \"9400\" is no address to listen on: it has no port"));
  EXPECT_THAT(error, HasSubstr("n.yaml:12:1: unknown key \"https\"; did you mean \"http\"?"));
}

TEST(NodeConfig, RefusesADocumentThatIsNoNodeConfig) {
  EXPECT_THAT(ErrorOf(ParseNodeConfig("", "f")), HasSubstr("apiVersion is missing"));
  EXPECT_THAT(ErrorOf(ParseNodeConfig("- 1\n", "f")), HasSubstr("a list where a map is expected"));
  EXPECT_THAT(ErrorOf(ParseNodeConfig("version: v1\nflags: {}\n", "f")), HasSubstr("unknown key \"version\""));
}

TEST(NodeConfig, RefusesTimesThatWouldSpinOrSleepForEver) {
  EXPECT_THAT(ErrorOf(ParseNodeConfig(kHeader + "health: {poll: 1ms}\n", "f")), HasSubstr("outside of 100ms to 1h"));
  EXPECT_THAT(ErrorOf(ParseNodeConfig(kHeader + "health: {probation: 100h}\n", "f")), HasSubstr("outside of 0ms to 1d"));
}

TEST(NodeConfig, PointsAtARuleForADoorThatIsSwitchedOff) {
  const std::string error =
      ErrorOf(ParseNodeConfig(kHeader + "doors:\n  local: {enabled: off}\n  assign: [{door: none}, {door: local}]\n", "f"));
  EXPECT_THAT(error, HasSubstr("f:5:33: doors.assign[1].door: gives devices to the door \"local\", which is switched off"));
}

TEST(NodeConfig, RefusesNamesThatKubernetesWouldRefuse) {
  const std::string error = ErrorOf(ParseNodeConfig(kHeader + R"(labels: {featuresFile: features.d/x, node: maybe}
cluster:
  namespace: Not_A_Name
  config: {configMap: "two words", default: "a/b", fallback: [first], nodeLabel: "-x"}
)",
                                                    "f"));
  EXPECT_THAT(error, HasSubstr("f:3:24: labels.featuresFile: \"features.d/x\" must be an absolute path"));
  EXPECT_THAT(error, HasSubstr("f:3:44: labels.node: \"maybe\" is none of auto, on, off"));
  EXPECT_THAT(error, HasSubstr("f:5:14: cluster.namespace: \"Not_A_Name\" is no name of a namespace"));
  EXPECT_THAT(error, HasSubstr("cluster.config.configMap: \"two words\" is no name of a ConfigMap"));
  EXPECT_THAT(error, HasSubstr("cluster.config.default: \"a/b\" can be no key of a ConfigMap"));
  EXPECT_THAT(error, HasSubstr("cluster.config.fallback: an item is none of named, single, empty"));
  EXPECT_THAT(error, HasSubstr("cluster.config.nodeLabel: \"-x\" is no key of a label"));
}

TEST(NodeConfig, ValidateNamesTheFlagOfABadPath) {
  NodeConfig config;
  EXPECT_TRUE(Validate(config).ok());
  config.paths.driver_root = "";
  config.paths.state_dir = "state";
  config.listen = "localhost:70000";
  const auto status = Validate(config);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("paths.driverRoot (--driver-root): must not be empty"));
  EXPECT_THAT(status.error().message(), HasSubstr("paths.stateDir (--state-dir): \"state\" must be an absolute path"));
  EXPECT_THAT(status.error().message(), HasSubstr("http.listen (--listen)"));
}

TEST(NodeConfig, RefusesFoldersInWhichASocketsPathWouldBeTooLong) {
  NodeConfig config;
  config.paths.run_dir = "/" + std::string(92, 'r');
  EXPECT_TRUE(Validate(config).ok());
  config.paths.run_dir += "r";
  ASSERT_FALSE(Validate(config).ok());
  EXPECT_THAT(Validate(config).error().message(), HasSubstr("would have 108 bytes, and a unix socket's has at most 107"));

  config = {};
  config.paths.kubelet_dir = "/" + std::string(51, 'k');
  ASSERT_FALSE(Validate(config).ok());
  EXPECT_THAT(Validate(config).error().message(), HasSubstr("paths.kubeletDir"));
  config.kubelet_door = Switch::kOff;
  EXPECT_TRUE(Validate(config).ok());
}

TEST(NodeConfig, ReadsAddressesToListenOn) {
  EXPECT_TRUE(ParseListen("off")->off);
  EXPECT_EQ(ParseListen("unix:/run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(ParseListen("[::1]:9400")->host, "::1");
  EXPECT_EQ(ParseListen("localhost:0")->port, 0);
  EXPECT_EQ(ParseListen(":9400")->host, "");
  for (const char* bad :
       {"", "9400", "::1:9400", "a b:1", "host:", "host:-1", "host:65536", "host:1x", "unix:run/x", "[::1]", "[]:1", "http://x:1"})
    EXPECT_FALSE(ParseListen(bad).ok()) << bad;
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Every dotted key of a printed document.
void Keys(const base::Value& value, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& entry : *value.map) {
    const std::string key = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (entry.value.kind == base::Value::Kind::kMap) {
      Keys(entry.value, key, keys);
    } else {
      keys.push_back(key);
    }
  }
}

TEST(NodeConfig, TheReferenceDocumentsEveryKeyWithItsDefault) {
  const std::string reference = Slurp(PENSTOCK_SOURCE_DIR "/docs/reference/config.md");
  const auto printed = base::ParseYaml(ToYaml(NodeConfig{}), "defaults");
  ASSERT_TRUE(printed.ok());
  std::vector<std::string> keys;
  Keys(*printed, "", keys);
  EXPECT_GT(keys.size(), 15u);
  for (const std::string& key : keys) EXPECT_THAT(reference, HasSubstr("`" + key + "`"));
  for (const PathOption& option : PathOptions()) {
    const std::string preset = PathsConfig{}.*option.member;
    EXPECT_THAT(reference, HasSubstr("| `paths." + std::string(option.key) + "` | `" + std::string(option.flag) + "` | " +
                                     (preset.empty() ? "" : "`" + preset + "`")));
  }
}

TEST(NodeConfig, TheReferencesExampleIsAValidDocument) {
  const std::string reference = Slurp(PENSTOCK_SOURCE_DIR "/docs/reference/config.md");
  const auto begin = reference.find("```yaml\n");
  ASSERT_NE(begin, std::string::npos);
  const auto end = reference.find("```", begin + 8);
  const auto config = ParseNodeConfig(reference.substr(begin + 8, end - begin - 8), "config.md");
  EXPECT_TRUE(config.ok()) << ErrorOf(config);
}

}  // namespace
}  // namespace penstock::api
