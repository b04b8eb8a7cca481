#include "api/compat/device_plugin.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/config_change.h"

namespace penstock::api::compat {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

Translation Translated(const std::string& text, const std::vector<Given>& given = {}) {
  auto translation = TranslateDevicePlugin(text, "config.yaml", given, {});
  EXPECT_TRUE(translation.ok()) << translation.error().message();
  return translation.value_or({});
}

std::string ErrorOf(const std::string& text, const std::vector<Given>& given = {}) {
  const auto translation = TranslateDevicePlugin(text, "config.yaml", given, {});
  return translation.ok() ? "" : translation.error().message();
}

Given Flag(const std::string& flag, const std::string& value) { return {flag, value, flag}; }
Given Environment(const std::string& flag, const std::string& name, const std::string& value) {
  return {flag, value, "environment " + name};
}

TEST(DevicePluginConfig, NothingSaidChangesNothing) {
  for (const std::string text : {"", "\n# nothing\n", "---\n", "version: v1\n", "version: \"\"\n", "flags:\nsharing:\n", "{}"}) {
    const Translation translation = Translated(text);
    EXPECT_THAT(Changes({}, translation.config), IsEmpty()) << text;
    EXPECT_THAT(translation.not_yet, IsEmpty()) << text;
    EXPECT_THAT(translation.remarks, IsEmpty()) << text;
  }
}

TEST(DevicePluginConfig, TranslatesWhatHasAMeaningHere) {
  const Translation translation = Translated(R"(version: v1
flags:
  migStrategy: none
  failOnInitError: false
  nvidiaDriverRoot: /run/nvidia/driver
  nvidiaDevRoot: /run/nvidia
  gdsEnabled: false
  mofedEnabled: null
  useNodeFeatureAPI: true
  deviceDiscoveryStrategy: nvml
  plugin:
    passDeviceSpecs: true
    deviceListStrategy: [envvar]
    deviceIDStrategy: index
    containerDriverRoot: /driver-root
    cdiAnnotationPrefix: cdi.k8s.io/
    nvidiaCTKPath: /usr/bin/nvidia-ctk
    sharedDevicesAllocationPolicy: distributed
  gfd:
    oneshot: false
    noTimestamp: true
    sleepInterval: 60s
    outputFile: /etc/kubernetes/node-feature-discovery/features.d/gfd
    machineTypeFile: /sys/class/dmi/id/board_name
)");
  EXPECT_EQ(translation.config.paths.host_driver_root, "/run/nvidia/driver");
  EXPECT_EQ(translation.config.paths.host_dev_root, "/run/nvidia");
  EXPECT_EQ(translation.config.paths.driver_root, "/driver-root");
  EXPECT_EQ(translation.config.device_ids, DeviceIds::kIndex);
  EXPECT_EQ(translation.config.labels.node_feature, Switch::kOn);
  EXPECT_FALSE(translation.config.labels.timestamp);
  EXPECT_EQ(translation.config.labels.features_file, "/etc/kubernetes/node-feature-discovery/features.d/gfd");
  EXPECT_EQ(translation.config.labels.machine_type_file, "/sys/class/dmi/id/board_name");
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks, IsEmpty());
}

TEST(DevicePluginConfig, KeepsWhatItCannotSay) {
  NodeConfig base;
  base.node_name = "n";
  base.doors = {{.devices = {"0"}, .door = "local"}};
  const auto translation = TranslateDevicePlugin("flags: {migStrategy: none}\n", "f", {}, base);
  ASSERT_TRUE(translation.ok());
  EXPECT_THAT(Changes(base, translation->config), IsEmpty());
}

