#include "api/config/node_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/listen.h"
#include "api/testing/config_terms.h"
#include "api/testing/reference.h"
#include "base/core/document.h"
#include "base/yaml.h"

namespace penstock::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

const std::string kHeader = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n";

std::string ErrorOf(const base::Result<NodeConfig>& result) {
  return result.ok() ? "" : result.error().message();
}

NodeConfig Parsed(const std::string& text) {
  auto config = ParseNodeConfig(kHeader + text, "node.yaml", SomeTerms());
  EXPECT_TRUE(config.ok()) << ErrorOf(config);
  return config.value_or({});
}

TEST(NodeConfig, ReadsEveryKey) {
  const NodeConfig config = Parsed(R"(node: {name: gpu-7}
paths:
  {driverRoot: /d, libraries: {nvidia: /n.so}, sysfsRoot: /s, devRoot: /v, procRoot: /p, cdiRoot: /c, kubeletDir: /k, stateDir: /st, runDir: /r}
allocators:
  kubelet: {enabled: off}
  local: {enabled: true, group: lab, closedCgroups: [user.slice, /system.slice/cron.service]}
  assign: [{devices: ["GPU-1", 0, "*A100*"], allocator: local}, {allocator: none}]
queue: {perUser: {gpus: 4, waiting: 16, time: 24h}}
health:
  {poll: 1500ms, probation: 1m, probationMost: 1h, reset: idle,
   policy: [{codes: [94, 63], action: drain}, {kind: remap-failure, action: ignore}]}
resources: {perModel: true, names: [{pattern: "*T4*", name: nvidia.com/t4}]}
sharing:
  policy: packed
  rules:
    - {resource: nvidia.com/gpu, devices: [3, "*A100*"], most: 2, strategy: mps, replicas: 7, rename: nvidia.com/gpu.shared,
       failRequestsGreaterThanOne: true}
    - {strategy: time-slicing, replicas: 4}
  serverRoots: {nvidia: /m, amd: /a}
  hostServerRoots: {nvidia: /hm}
http: {listen: "[::1]:1"}
page: {nodes: ["https://gpu2.example.com:9400"], credentialsFile: /pc, caFile: /pa}
devicePlugin: {deviceIDStrategy: index}
containers:
  {deviceList: [envvar, volume-mounts, cdi-annotations, cdi-cri], deviceFiles: off, cdiAnnotationPrefix: x.io/, configureEngine: runtime, engineSocket: /e.sock,
   deviceClasses: [gds, "imex=0"], requiredClasses: ["imex=0"]}
cdi: {enabled: on, hook: /h, install: /i, hostInstall: /hi, disableHooks: [all], enableHooks: [chmod], additionalGids: true}
labels: {node: off, nodeFeature: auto, featuresFile: /f, hostFeatures: on, timestamp: false, machineTypeFile: /m}
cluster:
  {enabled: on, kubeconfig: /kc, namespace: ns, nodeState: off, events: off, nodeStatus: false, readyCondition: off,
   config: {configMap: cm, namespace: other, default: a100, fallback: [single], nodeLabel: example.com/config}}
validation: {directory: /v, compute: false, container: false, exporterNames: true}
workers: {restrictSystemCalls: true}
)");
  EXPECT_EQ(config.validation, (ValidationConfig{"/v", false, true, false}));
  EXPECT_TRUE(config.restrict_workers);
  EXPECT_EQ(config.node_name, "gpu-7");
  EXPECT_EQ(config.paths.driver_root, "/d");
  EXPECT_EQ(config.paths.libraries, (ByVendor{{"nvidia", "/n.so"}}));
  EXPECT_EQ(config.paths.sysfs_root, "/s");
  EXPECT_EQ(config.paths.dev_root, "/v");
  EXPECT_EQ(config.paths.proc_root, "/p");
  EXPECT_EQ(config.paths.cdi_root, "/c");
  EXPECT_EQ(config.paths.kubelet_dir, "/k");
  EXPECT_EQ(config.paths.state_dir, "/st");
  EXPECT_EQ(config.paths.run_dir, "/r");
  EXPECT_EQ(config.kubelet_allocator, Switch::kOff);
  EXPECT_EQ(config.local_allocator, Switch::kOn);
  EXPECT_EQ(config.local_group, "lab");
  EXPECT_THAT(config.closed_cgroups, ElementsAre("/user.slice", "/system.slice/cron.service"));
  ASSERT_EQ(config.assignments.size(), 2u);
  EXPECT_THAT(config.assignments[0].devices, ElementsAre("GPU-1", "0", "*A100*"));
  EXPECT_EQ(config.assignments[0].allocator, "local");
  EXPECT_TRUE(config.assignments[1].devices.empty());
  EXPECT_EQ(config.queue, (QueueConfig{4, 16, 24h}));
  EXPECT_EQ(config.health.poll, 1500ms);
  const HealthConfig health = {1500ms,
                               1min,
                               1h,
                               {{"xid", {94, 63}, "drain"}, {"remap-failure", {}, "ignore"}},
                               ResetPolicy::kIdle};
  EXPECT_EQ(config.health, health);
  EXPECT_TRUE(config.resource_per_model);
  EXPECT_THAT(config.resources, ElementsAre(ResourceRule{"*T4*", "nvidia.com/t4"}));
  const SharingConfig sharing = {{{"nvidia.com/gpu",
                                   {"3", "*A100*"},
                                   2,
                                   ShareStrategy::kServer,
                                   7,
                                   "nvidia.com/gpu.shared",
                                   true},
                                  {"", {}, 0, ShareStrategy::kTimeSlicing, 4, "", false}},
                                 SharePolicy::kPacked,
                                 {{"amd", "/a"}, {"nvidia", "/m"}},
                                 {{"nvidia", "/hm"}}};
  EXPECT_EQ(config.sharing, sharing);
  EXPECT_EQ(config.http.listen, "[::1]:1");
  EXPECT_EQ(config.page, (PageConfig{{"https://gpu2.example.com:9400"}, "/pc", "/pa"}));
  EXPECT_EQ(config.device_ids, DeviceIds::kIndex);
  const ContainersConfig containers = {{DeviceList::kEnvvar, DeviceList::kVolumeMounts,
                                        DeviceList::kCdiAnnotations, DeviceList::kCdiCri},
                                       Switch::kOff,
                                       "x.io/",
                                       EngineSetup::kRuntime,
                                       "/e.sock",
                                       {"gds", "imex=0"},
                                       {"imex=0"}};
  EXPECT_EQ(config.containers, containers);
  const CdiConfig cdi = {Switch::kOn, "/h", "/i", "/hi", {"all"}, {"chmod"}, Switch::kOn};
  EXPECT_EQ(config.cdi, cdi);
  const LabelsConfig labels = {Switch::kOff, Switch::kAuto, "/f", Switch::kOn, false, "/m"};
  EXPECT_EQ(config.labels, labels);
  const ClusterConfig cluster = {Switch::kOn,
                                 "/kc",
                                 "ns",
                                 Switch::kOff,
                                 Switch::kOff,
                                 Switch::kOff,
                                 {"cm", "other", "a100", {"single"}, "example.com/config"},
                                 Switch::kOff};
  EXPECT_EQ(config.cluster, cluster);
  EXPECT_EQ(ToYaml(Parsed(ToYaml(config).substr(kHeader.size()))), ToYaml(config));
}

