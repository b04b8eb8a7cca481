// Tests what becomes of ClusterPolicy objects: each file in testdata/cluster-policy has a copy of
// its translation beside it. PENSTOCK_UPDATE_GOLDEN=1 rewrites the copies.
#include "api/compat/nvidia/cluster_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/compat/resource_fields.h"
#include "api/testing/config_terms.h"
#include "base/core/json_text.h"
#include "base/testing/build_tree.h"
#include "base/yaml.h"

namespace penstock::api::compat {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Json = nlohmann::ordered_json;

std::filesystem::path Samples() {
  return base::SourceFolder() / "src/api/compat/nvidia/testdata/cluster-policy";
}

std::string JsonOfYaml(const std::string& yaml) {
  const auto document = base::ParseYaml(yaml, "sample");
  EXPECT_TRUE(document.ok()) << document.error().message();
  return document.ok() ? base::JsonOf<nlohmann::ordered_json>(*document).dump() : "null";
}

/// A ClusterPolicy with this spec, in YAML.
std::string PolicyWith(const std::string& spec) {
  return JsonOfYaml("apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n" +
                    spec);
}

PolicyTranslation TranslatedPolicy(const std::string& spec) {
  const auto translation = TranslateClusterPolicy(PolicyWith(spec));
  EXPECT_TRUE(translation.ok()) << translation.error().message();
  return translation.ok() ? *translation : PolicyTranslation{};
}

std::string PolicyMessage(const std::string& spec) {
  const auto translation = TranslateClusterPolicy(PolicyWith(spec));
  EXPECT_FALSE(translation.ok());
  return translation.ok() ? "" : translation.error().message();
}

std::string GoldenOf(const PolicyTranslation& translation) {
  Json golden = {{"spec", Json::parse(ToJson(translation.spec))}, {"answers", Json::array()}};
  for (const FieldAnswer& answer : translation.answers)
    golden["answers"].push_back({{"field", answer.field},
                                 {"fate", internal::ToString(answer.fate)},
                                 {"text", answer.text}});
  return golden.dump(2) + "\n";
}

TEST(ClusterPolicy, TranslatesEachSampleAsItsCopySays) {
  int samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Samples())) {
    if (entry.path().extension() != ".yaml") continue;
    ++samples;
    const std::string name = entry.path().filename();
    const std::string relative = "src/api/compat/nvidia/testdata/cluster-policy/" + name;
    const auto translation = TranslateClusterPolicy(JsonOfYaml(base::ReadSource(relative)));
    ASSERT_TRUE(translation.ok()) << name << ": " << translation.error().message();
    const std::filesystem::path copy =
        std::filesystem::path(entry.path()).replace_extension(".json");
    const std::string golden = GoldenOf(*translation);
    if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(copy) << golden;
      continue;
    }
    std::ifstream in(copy);
    const std::string wanted{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(golden, wanted) << copy
                              << ": if this change is intended, run with PENSTOCK_UPDATE_GOLDEN=1";
    PenstockSpec named = translation->spec;  // a driver of a Penstock object has a name
    for (DriverSpec& driver : named.drivers) driver.name = "cluster-policy";
    const auto again = ParsePenstock(R"({"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock",
        "spec": )" + ToJson(named) + "}",
                                     name, SomeTerms());
    ASSERT_TRUE(again.ok()) << name << ": " << again.error().message();
    EXPECT_EQ(ToJson(*again), ToJson(named));
  }
  EXPECT_GT(samples, 5);
}

const FieldAnswer* AnswerTo(const PolicyTranslation& translation, std::string_view field) {
  for (const FieldAnswer& answer : translation.answers)
    if (answer.field == field) return &answer;
  return nullptr;
}

std::vector<std::string> AnsweredFields(const PolicyTranslation& translation) {
  std::vector<std::string> fields;
  for (const FieldAnswer& answer : translation.answers) fields.push_back(answer.field);
  return fields;
}

constexpr char kNoDriver[] = "  driver: {enabled: false}\n";

