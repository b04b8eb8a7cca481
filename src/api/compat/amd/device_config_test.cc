// Tests what becomes of DeviceConfig objects: each file in testdata/device-config has a copy of its
// translation beside it. PENSTOCK_UPDATE_GOLDEN=1 rewrites the copies.
#include "api/compat/amd/device_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/compat/amd/device_config_fields.h"
#include "api/compat/nvidia/cluster_policy.h"
#include "api/compat/policy_kinds.h"
#include "api/testing/config_terms.h"
#include "base/core/json_text.h"
#include "base/testing/build_tree.h"
#include "base/yaml.h"

namespace penstock::api::compat {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using Json = nlohmann::ordered_json;

constexpr char kSamples[] = "src/api/compat/amd/testdata/device-config";
constexpr char kNoInstall[] = "  driver: {enable: false}\n";

std::string JsonOfYaml(const std::string& yaml) {
  const auto document = base::ParseYaml(yaml, "sample");
  EXPECT_TRUE(document.ok()) << document.error().message();
  return document.ok() ? base::JsonOf<Json>(*document).dump() : "null";
}

/// A DeviceConfig with this spec, in YAML.
std::string ConfigWith(const std::string& spec, const std::string& name = "amd") {
  return JsonOfYaml("apiVersion: amd.com/v1alpha1\nkind: DeviceConfig\nmetadata: {name: " + name +
                    ", namespace: n}\nspec:\n" + spec);
}

PolicyTranslation Translated(const std::string& spec, const PenstockSpec* over = nullptr) {
  const auto translation = TranslateDeviceConfig(ConfigWith(kNoInstall + spec), over);
  EXPECT_TRUE(translation.ok()) << translation.error().message();
  return translation.ok() ? *translation : PolicyTranslation{};
}

std::string ProblemsOf(const std::string& object, const PenstockSpec* over = nullptr) {
  const auto translation = TranslateDeviceConfig(object, over);
  EXPECT_FALSE(translation.ok());
  return translation.ok() ? "" : translation.error().message();
}

/// What a ClusterPolicy with this spec asks for.
PenstockSpec OfClusterPolicy(const std::string& spec) {
  const auto policy = TranslateClusterPolicy(
      JsonOfYaml("apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n"
                 "  driver: {enabled: false}\n" +
                 spec));
  EXPECT_TRUE(policy.ok()) << policy.error().message();
  return policy.ok() ? policy->spec : PenstockSpec{};
}

std::string GoldenOf(const PolicyTranslation& translation) {
  Json golden = {{"spec", Json::parse(ToJson(translation.spec))},
                 {"components", Json::array()},
                 {"answers", Json::array()}};
  for (const auto& [name, counted] : translation.components) golden["components"].push_back(name);
  for (const FieldAnswer& answer : translation.answers)
    golden["answers"].push_back({{"field", answer.field},
                                 {"fate", internal::ToString(answer.fate)},
                                 {"text", answer.text}});
  return golden.dump(2) + "\n";
}

std::vector<std::string> AnsweredFields(const PolicyTranslation& translation) {
  std::vector<std::string> fields;
  for (const FieldAnswer& answer : translation.answers) fields.push_back(answer.field);
  return fields;
}

TEST(DeviceConfig, TranslatesEachSampleAsItsCopySays) {
  int samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(base::SourceFolder() / kSamples)) {
    if (entry.path().extension() != ".yaml") continue;
    ++samples;
    const std::string name = entry.path().filename();
    const auto translation = TranslateDeviceConfig(
        JsonOfYaml(base::ReadSource(std::string(kSamples) + "/" + name)), nullptr);
    ASSERT_TRUE(translation.ok()) << name << ": " << translation.error().message();
    const auto copy = std::filesystem::path(entry.path()).replace_extension(".json");
    const std::string golden = GoldenOf(*translation);
    if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(copy) << golden;
      continue;
    }
    std::ifstream in(copy);
    const std::string wanted{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(golden, wanted) << copy
                              << ": if this change is intended, run with PENSTOCK_UPDATE_GOLDEN=1";
    const auto again = ParsePenstock(R"({"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock",
        "spec": )" + ToJson(translation->spec) +
                                         "}",
                                     name, SomeTerms());
    ASSERT_TRUE(again.ok()) << name << ": " << again.error().message();
    EXPECT_EQ(ToJson(*again), ToJson(translation->spec));
  }
  EXPECT_GE(samples, 4);
}