TEST(DevicePluginConfig, NamesWhatIsNotToBeHadYetAndAcceptsTheRest) {
  const Translation translation = Translated(R"(version: v1
flags:
  migStrategy: mixed
  gdrcopyEnabled: true
  gdsEnabled: true
  mofedEnabled: true
  deviceDiscoveryStrategy: tegra
  plugin:
    deviceListStrategy: [envvar, cdi-cri]
    deviceIDStrategy: index
resources:
  gpus: [{pattern: "*", name: gpu}, {pattern: "*A100*", name: a100}]
  mig: [{pattern: "1g.5gb", name: "mig-1g.5gb"}, {pattern: "2g.10gb", name: small}]
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, replicas: 4}
  mps:
    renameByDefault: true
    resources:
    - {name: gpu, rename: gpu.shared, devices: [0, "0:1", GPU-b1028956-cfa2-0990-bf4a-5da9abb51763], replicas: 2}
imex: {channelIDs: [0], required: true}
)");
  EXPECT_EQ(translation.config.device_ids, DeviceIds::kIndex);
  EXPECT_THAT(
      translation.not_yet,
      ElementsAre(StartsWith("flags.migStrategy: \"mixed\""), StartsWith("flags.gdrcopyEnabled: "), StartsWith("flags.gdsEnabled: "),
                  StartsWith("flags.mofedEnabled: "), StartsWith("flags.deviceDiscoveryStrategy: "),
                  StartsWith("flags.plugin.deviceListStrategy: \"cdi-cri\""), StartsWith("resources.gpus[1]: "),
                  StartsWith("resources.mig[1]: "), StartsWith("sharing.timeSlicing.resources[0]: "),
                  AllOf(StartsWith("sharing.mps.resources[0]: "), HasSubstr("2 replicas of nvidia.com/gpu as nvidia.com/gpu.shared")),
                  StartsWith("imex.channelIDs: "), StartsWith("imex.required: ")));
  EXPECT_THAT(translation.remarks, ElementsAre("sharing.timeSlicing: has no effect beside sharing.mps"));
}

TEST(DevicePluginConfig, SaysWhatIsAcceptedWithoutEffect) {
  const Translation translation = Translated(R"(
flags:
  failOnInitError: true
  mpsRoot: /run/nvidia/mps
  plugin: {passDeviceSpecs: false, sharedDevicesAllocationPolicy: packed, cdiAnnotationPrefix: x/, nvidiaCTKPath: /n}
  gfd: {oneshot: true, sleepInterval: infinite}
)");
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks,
              ElementsAre(StartsWith("flags.failOnInitError: "), StartsWith("flags.mpsRoot: "),
                          StartsWith("flags.plugin.passDeviceSpecs: "), StartsWith("flags.plugin.cdiAnnotationPrefix: "),
                          StartsWith("flags.plugin.nvidiaCTKPath: "), StartsWith("flags.plugin.sharedDevicesAllocationPolicy: "),
                          StartsWith("flags.gfd.oneshot: "), StartsWith("flags.gfd.sleepInterval: ")));
}

TEST(DevicePluginConfig, IsReadAsJsonToo) {
  const Translation translation = Translated(
      "{\n\t\"version\": \"v1\",\n\t\"flags\": {\"plugin\": {\"deviceIDStrategy\": \"index\"}, "
      "\"gfd\": {\"sleepInterval\": 30000000000}}\n}\n");
  EXPECT_EQ(translation.config.device_ids, DeviceIds::kIndex);
  EXPECT_THAT(ErrorOf("{\"version\": \"v1\", \"flag\": {}}"), HasSubstr("config.yaml:1:19: unknown key \"flag\"; did you mean \"flags\"?"));
}

