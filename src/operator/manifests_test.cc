#include "operator/manifests.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/config/config_revision.h"
#include "operator/agent_config.h"
#include "operator/embedded_files.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "operator/testing/definitions.h"

namespace penstock::cluster {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Installation kInstallation{.namespace_name = "gpu-operator", .image = "localhost/penstock:1"};
const PolicyName kOwner{"nvidia.com/v1", "ClusterPolicy", "cluster-policy", "u1"};

json SetOf(const api::PenstockSpec& spec) {
  const auto set = AgentDaemonSet(spec, kInstallation, "configuration");
  EXPECT_TRUE(set.ok()) << (set.ok() ? "" : set.error().message());
  return set.ok() ? *set : json();
}
json PodOf(const api::PenstockSpec& spec) { return SetOf(spec)["spec"]["template"]["spec"]; }
json ContainerOf(const api::PenstockSpec& spec) { return PodOf(spec)["containers"][0]; }

/// Of the pods that take back what agents left.
json ReleaseOf(const api::PenstockSpec& spec, const std::set<std::string>& had_agents = {}) {
  const auto objects = HostReleaseOf(spec, kInstallation, had_agents);
  EXPECT_TRUE(objects.ok()) << (objects.ok() ? "" : objects.error().message());
  return objects.ok() ? (*objects)[1].object["spec"]["template"]["spec"] : json();
}

json Named(const json& list, const std::string& name) {
  for (const json& one : list)
    if (TextAt(one, "/name") == name) return one;
  return {};
}

TEST(Embedded, HasTheDefinitionsOfAllPolicies) {
  const auto all = EmbeddedObjects("CustomResourceDefinition");
  ASSERT_TRUE(all.ok());
  std::vector<std::string> names;
  for (const json& one : *all) names.push_back(TextAt(one, "/metadata/name"));
  for (const auto& kind : api::compat::PolicyKinds())
    EXPECT_THAT(names, Contains(kind.plural + "." + kind.group));
  EXPECT_THAT(names, Contains("penstocks.penstock.io"));
  EXPECT_THAT(names, Contains("nodestates.penstock.io"));
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(DefinitionNames()));
}

TEST(Manifests, AnOwnerInANamespaceOwnsNoObjectOfTheCluster) {
  PolicyName owner = kOwner;
  owner.namespace_name = "gpu-operator";
  api::PenstockSpec spec;
  spec.runtime_classes = {{"nvidia", "nvidia"}};
  for (const PolicyName& one : {kOwner, owner}) {
    const auto objects = ObjectsOf(spec, kInstallation, one);
    ASSERT_TRUE(objects.ok());
    std::size_t owned = 0;
    for (const WantedObject& object : *objects)
      owned += object.object["metadata"].contains("ownerReferences") ? 1 : 0;
    EXPECT_EQ(owned, objects->size() - (one == owner ? 1 : 0));
  }
}

TEST(Manifests, TheSelectorSelectsThePods) {
  const json set = SetOf({});
  EXPECT_TRUE(Covers(set["spec"]["template"]["metadata"]["labels"],
                     set["spec"]["selector"]["matchLabels"]));
  EXPECT_EQ(set["metadata"], json({{"name", "penstock-agent"}}));
}

TEST(Manifests, AUsersSettingsOfPodsAreAddedToOurs) {
  api::PenstockSpec spec;
  spec.agent.labels = {{"team", "a"}, {"app.kubernetes.io/name", "mine"}};
  spec.agent.tolerations.text = R"([{"key": "x", "operator": "Exists"}])";
  spec.agent.environment = {{"NODE_NAME", "fixed"}, {"X", "1"}};
  spec.agent.volumes.text = R"([{"name": "v", "emptyDir": {}}])";
  spec.agent.volume_mounts.text = R"([{"name": "v", "mountPath": "/v"}])";
  spec.agent.affinity.text = R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}})";
  const json set = SetOf(spec), pod = PodOf(spec);
  EXPECT_EQ(set["spec"]["template"]["metadata"]["labels"]["team"], "a");
  EXPECT_EQ(set["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"], "penstock");
  EXPECT_EQ(pod["tolerations"].size(), 5);
  EXPECT_EQ(Named(pod["containers"][0]["env"], "X")["value"], "1");
  EXPECT_EQ(Named(pod["containers"][0]["env"], "NODE_NAME"),
            json({{"name", "NODE_NAME"}, {"value", "fixed"}}));
  EXPECT_FALSE(Named(pod["volumes"], "v").is_null());
  const json terms = pod["affinity"]["nodeAffinity"]
                        ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  EXPECT_EQ(terms[0]["matchExpressions"].size(), 2) << terms;
}

