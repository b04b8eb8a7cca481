// Tests that Penstock objects are read over others, and that all mistakes are reported at once.
#include "api/cluster/penstock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/testing/config_terms.h"

namespace penstock::api {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string ObjectWith(const std::string& spec) {
  return R"({"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock", "metadata": {"name": "p"},
             "spec": )" +
         spec + "}";
}

PenstockSpec Parsed(const std::string& spec, const PenstockSpec& base = {}) {
  const auto parsed = ParsePenstock(ObjectWith(spec), "Penstock p", SomeTerms(), base);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message();
  return parsed.ok() ? *parsed : PenstockSpec{};
}

std::string MessageOf(const std::string& spec) {
  const auto parsed = ParsePenstock(ObjectWith(spec), "Penstock p", SomeTerms());
  EXPECT_FALSE(parsed.ok());
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().code(), base::Code::kInvalidArgument);
  return parsed.error().message();
}

constexpr char kEverything[] = R"({
  "agent": {
    "image": "registry.example:5000/penstock@sha256:1234", "imagePullPolicy": "Always",
    "imagePullSecrets": ["pull"], "labels": {"team": "gpu"}, "annotations": {"note": "any text"},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}}, "resources": {"limits": {"memory": "512Mi"}},
    "podSecurityContext": {"fsGroup": 7},
    "volumes": [{"name": "v", "emptyDir": {}}], "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "env": [{"name": "HTTP_PROXY", "value": "http://proxy:3128"}],
    "priorityClassName": "system-node-critical", "hostNetwork": true,
    "updateStrategy": {"type": "OnDelete", "maxUnavailable": "25%"}},
  "hostPaths": {"driverRoot": "/", "kubeletDir": "/data/kubelet",
                "devicePluginsDir": "/data/plugins", "installDir": "/opt/nvidia",
                "healthSockets": true},
  "node": {"health": {"poll": "9s"}, "parts": {"strategy": "single"},
           "sharing": {"rules": [{"strategy": "time-slicing", "replicas": 4}]}},
  "configMaps": {"configurations": "plugin", "defaultConfiguration": "a", "layouts": "mig",
                 "counters": "metrics", "exporter": "amd-metrics", "modeProfiles": "dcm",
                 "clientServices": "clients"},
  "runtimeClasses": [{"name": "nvidia", "handler": "nvidia"}],
  "services": [{"name": "nvidia-dcgm-exporter", "port": 9401, "type": "NodePort",
                "nodePort": 32500, "internalTrafficPolicy": "Local",
                "externalTrafficPolicy": "Local", "labels": {"app": "nvidia-dcgm-exporter"},
                "annotations": {"prometheus.io/scrape": "true"}, "serviceMonitor": true,
                "interval": "15s", "scrapeTimeout": "1m30s", "honorLabels": true,
                "monitorLabels": {"release": "prometheus"},
                "relabelings": [{"action": "keep", "regex": "a"}],
                "metricRelabelings": [{"action": "drop", "regex": "b"}]}],
  "nodeLabels": {"labels": {"nvidia.com/gpu.deploy.driver": "true"},
                 "annotations": {"nvidia.com/gpu-driver-upgrade-enabled": "true"},
                 "present": "nvidia.com/gpu.present", "optOut": "nvidia.com/gpu.deploy.operands"},
  "privilegedNamespace": true})";

TEST(Penstock, HasADefaultForEveryField) {
  const PenstockSpec spec = Parsed("{}");
  EXPECT_EQ(spec.agent, AgentPods{});
  EXPECT_EQ(spec.host.kubelet_dir, "/var/lib/kubelet");
  EXPECT_EQ(spec.host.device_plugins_dir, "/var/lib/kubelet/device-plugins");
  EXPECT_FALSE(spec.host.health_sockets);
  EXPECT_TRUE(spec.services.empty());
  EXPECT_EQ(ToYaml(spec.node), ToYaml(NodeConfig{}));
}