// Everything that is wrong comes at once, each with its place.
TEST(DevicePluginConfig, TellsATypoAtEveryLevel) {
  const std::string error = ErrorOf(R"(verson: v1
flags:
  migStratgy: none
  plugin: {deviceIDStrateg: uuid}
  gfd: {noTimstamp: true}
resources:
  gpu: []
  gpus: [{patern: "*", name: gpu}]
sharing:
  timeslicing: {}
  timeSlicing:
    renameByDefalt: true
    resource: []
  mps:
    resources: [{nam: gpu, replica: 2, replicas: 2}]
imex: {channelIds: []}
)");
  EXPECT_THAT(error, HasSubstr("config.yaml:1:1: unknown key \"verson\"; did you mean \"version\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:3:3: unknown key \"flags.migStratgy\"; did you mean \"migStrategy\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:4:12: unknown key \"flags.plugin.deviceIDStrateg\"; did you mean \"deviceIDStrategy\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:5:9: unknown key \"flags.gfd.noTimstamp\"; did you mean \"noTimestamp\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:7:3: unknown key \"resources.gpu\"; did you mean \"gpus\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:8:11: unknown key \"resources.gpus[0].patern\"; did you mean \"pattern\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:10:3: unknown key \"sharing.timeslicing\"; did you mean \"timeSlicing\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:12:5: unknown key \"sharing.timeSlicing.renameByDefalt\"; did you mean \"renameByDefault\"?"));
  EXPECT_THAT(error, HasSubstr("unknown key \"sharing.timeSlicing.resource\"; did you mean \"resources\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:15:18: unknown key \"sharing.mps.resources[0].nam\"; did you mean \"name\"?"));
  EXPECT_THAT(error, HasSubstr("unknown key \"sharing.mps.resources[0].replica\"; did you mean \"replicas\"?"));
  EXPECT_THAT(error, HasSubstr("config.yaml:16:8: unknown key \"imex.channelIds\"; did you mean \"channelIDs\"?"));
}

TEST(DevicePluginConfig, RefusesWrongTypesAndValuesWithTheirPlaces) {
  EXPECT_THAT(ErrorOf("version: v2\n"), HasSubstr("config.yaml:1:10: version: is \"v2\"; this program reads \"v1\""));
  EXPECT_THAT(ErrorOf("version: 1\n"), HasSubstr("an integer (1) where a string is expected"));
  EXPECT_THAT(ErrorOf("flags: {migStrategy: sngle}\n"),
              HasSubstr("config.yaml:1:22: flags.migStrategy: \"sngle\" is none of none, single, mixed"));
  EXPECT_THAT(ErrorOf("flags: {migStrategy: true}\n"), HasSubstr("put it in quotes"));
  EXPECT_THAT(ErrorOf("flags: {failOnInitError: \"true\"}\n"), HasSubstr("a string (true) where a boolean is expected"));
  EXPECT_THAT(ErrorOf("flags: {nvidiaDriverRoot: run/nvidia}\n"), HasSubstr("\"run/nvidia\" must be an absolute path"));
  EXPECT_THAT(ErrorOf("flags: {plugin: {deviceListStrategy: cdi}}\n"), HasSubstr("\"cdi\" is none of envvar, volume-mounts"));
  EXPECT_THAT(ErrorOf("flags: {plugin: {deviceListStrategy: [1.5]}}\n"), HasSubstr("an item is a number"));
  EXPECT_THAT(ErrorOf("flags: {plugin: {deviceListStrategy: {a: b}}}\n"), HasSubstr("a map where a string or a list is expected"));
  EXPECT_THAT(ErrorOf("flags: {plugin: {deviceListStrategy: []}}\n"), HasSubstr("names no strategy"));
  EXPECT_THAT(ErrorOf("flags: {plugin: {deviceIDStrategy: UUID}}\n"), HasSubstr("did you mean \"uuid\"?"));
  EXPECT_THAT(ErrorOf("flags: {gfd: {sleepInterval: 60x}}\n"), AllOf(HasSubstr("not a duration"), HasSubstr("\"infinite\"")));
  EXPECT_THAT(ErrorOf("imex: {channelIDs: [1]}\n"), HasSubstr("\"1\" is no channel that can be asked for"));
  EXPECT_THAT(ErrorOf("flags: all\n"), HasSubstr("a string (all) where a map is expected"));
  EXPECT_THAT(ErrorOf("- version: v1\n"), HasSubstr("a list where a map is expected"));
}