TEST(Manifests, ARollOutReplacesAsManyAtOnceAsThePolicyAllows) {
  api::PenstockSpec spec;
  EXPECT_EQ(SetOf(spec)["spec"]["updateStrategy"]["rollingUpdate"],
            json({{"maxSurge", 1}, {"maxUnavailable", 0}}));
  spec.agent.update.max_unavailable = "25%";
  EXPECT_EQ(SetOf(spec)["spec"]["updateStrategy"]["rollingUpdate"],
            json({{"maxSurge", 0}, {"maxUnavailable", "25%"}}));
  spec.agent.update.max_unavailable = "2";
  EXPECT_EQ(SetOf(spec)["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 2);
  spec.agent.update.on_delete = true;
  EXPECT_EQ(SetOf(spec)["spec"]["updateStrategy"], json({{"type", "OnDelete"}}));
}

TEST(Manifests, TheFolderOfAmdsHealthSocketIsMountedOnRequest) {
  api::PenstockSpec spec;
  EXPECT_TRUE(Named(PodOf(spec)["volumes"], "amd-health").is_null());
  EXPECT_TRUE(Named(ContainerOf(spec)["volumeMounts"], "amd-health").is_null());
  spec.host.health_sockets = true;
  const std::string folder = "/var/lib/amd-metrics-exporter";
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "amd-health")["hostPath"],
            json({{"path", folder}, {"type", "DirectoryOrCreate"}}));
  EXPECT_EQ(Named(ContainerOf(spec)["volumeMounts"], "amd-health"),
            json({{"name", "amd-health"}, {"mountPath", folder}}));
}

TEST(Manifests, ADriverRootIsMountedAndNamedInTheConfiguration) {
  api::PenstockSpec spec;
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "driver-root")["hostPath"]["path"], "/");
  EXPECT_EQ(Named(ContainerOf(spec)["volumeMounts"], "driver-root")["readOnly"], true);
  spec.node.paths.host_driver_root = "/opt/driver";
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "driver-root")["hostPath"]["path"], "/opt/driver");
  const api::NodeConfig config = ConfigOfPod(spec, "gpu-operator");
  EXPECT_EQ(config.paths.driver_root, "/driver-root");
  EXPECT_EQ(config.paths.dev_root, "/driver-root");
  EXPECT_EQ(config.paths.host_driver_root, "/opt/driver");
  EXPECT_EQ(config.paths.driver_container_root, "");
}

TEST(Manifests, ADriverContainersRootIsBelowTheHostsRoot) {
  api::PenstockSpec spec;
  EXPECT_EQ(ConfigOfPod(spec, "gpu-operator").paths.driver_container_root, "/run/nvidia/driver");
  spec.host.driver_root = "/opt/driver";
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "driver-root")["hostPath"]["path"], "/");
  EXPECT_EQ(Named(ContainerOf(spec)["volumeMounts"], "driver-root")["mountPropagation"],
            "HostToContainer");
  const api::NodeConfig config = ConfigOfPod(spec, "gpu-operator");
  EXPECT_EQ(config.paths.driver_container_root, "/opt/driver");
  EXPECT_EQ(config.paths.host_driver_root, "/");
  spec.node.paths.driver_container_root = "/run/driver";
  EXPECT_EQ(ConfigOfPod(spec, "gpu-operator").paths.driver_container_root, "/run/driver");
}

// kubernetes#120626: --root-dir moves the folder of pod-resources, and not that of device plugins.
TEST(Manifests, TheKubeletsTwoFoldersAreMountedWhereItHasThem) {
  api::PenstockSpec spec;
  const auto paths = [&] {
    const json volumes = PodOf(spec)["volumes"];
    return json{Named(volumes, "device-plugins")["hostPath"]["path"],
                Named(volumes, "pod-resources")["hostPath"]["path"]};
  };
  EXPECT_EQ(paths(), json({"/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pod-resources"}));
  spec.host.kubelet_dir = "/data/kubelet";
  EXPECT_EQ(paths(), json({"/var/lib/kubelet/device-plugins", "/data/kubelet/pod-resources"}));
  spec.host.device_plugins_dir = "/data/plugins";
  EXPECT_EQ(paths(), json({"/data/plugins", "/data/kubelet/pod-resources"}));
  EXPECT_EQ(ConfigOfPod(spec, "gpu-operator").paths.kubelet_dir, "/var/lib/kubelet")
      << "in the pod they are where a kubelet has them usually";
}

