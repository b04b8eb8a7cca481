// Tests the DaemonSets of drivers: what NVIDIA's containers need, and what others select on.
#include "operator/driver/driver_daemon_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/driver/upgrade_state.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

using api::DriverSpec;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const DriverPool kUbuntu{"ubuntu", "22.04", "ubuntu22.04", ""};

DriverSpec BlueDriver() {
  DriverSpec driver;
  driver.name = "blue";
  driver.image = {"nvcr.io/nvidia", "driver", "580.95.05", "", {"pull"}};
  return driver;
}

DriverInstallation InNamespace() {
  DriverInstallation installation;
  installation.namespace_name = "gpu-operator";
  installation.image = "registry/penstock:1";
  installation.service_account = "penstock-driver";
  installation.config_maps = {{"repos", {"a.list", "b.list"}}, {"options", {"nvidia.conf"}}};
  return installation;
}

Json Made(const DriverSpec& driver, const DriverPool& pool = kUbuntu,
          const DriverInstallation& installation = InNamespace()) {
  const auto made = DriverDaemonSet(driver, pool, installation);
  EXPECT_TRUE(made.ok()) << made.error().message();
  return made.ok() ? *made : Json();
}

const Json& ContainerIn(const Json& daemon_set, const char* list, std::size_t index = 0) {
  return daemon_set.at("spec").at("template").at("spec").at(list).at(index);
}

std::string VariableIn(const Json& container, const std::string& name) {
  for (const Json& one : container.at("env"))
    if (one.at("name") == name) return one.value("value", "");
  return "(none)";
}

std::string MountIn(const Json& container, const std::string& path) {
  for (const Json& one : container.at("volumeMounts"))
    if (one.at("mountPath") == path) return one.at("name");
  return "(none)";
}

