#include "api/compat/nvidia/device_plugin.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/config/config_change.h"
#include "api/testing/config_terms.h"
#include "api/testing/reference.h"

namespace penstock::api::compat {
namespace {

using ::testing::AllOf;
using ::testing::Each;
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
  for (const std::string text : {"", "\n# nothing\n", "---\n", "version: v1\n", "version: \"\"\n",
                                 "flags:\nsharing:\n", "{}"}) {
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
    deviceListStrategy: [envvar, cdi-cri]
    deviceIDStrategy: index
    containerDriverRoot: /driver-root
    cdiAnnotationPrefix: cdi.k8s.io/
    nvidiaCTKPath: /usr/bin/nvidia-ctk
    sharedDevicesAllocationPolicy: packed
  gfd:
    oneshot: false
    noTimestamp: true
    sleepInterval: 60s
    outputFile: /etc/kubernetes/node-feature-discovery/features.d/gfd
    machineTypeFile: /sys/class/dmi/id/board_name
)");
  EXPECT_EQ(translation.config.sharing.policy, SharePolicy::kPacked);
  EXPECT_EQ(translation.config.paths.host_driver_root, "/run/nvidia/driver");
  EXPECT_EQ(translation.config.paths.host_dev_root, "/run/nvidia");
  EXPECT_EQ(translation.config.paths.driver_root, "/driver-root");
  EXPECT_EQ(translation.config.device_ids, DeviceIds::kIndex);
  EXPECT_THAT(translation.config.containers.device_list,
              ElementsAre(DeviceList::kEnvvar, DeviceList::kCdiCri));
  EXPECT_EQ(translation.config.containers.device_files, Switch::kOn);
  EXPECT_EQ(translation.config.cdi, CdiConfig{});
  EXPECT_EQ(translation.config.labels.node_feature, Switch::kOn);
  EXPECT_FALSE(translation.config.labels.timestamp);
  EXPECT_EQ(translation.config.labels.features_file,
            "/etc/kubernetes/node-feature-discovery/features.d/gfd");
  EXPECT_EQ(translation.config.labels.machine_type_file, "/sys/class/dmi/id/board_name");
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks, IsEmpty());
}

TEST(DevicePluginConfig, KeepsWhatItCannotSay) {
  NodeConfig base;
  base.node_name = "n";
  base.assignments = {{.devices = {"0"}, .allocator = "local"}};
  const auto translation = TranslateDevicePlugin("flags: {failOnInitError: true}\n", "f", {}, base);
  ASSERT_TRUE(translation.ok());
  EXPECT_THAT(Changes(base, translation->config), IsEmpty());
}

TEST(DevicePluginConfig, NamesWhatIsUnavailableYetAndAcceptsTheRest) {
  const Translation translation = Translated(R"(version: v1
flags:
  migStrategy: mixed
  deviceDiscoveryStrategy: tegra
  plugin:
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
)");
  EXPECT_EQ(translation.config.device_ids, DeviceIds::kIndex);
  EXPECT_THAT(translation.not_yet,
              ElementsAre(StartsWith("flags.deviceDiscoveryStrategy: "),
                          "resources.mig[1]: MIG devices have the name of their profile, "
                          "so no \"2g.10gb\" can be named nvidia.com/small"));
  EXPECT_EQ(translation.config.profiled_parts, PartsStrategy::kMixed);
  EXPECT_THAT(
      translation.remarks,
      ElementsAre(StartsWith("resources.gpus: takes effect here; NVIDIA's plugin ignores it"),
                  "resources.gpus[1]: never takes effect, because \"*\" comes before it; put this "
                  "one first",
                  "sharing.timeSlicing: has no effect with sharing.mps",
                  StartsWith("sharing.mps.resources[0].rename: takes effect here"),
                  StartsWith("sharing.mps.resources[0].devices: takes effect here"),
                  StartsWith("sharing.mps: the plugin refuses it with migStrategy mixed")));
  // The supported part takes effect.
  EXPECT_THAT(translation.config.resources, ElementsAre(ResourceRule{"*", "nvidia.com/gpu"}));
  EXPECT_THAT(
      translation.config.sharing.rules,
      ElementsAre(SharingRule{.resource = "nvidia.com/gpu",
                              .devices = {"0", "0:1", "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"},
                              .strategy = ShareStrategy::kServer,
                              .replicas = 2,
                              .rename = "nvidia.com/gpu.shared",
                              .fail_requests_greater_than_one = true}));
}

TEST(DevicePluginConfig, SaysWhatIsAcceptedWithoutEffect) {
  const Translation translation = Translated(R"(
flags:
  failOnInitError: true
  plugin: {passDeviceSpecs: false, nvidiaCTKPath: /usr/local/nvidia/toolkit/nvidia-cdi-hook}
  gfd: {oneshot: true, sleepInterval: infinite}
)");
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks, ElementsAre(StartsWith("flags.failOnInitError: "),
                                               StartsWith("flags.plugin.passDeviceSpecs: "),
                                               StartsWith("flags.plugin.nvidiaCTKPath: "),
                                               StartsWith("flags.gfd.oneshot: "),
                                               StartsWith("flags.gfd.sleepInterval: ")));
}

TEST(DevicePluginConfig, TheDeviceListIsAStringOrAListOfAnyOfTheFour) {
  const auto list = [](const std::string& said) {
    return Translated("flags: {plugin: {deviceListStrategy: " + said + "}}\n")
        .config.containers.device_list;
  };
  EXPECT_THAT(list("envvar"), ElementsAre(DeviceList::kEnvvar));
  EXPECT_THAT(list("\"cdi-annotations,volume-mounts\""),
              ElementsAre(DeviceList::kCdiAnnotations, DeviceList::kVolumeMounts));
  EXPECT_THAT(list("[cdi-cri, cdi-annotations, envvar, volume-mounts]"),
              ElementsAre(DeviceList::kCdiCri, DeviceList::kCdiAnnotations, DeviceList::kEnvvar,
                          DeviceList::kVolumeMounts));
  EXPECT_THAT(list("[cdi-cri, cdi-cri]"), ElementsAre(DeviceList::kCdiCri));
  EXPECT_THAT(list("null"), IsEmpty());
}