// Talos, Bottlerocket, Flatcar, Container-Optimized OS: a folder that is missing elsewhere cannot
// be made there, and keeps the pod from starting.
TEST(Manifests, NoFolderOfAHostIsWrittenOrMadeOutsideRunAndVar) {
  const json pod = PodOf({});
  std::vector<std::string> written;
  for (const json& volume : pod["volumes"]) {
    if (!volume.contains("hostPath")) continue;
    const json host = volume["hostPath"];
    const std::string path = host["path"], type = host.value("type", "");
    const json mount = Named(pod["containers"][0]["volumeMounts"], volume["name"]);
    if (!mount.value("readOnly", false) || type.ends_with("OrCreate")) written.push_back(path);
  }
  EXPECT_THAT(written, Each(testing::AnyOf(testing::StartsWith("/run/"),
                                           testing::StartsWith("/var/"), testing::Eq("/dev"))));
  EXPECT_THAT(written, Contains("/var/lib/penstock"));
}

TEST(Manifests, TheFolderOfJobsIsMountedToBeRead) {
  api::PenstockSpec spec;
  EXPECT_TRUE(Named(PodOf(spec)["volumes"], "jobs").is_null());
  spec.node.telemetry.job_directory = "/run/jobs";
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "jobs"),
            json({{"name", "jobs"},
                  {"hostPath", {{"path", "/run/jobs"}, {"type", "DirectoryOrCreate"}}}}));
  EXPECT_EQ(Named(ContainerOf(spec)["volumeMounts"], "jobs"),
            json({{"name", "jobs"}, {"mountPath", "/run/jobs"}, {"readOnly", true}}));
  EXPECT_EQ(ConfigOfPod(spec, "gpu-operator").telemetry.job_directory, "/run/jobs");
}

TEST(Manifests, NodesThatNothingSelectsHaveNoConfiguration) {
  api::PenstockSpec spec;
  spec.config_maps.configurations = "time-slicing-config";
  const auto fallbacks = [&] {
    return ConfigOfPod(spec, "gpu-operator").cluster.config_map.fallbacks;
  };
  EXPECT_THAT(fallbacks(), ElementsAre("empty"));
  spec.node.cluster.config_map.fallbacks = {"named"};
  EXPECT_THAT(fallbacks(), ElementsAre("named")) << "a Penstock object may say otherwise";
}

TEST(Manifests, TheConfigurationIsShortAndReadable) {
  api::PenstockSpec spec;
  spec.config_maps.layouts = "layouts";
  const std::string text = api::ToShortYaml(ConfigOfPod(spec, "gpu-operator"));
  EXPECT_THAT(text, HasSubstr("layouts: \"/etc/penstock-layouts/config.yaml\""));
  EXPECT_THAT(text, Not(HasSubstr("probation")));
  const auto read = api::ParseNodeConfig(text, "node.yaml");
  ASSERT_TRUE(read.ok()) << read.error().message() << "\n" << text;
  EXPECT_EQ(api::ToYaml(*read), api::ToYaml(ConfigOfPod(spec, "gpu-operator")));
}

TEST(Manifests, AnAgentKnowsTheRevisionOfItsConfiguration) {
  api::PenstockSpec spec;
  spec.agent.environment = {{"PENSTOCK_CONFIG_REVISION", "theirs"}};
  const auto revision = [&spec](const std::string& configuration) {
    const json set = *AgentDaemonSet(spec, kInstallation, configuration);
    json found = json::array();
    for (const json& one : set["spec"]["template"]["spec"]["containers"][0]["env"])
      if (one["name"] == "PENSTOCK_CONFIG_REVISION") found.push_back(one["value"]);
    return found;
  };
  EXPECT_EQ(revision("version: v1\n"), json({api::ConfigRevision("version: v1\n")}));
  EXPECT_NE(revision("version: v1\n"), revision(""));
}

TEST(Manifests, AmdsConfigurationsAreMountedAndNamedInTheAgentsConfiguration) {
  api::PenstockSpec spec;
  spec.config_maps.exporter = "amd-metrics";
  spec.config_maps.mode_profiles = "dcm";
  const api::NodeConfig config = ConfigOfPod(spec, "gpu-operator");
  EXPECT_EQ(config.telemetry.exporter_file, "/etc/penstock-exporter/config.json");
  EXPECT_EQ(config.mode_profiles_file, "/etc/penstock-modes/config.json");
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "exporter")["configMap"]["name"], "amd-metrics");
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "modes")["configMap"]["name"], "dcm");
  EXPECT_EQ(Named(ContainerOf(spec)["volumeMounts"], "modes"),
            json({{"name", "modes"}, {"mountPath", "/etc/penstock-modes"}, {"readOnly", true}}));
}