TEST(DevicePluginConfig, ChecksSharingAsThePluginDoes) {
  const auto error = [](const std::string& resource) { return ErrorOf("sharing: {timeSlicing: {resources: [" + resource + "]}}\n"); };
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: all}"), "");
  EXPECT_EQ(error("{name: nvidia.com/mig-1g.5gb, replicas: 2, devices: 3}"), "");
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: [MIG-b1028956-cfa2-0990-bf4a-5da9abb51763]}"), "");
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: [MIG-GPU-b1028956-cfa2-0990-bf4a-5da9abb51763/3/0, \"1\"]}"), "");
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: [0]}, {name: gpu, replicas: 4, devices: [1]}"), "");

  EXPECT_THAT(error("{replicas: 2}"), HasSubstr("sharing.timeSlicing.resources[0].name is missing"));
  EXPECT_THAT(error("{name: gpu}"), HasSubstr("sharing.timeSlicing.resources[0].replicas is missing"));
  EXPECT_THAT(error("{name: gpu, replicas: 0}"), HasSubstr("is 0, outside of 1 to 100000"));
  EXPECT_THAT(error("{name: gpu, replicas: -1}"), HasSubstr("outside of 1"));
  EXPECT_THAT(error("{name: gpu, replicas: 1000000000}"), HasSubstr("outside of 1 to 100000"));
  EXPECT_THAT(error("{name: gpu, replicas: \"4\"}"),
              HasSubstr("config.yaml:1:59: sharing.timeSlicing.resources[0].replicas: is a string (4)"));
  EXPECT_THAT(error("{name: gpu, replicas: 2, devices: some}"), HasSubstr("\"some\" is none of all, a number of devices"));
  EXPECT_THAT(error("{name: gpu, replicas: 2, devices: 0}"), HasSubstr("\"0\" is none of all"));
  EXPECT_THAT(error("{name: gpu, replicas: 2, devices: []}"), HasSubstr("write \"all\""));
  EXPECT_THAT(error("{name: gpu, replicas: 2, devices: [GPU-12, \"0:1:2\"]}"),
              AllOf(HasSubstr("\"GPU-12\" is no device"), HasSubstr("\"0:1:2\" is no device")));
  EXPECT_THAT(error("{name: example.com/gpu, replicas: 2}"), HasSubstr("\"example.com/gpu\" is no name of a resource"));
  EXPECT_THAT(error("{name: Gpu, replicas: 2}"), HasSubstr("lower-case"));
  EXPECT_THAT(error("{name: " + std::string(60, 'a') + ", replicas: 2}"), HasSubstr("longer than 63 characters"));
  EXPECT_THAT(error("{name: gpu, replicas: 2}, {name: nvidia.com/gpu, replicas: 4}"), HasSubstr("\"nvidia.com/gpu\" is listed twice"));
  EXPECT_THAT(ErrorOf("sharing: {timeSlicing: {}}\n"), HasSubstr("sharing.timeSlicing.resources is missing"));
  EXPECT_THAT(ErrorOf("sharing: {mps: {resources: []}}\n"), HasSubstr("leave \"mps\" out to share nothing"));
}

TEST(DevicePluginConfig, RefusesWhatIsNoSingleDocument) {
  EXPECT_THAT(ErrorOf("version: v1\nversion: v1\n"), HasSubstr("config.yaml:2:1"));
  EXPECT_THAT(ErrorOf("version: v1\n---\nversion: v1\n"), Not(IsEmpty()));
  EXPECT_THAT(ErrorOf("flags:\n\tmigStrategy: none\n"), HasSubstr("config.yaml:2:"));
  EXPECT_THAT(ErrorOf("version: &a v1\nflags: {migStrategy: *a}\n"), Not(IsEmpty()));
  EXPECT_THAT(ErrorOf(std::string("\x7f"
                                  "ELF\x01\x00\xff\xfe",
                                  8)),
              Not(IsEmpty()));
  EXPECT_THAT(ErrorOf("version: v1\n#" + std::string(5u << 20, 'x')), Not(IsEmpty()));
  EXPECT_THAT(ErrorOf("sharing: {timeSlicing: {resources: [" + std::string(200, '[')), Not(IsEmpty()));
}