TEST(NodeConfig, WhatItPrintsReadsBackTheSame) {
  NodeConfig config = Parsed("");
  EXPECT_EQ(ToYaml(config), ToYaml(Parsed(ToYaml(config).substr(kHeader.size()))));

  config.node_name = "n\"1\\";
  config.assignments = {{.devices = {"*A100*", "0"}, .allocator = "local"},
                        {.devices = {}, .allocator = "none"}};
  config.health.poll = 250ms;
  config.local_allocator = Switch::kOn;
  config.health.policy = {{.kind = "xid", .codes = {}, .action = "at-least-drain"}};
  config.resources = {{"*\"T4*", "nvidia.com/t4"}};
  config.sharing.rules = {{.devices = {"0"}},
                          {.most = 1, .strategy = ShareStrategy::kServer, .replicas = 2}};
  const std::string text = ToYaml(config);
  const auto again = ParseNodeConfig(text, "printed", SomeTerms());
  ASSERT_TRUE(again.ok()) << ErrorOf(again) << text;
  EXPECT_EQ(ToYaml(*again), text);
  EXPECT_EQ(again->node_name, config.node_name);
  EXPECT_EQ(again->health, config.health);
  EXPECT_EQ(again->resources, config.resources);
  EXPECT_EQ(again->sharing, config.sharing);
}

TEST(NodeConfig, AMinimalFileMeansTheDefaults) {
  EXPECT_EQ(ToYaml(Parsed("")), ToYaml(NodeConfig{}));
}

TEST(NodeConfig, ReportsAllProblemsAtOnceWithPlaceAndHint) {
  const auto result = ParseNodeConfig(
      "apiVersion: penstock.io/v1\nkind: NodeConfig\n"
      "paths:\n  drivrRoot: /x\n  runDir: run\n"
      "allocators:\n  kubelet: {enabled: maybe}\n  assign:\n    - {devices: [1.5], alocator: "
      "local}\n"
      "health: {poll: 5}\nhttp: {listen: \"9400\"}\nhttps: 1\n",
      "n.yaml");
  const std::string error = ErrorOf(result);
  for (const char* part :
       {"n.yaml:1:13: apiVersion: is \"penstock.io/v1\"; this program reads "
        "\"penstock.io/v1alpha1\"",
        "n.yaml:4:3: unknown key \"paths.drivrRoot\"; did you mean \"driverRoot\"?",
        "n.yaml:5:11: paths.runDir: \"run\" must be an absolute path",
        "n.yaml:7:22: allocators.kubelet.enabled: \"maybe\" is none of auto, on, off",
        "allocators.assign[0].devices: an item must be a device's id",
        "allocators.assign[0].allocator is missing", "did you mean \"allocator\"?",
        "n.yaml:10:16: health.poll: \"5\" is not a duration (it has no unit)",
        "n.yaml:11:16: http.listen: \"9400\" is not an address to listen on: it has no port",
        "n.yaml:12:1: unknown key \"https\"; did you mean \"http\"?"})
    EXPECT_THAT(error, HasSubstr(part));
}