TEST(DriverDaemonSet, RunsTheUsersContainerAsNvidiasOperatorDoes) {
  const Json made = Made(BlueDriver());
  EXPECT_EQ(made.at("metadata").at("name"), "nvidia-gpu-driver-blue-ubuntu22.04");
  EXPECT_EQ(made.at("spec").at("updateStrategy").at("type"), "OnDelete");
  const Json& container = ContainerIn(made, "containers");
  EXPECT_EQ(container.at("name"), "nvidia-driver-ctr");
  EXPECT_EQ(container.at("image"), "nvcr.io/nvidia/driver:580.95.05-ubuntu22.04");
  EXPECT_EQ(container.at("command"), Json({"nvidia-driver"}));
  EXPECT_EQ(container.at("args"), Json({"init"}));
  EXPECT_EQ(VariableIn(container, "NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_EQ(VariableIn(container, "KERNEL_MODULE_TYPE"), "auto");
  for (const char* path : {"/run/nvidia", "/lib/firmware", "/host-etc/os-release", "/dev/log",
                           "/run/nvidia-fabricmanager", "/run/mellanox/drivers/usr/src"})
    EXPECT_NE(MountIn(container, path), "(none)") << path;
  EXPECT_THAT(container.at("startupProbe").dump(),
              AllOf(HasSubstr("nvidia-smi"), HasSubstr("/run/nvidia/validations/.driver-ctr-ready"),
                    HasSubstr("/sys/module/nvidia/refcnt")));
  EXPECT_THAT(container.at("lifecycle").at("preStop").dump(), HasSubstr(".driver-ctr-ready"));
  const Json& spec = made.at("spec").at("template").at("spec");
  EXPECT_EQ(spec.at("hostPID"), true);
  EXPECT_EQ(spec.at("priorityClassName"), "system-node-critical");
  EXPECT_THAT(spec.at("affinity").at("podAntiAffinity").dump(), HasSubstr("nvidia-vgpu-manager"));
  EXPECT_EQ(spec.at("imagePullSecrets"), Json::parse(R"([{"name": "pull"}])"));
}

TEST(DriverDaemonSet, PreparesTheNodeWithOurOwnImage) {
  const Json made = Made(BlueDriver());
  const Json& container = ContainerIn(made, "initContainers");
  EXPECT_EQ(container.at("image"), "registry/penstock:1");
  EXPECT_EQ(container.at("command"), Json({"penstock", "driver", "prepare"}));
  EXPECT_EQ(VariableIn(container, "DRIVER_CONFIG_DIGEST"), ConfigDigestOf(made));
  EXPECT_EQ(MountIn(container, "/host"), "host-root");
  EXPECT_EQ(MountIn(container, "/sys"), "host-sys");
}

TEST(DriverDaemonSet, OnlyTheInitContainerOfADriverThatLoadsSafelyReachesTheApiServer) {
  const std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  DriverSpec driver = BlueDriver();
  for (const auto& [value, reaches] : {std::pair{"true", true}, {"false", false}, {"", false}}) {
    driver.prepare_environment = {{"DRIVER_SAFE_LOAD", value}};
    const Json made = Made(driver);
    EXPECT_EQ(made.at("spec").at("template").at("spec").at("automountServiceAccountToken"), false);
    EXPECT_EQ(MountIn(ContainerIn(made, "initContainers"), folder) == "api-access", reaches);
    EXPECT_EQ(MountIn(ContainerIn(made, "containers"), folder), "(none)");
  }
}

TEST(DriverDaemonSet, AVariableOfTheUserReplacesOurs) {
  DriverSpec driver = BlueDriver();
  driver.environment = {{"KERNEL_MODULE_TYPE", "proprietary"}};
  const Json made = Made(driver);
  const Json& variables = ContainerIn(made, "containers").at("env");
  std::vector<std::string> values;
  for (const Json& one : variables)
    if (one.at("name") == "KERNEL_MODULE_TYPE") values.push_back(one.at("value"));
  EXPECT_THAT(values, testing::ElementsAre("proprietary"));
}

TEST(DriverDaemonSet, HasEverythingThatADriverSays) {
  DriverSpec driver = BlueDriver();
  driver.module_type = "open";
  driver.arguments = {"--accept"};
  driver.environment = {{"HTTPS_PROXY", "http://proxy"}};
  driver.prepare_environment = {{"FORCE_REINSTALL", "true"}};
  driver.startup_probe.text = R"({"periodSeconds": 7})";
  driver.liveness_probe.text = R"({"periodSeconds": 8})";
  driver.resources.text = R"({"limits": {"cpu": "500m"}})";
  driver.tolerations.text = R"([{"key": "foo"}])";
  driver.pod_security_context.text = R"({"fsGroup": 7})";
  driver.labels = {{"team", "gpu"}, {"app", "mine"}};
  driver.annotations = {{"note", "x"}};
  driver.host_network = driver.peer_memory = driver.host_network_driver = true;
  driver.files = {"repos", "", "options", "license", "", true, "topology", "secret-env"};
  const Json made = Made(driver);
  const Json& pod = made.at("spec").at("template");
  EXPECT_EQ(pod.at("metadata").at("labels").at("team"), "gpu");
  EXPECT_EQ(pod.at("metadata").at("labels").at("app"), "nvidia-gpu-driver-blue-ubuntu22.04");
  EXPECT_EQ(pod.at("metadata").at("annotations").at("note"), "x");
  EXPECT_EQ(pod.at("spec").at("hostNetwork"), true);
  EXPECT_EQ(pod.at("spec").at("securityContext"), Json({{"fsGroup", 7}}));
  EXPECT_EQ(pod.at("spec").at("tolerations").size(), 2u);
  const Json& container = ContainerIn(made, "containers");
  EXPECT_EQ(container.at("args"), Json({"init", "--accept"}));
  EXPECT_EQ(VariableIn(container, "OPEN_KERNEL_MODULES_ENABLED"), "true");
  EXPECT_EQ(VariableIn(container, "GPU_DIRECT_RDMA_ENABLED"), "true");
  EXPECT_EQ(VariableIn(container, "HTTPS_PROXY"), "http://proxy");
  EXPECT_EQ(container.at("startupProbe").at("periodSeconds"), 7);
  EXPECT_EQ(container.at("livenessProbe").at("periodSeconds"), 8);
  EXPECT_FALSE(container.contains("readinessProbe"));
  EXPECT_THAT(container.at("envFrom").dump(), HasSubstr("secret-env"));
  EXPECT_EQ(MountIn(container, "/etc/apt/sources.list.d/b.list"), "repo-config");
  EXPECT_EQ(MountIn(container, "/drivers/nvidia.conf"), "kernel-module-config");
  EXPECT_EQ(MountIn(container, "/drivers/gridd.conf"), "licensing-config");
  EXPECT_EQ(MountIn(container, "/drivers/ClientConfigToken/client_configuration_token.tok"),
            "licensing-config");
  EXPECT_EQ(MountIn(container, "/etc/nvidia/nvidia-topologyd.conf"), "topology-config");
  const Json& peer = ContainerIn(made, "containers", 1);
  EXPECT_EQ(peer.at("args"), Json({"reload_nvidia_peermem"}));
  EXPECT_EQ(peer.at("resources"), container.at("resources"));
  EXPECT_EQ(VariableIn(ContainerIn(made, "initContainers"), "FORCE_REINSTALL"), "true");
}

TEST(DriverDaemonSet, IsForOneKernelIfTheDriverIsCompiled) {
  DriverSpec driver = BlueDriver();
  driver.precompiled = true;
  driver.files.repositories = "repos";
  const Json made = Made(driver, {"ubuntu", "22.04", "ubuntu22.04", "5.15.0-50-generic"});
  const Json& container = ContainerIn(made, "containers");
  EXPECT_EQ(container.at("image"), "nvcr.io/nvidia/driver:580.95.05-5.15.0-50-generic-ubuntu22.04");
  EXPECT_EQ(VariableIn(container, "KERNEL_MODULE_TYPE"), "(none)");
  EXPECT_EQ(MountIn(container, "/etc/apt/sources.list.d/a.list"), "(none)");
  EXPECT_EQ(made.at("metadata").at("labels").at("nvidia.com/precompiled.kernel-version"),
            "5.15.0-50-generic");
}

TEST(DriverDaemonSet, ReportsEverythingThatMakesNoPod) {
  DriverSpec driver = BlueDriver();
  driver.type = "vgpu-host-manager";
  driver.image.version = "";
  driver.resources.text = "[]";
  driver.tolerations.text = "{}";
  const auto made = DriverDaemonSet(driver, kUbuntu, InNamespace());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(made.error().message(),
              AllOf(HasSubstr("vgpu-host-manager is not served"), HasSubstr("has no version"),
                    HasSubstr("resources must be a map"), HasSubstr("tolerations must be a list")));
  driver = BlueDriver();
  driver.files.repositories = "gone";
  driver.files.certificates = "repos";
  const auto missing =
      DriverDaemonSet(driver, {"slackware", "15", "slackware15", ""}, InNamespace());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(missing.error().message(), HasSubstr("where slackware has the files"));
  driver.files.certificates = "";
  EXPECT_THAT(DriverDaemonSet(driver, kUbuntu, InNamespace()).error().message(),
              HasSubstr("ConfigMap gone is not in namespace gpu-operator"));
}

TEST(DriverDaemonSet, HasTheDigestOfWhatItInstallsAndTheHashOfAll) {
  const Json made = Made(BlueDriver());
  DriverSpec labelled = BlueDriver();
  labelled.labels = {{"team", "gpu"}};
  EXPECT_NE(TemplateOf(Made(labelled)), TemplateOf(made));
  EXPECT_EQ(ConfigDigestOf(Made(labelled)), ConfigDigestOf(made))
      << "its pods start again, and install nothing";
  DriverSpec newer = BlueDriver();
  newer.image.version = "590";
  EXPECT_NE(ConfigDigestOf(Made(newer)), ConfigDigestOf(made));
  EXPECT_EQ(TemplateOf(Made(BlueDriver())), TemplateOf(made));
  EXPECT_EQ(made.at("metadata").at("annotations").at("nvidia.com/last-applied-hash"),
            TemplateOf(made));
  EXPECT_EQ(ConfigDigestOf(Json{{"spec", made.at("spec").at("template").at("spec")}}),
            ConfigDigestOf(made));
}

TEST(DriverDaemonSet, KeepsTheTemplateThatWorkedForNodesThatAreRolledBack) {
  const Json first = Made(BlueDriver());
  EXPECT_EQ(HeldDaemonSet(first), std::nullopt);
  DriverSpec changed = BlueDriver();
  changed.image.version = "590";
  Json second = Made(changed);
  KeepPrevious(second, first, true);
  EXPECT_EQ(PreviousOf(second), TemplateOf(first));
  const auto held = HeldDaemonSet(second);
  ASSERT_TRUE(held);
  EXPECT_NE(held->at("metadata").at("name"), second.at("metadata").at("name"));
  EXPECT_EQ(TemplateOf(*held), TemplateOf(first));
  EXPECT_EQ(ContainerIn(*held, "containers"), ContainerIn(first, "containers"));
  const Json& selector = held->at("spec").at("template").at("spec").at("nodeSelector");
  EXPECT_EQ(selector.at(std::string(kHeldLabel)), TemplateOf(first));
  EXPECT_THAT(held->at("spec").at("template").at("spec").at("affinity").dump(),
              Not(HasSubstr("DoesNotExist")));

  // A third that follows one that failed keeps the first.
  changed.image.version = "591";
  Json third = Made(changed);
  KeepPrevious(third, second, false);
  EXPECT_EQ(PreviousOf(third), TemplateOf(first));
  Json again = Made(BlueDriver());
  KeepPrevious(again, second, false);
  EXPECT_THAT(PreviousOf(again), IsEmpty()) << "it is what it would keep";
}

}  // namespace
}  // namespace penstock::cluster