TEST(DevicePluginConfig, ComesWithFurtherDevicesAsItSays) {
  const auto containers = [](const std::string& text, const std::vector<Given>& given = {}) {
    const Translation translation = Translated(text, given);
    EXPECT_THAT(translation.not_yet, IsEmpty()) << text;
    EXPECT_TRUE(Validate(translation.config).ok()) << text;
    return translation.config.containers;
  };
  const std::string all =
      "flags: {gdrcopyEnabled: true, gdsEnabled: true, mofedEnabled: true}\nimex: {channelIDs: "
      "[0], required: true}\n";
  EXPECT_THAT(containers(all).device_classes, ElementsAre("gdrcopy", "gds", "mofed", "imex=0"));
  EXPECT_THAT(containers(all).required_classes, ElementsAre("imex=0"));
  EXPECT_THAT(containers(all, {Flag("--gds-enabled", "false"), Flag("--imex-required", "false")})
                  .device_classes,
              ElementsAre("gdrcopy", "mofed", "imex=0"));
  EXPECT_THAT(containers(all, {Flag("--imex-required", "false")}).required_classes, IsEmpty());
  EXPECT_THAT(containers(all, {Flag("--imex-channel-ids", "")}).required_classes, IsEmpty());
  EXPECT_THAT(Translated("imex: {required: true}\n").remarks,
              ElementsAre(StartsWith("imex.required: has no effect without a channel")));
}

TEST(DevicePluginConfig, SaysWhatSpecificationsAreMadeWith) {
  NodeConfig base;
  base.cdi.additional_gids = Switch::kOn;
  base.cdi.enable_hooks = {"chmod"};
  const auto cdi = [&base](const std::vector<Given>& given) {
    return TranslateDevicePlugin("flags: {plugin: {nvidiaCTKPath: /opt/my-hook}}\n", "f", given,
                                 base)
        .value_or({});
  };
  EXPECT_EQ(cdi({}).config.cdi.hook, "/opt/my-hook");
  const Translation given = cdi({Flag("--cdi-disable-hooks", "all,chmod,update-ldcach"),
                                 Flag("--cdi-feature-flags",
                                      "no-additional-gids-for-device-nodes,disable-nvsandboxutils,"
                                      "enable-coherent-annotations,new")});
  EXPECT_THAT(given.config.cdi.disable_hooks, ElementsAre("all", "chmod"));
  EXPECT_THAT(given.config.cdi.enable_hooks, IsEmpty());
  EXPECT_EQ(given.config.cdi.additional_gids, Switch::kOff);
  EXPECT_THAT(
      given.not_yet,
      ElementsAre(
          "--cdi-disable-hooks: there is no hook \"update-ldcach\" here; did you mean "
          "\"update-ldcache\"?",
          StartsWith("--cdi-feature-flags: \"enable-coherent-annotations\" is not supported yet"),
          StartsWith("--cdi-feature-flags: \"new\" is not known")));
  EXPECT_THAT(given.remarks,
              ElementsAre(StartsWith("--cdi-feature-flags: \"disable-nvsandboxutils\"")));
  for (const char* usual : {"/usr/bin/nvidia-ctk", "/usr/bin/nvidia-cdi-hook", ""}) {
    const Translation translation = Translated("", {Flag("--nvidia-cdi-hook-path", usual)});
    EXPECT_EQ(translation.config.cdi.hook, "");
    EXPECT_THAT(translation.remarks, IsEmpty());
  }
  EXPECT_EQ(Translated("flags: {plugin: {cdiAnnotationPrefix: x.io/}}\n")
                .config.containers.cdi_annotation_prefix,
            "x.io/");
}

TEST(DevicePluginConfig, IsReadAsJsonToo) {
  const Translation translation = Translated(
      "{\n\t\"version\": \"v1\",\n\t\"flags\": {\"plugin\": {\"deviceIDStrategy\": \"index\"}, "
      "\"gfd\": {\"sleepInterval\": 30000000000}}\n}\n");
  EXPECT_EQ(translation.config.device_ids, DeviceIds::kIndex);
  EXPECT_THAT(ErrorOf("{\"version\": \"v1\", \"flag\": {}}"),
              HasSubstr("config.yaml:1:19: unknown key \"flag\"; did you mean \"flags\"?"));
}

// All mistakes are reported at once, each with its place.
TEST(DevicePluginConfig, ReportsATypoAtEveryLevel) {
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
  struct Typo {
    std::string place, key, meant;
  };
  for (const auto& [place, key, meant] :
       std::vector<Typo>{{"1:1", "verson", "version"},
                         {"3:3", "flags.migStratgy", "migStrategy"},
                         {"4:12", "flags.plugin.deviceIDStrateg", "deviceIDStrategy"},
                         {"5:9", "flags.gfd.noTimstamp", "noTimestamp"},
                         {"7:3", "resources.gpu", "gpus"},
                         {"8:11", "resources.gpus[0].patern", "pattern"},
                         {"10:3", "sharing.timeslicing", "timeSlicing"},
                         {"12:5", "sharing.timeSlicing.renameByDefalt", "renameByDefault"},
                         {"", "sharing.timeSlicing.resource", "resources"},
                         {"15:18", "sharing.mps.resources[0].nam", "name"},
                         {"", "sharing.mps.resources[0].replica", "replicas"},
                         {"16:8", "imex.channelIds", "channelIDs"}})
    EXPECT_THAT(error, HasSubstr((place.empty() ? "" : "config.yaml:" + place + ": ") +
                                 "unknown key \"" + key + "\"; did you mean \"" + meant + "\"?"));
}