TEST(ClusterPolicy, TakesTheProgramsDefaultsForWhatIsNotSet) {
  const PolicyTranslation none = TranslatedPolicy("  driver: {enabled: false}");
  EXPECT_THAT(none.answers, IsEmpty());
  EXPECT_EQ(none.spec.node.kubelet_allocator, Switch::kOn);
  EXPECT_EQ(none.spec.node.local_allocator, Switch::kOff);
  EXPECT_EQ(none.spec.node.containers.configure_engine, EngineSetup::kRuntime);
  EXPECT_EQ(none.spec.node.labels.node, Switch::kAuto);
  EXPECT_TRUE(none.spec.node.parts_by_label);
  EXPECT_EQ(none.spec.node.default_layout, "");
  EXPECT_THAT(none.spec.services, ElementsAre(Field("monitor", &MetricsService::monitor, false)));
  EXPECT_THAT(none.spec.runtime_classes, ElementsAre(RuntimeClassSpec{"nvidia", "nvidia"},
                                                     RuntimeClassSpec{"nvidia-cdi", "nvidia"},
                                                     RuntimeClassSpec{"nvidia-legacy", "nvidia"}));
  EXPECT_EQ(none.spec.marks.labels.size(), 9u);
  EXPECT_THAT(none.spec.marks.annotations, IsEmpty());
  EXPECT_EQ(none.spec.host.install_dir, "/usr/local/nvidia/toolkit");
}

TEST(ClusterPolicy, SwitchesEachServiceOff) {
  const PenstockSpec spec = TranslatedPolicy(std::string(kNoDriver) + R"(
  devicePlugin: {enabled: false}
  gfd: {enabled: false}
  toolkit: {enabled: false, installDir: /opt/nvidia}
  migManager: {enabled: false, config: {name: mig, default: all-disabled}}
  dcgmExporter: {enabled: false, serviceMonitor: {enabled: true, interval: 15s}}
)")
                                .spec;
  EXPECT_EQ(spec.node.kubelet_allocator, Switch::kOff);
  EXPECT_EQ(spec.node.labels.node, Switch::kOff);
  EXPECT_EQ(spec.node.containers.configure_engine, EngineSetup::kOff);
  EXPECT_EQ(spec.host.install_dir, "") << "the folder of the agent's state";
  EXPECT_FALSE(spec.node.parts_by_label);
  EXPECT_EQ(spec.config_maps.layouts, "");
  EXPECT_THAT(spec.services, IsEmpty());
  EXPECT_THAT(spec.node.telemetry.names, ElementsAre(MetricNames::kAccelerator));
}

TEST(ClusterPolicy, PassesWhatThePodsHaveInCommonToTheAgents) {
  const PenstockSpec spec = TranslatedPolicy(std::string(kNoDriver) + R"(
  operator: {runtimeClass: gpu, labels: {a: "1", b: "1"}, annotations: {x: y}}
  daemonsets:
    labels: {b: "2"}
    tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
    priorityClassName: system-node-critical
    podSecurityContext: {fsGroup: 7}
    updateStrategy: OnDelete
    rollingUpdate: {maxUnavailable: "25%"}
  hostPaths: {driverInstallDir: /opt/driver, kubeletRootDir: /data/kubelet}
  psa: {enabled: true}
  toolkit: {installDir: /opt/nvidia/, imagePullSecrets: [one]}
  devicePlugin: {imagePullSecrets: [one, two]}
  dcgmExporter: {hostNetwork: true, annotations: {scrape: "no"}}
)")
                                .spec;
  EXPECT_EQ(spec.runtime_classes.front(), (RuntimeClassSpec{"gpu", "nvidia"}));
  EXPECT_THAT(spec.agent.labels, ElementsAre(Pair("a", "1"), Pair("b", "2")));
  EXPECT_THAT(spec.agent.annotations, ElementsAre(Pair("scrape", "no"), Pair("x", "y")));
  EXPECT_THAT(spec.agent.tolerations.text, HasSubstr("\"effect\":\"NoSchedule\""));
  EXPECT_EQ(spec.agent.pod_security_context.text, R"({"fsGroup":7})");
  EXPECT_TRUE(spec.agent.update.on_delete);
  EXPECT_EQ(spec.agent.update.max_unavailable, "25%");
  EXPECT_EQ(spec.host.driver_root, "/opt/driver");
  EXPECT_EQ(spec.host.kubelet_dir, "/data/kubelet");
  EXPECT_EQ(spec.host.device_plugins_dir, "/var/lib/kubelet/device-plugins");
  EXPECT_EQ(spec.host.install_dir, "/opt/nvidia/toolkit");
  EXPECT_THAT(spec.agent.pull_secrets, ElementsAre("one", "two"));
  EXPECT_TRUE(spec.agent.host_network);
  EXPECT_TRUE(spec.privileged_namespace);
}