TEST(DeviceConfig, HasTheDefaultsOfAmdsOperatorForWhatIsNotSet) {
  const auto translation = TranslateDeviceConfig(ConfigWith("  {}"), nullptr);
  ASSERT_TRUE(translation.ok()) << translation.error().message();
  const PenstockSpec& spec = translation->spec;
  EXPECT_EQ(spec.node.kubelet_allocator, Switch::kOn);
  EXPECT_EQ(spec.node.local_allocator, Switch::kOff);
  EXPECT_EQ(spec.node.labels.node, Switch::kAuto);
  EXPECT_FALSE(spec.node.parts_by_label);
  EXPECT_THAT(spec.node.telemetry.names, ElementsAre(MetricNames::kAccelerator));
  EXPECT_THAT(spec.services, IsEmpty());
  EXPECT_THAT(spec.agent.node_selector, IsEmpty());
  EXPECT_THAT(spec.runtime_classes, IsEmpty());
  EXPECT_THAT(spec.drivers, IsEmpty());
  EXPECT_EQ(spec.host.kubelet_dir, "/var/lib/kubelet");
  EXPECT_FALSE(spec.host.health_sockets);
  EXPECT_EQ(spec.agent.tolerations.text,
            R"([{"key":"amd-gpu-unhealthy","operator":"Exists","effect":"NoSchedule"}])");
  EXPECT_THAT(AnsweredFields(*translation), ElementsAre("spec.driver.enable"));
  EXPECT_THAT(translation->components, ElementsAre(Pair("devicePlugin", Counted::kServing),
                                                   Pair("driver", Counted::kDrivers)));
}

TEST(DeviceConfig, CountsTheComponentsThatAreOn) {
  EXPECT_THAT(Translated("  devicePlugin: {enableDevicePlugin: false}\n"
                         "  metricsExporter: {enable: true}\n  configManager: {enable: true}\n")
                  .components,
              ElementsAre(Pair("metricsExporter", Counted::kAgents),
                          Pair("configManager", Counted::kAgents)));
}

TEST(DeviceConfig, HasTheServiceOfAmdsOperator) {
  const PolicyTranslation translation = Translated(R"(
  metricsExporter:
    enable: true
    serviceType: NodePort
    nodePort: 32500
    serviceAnnotations: {a: b}
    prometheus: {serviceMonitor: {enable: true, interval: 15s, labels: {release: p}}}
)");
  ASSERT_EQ(translation.spec.services.size(), 1u);
  const MetricsService& service = translation.spec.services.front();
  EXPECT_TRUE(translation.spec.host.health_sockets) << "AMD's exporter has a socket";
  EXPECT_EQ(service.name, "amd-metrics-exporter");
  EXPECT_EQ(service.port_name, "exporter-port");
  EXPECT_EQ(service.port, 5000);
  EXPECT_EQ(service.node_port, 32500);
  EXPECT_EQ(service.internal_traffic_policy, "Local");
  EXPECT_EQ(service.external_traffic_policy, "Local");
  EXPECT_THAT(service.labels,
              ElementsAre(Pair("app.kubernetes.io/service", "amd-metrics-exporter")));
  EXPECT_THAT(service.annotations, ElementsAre(Pair("a", "b")));
  EXPECT_THAT(service.monitor_labels,
              ElementsAre(Pair("app", "amd-device-metrics-exporter"), Pair("release", "p")));
  EXPECT_TRUE(service.monitor && service.honor_labels);
  EXPECT_FALSE(translation.spec.node.telemetry.names_set);
}

TEST(DeviceConfig, GivesAServiceOfTheClusterNoPortOfItsNodes) {
  const PolicyTranslation translation =
      Translated("  metricsExporter: {enable: true, nodePort: 32500, serviceType: ClusterIP}\n");
  EXPECT_EQ(translation.spec.services.front().node_port, 0);
  EXPECT_EQ(translation.spec.services.front().external_traffic_policy, "");
  EXPECT_THAT(AnsweredFields(translation), ElementsAre("spec.metricsExporter.nodePort"));
}