// Command line > environment > file, for every setting that changes something.
TEST(DevicePluginConfig, PrecedenceOfCommandLineEnvironmentAndFile) {
  struct Row {
    std::string flag, variable, file_text;
    std::string values[3];  // of the file (already in its text), the environment, the command line
    std::string key;        // of NodeConfig
    std::string results[3];
  };
  const std::vector<Row> rows = {
      {"--nvidia-driver-root",
       "NVIDIA_DRIVER_ROOT",
       "flags: {nvidiaDriverRoot: /f}",
       {"", "/e", "/c"},
       "paths.hostDriverRoot",
       {"/f", "/e", "/c"}},
      {"--nvidia-dev-root", "NVIDIA_DEV_ROOT", "flags: {nvidiaDevRoot: /f}", {"", "/e", "/c"}, "paths.hostDevRoot", {"/f", "/e", "/c"}},
      {"--driver-root-ctr-path",
       "DRIVER_ROOT_CTR_PATH",
       "flags: {plugin: {containerDriverRoot: /f}}",
       {"", "/e", "/c"},
       "paths.driverRoot",
       {"/f", "/e", "/c"}},
      {"--device-id-strategy",
       "DEVICE_ID_STRATEGY",
       "flags: {plugin: {deviceIDStrategy: index}}",
       {"", "uuid", "index"},
       "devicePlugin.deviceIDStrategy",
       {"index", "", "index"}},
      {"--no-timestamp",
       "GFD_NO_TIMESTAMP",
       "flags: {gfd: {noTimestamp: true}}",
       {"", "false", "true"},
       "labels.timestamp",
       {"false", "", "false"}},
      {"--use-node-feature-api",
       "USE_NODE_FEATURE_API",
       "flags: {useNodeFeatureAPI: true}",
       {"", "0", "T"},
       "labels.nodeFeature",
       {"on", "", "on"}},
      {"--output-file", "GFD_OUTPUT_FILE", "flags: {gfd: {outputFile: /f}}", {"", "/e", "/c"}, "labels.featuresFile", {"/f", "/e", "/c"}},
      {"--machine-type-file",
       "GFD_MACHINE_TYPE_FILE",
       "flags: {gfd: {machineTypeFile: /f}}",
       {"", "/e", "/c"},
       "labels.machineTypeFile",
       {"/f", "/e", "/c"}},
  };
  for (const Row& row : rows) {
    const Given environment = Environment(row.flag, row.variable, row.values[1]), line = Flag(row.flag, row.values[2]);
    const std::vector<std::pair<std::vector<Given>, std::string>> cases = {
        {{}, row.results[0]}, {{environment}, row.results[1]}, {{environment, line}, row.results[2]}};
    for (const auto& [given, wanted] : cases) {
      const auto changes = Changes({}, Translated(row.file_text, given).config);
      if (wanted.empty()) {
        EXPECT_THAT(changes, IsEmpty()) << row.flag;  // back to the default
      } else {
        ASSERT_THAT(changes, SizeIs(1)) << row.flag;
        EXPECT_EQ(changes[0].key, row.key);
        EXPECT_EQ(changes[0].to, wanted) << row.flag;
      }
    }
  }
}

TEST(DevicePluginConfig, WhatIsOverriddenIsNotSaidToBeMissing) {
  const Translation translation = Translated(
      "flags: {migStrategy: single, plugin: {passDeviceSpecs: false}}\n",
      {Environment("--mig-strategy", "MIG_STRATEGY", "mixed"), Flag("--mig-strategy", "none"), Flag("--pass-device-specs", "true")});
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks, IsEmpty());
}