TEST(NodeConfig, RefusesADocumentThatIsNoNodeConfig) {
  EXPECT_THAT(ErrorOf(ParseNodeConfig("", "f")),
              HasSubstr("apiVersion: is missing; write apiVersion: penstock.io/v1alpha1"));
  EXPECT_THAT(ErrorOf(ParseNodeConfig("- 1\n", "f")), HasSubstr("a list where a map is expected"));
  EXPECT_THAT(ErrorOf(ParseNodeConfig("version: v1\nflags: {}\n", "f")),
              HasSubstr("unknown key \"version\""));
}

TEST(NodeConfig, RefusesTimesThatWouldSpinOrSleepIndefinitely) {
  EXPECT_THAT(ErrorOf(ParseNodeConfig(kHeader + "health: {poll: 1ms}\n", "f")),
              HasSubstr("outside of 100ms to 1h"));
  EXPECT_THAT(ErrorOf(ParseNodeConfig(kHeader + "health: {probation: 100h}\n", "f")),
              HasSubstr("outside of 0ms to 1d"));
}

TEST(NodeConfig, RefusesAProbationThatBeginsAboveItsGreatest) {
  EXPECT_THAT(ErrorOf(ParseNodeConfig(kHeader + "health: {probation: 1h}\n", "f")),
              HasSubstr("f:3:9: health.probationMost: is 10m, less than health.probation (1h), its "
                        "initial value"));
}

TEST(NodeConfig, RefusesHealthRulesThatCannotBeMeant) {
  const std::string error = ErrorOf(ParseNodeConfig(kHeader + R"(health:
  reset: always
  policy:
    - {codes: [0], action: ignore}
    - {codes: [79, 1000], action: ignore}
    - {codes: [-1, all, 1.5], action: ignore}
    - {codes: [], action: ignore}
    - {codes: [79], action: ignor}
    - {kind: xids, codes: [79], action: gone}
    - {codes: [79]}
    - {code: 79, action: gone}
    - {kind: recovery-action, codes: [100], action: gone}
)",
                                                    "f", SomeTerms()));
  for (const char* part :
       {"f:4:10: health.reset: \"always\" is none of never, idle",
        "f:6:16: health.policy[0].codes: \"0\" is not a code of xid, which are numbers from 1 "
        "to 999",
        "f:7:20: health.policy[1].codes: \"1000\" is not a code of xid",
        "\"-1\" is not a code of xid", "\"all\" is not a code of xid",
        "health.policy[3].codes: is empty; leave the key out to mean all codes",
        "f:10:29: health.policy[4].action: \"ignor\" is none of default, ignore, warn",
        "health.policy[5].kind: \"xids\" is none of xid, sxid, recovery-action",
        "health.policy[6].action is missing",
        "unknown key \"health.policy[7].code\"; did you mean \"codes\"?",
        "\"100\" is not a code of recovery-action"})
    EXPECT_THAT(error, HasSubstr(part));
}

TEST(NodeConfig, TakesHealthRulesOfTheKindsThatVendorsHave) {
  const ConfigTerms acme{.evidence = {{.kind = "ecc", .least = 0, .most = 4},
                                      {.kind = "lost", .least = 0, .most = 9},
                                      {.kind = "lost", .least = 100, .most = 109}}};
  const auto read = [](const std::string& rule, const ConfigTerms& terms) {
    return ErrorOf(ParseNodeConfig(kHeader + "health: {policy: [{" + rule + "}]}\n", "f", terms));
  };
  EXPECT_EQ(read("kind: ecc, codes: [0, 4], action: warn", acme), "");
  EXPECT_THAT(read("kind: ecc, codes: [5], action: warn", acme),
              testing::EndsWith("\"5\" is not a code of ecc, which are numbers"));
  EXPECT_EQ(read("kind: lost, codes: [9, 100], action: warn", acme), "") << "of either vendor";
  EXPECT_THAT(read("kind: xid, codes: [79], action: warn", acme),
              HasSubstr("\"xid\" is none of ecc, lost"));
  EXPECT_THAT(read("action: warn", acme), HasSubstr("health.policy[0].kind is missing"));
  EXPECT_THAT(read("kind: ecc, action: warn", SomeTerms()), HasSubstr("\"ecc\" is none of xid, "));
  EXPECT_EQ(read("codes: [79], action: warn", SomeTerms()), "") << "the usual kind";
}

std::string SharingError(const std::string& rules, const std::string& before = "") {
  return ErrorOf(ParseNodeConfig(kHeader + before + "sharing: {rules: [" + rules + "]}\n", "f"));
}