TEST(DeviceConfig, TakesNothingOfAnExporterThatIsOff) {
  const PolicyTranslation translation = Translated(R"(
  metricsExporter: {enable: false, config: {name: c}, hostNetwork: true, podAnnotations: {a: b},
                    selector: {x: y}, resource: {limits: {memory: 1Gi}},
                    podResourceAPISocketPath: /k/pod-resources}
  configManager: {enable: false, config: {name: d}, selector: {x: y}}
)");
  EXPECT_THAT(translation.answers, IsEmpty());
  EXPECT_EQ(translation.spec.config_maps, NamedConfigMaps{});
  EXPECT_FALSE(translation.spec.agent.host_network);
  EXPECT_THAT(translation.spec.agent.annotations, IsEmpty());
  EXPECT_EQ(translation.spec.host.kubelet_dir, "/var/lib/kubelet");
}

TEST(DeviceConfig, KeepsTheNamesOfMigDevicesWhateverTheStrategyIs) {
  const auto node = [](const std::string& strategy, const PenstockSpec* over) {
    return Translated("  devicePlugin: {devicePluginArguments: {resource_naming_strategy: " +
                          strategy + "}}\n",
                      over)
        .spec.node;
  };
  EXPECT_EQ(node("single", nullptr).parts, PartsStrategy::kSingle);
  EXPECT_EQ(node("single", nullptr).profiled_parts, PartsStrategy::kMixed);
  const PenstockSpec none = OfClusterPolicy("  mig: {strategy: none}\n");
  EXPECT_EQ(node("mixed", &none).parts, PartsStrategy::kMixed);
  EXPECT_EQ(node("mixed", &none).profiled_parts, PartsStrategy::kNone);
  EXPECT_EQ(Translated("  devicePlugin: {}\n").spec.node.profiled_parts, PartsStrategy::kDefault);
}

TEST(DeviceConfig, ToleratesWhatAnOperandToleratesOnce) {
  const std::string toleration = "{key: a, operator: Exists}";
  const PenstockSpec over =
      OfClusterPolicy("  daemonsets: {tolerations: [{key: b, operator: Exists}]}\n");
  const std::string text =
      Translated("  devicePlugin: {devicePluginTolerations: [" + toleration +
                     "], nodeLabellerTolerations: [" + toleration +
                     "]}\n  metricsExporter: {tolerations: [{key: b, operator: Exists}]}\n",
                 &over)
          .spec.agent.tolerations.text;
  EXPECT_EQ(Json::parse(text).size(), 3u) << text;
  EXPECT_EQ(Json::parse(text)[0]["key"], "b");
}

// ---- over the policy of another vendor

TEST(DeviceConfig, AddsToAClusterPolicyWhatIsItsOwn) {
  const PenstockSpec over = OfClusterPolicy(
      "  daemonsets: {annotations: {scrape: \"yes\"}}\n  devicePlugin: {imagePullSecrets: "
      "[one]}\n");
  const PolicyTranslation translation = Translated(R"(
  selector: {feature.node.kubernetes.io/amd-gpu: "true"}
  commonConfig: {imageRegistrySecrets: [{name: one}, {name: two}]}
  metricsExporter: {enable: true, config: {name: exporter}, podAnnotations: {scrape: "no", a: b}}
  configManager: {enable: true, config: {name: modes}}
)",
                                                   &over);
  const PenstockSpec& spec = translation.spec;
  EXPECT_THAT(spec.agent.pull_secrets, ElementsAre("one", "two"));
  EXPECT_THAT(spec.agent.annotations, ElementsAre(Pair("a", "b"), Pair("scrape", "yes")));
  EXPECT_EQ(spec.config_maps.exporter, "exporter");
  EXPECT_EQ(spec.config_maps.mode_profiles, "modes");
  ASSERT_EQ(spec.services.size(), over.services.size() + 1);
  EXPECT_EQ(spec.services.front(), over.services.front());
  EXPECT_EQ(spec.services.back().name, "amd-metrics-exporter");
  EXPECT_EQ(spec.runtime_classes, over.runtime_classes);
  EXPECT_EQ(spec.marks, over.marks);
  EXPECT_THAT(spec.agent.node_selector, IsEmpty());
  EXPECT_THAT(AnsweredFields(translation),
              ElementsAre("spec.selector", "spec.metricsExporter.podAnnotations"));
  EXPECT_EQ(translation.answers.front().fate, FieldFate::kElsewhere);
}