TEST(DevicePluginConfig, RefusesWrongTypesAndValuesWithTheirPlaces) {
  for (const auto& [given, problem] : std::vector<std::pair<std::string, std::string>>{
           {"version: v2\n", "config.yaml:1:10: version: is \"v2\"; this program reads \"v1\""},
           {"version: 1\n", "an integer (1) where a string is expected"},
           {"flags: {migStrategy: sngle}\n",
            "config.yaml:1:22: flags.migStrategy: \"sngle\" is none of none, single, mixed"},
           {"flags: {migStrategy: true}\n", "put it in quotes"},
           {"flags: {failOnInitError: \"true\"}\n", "a string (true) where a boolean is expected"},
           {"flags: {nvidiaDriverRoot: run/nvidia}\n", "\"run/nvidia\" must be an absolute path"},
           {"flags: {plugin: {deviceListStrategy: cdi}}\n",
            "\"cdi\" is none of envvar, volume-mounts"},
           {"flags: {plugin: {deviceListStrategy: [1.5]}}\n", "an item is a number"},
           {"flags: {plugin: {deviceListStrategy: {a: b}}}\n",
            "a map where a string or a list is expected"},
           {"flags: {plugin: {deviceListStrategy: []}}\n", "names no strategy"},
           {"flags: {plugin: {deviceIDStrategy: UUID}}\n", "did you mean \"uuid\"?"}})
    EXPECT_THAT(ErrorOf(given), HasSubstr(problem)) << given;
  EXPECT_THAT(ErrorOf("flags: {gfd: {sleepInterval: 60x}}\n"),
              AllOf(HasSubstr("not a duration"), HasSubstr("\"infinite\"")));
  EXPECT_THAT(ErrorOf("imex: {channelIDs: [0, 0]}\n"),
              HasSubstr("imex.channelIDs: names a channel twice"));
  EXPECT_THAT(ErrorOf("imex: {channelIDs: [1]}\n"),
              HasSubstr("\"1\" is not a channel that can be requested"));
  EXPECT_THAT(ErrorOf("flags: all\n"), HasSubstr("a string (all) where a map is expected"));
  EXPECT_THAT(ErrorOf("- version: v1\n"), HasSubstr("a list where a map is expected"));
}

TEST(DevicePluginConfig, ChecksSharingAsThePluginDoes) {
  const auto error = [](const std::string& resource) {
    return ErrorOf("sharing: {timeSlicing: {resources: [" + resource + "]}}\n");
  };
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: all}"), "");
  EXPECT_EQ(error("{name: nvidia.com/mig-1g.5gb, replicas: 2, devices: 3}"), "");
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: [MIG-b1028956-cfa2-0990-bf4a-5da9abb51763]}"),
            "");
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: "
                  "[MIG-GPU-b1028956-cfa2-0990-bf4a-5da9abb51763/3/0, \"1\"]}"),
            "");
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: [0]}, {name: gpu, replicas: 4, devices: [1]}"),
            "");

  for (const auto& [given, problem] : std::vector<std::pair<std::string, std::string>>{
           {"{replicas: 2}", "sharing.timeSlicing.resources[0].name is missing"},
           {"{name: gpu}", "sharing.timeSlicing.resources[0].replicas is missing"},
           {"{name: , replicas: 2}", "sharing.timeSlicing.resources[0].name: has no value"},
           {"{name: gpu, replicas: }", "sharing.timeSlicing.resources[0].replicas: has no value"},
           {"{name: gpu, replicas: 0}", "is 0, outside of 1 to 100000"},
           {"{name: gpu, replicas: -1}", "outside of 1"},
           {"{name: gpu, replicas: 1000000000}", "outside of 1 to 100000"},
           {"{name: gpu, replicas: \"4\"}",
            "config.yaml:1:59: sharing.timeSlicing.resources[0].replicas: is a string (4)"},
           {"{name: gpu, replicas: 2, devices: some}",
            "\"some\" is none of all, a number of devices"},
           {"{name: gpu, replicas: 2, devices: 0}", "\"0\" is none of all"},
           {"{name: gpu, replicas: 2, devices: []}", "write \"all\""}})
    EXPECT_THAT(error(given), HasSubstr(problem)) << given;
  EXPECT_THAT(
      error("{name: gpu, replicas: 2, devices: [GPU-12, \"0:1:2\"]}"),
      AllOf(HasSubstr("\"GPU-12\" is not a device"), HasSubstr("\"0:1:2\" is not a device")));
  EXPECT_THAT(error("{name: example.com/gpu, replicas: 2}"),
              HasSubstr("\"example.com/gpu\" is not a resource name"));
  EXPECT_THAT(error("{name: Gpu, replicas: 2}"), HasSubstr("lower-case"));
  EXPECT_THAT(error("{name: " + std::string(60, 'a') + ", replicas: 2}"),
              HasSubstr("longer than 63 characters"));
  EXPECT_THAT(error("{name: gpu, replicas: 2}, {name: nvidia.com/gpu, replicas: 4}"),
              HasSubstr("config.yaml:1:70: sharing.timeSlicing.resources[1]: never takes effect, "
                        "because sharing.timeSlicing.resources[0] matches the same devices and "
                        "comes before it; remove one of the two"));
  EXPECT_THAT(
      error("{name: gpu, replicas: 2, devices: all}, {name: gpu, replicas: 4, devices: [3]}"),
      HasSubstr("put this one first"));
  EXPECT_EQ(error("{name: gpu, replicas: 2, devices: [3]}, {name: gpu, replicas: 4}"), "");
  EXPECT_THAT(ErrorOf("sharing: {timeSlicing: {renameByDefault: true, resources: [{name: " +
                      std::string(48, 'a') + ", replicas: 2}]}}\n"),
              HasSubstr("(renameByDefault) is longer than 63 characters"));
  EXPECT_THAT(ErrorOf("sharing: {timeSlicing: {}}\n"),
              HasSubstr("sharing.timeSlicing.resources is missing"));
  EXPECT_THAT(ErrorOf("sharing: {timeSlicing: }\n"),
              HasSubstr("sharing.timeSlicing: has no value"));
  EXPECT_EQ(ErrorOf("sharing: {mps: }\n"), "");
  EXPECT_THAT(ErrorOf("sharing: {mps: {resources: []}}\n"),
              HasSubstr("leave \"mps\" out to share nothing"));
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
  EXPECT_THAT(ErrorOf("sharing: {timeSlicing: {resources: [" + std::string(200, '[')),
              Not(IsEmpty()));
}