TEST(NodeConfig, RefusesReplicasThatCannotBe) {
  EXPECT_EQ(SharingError("{strategy: time-slicing, replicas: 1}"), "");
  EXPECT_EQ(SharingError("{strategy: mps, replicas: 100000}"), "");
  EXPECT_EQ(SharingError("{strategy: none}"), "");
  EXPECT_EQ(SharingError("{devices: [0], replicas: 1}"), "");
  EXPECT_THAT(SharingError("{strategy: mps, replicas: 0}"),
              HasSubstr("f:3:45: sharing.rules[0].replicas: is 0, outside of 1 to 100000"));
  EXPECT_THAT(SharingError("{strategy: mps, replicas: -4}"), HasSubstr("outside of 1 to 100000"));
  EXPECT_THAT(SharingError("{strategy: mps, replicas: 100001}"),
              HasSubstr("outside of 1 to 100000"));
  EXPECT_THAT(SharingError("{strategy: mps, replicas: 99999999999999999999}"),
              HasSubstr("sharing.rules[0].replicas"));
  EXPECT_THAT(SharingError("{strategy: mps, replicas: \"4\"}"),
              HasSubstr("a string (4) where an integer is expected"));
  EXPECT_THAT(SharingError("{strategy: mps}"), HasSubstr("sharing.rules[0].replicas is missing"));
  EXPECT_THAT(
      SharingError("{replicas: 4}"),
      HasSubstr(
          "asks for 4 shares without saying how: add strategy: time-slicing, or strategy: mps"));
  EXPECT_THAT(SharingError("{strategy: none, replicas: 4}"), HasSubstr("without saying how"));
  EXPECT_THAT(SharingError("{}"), HasSubstr("sharing.rules[0].strategy is missing"));
  EXPECT_THAT(SharingError("{strategy: timeslicing, replicas: 4}"),
              HasSubstr("\"timeslicing\" is none of none, time-slicing, mps"));
  EXPECT_THAT(SharingError("{strategy: mps, replicas: 4, most: 0}"), HasSubstr("outside of 1"));
  EXPECT_THAT(SharingError("{strategy: mps, replicas: 4, devices: []}"),
              HasSubstr("leave the key out to mean all devices"));

  NodeConfig config;  // not from a file
  config.sharing.rules = {{.strategy = ShareStrategy::kServer, .replicas = 0}};
  ASSERT_FALSE(Validate(config).ok());
  EXPECT_THAT(Validate(config).error().message(),
              HasSubstr("sharing.rules[0].replicas: is 0, outside of 1 to 100000"));
}

TEST(NodeConfig, RefusesNamesThatAreNoResources) {
  const auto renamed = [](const std::string& name) {
    return SharingError("{strategy: mps, replicas: 2, rename: \"" + name + "\"}");
  };
  EXPECT_EQ(renamed("nvidia.com/gpu.shared"), "");
  EXPECT_EQ(renamed("example.com/GPU_1"), "");
  for (const std::string bad :
       {"gpu", "nvidia.com/", "/gpu", "nvidia.com/gpu/x", "nvidia.com/-gpu", "Nvidia.com/gpu",
        "kubernetes.io/gpu", "gpu.kubernetes.io/x", "requests.nvidia.com/gpu", "nvidia.com/g pu"})
    EXPECT_THAT(renamed(bad), HasSubstr("is not a resource name")) << bad;
  EXPECT_THAT(renamed("nvidia.com/" + std::string(64, 'a')), HasSubstr("is not a resource name"));
  EXPECT_THAT(renamed(""), HasSubstr("leave the key out"));
  EXPECT_THAT(SharingError("{resource: gpu, strategy: none}"),
              HasSubstr("sharing.rules[0].resource: \"gpu\" is not a resource name"));
  EXPECT_THAT(SharingError("", "resources: {names: [{pattern: \"*\", name: gpu}]}\n"),
              HasSubstr("f:3:42: resources.names[0].name: \"gpu\" is not a resource name: write a "
                        "domain and a name"));
}

TEST(NodeConfig, RefusesARenameThatCollides) {
  const std::string whole = "resources: {names: [{pattern: \"*A100*\", name: nvidia.com/a100}]}\n";
  EXPECT_THAT(SharingError("{strategy: mps, replicas: 2, rename: nvidia.com/a100}", whole),
              HasSubstr("f:4:56: sharing.rules[0].rename: \"nvidia.com/a100\" is the name of whole "
                        "devices (resources.names[0].name); "
                        "choose another"));
  EXPECT_THAT(SharingError("{devices: [0], strategy: mps, replicas: 2, rename: x.io/s}, {strategy: "
                           "time-slicing, replicas: 2, rename: x.io/s}"),
              HasSubstr("sharing.rules[0].rename: \"x.io/s\" is also the name of shares of another "
                        "kind (sharing.rules[1])"));
  EXPECT_THAT(SharingError("{resource: x.io/a, strategy: mps, replicas: 2, rename: x.io/b}, "
                           "{resource: x.io/b, strategy: none}"),
              HasSubstr("\"x.io/b\" is also the name of whole devices (sharing.rules[1])"));
  EXPECT_THAT(SharingError("{strategy: none, rename: x.io/b}"),
              HasSubstr("is for shares, but this rule creates none"));
  EXPECT_EQ(SharingError("{devices: [0], strategy: mps, replicas: 2, rename: x.io/s}, {strategy: "
                         "mps, replicas: 4, rename: x.io/s}"),
            "");
  EXPECT_EQ(SharingError(
                "{resource: nvidia.com/a100, strategy: mps, replicas: 2, rename: nvidia.com/a100}",
                whole),
            "");
  // Different sharing per GPU under one name is exactly what this file requests.
  EXPECT_EQ(SharingError("{devices: [0], strategy: mps, replicas: 2}, {devices: [1], strategy: "
                         "time-slicing, replicas: 2}"),
            "");
}