TEST(Penstock, ReadsEveryField) {
  const PenstockSpec spec = Parsed(kEverything);
  EXPECT_EQ(spec.agent.pull_policy, "Always");
  EXPECT_THAT(spec.agent.environment, ElementsAre(Pair("HTTP_PROXY", "http://proxy:3128")));
  EXPECT_EQ(spec.agent.tolerations.text, R"([{"key":"nvidia.com/gpu","operator":"Exists"}])");
  EXPECT_TRUE(spec.agent.update.on_delete);
  EXPECT_EQ(spec.agent.update.max_unavailable, "25%");
  EXPECT_EQ(spec.host.install_dir, "/opt/nvidia");
  EXPECT_TRUE(spec.host.health_sockets);
  EXPECT_EQ(spec.node.parts, PartsStrategy::kSingle);
  EXPECT_EQ(spec.node.health.poll, std::chrono::seconds(9));
  EXPECT_EQ(spec.config_maps.counters, "metrics");
  EXPECT_EQ(spec.config_maps.exporter, "amd-metrics");
  EXPECT_EQ(spec.config_maps.mode_profiles, "dcm");
  EXPECT_EQ(spec.config_maps.client_services, "clients");
  EXPECT_THAT(spec.runtime_classes, ElementsAre(RuntimeClassSpec{"nvidia", "nvidia"}));
  ASSERT_EQ(spec.services.size(), 1u);
  EXPECT_EQ(spec.services[0].port, 9401);
  EXPECT_EQ(spec.services[0].node_port, 32500);
  EXPECT_EQ(spec.services[0].external_traffic_policy, "Local");
  EXPECT_EQ(spec.services[0].relabelings.text, R"([{"action":"keep","regex":"a"}])");
  EXPECT_EQ(spec.services[0].metric_relabelings.text, R"([{"action":"drop","regex":"b"}])");
  EXPECT_EQ(spec.marks.opt_out_label, "nvidia.com/gpu.deploy.operands");
  EXPECT_TRUE(spec.privileged_namespace);
}

TEST(Penstock, WritesWhatItReads) {
  const PenstockSpec spec = Parsed(kEverything);
  EXPECT_EQ(nlohmann::json::parse(ToJson(spec)).at("agent"),
            nlohmann::json::parse(kEverything).at("agent"));
  EXPECT_EQ(nlohmann::json::parse(ToJson(spec)).at("hostPaths"),
            nlohmann::json::parse(kEverything).at("hostPaths"));
  EXPECT_EQ(nlohmann::json::parse(ToJson(spec)).at("services"),
            nlohmann::json::parse(kEverything).at("services"));
  const PenstockSpec again = Parsed(ToJson(spec));
  EXPECT_EQ(ToJson(again), ToJson(spec));
  EXPECT_EQ(again.agent, spec.agent);
  EXPECT_EQ(again.marks, spec.marks);
}

TEST(Penstock, ChangesOnlyWhatItSetsOfTheSpecBelowIt) {
  const PenstockSpec base = Parsed(kEverything);
  const PenstockSpec spec = Parsed(R"({
      "agent": {"labels": {"more": "yes"}, "env": [{"name": "NO_PROXY", "value": "*"}],
                "tolerations": [], "updateStrategy": {"maxUnavailable": 3}},
      "node": {"health": {"probation": "3s"}},
      "services": [{"name": "nvidia-dcgm-exporter", "interval": "1m"}, {"name": "other"}]})",
                                   base);
  EXPECT_THAT(spec.agent.labels, ElementsAre(Pair("more", "yes"), Pair("team", "gpu")));
  EXPECT_THAT(spec.agent.environment,
              ElementsAre(Pair("HTTP_PROXY", "http://proxy:3128"), Pair("NO_PROXY", "*")));
  EXPECT_EQ(spec.agent.tolerations.text, "[]");
  EXPECT_TRUE(spec.agent.update.on_delete);
  EXPECT_EQ(spec.agent.update.max_unavailable, "3");
  EXPECT_EQ(spec.node.health.poll, std::chrono::seconds(9));
  EXPECT_EQ(spec.node.health.probation, std::chrono::seconds(3));
  ASSERT_EQ(spec.services.size(), 2u);
  EXPECT_EQ(spec.services[0].interval, "1m");
  EXPECT_EQ(spec.services[0].port, 9401);
  EXPECT_EQ(spec.services[1].port, 9400);
}