TEST(DeviceConfig, LeavesToAClusterPolicyWhatIsOneForAllNodes) {
  const PenstockSpec over = OfClusterPolicy("  daemonsets: {updateStrategy: RollingUpdate}\n");
  const PolicyTranslation translation = Translated(R"(
  selector: {pool: a}
  devicePlugin: {enableDevicePlugin: false, enableNodeLabeller: false,
                 kubeletSocketPath: /k/device-plugins,
                 upgradePolicy: {upgradeStrategy: OnDelete, maxUnavailable: 2}}
  metricsExporter: {enable: false}
  configManager: {enable: false}
)",
                                                   &over);
  PenstockSpec spec = translation.spec;
  EXPECT_THAT(spec.agent.tolerations.text, HasSubstr("amd-gpu-unhealthy"));
  spec.agent.tolerations = over.agent.tolerations;
  EXPECT_EQ(ToJson(spec), ToJson(over));
  EXPECT_THAT(AnsweredFields(translation),
              ElementsAre("spec.selector", "spec.devicePlugin.enableDevicePlugin",
                          "spec.devicePlugin.enableNodeLabeller",
                          "spec.devicePlugin.upgradePolicy.upgradeStrategy",
                          "spec.devicePlugin.upgradePolicy.maxUnavailable",
                          "spec.devicePlugin.kubeletSocketPath", "spec.metricsExporter.enable",
                          "spec.configManager.enable"));
  EXPECT_THAT(translation.answers, Each(testing::Field(&FieldAnswer::fate, FieldFate::kNotServed)));
}

TEST(DeviceConfig, AnswersNothingThatAClusterPolicyAsksForToo) {
  const PenstockSpec over = OfClusterPolicy(
      "  devicePlugin: {enabled: false}\n  gfd: {enabled: false}\n"
      "  migManager: {enabled: false}\n  dcgmExporter: {enabled: false}\n");
  EXPECT_THAT(Translated(R"(
  devicePlugin: {enableDevicePlugin: false, enableNodeLabeller: false,
                 kubeletSocketPath: /var/lib/kubelet/device-plugins,
                 upgradePolicy: {maxUnavailable: 1}}
  metricsExporter: {enable: false}
  configManager: {enable: false}
)",
                         &over)
                  .answers,
              IsEmpty());
  EXPECT_THAT(Translated("", &over).answers, IsEmpty());  // defaults ask for nothing
}

// A default of the definition is no statement about the nodes: k3s' ClusterPolicy has another one.
TEST(DeviceConfig, DoesNotTakeADefaultForTheKubeletsFolder) {
  const PenstockSpec over = OfClusterPolicy("  hostPaths: {kubeletRootDir: /data/kubelet}\n");
  const PolicyTranslation translation = Translated(
      "  devicePlugin: {kubeletSocketPath: /var/lib/kubelet/device-plugins/}\n"
      "  metricsExporter: {podResourceAPISocketPath: /var/lib/kubelet/pod-resources/}\n",
      &over);
  EXPECT_EQ(translation.spec.host, over.host);
  EXPECT_EQ(translation.spec.host.kubelet_dir, "/data/kubelet");
  EXPECT_THAT(translation.answers, IsEmpty());
}

// ---- answers

TEST(DeviceConfig, AnswersWhatIsNotServedOnlyWhereItIsEnabled) {
  EXPECT_THAT(Translated(R"(
  draDriver: {enable: false, image: a}
  testRunner: {enable: false, image: b}
  remediationWorkflow: {enable: false, testerImage: c}
  metricsExporter: {enable: true, rbacConfig: {enable: false, image: d}, port: 9400,
                    hostNetwork: true,
                    prometheus: {serviceMonitor: {enable: false, metricRelabelings: [{action: drop}]}}}
)")
                  .answers,
              IsEmpty());
}