TEST(DevicePluginConfig, NamesTheFlagOrVariableThatIsWrong) {
  const std::string error = ErrorOf(
      "flags: {migStrategy: any}\n",
      {Environment("--mig-strategy", "MIG_STRATEGY", "sngle"), Flag("--gds-enabled", "yes"), Flag("--device-list-strategy", "envvar,cdi"),
       Flag("--sleep-interval", "60"), Flag("--kubelet-socket", "/x.sock"), Flag("--nvidia-dev-root", "dev"), Flag("--unheard-of", "1")});
  EXPECT_THAT(error, HasSubstr("config.yaml:1:22: flags.migStrategy: \"any\""));
  EXPECT_THAT(error, HasSubstr("\nenvironment MIG_STRATEGY: \"sngle\" is none of none, single, mixed; did you mean \"single\"?"));
  EXPECT_THAT(error, HasSubstr("\n--gds-enabled: \"yes\" is none of true, false"));
  EXPECT_THAT(error, HasSubstr("\n--device-list-strategy: \"cdi\" is none of"));
  EXPECT_THAT(error, HasSubstr("\n--sleep-interval: \"60\" is not a duration"));
  EXPECT_THAT(error, HasSubstr("\n--kubelet-socket: \"/x.sock\" does not end with"));
  EXPECT_THAT(error, HasSubstr("\n--nvidia-dev-root: \"dev\" must be an absolute path"));
  EXPECT_THAT(error, HasSubstr("\n--unheard-of: is no setting"));
}

TEST(DevicePluginConfig, TheKubeletsSocketSaysWhereItsFolderIs) {
  EXPECT_EQ(Translated("", {Flag("--kubelet-socket", "/k/device-plugins/kubelet.sock")}).config.paths.kubelet_dir, "/k");
  EXPECT_EQ(Translated("", {Flag("--kubelet-socket", "")}).config.kubelet_door, Switch::kOff);
}