// Command line > environment > file, for every setting that has an effect.
TEST(DevicePluginConfig, PrecedenceOfCommandLineEnvironmentAndFile) {
  struct Row {
    std::string flag, variable, file_text, in_environment, on_line;
    std::string key;                                     // of NodeConfig
    std::string from_file, from_environment, from_line;  // its value; empty for the default
  };
  const std::vector<Row> rows = {
      {"--nvidia-driver-root", "NVIDIA_DRIVER_ROOT", "flags: {nvidiaDriverRoot: /f}", "/e", "/c",
       "paths.hostDriverRoot", "/f", "/e", "/c"},
      {"--nvidia-dev-root", "NVIDIA_DEV_ROOT", "flags: {nvidiaDevRoot: /f}", "/e", "/c",
       "paths.hostDevRoot", "/f", "/e", "/c"},
      {"--driver-root-ctr-path", "DRIVER_ROOT_CTR_PATH",
       "flags: {plugin: {containerDriverRoot: /f}}", "/e", "/c", "paths.driverRoot", "/f", "/e",
       "/c"},
      {"--device-id-strategy", "DEVICE_ID_STRATEGY", "flags: {plugin: {deviceIDStrategy: index}}",
       "uuid", "index", "devicePlugin.deviceIDStrategy", "index", "", "index"},
      {"--device-list-strategy", "DEVICE_LIST_STRATEGY",
       "flags: {plugin: {deviceListStrategy: volume-mounts}}", "envvar", "cdi-cri,envvar",
       "containers.deviceList", "[volume-mounts]", "[envvar]", "[cdi-cri, envvar]"},
      {"--pass-device-specs", "PASS_DEVICE_SPECS", "flags: {plugin: {passDeviceSpecs: true}}",
       "false", "true", "containers.deviceFiles", "on", "", "on"},
      {"--cdi-annotation-prefix", "CDI_ANNOTATION_PREFIX",
       "flags: {plugin: {cdiAnnotationPrefix: f.io/}}", "e.io/", "c.io/",
       "containers.cdiAnnotationPrefix", "f.io/", "e.io/", "c.io/"},
      {"--nvidia-cdi-hook-path", "NVIDIA_CTK_PATH", "flags: {plugin: {nvidiaCTKPath: /f}}", "/e",
       "/c", "cdi.hook", "/f", "/e", "/c"},
      {"--gds-enabled", "GDS_ENABLED", "flags: {gdsEnabled: true}", "false", "true",
       "containers.deviceClasses", "[gds]", "", "[gds]"},
      {"--shared-devices-allocation-policy", "SHARED_DEVICES_ALLOCATION_POLICY",
       "flags: {plugin: {sharedDevicesAllocationPolicy: packed}}", "distributed", "packed",
       "sharing.policy", "packed", "", "packed"},
      {"--mps-root", "MPS_ROOT", "flags: {mpsRoot: /f}", "/e", "/c", "sharing.serverRoots",
       "{nvidia: /f}", "{nvidia: /e}", "{nvidia: /c}"},
      {"--no-timestamp", "GFD_NO_TIMESTAMP", "flags: {gfd: {noTimestamp: true}}", "false", "true",
       "labels.timestamp", "false", "", "false"},
      {"--use-node-feature-api", "USE_NODE_FEATURE_API", "flags: {useNodeFeatureAPI: true}", "0",
       "T", "labels.nodeFeature", "on", "", "on"},
      {"--output-file", "GFD_OUTPUT_FILE", "flags: {gfd: {outputFile: /f}}", "/e", "/c",
       "labels.featuresFile", "/f", "/e", "/c"},
      {"--machine-type-file", "GFD_MACHINE_TYPE_FILE", "flags: {gfd: {machineTypeFile: /f}}", "/e",
       "/c", "labels.machineTypeFile", "/f", "/e", "/c"},
  };
  for (const Row& row : rows) {
    const Given environment = Environment(row.flag, row.variable, row.in_environment),
                line = Flag(row.flag, row.on_line);
    const std::vector<std::pair<std::vector<Given>, std::string>> cases = {
        {{}, row.from_file},
        {{environment}, row.from_environment},
        {{environment, line}, row.from_line}};
    for (const auto& [given, wanted] : cases) {
      const auto changes = Changes({}, Translated(row.file_text, given).config);
      if (wanted.empty()) {
        EXPECT_THAT(changes, IsEmpty()) << row.flag;
      } else {
        ASSERT_THAT(changes, SizeIs(1)) << row.flag;
        EXPECT_EQ(changes[0].key, row.key);
        EXPECT_EQ(changes[0].to, wanted) << row.flag;
      }
    }
  }
}

TEST(DevicePluginConfig, WhatIsOverriddenIsNotSaidToBeMissing) {
  const Translation translation =
      Translated("flags: {migStrategy: single, plugin: {passDeviceSpecs: false}}\n",
                 {Environment("--mig-strategy", "MIG_STRATEGY", "mixed"),
                  Flag("--mig-strategy", "none"), Flag("--pass-device-specs", "true")});
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks, IsEmpty());
}