TEST(ClusterPolicy, GivesTheSettingsOfTheProgramsTheirEffect) {
  const PolicyTranslation translation = TranslatedPolicy(std::string(kNoDriver) + R"(
  mig: {strategy: single}
  devicePlugin:
    config: {name: plugin, default: a}
    mps: {root: /run/mps}
    env:
      - {name: DEVICE_LIST_STRATEGY, value: "cdi-cri"}
      - {name: NVIDIA_DRIVER_ROOT, value: /opt/driver}
      - {name: NVIDIA_VISIBLE_DEVICES, value: all}
      - {name: NEW_ONE, value: "1"}
    args: ["--device-id-strategy", index, --pass-device-specs]
  gfd:
    env: [{name: GFD_NO_TIMESTAMP, value: "true"}, {name: MIG_STRATEGY, value: mixed}]
  migManager:
    config: {name: mig}
    env: [{name: WITH_REBOOT, value: "true"}]
  toolkit:
    env:
      - {name: CONTAINERD_SOCKET, value: /run/k3s/containerd/containerd.sock}
      - {name: CONTAINERD_CONFIG, value: /var/lib/rancher/k3s/agent/etc/containerd/config.toml}
  dcgmExporter:
    config: {name: counters}
    env: [{name: DCGM_EXPORTER_INTERVAL, value: "1000"},
          {name: DCGM_EXPORTER_COLLECTORS, value: /etc/dcgm-exporter/dcp-metrics-included.csv}]
    args: ["-c=2000"]
    enablePodLabels: true
    enablePodUID: true
    podLabelAllowlistRegex: ["^app$"]
    service: {type: NodePort, internalTrafficPolicy: Local}
    serviceMonitor: {enabled: true, interval: 15s, scrapeTimeout: 10s, honorLabels: true,
                     additionalLabels: {release: p}, relabelings: [{action: keep}]}
)");
  const PenstockSpec& spec = translation.spec;
  EXPECT_EQ(spec.node.profiled_parts, PartsStrategy::kSingle);
  EXPECT_THAT(spec.node.containers.device_list, ElementsAre(DeviceList::kCdiCri));
  EXPECT_EQ(spec.node.device_ids, DeviceIds::kIndex);
  EXPECT_EQ(spec.node.containers.device_files, Switch::kOn);
  EXPECT_EQ(OfVendor(spec.node.sharing.server_roots, "nvidia"), "/run/mps");
  EXPECT_EQ(spec.host.driver_root, "/opt/driver");
  EXPECT_EQ(spec.node.paths.host_driver_root, "");
  EXPECT_FALSE(spec.node.labels.timestamp);
  EXPECT_EQ(spec.node.default_layout, "all-disabled");
  EXPECT_EQ(spec.config_maps, (NamedConfigMaps{"plugin", "a", "mig", "counters"}));
  EXPECT_EQ(spec.node.containers.engine_socket, "/run/k3s/containerd/containerd.sock");
  EXPECT_EQ(spec.node.telemetry.interval, std::chrono::seconds(2));
  EXPECT_THAT(spec.node.telemetry.holder_labels, ElementsAre("app"));
  EXPECT_TRUE(spec.node.telemetry.pod_uid);
  EXPECT_EQ(spec.node.telemetry.counters_file, "");
  ASSERT_EQ(spec.services.size(), 1u);
  EXPECT_EQ(spec.services[0].type, "NodePort");
  EXPECT_EQ(spec.services[0].internal_traffic_policy, "Local");
  EXPECT_EQ(spec.services[0].scrape_timeout, "10s");
  EXPECT_TRUE(spec.services[0].monitor && spec.services[0].honor_labels);
  EXPECT_THAT(spec.services[0].monitor_labels, ElementsAre(Pair("release", "p")));
  EXPECT_THAT(AnsweredFields(translation),
              ElementsAre("spec.toolkit.env[CONTAINERD_CONFIG]", "spec.devicePlugin.env[NEW_ONE]",
                          "spec.migManager.env[WITH_REBOOT]",
                          "spec.dcgmExporter.env[DCGM_EXPORTER_COLLECTORS]"));
}