TEST(Manifests, TheServicesThatAreStoppedAreMountedAndNamedInTheAgentsConfiguration) {
  api::PenstockSpec spec;
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "clients"), json());
  spec.config_maps.client_services = "our-clients";
  EXPECT_EQ(ConfigOfPod(spec, "gpu-operator").client_services_file,
            "/etc/penstock-clients/clients.yaml");
  EXPECT_EQ(Named(PodOf(spec)["volumes"], "clients")["configMap"],
            json({{"name", "our-clients"}, {"optional", true}}));
  EXPECT_EQ(
      Named(ContainerOf(spec)["volumeMounts"], "clients"),
      json({{"name", "clients"}, {"mountPath", "/etc/penstock-clients"}, {"readOnly", true}}));
}

TEST(Manifests, PartsThatAreNoObjectsAreRefusedTogether) {
  api::PenstockSpec spec;
  spec.agent.volumes.text = "{}";
  spec.agent.affinity.text = "[";
  const auto objects = ObjectsOf(spec, kInstallation, kOwner);
  ASSERT_FALSE(objects.ok());
  EXPECT_THAT(objects.error().message(), HasSubstr("volumes must be a list"));
  EXPECT_THAT(objects.error().message(), HasSubstr("affinity must be a map"));
}

TEST(Manifests, WhatAgentsLeftIsTakenBackInTheOperatorsImageWhicheverAgentsHave) {
  api::PenstockSpec spec;
  spec.agent.pull_policy = "Never";
  const auto container = [&spec] { return ReleaseOf(spec)["containers"][0]; };
  EXPECT_EQ(container()["image"], kInstallation.image);
  EXPECT_EQ(container()["imagePullPolicy"], "Never") << "it is the agents' image";
  spec.agent.image = "localhost/penstock:0";
  EXPECT_EQ(ContainerOf(spec)["image"], "localhost/penstock:0");
  EXPECT_EQ(container()["image"], kInstallation.image);
  EXPECT_EQ(container()["imagePullPolicy"], kInstallation.pull_policy);
}

TEST(Manifests, AReleaseReachesTheValidatorsFilesAlsoWithoutThePolicyThatHadThem) {
  constexpr char kName[] = "validations";
  EXPECT_TRUE(Named(ContainerOf({})["volumeMounts"], kName).is_null());
  const json pod = ReleaseOf({});
  for (const json& one : {Named(pod["containers"][0]["volumeMounts"], kName)["mountPath"],
                          Named(pod["volumes"], kName)["hostPath"]["path"]})
    EXPECT_EQ(one, "/run/nvidia/validations");
}

TEST(Manifests, AReleaseRunsWhereTheLastPolicySelectsAndWhereAgentsWere) {
  constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
  api::PenstockSpec spec;
  const json agent = PodOf({});
  const auto expect_all = [&](const json& pod) {
    for (const char* place : {"nodeSelector", "affinity"}) EXPECT_EQ(pod[place], agent[place]);
  };
  expect_all(ReleaseOf(spec, {"n1"}));
  spec.agent.node_selector = {{"vendor", "amd"}};
  spec.agent.affinity.text = R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "odd"]}},
      "podAntiAffinity": {}})";
  expect_all(ReleaseOf(spec));  // nothing says where they were
  const json pod = ReleaseOf(spec, {"n1"});
  EXPECT_EQ(pod["nodeSelector"], agent["nodeSelector"]);
  EXPECT_EQ(pod["affinity"].size(), 1u);
  const json& own = agent["affinity"]["nodeAffinity"][kRequired]["nodeSelectorTerms"];
  const json amd = {{"key", "vendor"}, {"operator", "In"}, {"values", {"amd"}}},
             any = {{"key", "a"}, {"operator", "Exists"}},
             name = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n1"}}};
  EXPECT_EQ(
      pod["affinity"]["nodeAffinity"][kRequired]["nodeSelectorTerms"],
      json::array({{{"matchExpressions", json::array({any, own[0]["matchExpressions"][0], amd})}},
                   {{"matchFields", json::array({name})}}}));
}