TEST(DevicePluginConfig, NamesTheFlagOrVariableThatIsWrong) {
  const std::string error =
      ErrorOf("flags: {migStrategy: any}\n",
              {Environment("--mig-strategy", "MIG_STRATEGY", "sngle"), Flag("--gds-enabled", "yes"),
               Flag("--device-list-strategy", "envvar,cdi"), Flag("--sleep-interval", "60"),
               Flag("--kubelet-socket", "/x.sock"), Flag("--nvidia-dev-root", "dev"),
               Flag("--unheard-of", "1")});
  EXPECT_THAT(error, HasSubstr("config.yaml:1:22: flags.migStrategy: \"any\""));
  EXPECT_THAT(error, HasSubstr("\nenvironment MIG_STRATEGY: \"sngle\" is none of none, single, "
                               "mixed; did you mean \"single\"?"));
  EXPECT_THAT(error, HasSubstr("\n--gds-enabled: \"yes\" is none of true, false"));
  EXPECT_THAT(error, HasSubstr("\n--device-list-strategy: \"cdi\" is none of"));
  EXPECT_THAT(error, HasSubstr("\n--sleep-interval: \"60\" is not a duration"));
  EXPECT_THAT(error, HasSubstr("\n--kubelet-socket: \"/x.sock\" does not end with"));
  EXPECT_THAT(error, HasSubstr("\n--nvidia-dev-root: \"dev\" must be an absolute path"));
  EXPECT_THAT(error, HasSubstr("\n--unheard-of: is not a setting"));
}

TEST(DevicePluginConfig, TheKubeletsSocketSaysWhereItsFolderIs) {
  EXPECT_EQ(Translated("", {Flag("--kubelet-socket", "/k/device-plugins/kubelet.sock")})
                .config.paths.kubelet_dir,
            "/k");
  EXPECT_EQ(Translated("", {Flag("--kubelet-socket", "")}).config.kubelet_allocator, Switch::kOff);
}