// As NVIDIA's operator: the variable of the exporter is set to the directory.
TEST(ClusterPolicy, HasTheDirectoryOfJobsWhereItIsEnabled) {
  const auto directory = [](const std::string& exporter) {
    const PolicyTranslation translation = TranslatedPolicy("  dcgmExporter: {" + exporter + "}\n");
    EXPECT_THAT(translation.answers, IsEmpty()) << exporter;
    return translation.spec.node.telemetry.job_directory;
  };
  EXPECT_EQ(directory("hpcJobMapping: {enabled: true}"), "/var/lib/dcgm-exporter/job-mapping");
  EXPECT_EQ(directory("hpcJobMapping: {enabled: true, directory: \"\"}"),
            "/var/lib/dcgm-exporter/job-mapping");
  EXPECT_EQ(directory("hpcJobMapping: {enabled: true, directory: /run/jobs}, "
                      "env: [{name: DCGM_HPC_JOB_MAPPING_DIR, value: /other}]"),
            "/run/jobs");
  EXPECT_EQ(directory("env: [{name: DCGM_HPC_JOB_MAPPING_DIR, value: /other}]"), "/other");
  EXPECT_EQ(directory("hpcJobMapping: {directory: /run/jobs}"), "");
  EXPECT_EQ(directory("enabled: false, hpcJobMapping: {enabled: true}"), "");
}

TEST(ClusterPolicy, RefusesADirectoryOfJobsThatCannotBeMounted) {
  for (const char* path : {"jobs", "/", "//"})
    EXPECT_THAT(
        PolicyMessage(std::string("  dcgmExporter: {hpcJobMapping: {enabled: true, directory: ") +
                      path + "}}\n"),
        HasSubstr("spec.dcgmExporter.hpcJobMapping.directory"))
        << path;
}