TEST(DevicePluginConfig, IsToldFromANodeConfigByItsKeys) {
  EXPECT_EQ(Recognise("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("node: {name: x}\nlabels: {}\n"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("{\"kind\": \"NodeConfig\"}"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("devicePlugin: {deviceIDStrategy: index}\n"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("apiVersion: penstock.io/v1alpha1\nkind: [NodeConfig\n"), Document::kNodeConfig);
  for (const char* text :
       {"version: v1\n", "sharing: {}\n", "flags: {}\nresources: {}\n", "", "# nothing\n", "verson: v1\n", "- 1\n", "version: [\n"})
    EXPECT_EQ(Recognise(text), Document::kDevicePlugin) << text;
}

TEST(DevicePluginConfig, SaysWhereAMisplacedKeyBelongs) {
  EXPECT_THAT(ErrorOf("flags: {passDeviceSpecs: true, plugin: {migStrategy: none, oneshot: true}}\ntimeSlicing: {}\n"),
              AllOf(HasSubstr("config.yaml:1:9: flags.passDeviceSpecs: belongs here: flags.plugin.passDeviceSpecs"),
                    HasSubstr("config.yaml:1:41: flags.plugin.migStrategy: belongs here: flags.migStrategy"),
                    HasSubstr("flags.plugin.oneshot: belongs here: flags.gfd.oneshot"),
                    HasSubstr("config.yaml:2:1: timeSlicing: belongs here: sharing.timeSlicing")));
}

// The configurations of known user issues, which must neither be dropped silently nor take the node's GPUs away.

// What a user wrote who found that nothing happened, and was never told what is wrong with it, or that nothing is.
constexpr char kTimeSlicing[] = R"(version: v1
flags:
  migStrategy: "none"
  failOnInitError: false
  nvidiaDriverRoot: "/"
  plugin:
    passDeviceSpecs: false
    deviceListStrategy: envvar
    deviceIDStrategy: uuid
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/gpu
      replicas: 4
)";

// NVIDIA/k8s-device-plugin#615 and #990, gpu-operator#412: the ConfigMap was never picked up.
TEST(DevicePluginConfig, Issue615TimeSlicingIsAcceptedNotYetAndSaidByName) {
  const Translation translation = Translated(kTimeSlicing);
  EXPECT_EQ(translation.config.paths.host_driver_root, "/");
  EXPECT_THAT(translation.not_yet,
              ElementsAre(HasSubstr("sharing.timeSlicing.resources[0]: sharing by time-slicing is not to be had yet")));
}

// NVIDIA/k8s-device-plugin#463: indented with tabs and below the wrong key.
TEST(DevicePluginConfig, Issue463TabsAreAnErrorWithItsPlace) {
  EXPECT_THAT(
      ErrorOf("version: v1\n    sharing:\n    \ttimeSlicing:\n    \tresources:\n    \t- name: nvidia.com/gpu\n    \t\treplicas: 10\n"),
      StartsWith("config.yaml:"));
}

// NVIDIA/k8s-device-plugin#1433: dropped silently; and as many replicas as the GPU has MiB are meant.
TEST(DevicePluginConfig, Issue1433RenameByDefaultBelowFlagsIsAnErrorThatSaysWhereItBelongs) {
  const std::string error = ErrorOf(R"(version: v1
flags:
  migStrategy: none
  renameByDefault: true
  failRequestsGreaterThanOne: false
sharing:
  timeSlicing:
    resources:
      - name: nvidia.com/gpu
        replicas: 16384
)");
  EXPECT_THAT(error, HasSubstr("config.yaml:4:3: flags.renameByDefault: belongs here: sharing.timeSlicing.renameByDefault"));
  EXPECT_THAT(error,
              HasSubstr("config.yaml:5:3: flags.failRequestsGreaterThanOne: belongs here: sharing.timeSlicing.failRequestsGreaterThanOne"));
  EXPECT_THAT(error, Not(HasSubstr("replicas")));
}

TEST(DevicePluginConfig, Issue1022ReplicasOfOneSwitchSharingOff) {
  const Translation translation = Translated("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}\n");
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks, IsEmpty());
}

TEST(DevicePluginConfig, Issue628SharingOnlySomeGpusIsAcceptedNotYet) {
  const Translation translation =
      Translated("sharing: {timeSlicing: {resources: [{name: gpu, rename: gpu-shared, devices: [3], replicas: 4}]}}\n");
  EXPECT_THAT(translation.not_yet, ElementsAre(HasSubstr("4 replicas of nvidia.com/gpu as nvidia.com/gpu-shared are asked for")));
}

TEST(DevicePluginConfig, Issue353RenamingByPatternIsAcceptedNotYet) {
  const Translation translation = Translated("resources: {gpus: [{pattern: \"Tesla T4\", name: t4}]}\n");
  EXPECT_THAT(translation.not_yet, ElementsAre(StartsWith("resources.gpus[0]: naming resources is not to be had yet")));
}

TEST(DevicePluginConfig, Issue460MigStrategiesOnANodeWithoutMigAreAcceptedNotYet) {
  for (const char* strategy : {"single", "mixed"})
    EXPECT_THAT(Translated("flags: {migStrategy: " + std::string(strategy) + "}\n").not_yet,
                ElementsAre(StartsWith("flags.migStrategy: ")));
}

TEST(DevicePluginConfig, Issue634MpsIsAcceptedNotYetAlsoWithoutItsRoot) {
  const Translation translation = Translated("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}\n");
  EXPECT_THAT(translation.not_yet, ElementsAre(HasSubstr("sharing through MPS is not to be had yet")));
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(DevicePluginConfig, TheReferenceDocumentsEveryFlagVariableAndKey) {
  const std::string reference = Slurp(PENSTOCK_SOURCE_DIR "/docs/reference/device-plugin-config.md");
  for (const PluginOption& option : PluginOptions()) {
    const auto row = [&](std::string_view name) { EXPECT_THAT(reference, HasSubstr("`" + std::string(name) + "`")); };
    for (const auto& flag : option.flags) row(flag);
    for (const auto& variable : option.environment) row(variable);
    if (!option.key.empty()) row(option.key);
  }
  for (const char* key : {"resources.gpus", "resources.mig", "sharing.timeSlicing", "sharing.mps"})
    EXPECT_THAT(reference, HasSubstr("`" + std::string(key)));
}

TEST(DevicePluginConfig, TheReferencesExampleIsAValidFile) {
  const std::string reference = Slurp(PENSTOCK_SOURCE_DIR "/docs/reference/device-plugin-config.md");
  const auto begin = reference.find("```yaml\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string example = reference.substr(begin + 8, reference.find("```", begin + 8) - begin - 8);
  EXPECT_EQ(Recognise(example), Document::kDevicePlugin);
  EXPECT_EQ(ErrorOf(example), "");
}

}  // namespace
}  // namespace penstock::api::compat