TEST(DevicePluginConfig, IsReportedFromANodeConfigByItsKeys) {
  EXPECT_EQ(Recognise("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n"),
            Document::kNodeConfig);
  EXPECT_EQ(Recognise("node: {name: x}\nlabels: {}\n"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("{\"kind\": \"NodeConfig\"}"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("devicePlugin: {deviceIDStrategy: index}\n"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("containers: {deviceList: [cdi-cri]}\ncdi: {}\n"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("apiVersion: penstock.io/v1alpha1\nkind: [NodeConfig\n"),
            Document::kNodeConfig);
  EXPECT_EQ(Recognise("sharing: {rules: []}\n"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("resources: {perModel: true}\n"), Document::kNodeConfig);
  EXPECT_EQ(Recognise("resources: {gpus: []}\nsharing: {mps: {resources: []}}\n"),
            Document::kDevicePlugin);
  for (const char* text : {"version: v1\n", "sharing: {}\n", "flags: {}\nresources: {}\n", "",
                           "# nothing\n", "verson: v1\n", "- 1\n", "version: [\n"})
    EXPECT_EQ(Recognise(text), Document::kDevicePlugin) << text;
}

TEST(DevicePluginConfig, SaysWhereAMisplacedKeyBelongs) {
  EXPECT_THAT(
      ErrorOf("flags: {passDeviceSpecs: true, plugin: {migStrategy: none, oneshot: "
              "true}}\ntimeSlicing: {}\n"),
      AllOf(
          HasSubstr(
              "config.yaml:1:9: flags.passDeviceSpecs: belongs here: flags.plugin.passDeviceSpecs"),
          HasSubstr("config.yaml:1:41: flags.plugin.migStrategy: belongs here: flags.migStrategy"),
          HasSubstr("flags.plugin.oneshot: belongs here: flags.gfd.oneshot"),
          HasSubstr("config.yaml:2:1: timeSlicing: belongs here: sharing.timeSlicing")));
}

// The configurations of known user issues. None may be silently ignored, or cost the node its GPUs.

// The configuration of a user for whom nothing happened, without any message about a mistake or its
// absence.
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

SharingRule Sliced(int replicas, std::string resource = "nvidia.com/gpu") {
  return {.resource = std::move(resource),
          .strategy = ShareStrategy::kTimeSlicing,
          .replicas = replicas};
}

SharingRule Mps(int replicas) {
  return {.resource = "nvidia.com/gpu",
          .strategy = ShareStrategy::kServer,
          .replicas = replicas,
          .fail_requests_greater_than_one = true};
}

// NVIDIA/k8s-device-plugin#615 and #990, gpu-operator#412: the ConfigMap was never read.
TEST(DevicePluginConfig, Issue615TimeSlicingDoesWhatItSays) {
  const Translation translation = Translated(kTimeSlicing);
  EXPECT_EQ(translation.config.paths.host_driver_root, "/");
  SharingRule rule = Sliced(4);
  rule.rename = "nvidia.com/gpu.shared";
  rule.fail_requests_greater_than_one = true;
  EXPECT_THAT(translation.config.sharing.rules, ElementsAre(rule));
  EXPECT_THAT(translation.not_yet, IsEmpty());
}

// NVIDIA/k8s-device-plugin#463: indented with tabs, and below the wrong key.
TEST(DevicePluginConfig, Issue463TabsAreAnErrorWithItsPlace) {
  EXPECT_THAT(ErrorOf("version: v1\n    sharing:\n    \ttimeSlicing:\n    \tresources:\n    \t- "
                      "name: nvidia.com/gpu\n    \t\treplicas: 10\n"),
              StartsWith("config.yaml:"));
}

// NVIDIA/k8s-device-plugin#1433: silently ignored; the user wants as many replicas as the GPU has
// MiB.
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
  EXPECT_THAT(error, HasSubstr("config.yaml:4:3: flags.renameByDefault: belongs here: "
                               "sharing.timeSlicing.renameByDefault"));
  EXPECT_THAT(error, HasSubstr("config.yaml:5:3: flags.failRequestsGreaterThanOne: belongs here: "
                               "sharing.timeSlicing.failRequestsGreaterThanOne"));
  EXPECT_THAT(error, Not(HasSubstr("replicas")));
}

TEST(DevicePluginConfig, Issue1022ReplicasOfOneSwitchSharingOff) {
  const Translation translation = Translated(
      "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: "
      "1}]}}\n");
  EXPECT_THAT(translation.config.sharing.rules,
              ElementsAre(SharingRule{.resource = "nvidia.com/gpu"}));
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks, IsEmpty());

  NodeConfig shared;  // the sharing in force until then
  shared.sharing.rules = {Sliced(4)};
  const auto off = TranslateDevicePlugin(
      "sharing: {mps: {resources: [{name: gpu, rename: x, replicas: 1}]}}\n", "f", {}, shared);
  ASSERT_TRUE(off.ok());
  EXPECT_THAT(off->config.sharing.rules, ElementsAre(SharingRule{.resource = "nvidia.com/gpu"}));
  EXPECT_THAT(
      off->remarks,
      ElementsAre(StartsWith("sharing.mps.resources[0].rename: has no effect with replicas: 1")));
}

// NVIDIA/k8s-device-plugin#628, #404, #353: `devices` and `rename` were read and ignored.
TEST(DevicePluginConfig, Issue628OnlyTheNamedGpusAreShared) {
  const Translation translation = Translated(R"(version: v1
sharing:
  timeSlicing:
    failRequestsGreaterThanOne: true
    resources:
    - {name: gpu, rename: gpu-shared, devices: [3, GPU-b1028956-cfa2-0990-bf4a-5da9abb51763], replicas: 4}
    - {name: gpu, devices: 2, replicas: 8}
    - {name: gpu, replicas: 1}
)");
  SharingRule named = Sliced(4), counted = Sliced(8), rest = Sliced(1);
  named.devices = {"3", "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"};
  named.rename = "nvidia.com/gpu-shared";
  counted.most = 2;
  named.fail_requests_greater_than_one = counted.fail_requests_greater_than_one = true;
  rest.strategy = ShareStrategy::kNone;
  EXPECT_THAT(translation.config.sharing.rules, ElementsAre(named, counted, rest));
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks,
              Each(HasSubstr(": takes effect here; NVIDIA's plugin ignores it")));
}

// NVIDIA/k8s-device-plugin#424, #1024, #1121, #118: one name for all models.
TEST(DevicePluginConfig, Issue424EachModelHasTheNameThatItsPatternGives) {
  const Translation translation = Translated(R"(version: v1
resources:
  gpus:
  - {pattern: "Tesla T4", name: t4}
  - {pattern: "NVIDIA A100*", name: nvidia.com/a100}
  - {pattern: "*", name: gpu}
sharing:
  timeSlicing:
    resources:
    - {name: t4, replicas: 4}
)");
  EXPECT_THAT(translation.config.resources,
              ElementsAre(ResourceRule{"Tesla T4", "nvidia.com/t4"},
                          ResourceRule{"NVIDIA A100*", "nvidia.com/a100"},
                          ResourceRule{"*", "nvidia.com/gpu"}));
  SharingRule rule = Sliced(4);
  rule.resource = "nvidia.com/t4";
  EXPECT_THAT(translation.config.sharing.rules, ElementsAre(rule));
  EXPECT_THAT(translation.not_yet, IsEmpty());
  EXPECT_THAT(translation.remarks, ElementsAre(StartsWith("resources.gpus: takes effect here")));
}

TEST(DevicePluginConfig, Issue353ARenameThatCollidesIsAnErrorWithItsPlace) {
  EXPECT_THAT(
      ErrorOf("resources: {gpus: [{pattern: \"*T4*\", name: t4}]}\n"
              "sharing: {timeSlicing: {resources: [{name: gpu, rename: t4, replicas: 2}]}}\n"),
      HasSubstr("config.yaml:2:44: sharing.timeSlicing.resources[0].rename: \"nvidia.com/t4\" is "
                "the name of whole devices "
                "(resources.gpus[0].name); choose another"));
  EXPECT_THAT(ErrorOf("sharing: {mps: {resources: [{name: gpu, rename: t4, replicas: 2}, {name: "
                      "t4, replicas: 1}]}}\n"),
              HasSubstr("sharing.mps.resources[0].rename: \"nvidia.com/t4\" is also the name of "
                        "whole devices (sharing.mps.resources[1])"));
}

TEST(DevicePluginConfig, Issue460MigStrategiesAreThoseOfThePlugin) {
  using enum PartsStrategy;
  const auto of = [](const std::string& text) { return Translated(text).config.profiled_parts; };
  EXPECT_EQ(of("flags: {migStrategy: single}\n"), kSingle);
  EXPECT_EQ(of("flags: {migStrategy: mixed}\n"), kMixed);
  EXPECT_EQ(of("flags: {migStrategy: none}\n"), kNone);
  EXPECT_EQ(of("version: v1\n"), kDefault) << "a GPU in MIG mode is of no use as a whole";
}

// NVIDIA/k8s-device-plugin#634, #679: the plugin does not start without --mps-root.
TEST(DevicePluginConfig, Issue634MpsNeedsNoRoot) {
  const Translation translation =
      Translated("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}\n");
  EXPECT_THAT(translation.config.sharing.rules, ElementsAre(Mps(10)));
  EXPECT_THAT(translation.config.sharing.server_roots, IsEmpty()) << "the usual one";
  EXPECT_THAT(translation.not_yet, IsEmpty());
}

TEST(DevicePluginConfig, TheRootOfMpsIsWhatTheHostCallsIt) {
  const std::string file = "flags: {mpsRoot: /data/mps}\n";
  const NodeConfig plain = Translated(file).config;
  EXPECT_EQ(OfVendor(plain.sharing.server_roots, "nvidia"), "/data/mps");
  EXPECT_THAT(plain.sharing.host_server_roots, IsEmpty());
  NodeConfig base;  // of an agent in a container
  base.sharing.server_roots["nvidia"] = "/mps";
  const auto inside = TranslateDevicePlugin(file, "f", {}, base);
  ASSERT_TRUE(inside.ok());
  EXPECT_EQ(OfVendor(inside->config.sharing.server_roots, "nvidia"), "/mps");
  EXPECT_EQ(OfVendor(inside->config.sharing.host_server_roots, "nvidia"), "/data/mps");
  base.sharing.server_roots["nvidia"] = "/run/nvidia/mps";  // the default counts as none
  EXPECT_EQ(
      OfVendor(TranslateDevicePlugin(file, "f", {}, base)->config.sharing.server_roots, "nvidia"),
      "/data/mps");
  base.sharing.server_roots["nvidia"] = "/data/mps";
  EXPECT_THAT(Changes(base, TranslateDevicePlugin(file, "f", {}, base)->config), IsEmpty());
  EXPECT_THAT(ErrorOf("flags: {mpsRoot: mps}\n"),
              HasSubstr("flags.mpsRoot: \"mps\" must be an absolute path"));
}

// In the plugin, a limit of one share per request is the default with MPS, but not with
// time-slicing; the plugin refuses `false` for MPS.
TEST(DevicePluginConfig, Issue1695And586SeveralSharesInOneRequestWhereTheFileSaysSo) {
  const auto single = [](const std::string& strategy, const std::string& said) {
    const auto rules = Translated("sharing: {" + strategy + ": {" + said +
                                  "resources: [{name: gpu, replicas: 2}]}}\n")
                           .config.sharing.rules;
    return rules.size() == 1 && rules[0].fail_requests_greater_than_one;
  };
  EXPECT_FALSE(single("timeSlicing", ""));
  EXPECT_TRUE(single("timeSlicing", "failRequestsGreaterThanOne: true, "));
  EXPECT_TRUE(single("mps", ""));
  EXPECT_FALSE(single("mps", "failRequestsGreaterThanOne: false, "));
}

TEST(DevicePluginConfig, MigDevicesAreSharedByTheNameOfTheirProfile) {
  const Translation translation = Translated(R"(sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, replicas: 8}
    - {name: nvidia.com/mig-1g.5gb, replicas: 2}
    - {name: mig-2g.10gb, replicas: 1}
    - {name: gpu.x, devices: ["0:1"], replicas: 2}
)");
  SharingRule one_part = Sliced(2, "nvidia.com/gpu.x");
  one_part.devices = {"0:1"};
  EXPECT_THAT(translation.config.sharing.rules,
              ElementsAre(Sliced(8), Sliced(2, "nvidia.com/mig-1g.5gb"),
                          SharingRule{.resource = "nvidia.com/mig-2g.10gb"}, one_part));
  EXPECT_THAT(translation.not_yet, IsEmpty());
}

// Sections of the file stay if the ConfigMap's key does not contain them, and are replaced if it
// does.
TEST(DevicePluginConfig, ASectionTakesThePlaceOfWhatWasThere) {
  NodeConfig base;
  base.resources = {{"*T4*", "x.io/t4"}};
  base.sharing.rules = {{.strategy = ShareStrategy::kServer, .replicas = 3}};
  const auto over = [&base](const std::string& text) {
    return TranslateDevicePlugin(text, "f", {}, base).value_or({}).config;
  };
  EXPECT_EQ(over("version: v1\n").sharing, base.sharing);
  EXPECT_EQ(over("version: v1\n").resources, base.resources);
  EXPECT_THAT(
      over("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n").sharing.rules,
      ElementsAre(Sliced(4)));
  EXPECT_EQ(over("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n").resources,
            base.resources);
  EXPECT_THAT(over("resources: {gpus: [{pattern: \"*\", name: gpu}]}\n").resources,
              ElementsAre(ResourceRule{"*", "nvidia.com/gpu"}));
}

// Configurations that users copy from NVIDIA's documentation.

constexpr char kReadmeTimeSlicing[] = R"(version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    resources:
    - name: nvidia.com/gpu
      replicas: 10
)";

constexpr char kReadmeMps[] = R"(version: v1
sharing:
  mps:
    resources:
    - name: nvidia.com/gpu
      replicas: 10
)";