TEST(ClusterPolicy, AnswersWhatIsNotServedOnlyWhereItIsEnabled) {
  EXPECT_THAT(TranslatedPolicy(R"(
  gds: {enabled: false, image: nvidia-fs, version: "1"}
  gdrcopy: {enabled: false, image: gdrdrv}
  vgpuManager: {enabled: true, image: vgpu-manager}
  ccManager: {enabled: true, defaultMode: "off"}
  kataManager: {enabled: false, config: {}}
  driver: {enabled: false, version: "550", rdma: {enabled: false, useHostMofed: true}}
  dcgm: {enabled: false, image: dcgm}
  validator: {plugin: , env: [{name: WITH_WORKLOAD, value: "false"}]}
)")
                  .answers,
              IsEmpty());
  EXPECT_THAT(
      AnsweredFields(TranslatedPolicy(R"(
  gds: {enabled: true}
  gdrcopy: {enabled: true}
  driver: {enabled: true, rdma: {enabled: true}}
  dcgm: {enabled: true}
  nodeStatusExporter: {enabled: true}
  cdi: {enabled: false, nriPluginEnabled: true, default: true}
  psp: {enabled: true}
  sandboxWorkloads: {enabled: true}
  dcgmExporter: {hpcJobMapping: {enabled: true}, hostPID: true}
  migManager: {env: [{name: WITH_SHUTDOWN_HOST_GPU_CLIENTS, value: "true"}]}
  validator: {cuda: {env: [{name: WITH_WORKLOAD, value: "true"}]}}
  operator: {defaultRuntime: crio}
)")),
      ElementsAre("spec.operator.defaultRuntime", "spec.psp.enabled", "spec.cdi.enabled",
                  "spec.cdi.nriPluginEnabled", "spec.cdi.default", "spec.gds.enabled",
                  "spec.gdrcopy.enabled", "spec.migManager.env[WITH_SHUTDOWN_HOST_GPU_CLIENTS]",
                  "spec.validator.cuda.env[WITH_WORKLOAD]", "spec.dcgm.enabled",
                  "spec.dcgmExporter.hostPID", "spec.sandboxWorkloads.enabled"));
}

TEST(ClusterPolicy, AnswersEachVariableThatMakesTheHandlerTheDefault) {
  for (const std::string engine : {"CONTAINERD", "CRIO", "DOCKER", "NVIDIA_RUNTIME"}) {
    const auto with = [&](const std::string& value) {
      return TranslatedPolicy("  toolkit: {env: [{name: " + engine + "_SET_AS_DEFAULT, value: \"" +
                              value + "\"}]}\n");
    };
    const PolicyTranslation translated = with("true");
    ASSERT_EQ(translated.answers.size(), 1u) << engine;
    EXPECT_EQ(translated.answers[0].field, "spec.toolkit.env[" + engine + "_SET_AS_DEFAULT]");
    EXPECT_EQ(translated.answers[0].fate, FieldFate::kElsewhere);
    EXPECT_THAT(translated.answers[0].text,
                testing::AllOf(HasSubstr("runtimeClassName"), HasSubstr("--set-as-default")));
    EXPECT_THAT(with("false").answers, IsEmpty()) << engine;
  }
}

TEST(ClusterPolicy, AnswersWhatTheRuntimeIsAskedForOnlyWhereItDoesSomethingElse) {
  struct {
    const char *name, *usual, *other;
  } const cases[] = {
      {"ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS", "true", "false"},
      {"NVIDIA_CONTAINER_RUNTIME_DEBUG", "/dev/null", "/var/log/nvidia-container-runtime.log"},
      {"NVIDIA_CONTAINER_RUNTIME_LOG_LEVEL", "info", "debug"},
      {"NVIDIA_CONTAINER_RUNTIME_MODE", "auto", "legacy"},
      {"NVIDIA_CONTAINER_RUNTIME_MODES_CDI_ANNOTATION_PREFIXES", "cdi.k8s.io/", "example.com/"},
      // What protects a node is always answered.
      {"ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", nullptr, "false"},
  };
  for (const auto& one : cases) {
    const auto with = [&](const std::string& value) {
      return TranslatedPolicy("  toolkit: {env: [{name: " + std::string(one.name) + ", value: \"" +
                              value + "\"}]}\n");
    };
    if (one.usual != nullptr) { EXPECT_THAT(with(one.usual).answers, IsEmpty()) << one.name; }
    const PolicyTranslation translated = with(one.other);
    ASSERT_EQ(translated.answers.size(), 1u) << one.name;
    EXPECT_EQ(translated.answers[0].fate, FieldFate::kElsewhere) << "the policy is served";
    EXPECT_THAT(translated.answers[0].text,
                HasSubstr("/etc/nvidia-container-runtime/config.toml of each node"));
  }
}

TEST(ClusterPolicy, NamesTheServicesOfTheHostThatAreStoppedUnlessAVariableSaysOtherwise) {
  const auto named = [](const std::string& more) {
    return TranslatedPolicy("  migManager: {gpuClientsConfig: {name: clients}" + more + "}\n");
  };
  const auto variable = [](const std::string& value) {
    return ", env: [{name: WITH_SHUTDOWN_HOST_GPU_CLIENTS, value: \"" + value + "\"}]";
  };
  for (const std::string& more : {std::string(), variable("true"), variable("1")}) {
    const PolicyTranslation translated = named(more);
    EXPECT_EQ(translated.spec.config_maps.client_services, "clients") << more;
    EXPECT_THAT(translated.answers, IsEmpty()) << more;
  }
  for (const std::string& more :
       {variable("false"), variable("F"), std::string(", enabled: false")}) {
    const PolicyTranslation translated = named(more);
    EXPECT_EQ(translated.spec.config_maps.client_services, "") << more;
    EXPECT_THAT(translated.answers, IsEmpty()) << more;
  }
}

TEST(ClusterPolicy, HasTheFilesOfTheValidatorAndOnRequestItsMetrics) {
  const ValidationConfig usual = TranslatedPolicy("  gfd: {}\n").spec.node.validation;
  EXPECT_EQ(usual.directory, "/run/nvidia/validations");
  EXPECT_FALSE(usual.exporter_names);
  EXPECT_TRUE(TranslatedPolicy("  nodeStatusExporter: {enabled: true}\n")
                  .spec.node.validation.exporter_names);
}

TEST(ClusterPolicy, HasTheServiceOfTheNodeStatusExporterOnRequest) {
  EXPECT_EQ(TranslatedPolicy("  gfd: {}\n").spec.services.size(), 1u);
  const PenstockSpec spec = TranslatedPolicy("  nodeStatusExporter: {enabled: true}\n").spec;
  ASSERT_EQ(spec.services.size(), 2u);
  const MetricsService& service = spec.services[1];
  EXPECT_EQ(service.name, "nvidia-node-status-exporter");
  EXPECT_EQ(service.port, 8000);
  EXPECT_THAT(service.labels, ElementsAre(Pair("app", "nvidia-node-status-exporter")));
  EXPECT_TRUE(service.monitor);
  EXPECT_THAT(service.metric_relabelings.text, HasSubstr(R"("regex":"gpu_operator_.*")"));
  EXPECT_THAT(service.annotations, IsEmpty()) << "the page would be scraped twice";
  const PenstockSpec alone =
      TranslatedPolicy("  dcgmExporter: {enabled: false}\n  nodeStatusExporter: {enabled: true}\n")
          .spec;
  ASSERT_EQ(alone.services.size(), 1u);
  EXPECT_THAT(alone.services[0].annotations, ElementsAre(Pair("prometheus.io/scrape", "true")));
}

TEST(ClusterPolicy, MarksNodesWhoseDriverIsUpgradedByItself) {
  EXPECT_THAT(
      TranslatedPolicy("  driver: {upgradePolicy: {autoUpgrade: true}}\n").spec.marks.annotations,
      ElementsAre(Pair("nvidia.com/gpu-driver-upgrade-enabled", "true")));
  EXPECT_THAT(TranslatedPolicy("  driver: {enabled: false, upgradePolicy: {autoUpgrade: true}}\n")
                  .spec.marks.annotations,
              IsEmpty());
}

TEST(ClusterPolicy, NamesAllImagesInOneAnswer) {
  const PolicyTranslation translation = TranslatedPolicy(R"(
  driver: {enabled: false}
  toolkit: {repository: nvcr.io/nvidia/k8s, image: container-toolkit, version: v1.20.0,
            imagePullPolicy: IfNotPresent, resources: {limits: {memory: 1Gi}}, hostNetwork: true}
  devicePlugin: {version: v0.20.0, imagePullPolicy: Always}
)");
  ASSERT_EQ(translation.answers.size(), 3u);
  EXPECT_THAT(AnsweredFields(translation),
              Contains("spec.*.{repository,image,version,imagePullPolicy}"));
  EXPECT_THAT(translation.answers[0].text,
              HasSubstr("Set here: toolkit.repository, toolkit.image, toolkit.version, "
                        "devicePlugin.version, devicePlugin.imagePullPolicy."));
  EXPECT_EQ(translation.spec.agent.image, "");
}

TEST(ClusterPolicy, AnswersUnknownFieldsAndOtherNames) {
  const PolicyTranslation translation = TranslatedPolicy(R"(
  driver: {enabled: false, upgradePolicy: {gpuPodDeletion: {force: true}}}
  gpuFeatureDiscovery: {enabled: false}
  devicePlugin: {enabeld: false}
  future: {shape: round}
)");
  EXPECT_EQ(translation.spec.node.labels.node, Switch::kOff);
  EXPECT_THAT(AnsweredFields(translation),
              ElementsAre("spec.driver.upgradePolicy.gpuPodDeletion", "spec.gpuFeatureDiscovery",
                          "spec.devicePlugin.enabeld", "spec.future"));
  EXPECT_THAT(AnswerTo(translation, "spec.devicePlugin.enabeld")->text,
              HasSubstr("did you mean \"enabled\"?"));
  EXPECT_EQ(AnswerTo(translation, "spec.future")->fate, FieldFate::kUnknown);
  EXPECT_THAT(
      AnswerTo(TranslatedPolicy("  gfd: {enabled: true}\n  gpuFeatureDiscovery: {enabled: false}\n"
                                "  driver: {enabled: false}\n"),
               "spec.gpuFeatureDiscovery")
          ->text,
      HasSubstr("is set too and applies"));
}

TEST(ClusterPolicy, BoundsItsAnswersToUnknownFields) {
  std::string spec = kNoDriver;
  for (int i = 0; i < 500; ++i)
    spec += "  field" + std::to_string(i) + std::string(300, 'x') + ": 1\n";
  const PolicyTranslation translation = TranslatedPolicy(spec);
  EXPECT_EQ(translation.answers.size(), 20u);
  EXPECT_THAT(translation.answers.back().text, HasSubstr("480 more such fields"));
  EXPECT_LT(GoldenOf(translation).size(), 20'000u);
}

TEST(ClusterPolicy, ReportsAllValuesThatCannotBeMeantAtOnce) {
  EXPECT_THAT(
      PolicyMessage(R"(
  driver: {enabled: "yes", kernelModuleType: closed, upgradePolicy: {maxParallelUpgrades: -1}}
  daemonsets: {updateStrategy: Recreate, labels: {"a b": x}, rollingUpdate: {maxUnavailable: many}}
  operator: {runtimeClass: "NVIDIA!"}
  mig: {strategy: some}
  toolkit: {installDir: here}
  devicePlugin:
    enabled: 1
    env: [{name: DEVICE_ID_STRATEGY, value: serial}, {value: x}, {name: A, value: 1}]
    config: {name: "Bad Name"}
  gfd: []
  dcgmExporter: {serviceMonitor: {interval: soon}, podLabelAllowlistRegex: ["a[b"],
                 enablePodLabels: true, service: {type: ExternalName, internalTrafficPolicy: Far}}
)"),
      AllOf(HasSubstr("ClusterPolicy p: spec.driver.enabled: is a string (yes) where a boolean"),
            HasSubstr("spec.driver.kernelModuleType: \"closed\" is none of auto, open"),
            HasSubstr("spec.driver.upgradePolicy.maxParallelUpgrades: is -1"),
            HasSubstr("spec.daemonsets.updateStrategy: \"Recreate\" is none of"),
            HasSubstr("spec.daemonsets.labels: \"a b\" is not a label key"),
            HasSubstr("spec.daemonsets.rollingUpdate.maxUnavailable: \"many\" is neither"),
            HasSubstr("spec.operator.runtimeClass: \"NVIDIA!\""),
            HasSubstr("spec.mig.strategy: \"some\" is none of none, single, mixed"),
            HasSubstr("spec.toolkit.installDir: \"here\" must be an absolute path"),
            HasSubstr("spec.devicePlugin.enabled: is an integer (1)"),
            HasSubstr("spec.devicePlugin.env[1].name: is not the name of a variable"),
            HasSubstr("spec.devicePlugin.env[2].value: is an integer (1)"),
            HasSubstr("spec.devicePlugin.config.name: \"Bad Name\""),
            HasSubstr("spec.gfd: is a list where a map is expected"),
            HasSubstr("spec.dcgmExporter.serviceMonitor.interval: \"soon\""),
            HasSubstr("spec.dcgmExporter.podLabelAllowlistRegex: "),
            HasSubstr("spec.dcgmExporter.service.type: \"ExternalName\" is none of ClusterIP"),
            HasSubstr("service.internalTrafficPolicy: \"Far\" is none of Cluster, Local")));
  EXPECT_THAT(PolicyMessage("  devicePlugin: {env: [{name: DEVICE_ID_STRATEGY, value: serial}]}\n"),
              HasSubstr("spec.devicePlugin.env[DEVICE_ID_STRATEGY]: \"serial\" is none of"));
}

TEST(ClusterPolicy, RefusesWhatIsNoClusterPolicy) {
  const auto message = [](const char* text) {
    const auto translation = TranslateClusterPolicy(text);
    return translation.ok() ? std::string() : translation.error().message();
  };
  EXPECT_THAT(message("[]"), HasSubstr("is not an object"));
  EXPECT_THAT(message("{"), HasSubstr("ClusterPolicy:1"));
  EXPECT_THAT(
      message(R"({"apiVersion": "nvidia.com/v2", "kind": "ClusterPolicy", "spec": 1})"),
      AllOf(HasSubstr("apiVersion: is \"nvidia.com/v2\""), HasSubstr("spec: is an integer")));
}

}  // namespace
}  // namespace penstock::api::compat