TEST(DeviceConfig, Issues66And93AnswersADriverThatItDoesNotInstallAlsoWhereNothingIsSaid) {
  const auto answers = TranslateDeviceConfig(ConfigWith("  driver: {version: \"6\"}"), nullptr);
  ASSERT_TRUE(answers.ok());
  ASSERT_THAT(AnsweredFields(*answers), ElementsAre("spec.driver.enable"));
  EXPECT_THAT(answers->answers.front().text,
              AllOf(HasSubstr("set driver.enable to false"), HasSubstr("driver.version")));
}

TEST(DeviceConfig, BoundsItsAnswersToItemsOfAField) {
  std::string flags, labels;
  for (int i = 0; i < 500; ++i) {
    flags += (i > 0 ? ", f" : "f") + std::to_string(i) + std::string(300, 'x') + ": \"1\"";
    labels += (i > 0 ? ", l" : "l") + std::to_string(i) + std::string(300, 'x');
  }
  const PolicyTranslation translation =
      Translated("  devicePlugin: {devicePluginArguments: {" + flags +
                 "}, nodeLabellerArguments: [" + labels + "]}\n");
  ASSERT_EQ(translation.answers.size(), 2u);
  for (const FieldAnswer& answer : translation.answers) {
    EXPECT_THAT(answer.text, HasSubstr("and 490 more"));
    EXPECT_LT(answer.text.size(), 2'000u);
  }
}

TEST(DeviceConfig, ReadsLongListsInALinearTime) {
  std::string tolerations, secrets;
  for (int i = 0; i < 20'000; ++i) {
    tolerations += (i > 0 ? "," : "") + (R"({"key":"k)" + std::to_string(i) + R"("})");
    secrets += (i > 0 ? "," : "") + (R"({"name":"s)" + std::to_string(i) + R"("})");
  }
  const auto translation = TranslateDeviceConfig(
      R"({"apiVersion":"amd.com/v1alpha1","kind":"DeviceConfig","metadata":{"name":"a"},"spec":{
          "devicePlugin":{"devicePluginTolerations":[)" +
          tolerations + R"(]},"commonConfig":{"imageRegistrySecrets":[)" + secrets + "]}}}",
      nullptr);
  ASSERT_TRUE(translation.ok());
  EXPECT_EQ(translation->spec.agent.pull_secrets.size(), 20'000u);
}

// ---- what cannot be meant

TEST(DeviceConfig, ReportsAllValuesThatCannotBeMeantAtOnce) {
  const std::string message = ProblemsOf(ConfigWith(R"(
  selector: {"a b": x}
  commonConfig: {imageRegistrySecrets: [{name: "Bad Name"}, {}, {name: 1}]}
  devicePlugin:
    enableDevicePlugin: "yes"
    devicePluginArguments: {resource_naming_strategy: both}
    nodeLabellerArguments: vram
    kubeletSocketPath: device-plugins
    upgradePolicy: {upgradeStrategy: Recreate, maxUnavailable: 0}
    devicePluginTolerations: [all]
  metricsExporter:
    enable: true
    port: 70000
    nodePort: 80
    serviceType: LoadBalancer
    podResourceAPISocketPath: /var/lib/kubelet
    config: {name: "../x"}
    podAnnotations: {a: 1}
    prometheus: {serviceMonitor: {interval: soon}}
  configManager: []
)",
                                                    "Under_Score"));
  for (const char* part :
       {"DeviceConfig Under_Score: metadata.name: \"Under_Score\" makes no name of a Service",
        "spec.selector: \"a b\" is not a label key",
        "spec.commonConfig.imageRegistrySecrets[0].name: \"Bad Name\" is not the name of a Secret",
        "spec.commonConfig.imageRegistrySecrets[1].name: is not the name of a Secret",
        "spec.commonConfig.imageRegistrySecrets[2].name: is not the name of a Secret",
        "spec.devicePlugin.enableDevicePlugin: is a string (yes) where a boolean",
        "spec.devicePlugin.devicePluginArguments[resource_naming_strategy]: \"both\" is none of",
        "spec.devicePlugin.nodeLabellerArguments: is a string (vram) where a list",
        "spec.devicePlugin.kubeletSocketPath: \"device-plugins\" must be an absolute path",
        "spec.devicePlugin.upgradePolicy.upgradeStrategy: \"Recreate\" is none of",
        "spec.devicePlugin.upgradePolicy.maxUnavailable: is 0, less than 1",
        "spec.devicePlugin.devicePluginTolerations[0]: is a string where a map",
        "spec.metricsExporter.port: is 70000, which is no port",
        "spec.metricsExporter.nodePort: is 80, less than 30000",
        "spec.metricsExporter.serviceType: \"LoadBalancer\" is none of ClusterIP, NodePort",
        "spec.metricsExporter.podResourceAPISocketPath: \"/var/lib/kubelet\" is not below the",
        "spec.metricsExporter.config.name: \"../x\" is not the name of a ConfigMap",
        "spec.metricsExporter.podAnnotations[a]: is an integer where a string",
        "spec.metricsExporter.prometheus.serviceMonitor.interval: \"soon\"",
        "spec.configManager: is a list where a map is expected"})
    EXPECT_THAT(message, HasSubstr(part));
}

TEST(DeviceConfig, NeedsANameThatMakesTheNameOfAService) {
  const std::string on = "  metricsExporter: {enable: true}\n";
  const std::string longest(46, 'a');
  EXPECT_TRUE(TranslateDeviceConfig(ConfigWith(on, longest), nullptr).ok());
  for (const std::string& name : {longest + "a", std::string("bm.gpu.8"), std::string("8-gpus")})
    EXPECT_THAT(ProblemsOf(ConfigWith(on, name)),
                AllOf(HasSubstr("metadata.name"), HasSubstr("another name")))
        << name;
  EXPECT_TRUE(TranslateDeviceConfig(ConfigWith("  {}", "bm.gpu.8"), nullptr).ok());
}

TEST(DeviceConfig, ShowsNoLongTextsOfAnObject) {
  const std::string far(100'000, 'X');
  const std::string message = ProblemsOf(ConfigWith(
      "  devicePlugin: {kubeletSocketPath: " + far + ", imageRegistrySecret: {name: " + far +
      "}, devicePluginArguments: {resource_naming_strategy: " + far +
      "}}\n  metricsExporter: {enable: true, serviceType: " + far + "}\n"));
  EXPECT_LT(message.size(), 2'000u);
}

TEST(DeviceConfig, HasTwoFoldersOfOneKubelet) {
  const HostPaths host = Translated(
                             "  devicePlugin: {kubeletSocketPath: /a/plugins/}\n"
                             "  metricsExporter: {enable: true, "
                             "podResourceAPISocketPath: /b/pod-resources/}\n")
                             .spec.host;
  EXPECT_EQ(host.device_plugins_dir, "/a/plugins");
  EXPECT_EQ(host.kubelet_dir, "/b");
  const HostPaths one =
      Translated("  devicePlugin: {kubeletSocketPath: /a/device-plugins}\n").spec.host;
  EXPECT_EQ(one.device_plugins_dir, "/a/device-plugins");
  EXPECT_EQ(one.kubelet_dir, "/a") << "nothing says where the other folder is";
}

TEST(DeviceConfig, RefusesWhatIsNoDeviceConfig) {
  EXPECT_THAT(ProblemsOf("[]"), HasSubstr("is not an object"));
  EXPECT_THAT(ProblemsOf("{"), HasSubstr("DeviceConfig:1"));
  EXPECT_THAT(
      ProblemsOf(R"({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "spec": 1})"),
      AllOf(HasSubstr("apiVersion: is \"nvidia.com/v1\""), HasSubstr("spec: is an integer")));
}

TEST(PolicyKinds, HasAmdsLastInItsNamespace) {
  const PolicyKind& kind = PolicyKinds().back();
  EXPECT_EQ(kind.kind, "DeviceConfig");
  EXPECT_TRUE(kind.namespaced);
  EXPECT_EQ(kind.vendor, "amd");
  EXPECT_EQ(kind.foreign_finalizer, "amd.node.kubernetes.io/deviceconfig-finalizer");
  const auto read = kind.translate(ConfigWith("  driver: {enable: false}"), nullptr);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->answers, IsEmpty());
}

}  // namespace
}  // namespace penstock::api::compat