// The keys of the ConfigMap time-slicing-config, with the second walkthrough's `replicas: 1` and
// with the documentation's own value.
constexpr char kA100[] = R"(version: v1
flags:
  migStrategy: mixed
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 8
    - name: nvidia.com/mig-1g.5gb
      replicas: 1
)";

constexpr char kA100Fine[] = R"(version: v1
flags:
  migStrategy: mixed
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 8
    - name: nvidia.com/mig-1g.5gb
      replicas: 2
    - name: nvidia.com/mig-2g.10gb
      replicas: 2
    - name: nvidia.com/mig-3g.20gb
      replicas: 3
    - name: nvidia.com/mig-7g.40gb
      replicas: 7
)";

constexpr char kT4[] = R"(version: v1
flags:
  migStrategy: none
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 4
)";

constexpr char kAny[] = R"(version: v1
sharing: {timeSlicing: {renameByDefault: false, resources: [{name: nvidia.com/gpu, replicas: 4}]}}
)";

constexpr char kA100Mig[] = R"(version: v1
flags: {migStrategy: mixed}
sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-1g.5gb, replicas: 2}]}}
)";

TEST(DevicePluginConfig, WhatPeopleCopyDoesWhatItSays) {
  SharingRule renamed = Sliced(10);
  renamed.rename = "nvidia.com/gpu.shared";
  EXPECT_THAT(Translated(kReadmeTimeSlicing).config.sharing.rules, ElementsAre(renamed));
  EXPECT_THAT(Translated(kReadmeMps).config.sharing.rules, ElementsAre(Mps(10)));
  EXPECT_THAT(Translated(kA100).config.sharing.rules,
              ElementsAre(Sliced(8), SharingRule{.resource = "nvidia.com/mig-1g.5gb"}));
  EXPECT_THAT(Translated(kA100Fine).config.sharing.rules,
              ElementsAre(Sliced(8), Sliced(2, "nvidia.com/mig-1g.5gb"),
                          Sliced(2, "nvidia.com/mig-2g.10gb"), Sliced(3, "nvidia.com/mig-3g.20gb"),
                          Sliced(7, "nvidia.com/mig-7g.40gb")));
  EXPECT_THAT(Translated(kT4).config.sharing.rules, ElementsAre(Sliced(4)));
  EXPECT_THAT(Translated(kAny).config.sharing.rules, ElementsAre(Sliced(4)));
  for (const char* text : {kReadmeTimeSlicing, kReadmeMps, kA100, kA100Fine, kT4, kAny, kA100Mig}) {
    EXPECT_THAT(Translated(text).not_yet, IsEmpty()) << text;
    EXPECT_THAT(Translated(text).remarks, IsEmpty()) << text;
  }
  EXPECT_THAT(Translated(kA100Mig).config.sharing.rules,
              ElementsAre(Sliced(2, "nvidia.com/mig-1g.5gb")));
}