TEST(Manifests, AReleaseNeedsNothingThatMayBeDeletedTogetherWithThePolicy) {
  api::PenstockSpec spec;
  spec.agent.priority_class = "site";
  spec.agent.resources.text = R"({"limits": {"example.com/x": "1"}})";
  spec.agent.pod_security_context.text = R"({"seccompProfile": {"type": "Localhost"}})";
  spec.agent.volumes.text = R"([{"name": "theirs", "configMap": {"name": "site"}},
      {"name": "secret", "secret": {"secretName": "site"}}, {"name": "opt", "hostPath": {"path": "/opt"}},
      {"name": "nfd", "hostPath": {"path": "/etc/nfd", "type": "Directory"}}])";
  spec.agent.volume_mounts.text = R"([{"name": "theirs", "mountPath": "/site"},
      {"name": "secret", "mountPath": "/etc"}, {"name": "opt", "mountPath": "/opt"},
      {"name": "nfd", "mountPath": "/etc/features.d"},
      {"name": "nfd", "mountPath": "/run/nvidia/validations"}])";
  spec.node.labels.features_file = "/etc/features.d/penstock";
  spec.config_maps.layouts = "layouts";
  const json pod = ReleaseOf(spec), container = pod["containers"][0], agent = PodOf({});
  EXPECT_EQ(pod["priorityClassName"], agent["priorityClassName"]);
  EXPECT_EQ(container["resources"], agent["containers"][0]["resources"]);
  EXPECT_FALSE(pod.contains("securityContext"));
  const auto names = [](const json& list) {
    std::vector<std::string> all;
    for (const json& one : list) all.push_back(TextAt(one, "/name"));
    return all;
  };
  for (const json& list : {pod["volumes"], container["volumeMounts"]})
    EXPECT_THAT(names(list), ElementsAre("config", "run", "state", "cdi", "validations", "nfd"))
        << "no path is mounted twice";
}

TEST(Manifests, AServiceHasThePortThatMonitorsSelect) {
  const json service = ServiceOf({.name = "nvidia-dcgm-exporter", .port = 9400});
  EXPECT_EQ(service["spec"]["ports"][0]["name"], "gpu-metrics");
  EXPECT_EQ(service["spec"]["ports"][0]["targetPort"], "metrics");
}

TEST(Manifests, AServiceForClientsOutsideTheClusterHasItsPortOfTheNodes) {
  const json service = ServiceOf(
      {.name = "s", .type = "NodePort", .node_port = 32500, .external_traffic_policy = "Local"});
  EXPECT_EQ(service["spec"]["ports"][0]["nodePort"], 32500);
  EXPECT_EQ(service["spec"]["externalTrafficPolicy"], "Local");
  const json plain = ServiceOf({.name = "s"});
  EXPECT_FALSE(plain["spec"]["ports"][0].contains("nodePort"));
  EXPECT_FALSE(plain["spec"].contains("externalTrafficPolicy"));
}

TEST(Manifests, AMonitorHasTheRulesForTargetsAndSeries) {
  api::MetricsService service{.name = "nvidia-node-status-exporter",
                              .port = 8000,
                              .labels = {{"app", "nvidia-node-status-exporter"}}};
  const json plain = MonitorOf(service, "gpu-operator")["spec"]["endpoints"][0];
  EXPECT_EQ(plain, json({{"port", "node-status"}, {"path", "/metrics"}}));
  service.relabelings.text = R"([{"action": "keep"}])";
  service.metric_relabelings.text = R"([{"action": "drop"}])";
  const json endpoint = MonitorOf(service, "gpu-operator")["spec"]["endpoints"][0];
  EXPECT_EQ(endpoint["relabelings"], json::parse(R"([{"action": "keep"}])"));
  EXPECT_EQ(endpoint["metricRelabelings"], json::parse(R"([{"action": "drop"}])"));
}

TEST(Manifests, EveryObjectHasAnOwnerAndItsHash) {
  api::PenstockSpec spec;
  spec.services = {{.name = "s", .monitor = true}};
  spec.runtime_classes = {{"nvidia", "nvidia"}};
  const auto objects = ObjectsOf(spec, kInstallation, kOwner);
  ASSERT_TRUE(objects.ok());
  EXPECT_EQ(objects->size(), 5u);
  for (const WantedObject& one : *objects) {
    EXPECT_EQ(one.object["metadata"]["ownerReferences"][0]["uid"], "u1");
    EXPECT_TRUE(one.object["metadata"]["annotations"].contains(kAppliedHash));
    EXPECT_EQ(one.object["metadata"].contains("namespace"), one.kind->namespaced);
  }
}

}  // namespace
}  // namespace penstock::cluster