TEST(NodeConfig, RefusesRulesThatNeverCount) {
  EXPECT_THAT(SharingError("{strategy: mps, replicas: 2}, {devices: [0], strategy: none}"),
              HasSubstr("f:3:49: sharing.rules[1]: never takes effect, because sharing.rules[0] "
                        "matches the same devices and comes before it; put this one first"));
  EXPECT_THAT(
      SharingError("{devices: [0, 1], strategy: none}, {devices: [1], strategy: mps, replicas: 2}"),
      HasSubstr("sharing.rules[1]: never"));
  EXPECT_THAT(
      SharingError(
          "{resource: x.io/a, strategy: none}, {resource: x.io/a, strategy: mps, replicas: 2}"),
      HasSubstr("remove one of the two"));
  EXPECT_EQ(
      SharingError("{devices: [0], strategy: none}, {devices: [0, 1], strategy: mps, replicas: 2}"),
      "");
  EXPECT_EQ(SharingError("{most: 2, strategy: none}, {strategy: mps, replicas: 2}"), "");
  EXPECT_EQ(SharingError("{resource: x.io/a, strategy: none}, {strategy: mps, replicas: 2}"), "");
  const std::string names =
      "resources: {names: [{pattern: \"*\", name: x.io/a}, {pattern: \"*T4*\", name: x.io/b}]}\n";
  EXPECT_THAT(SharingError("", names),
              HasSubstr("resources.names[1].pattern: never takes effect, because "
                        "resources.names[0] matches the same models"));
}

TEST(NodeConfig, RefusesAFolderOfMpsThatIsNotAbsolute) {
  EXPECT_THAT(
      ErrorOf(ParseNodeConfig(kHeader + "sharing: {mps: {root: mps, hostRoot: x}, ruls: []}\n", "f",
                              SomeTerms())),
      ::testing::AllOf(HasSubstr("f:3:23: sharing.mps.root: \"mps\" must be an absolute path"),
                       HasSubstr("f:3:38: sharing.mps.hostRoot: \"x\" must be an absolute path"),
                       HasSubstr("unknown key \"sharing.ruls\"; did you mean \"rules\"?")));
}

TEST(NodeConfig, ReadsFormerKeysAndSaysWhatTheyAreNow) {
  std::vector<std::string> remarks;
  const auto config =
      ParseNodeConfig(kHeader +
                          "paths: {nvmlLibrary: /n.so}\n"
                          "sharing:\n  policy: packed\n  mps: {root: /m, hostRoot: /hm}\n"
                          "telemetry: {xidWindow: 10m}\nparts: {migStrategy: mixed}\n",
                      "f", SomeTerms(), &remarks);
  ASSERT_TRUE(config.ok()) << ErrorOf(config);
  NodeConfig wanted;
  wanted.paths.libraries["nvidia"] = "/n.so";
  wanted.sharing = {.policy = SharePolicy::kPacked,
                    .server_roots = {{"nvidia", "/m"}},
                    .host_server_roots = {{"nvidia", "/hm"}}};
  wanted.telemetry.errors_window = 10min;
  wanted.profiled_parts = PartsStrategy::kMixed;
  EXPECT_EQ(ToYaml(*config), ToYaml(wanted));
  EXPECT_THAT(remarks,
              ElementsAre("paths.nvmlLibrary: deprecated; use paths.libraries.nvidia (line 3)",
                          "sharing.mps.root: deprecated; use sharing.serverRoots.nvidia (line 6)",
                          "sharing.mps.hostRoot: deprecated; use sharing.hostServerRoots.nvidia "
                          "(line 6)",
                          "telemetry.xidWindow: deprecated; use telemetry.errorsWindow (line 7)",
                          "parts.migStrategy: deprecated; use parts.profiledStrategy (line 8)"));
}

TEST(NodeConfig, RefusesAKeyUnderBothOfItsNames) {
  const auto error = [](const std::string& text) {
    return ErrorOf(ParseNodeConfig(kHeader + text + "\n", "f", SomeTerms()));
  };
  EXPECT_EQ(error("telemetry: {xidWindow: 10m, errorsWindow: 10m}"),
            "f:3:24: telemetry.xidWindow: is the deprecated name of telemetry.errorsWindow, which "
            "is there too; remove one of the two");
  EXPECT_THAT(error("parts: {profiledStrategy: none, migStrategy: none}"),
              HasSubstr("parts.migStrategy: is the deprecated name of parts.profiledStrategy"));
  EXPECT_THAT(error("paths: {nvmlLibrary: /a, libraries: {nvidia: /a}}"),
              HasSubstr("paths.nvmlLibrary: is the deprecated name of paths.libraries.nvidia"));
  EXPECT_THAT(error("sharing: {mps: {root: /a}, serverRoots: {nvidia: /a}}"),
              HasSubstr("sharing.mps.root: is the deprecated name of sharing.serverRoots.nvidia"));
  EXPECT_THAT(error("sharing: {mps: {hostRoot: /a}, hostServerRoots: {nvidia: /a}}"),
              HasSubstr("sharing.mps.hostRoot: is the deprecated name of "
                        "sharing.hostServerRoots.nvidia"));
  EXPECT_EQ(error("paths: {nvmlLibrary: /a, libraries: {amd: /b}}"), "") << "of another vendor";
}