TEST(DevicePluginConfig, AListWithMoreEntriesThanAnyMachineNeedsIsRefusedWithOneError) {
  std::string shares = "version: v1\nsharing: {timeSlicing: {resources: [",
              patterns = "version: v1\nresources: {mig: [";
  for (int i = 0; i < 1001; ++i) {
    shares += "{name: nvidia.com/gpu, replicas: 2, rename: nvidia.com/gpu},";
    patterns += "{pattern: 1g.5gb, name: nvidia.com/mig-1g.5gb},";
  }
  const std::string error = ErrorOf(shares + "]}}\n");
  EXPECT_THAT(error,
              HasSubstr("sharing.timeSlicing.resources: has 1001 entries; at most 1000 are read"));
  EXPECT_EQ(std::ranges::count(error, '\n'), 0) << error;
  EXPECT_THAT(ErrorOf(patterns + "]}\n"), HasSubstr("resources.mig: has 1001 entries"));
}

TEST(DevicePluginConfig, WhatIsTranslatedIsAValidNodeConfigAndReadsBack) {
  for (const char* text :
       {kTimeSlicing, kReadmeTimeSlicing, kReadmeMps, kA100, kA100Fine, kT4, kAny}) {
    const NodeConfig config =
        Translated(text, {Environment("DP_ENABLE_HEALTHCHECKS", "DP_ENABLE_HEALTHCHECKS", "79")})
            .config;
    EXPECT_TRUE(Validate(config).ok()) << text;
    const auto again = ParseNodeConfig(ToYaml(config), "printed", SomeTerms());
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_THAT(Changes(config, *again), IsEmpty()) << text;
  }
}

// NVIDIA/k8s-device-plugin#1974, and the plugin's internal/rm/health.go: enabled XIDs take
// precedence over disabled ones.
TEST(DevicePluginConfig, Issue1974XidsAreSwitchedOffAndOnAsThePluginDoes) {
  const auto policy = [](const std::string& off, const std::string& on) {
    std::vector<Given> given;
    if (!off.empty())
      given.push_back(Environment("DP_DISABLE_HEALTHCHECKS", "DP_DISABLE_HEALTHCHECKS", off));
    if (!on.empty())
      given.push_back(Environment("DP_ENABLE_HEALTHCHECKS", "DP_ENABLE_HEALTHCHECKS", on));
    return Translated("", given).config.health.policy;
  };
  const HealthRule off_all{"xid", {}, "ignore"}, on_all{"xid", {}, "at-least-drain"};
  EXPECT_THAT(policy("", ""), IsEmpty());
  EXPECT_THAT(policy("94, 63", ""), ElementsAre(HealthRule{"xid", {94, 63}, "ignore"}));
  EXPECT_THAT(policy("", "13"), ElementsAre(HealthRule{"xid", {13}, "at-least-drain"}));
  EXPECT_THAT(policy("94,63", "63"), ElementsAre(HealthRule{"xid", {94, 63}, "ignore"},
                                                 HealthRule{"xid", {63}, "at-least-drain"}));
  for (const std::string all : {"all", "xids", "ALL", "79,all", " Xids "})
    EXPECT_THAT(policy(all, ""), ElementsAre(off_all)) << all;
  EXPECT_THAT(policy("all", "79"), ElementsAre(off_all, HealthRule{"xid", {79}, "at-least-drain"}));
  EXPECT_THAT(policy("79", "all"), ElementsAre(on_all));
  EXPECT_THAT(policy("all", "all"), ElementsAre(on_all));

  NodeConfig base;
  base.health.policy = {{"xid", {13}, "warn"}};
  const auto translation = TranslateDevicePlugin(
      "", "", {Environment("DP_DISABLE_HEALTHCHECKS", "DP_DISABLE_HEALTHCHECKS", "all")}, base);
  ASSERT_TRUE(translation.ok());
  EXPECT_THAT(translation->config.health.policy,
              ElementsAre(HealthRule{"xid", {13}, "warn"}, off_all));
  EXPECT_THAT(
      ErrorOf("", {Environment("DP_DISABLE_HEALTHCHECKS", "DP_DISABLE_HEALTHCHECKS", "79;80,0,x")}),
      AllOf(HasSubstr("environment DP_DISABLE_HEALTHCHECKS: \"79;80\" is not an XID: write numbers "
                      "from 1 to 999"),
            HasSubstr("\"0\" is not an XID"), HasSubstr("\"x\" is not an XID")));
}

TEST(DevicePluginConfig, TheReferenceDocumentsEveryFlagVariableAndKey) {
  const std::string reference = base::ReadSource("docs/reference/device-plugin-config.md");
  for (const PluginOption& option : PluginOptions()) {
    const auto row = [&](std::string_view name) {
      EXPECT_THAT(reference, HasSubstr("`" + std::string(name) + "`"));
    };
    for (const auto& flag : option.flags) row(flag);
    for (const auto& variable : option.environment) row(variable);
    if (!option.key.empty()) row(option.key);
  }
  for (const char* key : {"resources.gpus", "resources.mig", "sharing.timeSlicing", "sharing.mps"})
    EXPECT_THAT(reference, HasSubstr("`" + std::string(key)));
}

TEST(DevicePluginConfig, TheReferencesExampleIsAValidFile) {
  const std::string example = ExampleOf("device-plugin-config.md");
  EXPECT_EQ(Recognise(example), Document::kDevicePlugin);
  EXPECT_EQ(ErrorOf(example), "");
}

}  // namespace
}  // namespace penstock::api::compat
