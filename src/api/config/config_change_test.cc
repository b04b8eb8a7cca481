#include "api/config/config_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing/config_terms.h"

namespace penstock::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A configuration in which every key differs from its default.
NodeConfig AllDifferent() {
  auto config = ParseNodeConfig(R"(apiVersion: penstock.io/v1alpha1
kind: NodeConfig
node: {name: gpu-7}
paths:
  {driverRoot: /d, libraries: {nvidia: /n.so}, sysfsRoot: /s, devRoot: /v, procRoot: /p, cdiRoot: /c, kubeletDir: /k, stateDir: /st, runDir: /r,
   osRelease: /o, hostDriverRoot: /hd, hostDevRoot: /hv, driverContainerRoot: /dc}
allocators:
  kubelet: {enabled: on}
  local: {enabled: on, group: lab, closedCgroups: [user.slice]}
  assign: [{devices: ["GPU-1", 0], allocator: local}]
queue: {perUser: {gpus: 4, waiting: 16, time: 24h}}
health: {poll: 1500ms, probation: 1m, probationMost: 1h, reset: idle, policy: [{codes: [94], action: drain}]}
resources: {perModel: true, names: [{pattern: "*T4*", name: nvidia.com/t4}]}
sharing: {policy: packed, rules: [{strategy: mps, replicas: 2}], serverRoots: {nvidia: /m}, hostServerRoots: {nvidia: /hm}}
http: {listen: "[::1]:1", webConfigFile: /w, connections: 1, deadline: 1s}
page: {nodes: ["https://gpu2:9400"], credentialsFile: /pc, caFile: /pa}
telemetry:
  {interval: 1s, names: [dcgm], processes: false, exclude: [a], include: [b], countersFile: /c, countersConfigMap: "a:b", hostLabel: none,
   oldNames: true, blanksReplaced: true, holders: false, virtualGpus: true, podUid: true, errorsWindow: 1m, clockEventsWindow: 1m,
   holderLabels: [app], keepEnded: 1m, jobDirectory: /jobs, exporterFile: /ex}
usage: {records: false, dir: /u, fileSize: 1Mi, files: 1, checkpoint: 1m, idleAfter: 1m, idleBelow: 0.5}
devicePlugin: {deviceIDStrategy: index}
containers:
  {deviceList: [cdi-cri], deviceFiles: on, cdiAnnotationPrefix: x.io/, configureEngine: cdi, engineSocket: /e.sock, deviceClasses: [gds], requiredClasses: [gds]}
cdi: {enabled: on, hook: /h, install: /i, hostInstall: /hi, disableHooks: [all], enableHooks: [chmod], additionalGids: true}
labels: {node: off, nodeFeature: auto, featuresFile: /f, hostFeatures: on, timestamp: false, machineTypeFile: /m}
cluster:
  {enabled: on, kubeconfig: /kc, namespace: ns, nodeState: off, events: off, nodeStatus: false, readyCondition: off,
   config: {configMap: cm, namespace: other, default: a100, fallback: [single], nodeLabel: example.com/config}}
validation: {directory: /v, container: false, exporterNames: true}
workers: {restrictSystemCalls: true}
)",
                                "all", SomeTerms());
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message());
  return config.value_or({});
}

TEST(ConfigChange, IsNothingBetweenEqualConfigurations) {
  EXPECT_THAT(Changes(AllDifferent(), AllDifferent()), IsEmpty());
}

TEST(ConfigChange, NamesEachKeyWithItsValuesAndWhenItCounts) {
  NodeConfig now, next;
  next.labels.timestamp = false;
  next.paths.state_dir = "/elsewhere";
  next.cluster.config_map.fallbacks = {"empty"};
  next.assignments = {{.devices = {"0"}, .allocator = "local"}};
  next.sharing.rules = {{.strategy = ShareStrategy::kTimeSlicing, .replicas = 4}};
  next.sharing.server_roots = {{"nvidia", "/mps"}, {"amd", "/a"}};
  EXPECT_THAT(
      Changes(now, next),
      ElementsAre(
          ConfigChange{"paths.stateDir", "/var/lib/penstock", "/elsewhere", Effect::kRestart},
          ConfigChange{"allocators.assign", "[]", "[{devices: [0], allocator: local}]",
                       Effect::kNow},
          ConfigChange{"sharing.rules", "[]", "[{strategy: time-slicing, replicas: 4}]",
                       Effect::kNow},
          ConfigChange{"sharing.serverRoots", "{}", "{amd: /a, nvidia: /mps}", Effect::kRestart},
          ConfigChange{"labels.timestamp", "true", "false", Effect::kNow},
          ConfigChange{"cluster.config.fallback", "[named, single]", "[empty]", Effect::kNow}));
}

TEST(ConfigChange, HowContainersAreGivenDevicesChangesAtOnceWhatIsInstalledDoesNot) {
  for (const char* now : {"containers.deviceList", "containers.deviceFiles",
                          "containers.deviceClasses", "cdi.hook", "cdi.additionalGids"})
    EXPECT_EQ(EffectOf(now), Effect::kNow) << now;
  for (const char* later :
       {"containers.engineSocket", "cdi.enabled", "cdi.install", "cdi.hostInstall"})
    EXPECT_EQ(EffectOf(later), Effect::kRestart) << later;
}

TEST(ConfigChange, WhatIsKeptUntilARestartIsWhatIsSaidToNeedOne) {
  const auto changes = Changes({}, AllDifferent());
  EXPECT_GT(changes.size(), 80u);
  const NodeConfig kept = KeepUntilRestart({}, AllDifferent());
  for (const ConfigChange& left : Changes(kept, AllDifferent()))
    EXPECT_EQ(left.effect, Effect::kRestart) << left.key;
  for (const ConfigChange& taken : Changes({}, kept))
    EXPECT_EQ(taken.effect, Effect::kNow) << taken.key;
}

}  // namespace
}  // namespace penstock::api