TEST(NodeConfig, ChecksAFormerKeyUnderItsName) {
  const auto error = [](const std::string& text) {
    return ErrorOf(ParseNodeConfig(kHeader + text + "\n", "f", SomeTerms()));
  };
  EXPECT_EQ(error("paths: {nvmlLibrary: n.so}"),
            "f:3:22: paths.nvmlLibrary: \"n.so\" must be an absolute path");
  EXPECT_EQ(error("paths: {nvmlLibrary: \"\"}"), "");
  EXPECT_EQ(error("sharing: {mps: {root: \"\"}}"), "f:3:23: sharing.mps.root: must not be empty");
  EXPECT_THAT(error("sharing: {mps: {rot: /m}}"),
              HasSubstr("unknown key \"sharing.mps.rot\"; did you mean \"root\"?"));
  EXPECT_THAT(error("telemetry: {xidWindow: 2d}"), HasSubstr("telemetry.xidWindow: "));
  EXPECT_THAT(error("parts: {migStrategy: all}"),
              HasSubstr("parts.migStrategy: \"all\" is none of default, none, single, mixed"));
}

TEST(NodeConfig, HasPathsOfTheVendorsThatItIsGiven) {
  const auto error = [](const std::string& text, const ConfigTerms& terms) {
    return ErrorOf(ParseNodeConfig(kHeader + text + "\n", "f", terms));
  };
  EXPECT_EQ(error("paths: {libraries: {amd: a}}", SomeTerms()),
            "f:3:26: paths.libraries.amd: \"a\" must be an absolute path");
  EXPECT_EQ(error("sharing: {serverRoots: {amd: a}, hostServerRoots: {amd: b}}", SomeTerms()),
            "f:3:30: sharing.serverRoots.amd: \"a\" must be an absolute path\n"
            "f:3:57: sharing.hostServerRoots.amd: \"b\" must be an absolute path");
  EXPECT_THAT(error("paths: {libraries: {nvida: /a}}", SomeTerms()),
              HasSubstr("unknown key \"paths.libraries.nvida\"; did you mean \"nvidia\"?"));
  // Without a vendor's row, nothing of it is left.
  EXPECT_THAT(error("paths: {nvmlLibrary: /a, libraries: {nvidia: /a}}", {.vendors = {"acme"}}),
              testing::AllOf(HasSubstr("unknown key \"paths.nvmlLibrary\""),
                             HasSubstr("unknown key \"paths.libraries.nvidia\"")));
}

TEST(NodeConfig, RefusesLimitsOfUsersThatCannotBe) {
  const auto config = ParseNodeConfig(
      std::string(kHeader) + "queue: {perUser: {gpus: -1, waiting: many, time: 24}, peruser: {}}\n",
      "f");
  ASSERT_FALSE(config.ok());
  for (const char* key :
       {"queue.perUser.gpus", "queue.perUser.waiting", "queue.perUser.time", "peruser"})
    EXPECT_THAT(ErrorOf(config), HasSubstr(key));
}

TEST(NodeConfig, PointsAtARuleForAAllocatorThatIsSwitchedOff) {
  const std::string error =
      ErrorOf(ParseNodeConfig(kHeader + "allocators:\n  local: {enabled: off}\n  assign: "
                                        "[{allocator: none}, {allocator: local}]\n",
                              "f"));
  EXPECT_THAT(error, HasSubstr("f:5:43: allocators.assign[1].allocator: assigns devices to "
                               "\"local\", which is disabled"));
}

TEST(NodeConfig, ReadsDoorsAsTheDeprecatedNameOfAllocators) {
  std::vector<std::string> remarks;
  const auto config =
      ParseNodeConfig(kHeader +
                          "doors:\n  kubelet: {enabled: off}\n  local: {group: lab}\n"
                          "  assign: [{devices: [0], door: local}, {door: none}]\n",
                      "f", {}, &remarks);
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->kubelet_allocator, Switch::kOff);
  EXPECT_EQ(config->local_group, "lab");
  ASSERT_EQ(config->assignments.size(), 2u);
  EXPECT_EQ(config->assignments[0].allocator, "local");
  EXPECT_EQ(config->assignments[1].allocator, "none");
  EXPECT_THAT(remarks, ElementsAre("doors: deprecated; use allocators, and in its rules allocator "
                                   "instead of door (line 4)"));
}

TEST(NodeConfig, NamesTheDeprecatedKeysOfADocumentThatHasThem) {
  const std::string error = ErrorOf(ParseNodeConfig(
      kHeader + "doors:\n  local: {enabled: off}\n  assign: [{door: none}, {door: local}]\n", "f"));
  EXPECT_THAT(error, HasSubstr("f:5:33: doors.assign[1].door: assigns devices to \"local\""));
  EXPECT_EQ(
      ErrorOf(ParseNodeConfig(kHeader + "doors: {}\nallocators: {}\n", "f")),
      "f:3:8: doors: is the deprecated name of allocators, which is there too; merge the two");
  EXPECT_THAT(ErrorOf(ParseNodeConfig(kHeader + "allocators: {assign: [{door: none}]}\n", "f")),
              HasSubstr("allocators.assign[0].allocator is missing"));
}

TEST(NodeConfig, RefusesToCloseDevicesToWhatIsNoControlGroupOrHasPods) {
  const std::string error =
      ErrorOf(ParseNodeConfig(kHeader + "allocators:\n  local: {closedCgroups: [/, "
                                        "user.slice/../x, kubepods.slice, user.slice]}\n",
                              "f"));
  EXPECT_THAT(error,
              HasSubstr("f:4:27: allocators.local.closedCgroups[0]: \"/\" is not a path of a "
                        "control group below the root"));
  EXPECT_THAT(error, HasSubstr("allocators.local.closedCgroups[1]: \"/user.slice/../x\" is not a "
                               "path of a control group"));
  EXPECT_THAT(error,
              HasSubstr("allocators.local.closedCgroups[2]: \"/kubepods.slice\" contains pods"));
  EXPECT_THAT(error, Not(HasSubstr("closedCgroups[3]")));
}