TEST(Penstock, ReportsAllMistakesAtOnceWithTheirPaths) {
  EXPECT_THAT(MessageOf(R"({
      "agent": {"imagePullPolicy": "Sometimes", "labels": {"bad key": "x"}, "hostNetwork": "yes",
                "env": [{"value": "x"}], "tolerations": {}, "updateStrategy": {"type": "Fast"}},
      "hostPaths": {"kubeletDir": "var", "devicePluginsDir": "plugins"},
      "node": {"health": {"pol": "9s"}, "http": {"connections": 0}},
      "services": [{"name": "A", "port": 0, "interval": "soon"}],
      "runtimeClasses": [{"name": "nvidia"}], "nodeLabel": {}})"),
              AllOf(HasSubstr("spec.agent.imagePullPolicy: \"Sometimes\" is none of Always"),
                    HasSubstr("spec.agent.labels: \"bad key\" is not a label key"),
                    HasSubstr("spec.agent.hostNetwork: is a string"),
                    HasSubstr("spec.agent.env[0].name is missing"),
                    HasSubstr("spec.agent.tolerations: is a map where a list is expected"),
                    HasSubstr("spec.agent.updateStrategy.type: \"Fast\" is none of"),
                    HasSubstr("spec.hostPaths.kubeletDir: \"var\" must be an absolute path"),
                    HasSubstr("spec.hostPaths.devicePluginsDir: \"plugins\" must be an absolute"),
                    HasSubstr("unknown key \"spec.node.health.pol\"; did you mean \"poll\"?"),
                    HasSubstr("spec.node.http.connections: is 0"),
                    HasSubstr("spec.services[0].name: \"A\" is not the name of a Service"),
                    HasSubstr("spec.services[0].port: is 0"),
                    HasSubstr("spec.services[0].interval: \"soon\" is not a duration"),
                    HasSubstr("spec.runtimeClasses[0].handler is missing"),
                    HasSubstr("unknown key \"spec.nodeLabel\"; did you mean \"nodeLabels\"?")));
}

TEST(Penstock, ChecksTheConfigurationOfNodesAsAWhole) {
  EXPECT_THAT(MessageOf(R"({"node": {"allocators": {"kubelet": {"enabled": "off"},
                                      "assign": [{"allocator": "kubelet"}]}}})"),
              HasSubstr("spec.node.allocators.assign[0].allocator: assigns devices to"));
}

TEST(Penstock, ReadsFormerKeysOfTheConfigurationOfNodes) {
  std::vector<std::string> remarks;
  const auto parsed = ParsePenstock(
      ObjectWith(
          R"({"node": {"parts": {"migStrategy": "single"}, "sharing": {"mps": {"root": "/m"}}}})"),
      "p", SomeTerms(), {}, &remarks);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(parsed->node.profiled_parts, PartsStrategy::kSingle);
  EXPECT_EQ(OfVendor(parsed->node.sharing.server_roots, "nvidia"), "/m");
  EXPECT_THAT(
      remarks,
      UnorderedElementsAre(
          HasSubstr("spec.node.parts.migStrategy: deprecated; use parts.profiledStrategy"),
          HasSubstr("spec.node.sharing.mps.root: deprecated; use sharing.serverRoots.nvidia")));
  EXPECT_THAT(ToJson(*parsed), AllOf(HasSubstr(R"("profiledStrategy":"single")"),
                                     HasSubstr(R"("serverRoots":{"nvidia":"/m"})")));
  EXPECT_THAT(MessageOf(R"({"node": {"sharing": {"mps": {"root": "m"}}}})"),
              HasSubstr("spec.node.sharing.mps.root: \"m\" must be an absolute path"));
}

TEST(Penstock, RefusesOtherKindsOfObjects) {
  const auto message = [](const char* text) {
    const auto parsed = ParsePenstock(text, "x");
    return parsed.ok() ? std::string() : parsed.error().message();
  };
  EXPECT_THAT(message(R"({"apiVersion": "v1", "kind": "Pod", "spec": {}})"),
              AllOf(HasSubstr("apiVersion: is \"v1\""), HasSubstr("kind: is \"Pod\"")));
  EXPECT_THAT(message("{}"), AllOf(HasSubstr("apiVersion is missing"), HasSubstr("kind is")));
  EXPECT_THAT(message("[]"), HasSubstr("where a map is expected"));
  EXPECT_THAT(message("{"), HasSubstr("x:1"));
}

}  // namespace
}  // namespace penstock::api