TEST(NodeConfig, RefusesNamesThatKubernetesWouldRefuse) {
  const std::string error =
      ErrorOf(ParseNodeConfig(kHeader + R"(labels: {featuresFile: features.d/x, node: maybe}
cluster:
  namespace: Not_A_Name
  config: {configMap: "two words", default: "a/b", fallback: [first], nodeLabel: "-x"}
)",
                              "f"));
  EXPECT_THAT(error,
              HasSubstr("f:3:24: labels.featuresFile: \"features.d/x\" must be an absolute path"));
  EXPECT_THAT(error, HasSubstr("f:3:44: labels.node: \"maybe\" is none of auto, on, off"));
  EXPECT_THAT(error,
              HasSubstr("f:5:14: cluster.namespace: \"Not_A_Name\" is not a namespace name"));
  EXPECT_THAT(error, HasSubstr("cluster.config.configMap: \"two words\" is not a ConfigMap name"));
  EXPECT_THAT(error, HasSubstr("cluster.config.default: \"a/b\" cannot be a key of a ConfigMap"));
  EXPECT_THAT(error, HasSubstr("cluster.config.fallback: an item is none of named, single, empty"));
  EXPECT_THAT(error, HasSubstr("cluster.config.nodeLabel: \"-x\" is not a label key"));
}

TEST(NodeConfig, ValidateNamesTheFlagOfABadPath) {
  NodeConfig config;
  EXPECT_TRUE(Validate(config).ok());
  config.paths.driver_root = "";
  config.paths.state_dir = "state";
  config.http.listen = "localhost:70000";
  const auto status = Validate(config);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(),
              HasSubstr("paths.driverRoot (--driver-root): must not be empty"));
  EXPECT_THAT(status.error().message(),
              HasSubstr("paths.stateDir (--state-dir): \"state\" must be an absolute path"));
  EXPECT_THAT(status.error().message(), HasSubstr("http.listen (--listen)"));
}

TEST(NodeConfig, RefusesFoldersInWhichASocketsPathWouldBeTooLong) {
  NodeConfig config;
  config.paths.run_dir = "/" + std::string(92, 'r');
  EXPECT_TRUE(Validate(config).ok());
  config.paths.run_dir += "r";
  ASSERT_FALSE(Validate(config).ok());
  EXPECT_THAT(Validate(config).error().message(),
              HasSubstr("would have 108 bytes, but a unix socket's path has at most 107"));

  config = {};
  config.paths.kubelet_dir = "/" + std::string(51, 'k');
  ASSERT_FALSE(Validate(config).ok());
  EXPECT_THAT(Validate(config).error().message(), HasSubstr("paths.kubeletDir"));
  config.kubelet_allocator = Switch::kOff;
  EXPECT_TRUE(Validate(config).ok());
}

TEST(NodeConfig, ReadsAddressesToListenOn) {
  EXPECT_TRUE(ParseListen("off")->off);
  EXPECT_EQ(ParseListen("unix:/run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(ParseListen("[::1]:9400")->host, "::1");
  EXPECT_EQ(ParseListen("localhost:0")->port, 0);
  EXPECT_EQ(ParseListen(":9400")->host, "");
  for (const char* bad : {"", "9400", "::1:9400", "a b:1", "host:", "host:-1", "host:65536",
                          "host:1x", "unix:run/x", "[::1]", "[]:1", "http://x:1"})
    EXPECT_FALSE(ParseListen(bad).ok()) << bad;
}

TEST(NodeConfig, ChecksTheAddressesOfOtherNodes) {
  const auto page = [](const std::string& text) {
    return ErrorOf(ParseNodeConfig(kHeader + "page: {" + text + "}\n", "node.yaml"));
  };
  for (const char* good : {"https://gpu2", "https://gpu2:9400/", "https://[2001:db8::1]:9400",
                           "http://gpu2:9400", "http://127.0.0.1:9400"})
    EXPECT_EQ(page("nodes: [\"" + std::string(good) + "\"]"), "") << good;
  for (const char* bad : {"gpu2:9400", "https://", "https:///", "ftp://gpu2", "file:///etc/passwd",
                          "https://eva:secret@gpu2", "https://gpu2/path", "https://gpu2?x=1",
                          "https://gpu2\\r\\nX: y", "HTTPS://gpu2", ""})
    EXPECT_THAT(page("nodes: [\"" + std::string(bad) + "\"]"), HasSubstr("page.nodes[0]: \""))
        << bad;
  EXPECT_THAT(page("nodes: [\"https://a\", \"http://gpu2:9400\"], credentialsFile: /c"),
              HasSubstr("page.nodes[1]: \"http://gpu2:9400\" would get the credentials"));
  for (const char* local : {"http://127.0.0.1:9400", "http://localhost:9400", "http://[::1]:9400"})
    EXPECT_EQ(page("nodes: [\"" + std::string(local) + "\"], credentialsFile: /c"), "") << local;
  for (const char* other : {"http://127.0.0.1.evil:9400", "http://localhost.evil:9400"})
    EXPECT_THAT(page("nodes: [\"" + std::string(other) + "\"], credentialsFile: /c"),
                HasSubstr("write https"));
}

TEST(NodeConfig, ReportsWhatIsImpossibleInHowContainersGetDevices) {
  const auto error = [](const std::string& text) {
    return ErrorOf(ParseNodeConfig(kHeader + text, "node.yaml"));
  };
  const auto containers = [&](const std::string& text) {
    return error("containers: {" + text + "}\n");
  };
  EXPECT_EQ(containers("deviceList: []"), "");
  EXPECT_EQ(
      containers(
          "deviceList: [cdi-cri, envvar], deviceFiles: true, deviceClasses: [imex=0, gds=all]"),
      "");
  EXPECT_THAT(containers("deviceList: [cdi-cry]"),
              HasSubstr("node.yaml:3:27: containers.deviceList: an item is none of envvar, "
                        "volume-mounts, cdi-annotations, cdi-cri; did you "
                        "mean \"cdi-cri\"?"));
  EXPECT_THAT(containers("deviceList: [1]"), HasSubstr("an item is none of envvar"));
  EXPECT_THAT(containers("deviceList: [envvar, envvar]"),
              HasSubstr("node.yaml:3:35: containers.deviceList: \"envvar\" is named twice"));
  EXPECT_THAT(containers("deviceList: envvar"),
              HasSubstr("a string (envvar) where a list is expected"));
  for (const char* prefix : {"cdi.k8s.io", "/", "", "cdi k8s/", "cdi.k8s.io/a-longer-", "-x/"})
    EXPECT_THAT(containers("cdiAnnotationPrefix: \"" + std::string(prefix) + "\""),
                HasSubstr("is not a prefix of an annotation key"))
        << prefix;
  EXPECT_THAT(containers("engineSocket: run/x.sock"),
              HasSubstr("\"run/x.sock\" must be an absolute path"));
  EXPECT_THAT(containers("engineSocket: \"unix:///run/x.sock\""),
              HasSubstr("containers.engineSocket: is a path: write \"/run/x.sock\""));
  EXPECT_THAT(containers("engineSocket: /" + std::string(107, 'a')),
              HasSubstr("at most 107 bytes"));
  for (const char* one : {"GDS", "\"\"", "gds=", "\"=0\"", "g ds", "gds/x"})
    EXPECT_THAT(containers("deviceClasses: [" + std::string(one) + "]"),
                HasSubstr("is not a class of devices"))
        << one;
  EXPECT_THAT(containers("deviceClasses: [gds], requiredClasses: [imex=0]"),
              HasSubstr("\"imex=0\" is not in containers.deviceClasses"));
  EXPECT_THAT(error("containers: {deviceList: [envvar, cdi-cri]}\ncdi: {enabled: off}\n"),
              HasSubstr("node.yaml:3:26: containers.deviceList: \"cdi-cri\" needs CDI "
                        "specifications, which cdi.enabled: off forbids"));
  EXPECT_EQ(error("containers: {deviceList: [envvar]}\ncdi: {enabled: off}\n"), "");
  EXPECT_THAT(error("cdi: {hook: h}\n"), HasSubstr("cdi.hook: \"h\" must be an absolute path"));
  EXPECT_THAT(error("cdi: {hostInstall: /h}\n"),
              HasSubstr("cdi.hostInstall: has no effect without cdi.install"));
  EXPECT_THAT(error("cdi: {disableHooks: [update-ldcach]}\n"),
              HasSubstr("did you mean \"update-ldcache\"?"));
  EXPECT_THAT(error("cdi: {enableHooks: [all]}\n"),
              HasSubstr("cdi.enableHooks: \"all\" is none of create-symlinks"));
  EXPECT_THAT(error("cdi: {disableHooks: [chmod], enableHooks: [chmod]}\n"),
              HasSubstr("remove it from one of the two"));
}

/// Collects every dotted key of a printed document.
void Keys(const base::Value& value, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& entry : *value.map) {
    const std::string key = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (entry.value.kind == base::Value::Kind::kMap && !entry.value.map->empty()) {
      Keys(entry.value, key, keys);
    } else {
      keys.push_back(key);
    }
  }
}

TEST(NodeConfig, TheReferenceDocumentsEveryKeyWithItsDefault) {
  const std::string reference = base::ReadSource("docs/reference/config.md");
  const auto printed = base::ParseYaml(ToYaml(NodeConfig{}), "defaults");
  ASSERT_TRUE(printed.ok());
  std::vector<std::string> keys;
  Keys(*printed, "", keys);
  EXPECT_GT(keys.size(), 15u);
  for (const std::string& key : keys) EXPECT_THAT(reference, HasSubstr("`" + key + "`"));
  for (const PathOption& option : PathOptions()) {
    const std::string preset = PathsConfig{}.*option.member;
    EXPECT_THAT(reference, HasSubstr("| `paths." + std::string(option.key) + "` | `" +
                                     std::string(option.flag) + "` | " +
                                     (preset.empty() ? "" : "`" + preset + "`")));
  }
}

TEST(NodeConfig, TheReferencesExampleIsAValidDocument) {
  const auto config = ParseNodeConfig(ExampleOf("config.md"), "config.md", SomeTerms());
  EXPECT_TRUE(config.ok()) << ErrorOf(config);
}

}  // namespace
}  // namespace penstock::api
