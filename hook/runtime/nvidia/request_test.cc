#include "hook/runtime/nvidia/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::hook::runtime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

RuntimeFacts Environment(std::map<std::string, std::string, std::less<>> environment) {
  RuntimeFacts facts;
  facts.environment = std::move(environment);
  return facts;
}

RuntimeFacts Visible(const std::string& devices) {
  return Environment({{"NVIDIA_VISIBLE_DEVICES", devices}});
}

RuntimeFacts Mounts(std::vector<std::string> destinations, std::string source = "/dev/null") {
  RuntimeFacts facts;
  for (std::string& destination : destinations)
    facts.mounts.push_back({source, std::move(destination)});
  return facts;
}

/// With annotations that the container's creator set.
RuntimeFacts Annotated(std::map<std::string, std::string, std::less<>> annotations,
                       RuntimeFacts facts = {}) {
  facts.annotations = facts.own_annotations = std::move(annotations);
  return facts;
}

RuntimeFacts InKubernetes(RuntimeFacts facts) {
  facts.annotations["io.kubernetes.cri.container-type"] = "container";
  return facts;
}

DeviceRequest Requested(const RuntimeFacts& facts, const Config& config = {}) {
  auto request = ReadRequest(facts, config);
  EXPECT_TRUE(request.ok()) << request.error().message();
  return request.ok() ? *std::move(request) : DeviceRequest();
}

std::string ErrorOf(const RuntimeFacts& facts, const Config& config = {}) {
  const auto request = ReadRequest(facts, config);
  return request.ok() ? "" : request.error().message();
}

TEST(DeviceRequest, IsEmptyWhereNoOneAsks) {
  EXPECT_TRUE(Requested({}).Empty());
  for (const char* value : {"", "void", " ,, ", "0,void", "void,all", "none,void"})
    EXPECT_TRUE(Requested(Visible(value)).Empty()) << value;
}

TEST(DeviceRequest, TakesEveryFormOfNameOnce) {
  EXPECT_THAT(Requested(Visible("all")).devices, ElementsAre("nvidia.com/gpu=all"));
  EXPECT_THAT(Requested(Visible("1, 0,1,,GPU-5a3c,0:1,MIG-77f1")).devices,
              ElementsAre("nvidia.com/gpu=1", "nvidia.com/gpu=0", "nvidia.com/gpu=GPU-5a3c",
                          "nvidia.com/gpu=0:1", "nvidia.com/gpu=MIG-77f1"));
  EXPECT_THAT(
      Requested(Visible("nvidia.com/gpu=0,nvidia.com/imex-channel=1,runtime.nvidia.com/gpu=2"))
          .devices,
      ElementsAre("nvidia.com/gpu=0", "nvidia.com/imex-channel=1", "nvidia.com/gpu=2"));
  Config management;
  management.default_kind = "management.nvidia.com/gpu";
  EXPECT_THAT(Requested(Visible("all"), management).devices,
              ElementsAre("management.nvidia.com/gpu=all"));
}

TEST(DeviceRequest, NoneIsTheDriverAndAllIsMoreThanSome) {
  const DeviceRequest none = Requested(Visible("0,none,all"));
  EXPECT_TRUE(none.driver);
  EXPECT_THAT(none.devices, IsEmpty());
  EXPECT_THAT(Requested(Visible("0,all")).devices, ElementsAre("nvidia.com/gpu=all"));
}

TEST(DeviceRequest, RefusesWhatIsNoNameBeforeAnyUse) {
  for (const std::string value :
       {"../../etc", "0/../../etc/passwd", "/dev/sda", "-1", "a b", "0\n1x y", "nvidia.com/gpu",
        "nvidia.com/gpu=", "=0", "nvidia.com/../gpu=0", "nvidia.com/gpu=../0", "$(reboot)",
        "0;reboot", "\xff\xfe", "GPU-\x01"}) {
    const auto request = ReadRequest(Visible(value), {});
    ASSERT_FALSE(request.ok()) << value;
    EXPECT_EQ(request.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(request.error().message(), HasSubstr("NVIDIA_VISIBLE_DEVICES requests \""));
    for (const char c : request.error().message()) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << value;
  }
}

TEST(DeviceRequest, IsNotKeptBusyByLongLists) {
  std::string names;
  for (int i = 0; i < 10000; ++i) names += std::to_string(i) + ",";
  const base::Error many = ReadRequest(Visible(names), {}).error();
  EXPECT_EQ(many.code(), Code::kResourceExhausted);
  EXPECT_THAT(many.message(), HasSubstr("more than 4096 devices; use \"all\""));
  EXPECT_LT(ErrorOf(Visible(std::string(8u << 20, 'x') + "/")).size(), 400u);
  std::string same;
  for (int i = 0; i < 10000; ++i) same += "0,";
  EXPECT_THAT(Requested(Visible(same)).devices, SizeIs(1));
}

TEST(DeviceRequest, AnnotationsComeBeforeMountsAndTheseBeforeTheEnvironment) {
  RuntimeFacts facts = Mounts({"/var/run/nvidia-container-devices/2"});
  facts.environment = {{"NVIDIA_VISIBLE_DEVICES", "3"}};
  facts = Annotated({{"cdi.k8s.io/b", "nvidia.com/gpu=1"},
                     {"cdi.k8s.io/a", "nvidia.com/gpu=0,vendor.com/class=x"},
                     {"other", "x"}},
                    facts);
  const DeviceRequest annotated = Requested(facts);
  EXPECT_TRUE(annotated.by_annotation);
  EXPECT_THAT(annotated.devices,
              ElementsAre("nvidia.com/gpu=0", "vendor.com/class=x", "nvidia.com/gpu=1"));
  facts = Annotated({}, facts);
  EXPECT_THAT(Requested(facts).devices, ElementsAre("nvidia.com/gpu=2"));
  Config without_mounts;
  without_mounts.accept_mounts = false;
  EXPECT_THAT(Requested(facts, without_mounts).devices, ElementsAre("nvidia.com/gpu=3"));
}

TEST(DeviceRequest, AnAnnotationMustBeQualifiedWhole) {
  for (const char* value :
       {"0", "nvidia.com/gpu=0,1", "nvidia.com/gpu=0, nvidia.com/gpu=1", "", "../../etc"})
    EXPECT_THAT(ErrorOf(Annotated({{"cdi.k8s.io/x", value}})),
                HasSubstr("the annotation \"cdi.k8s.io/x\" requests"))
        << value;
}

TEST(DeviceRequest, AnnotationsThatAreNotTheContainersOwnCountForNothing) {
  RuntimeFacts facts = Annotated({{"cdi.k8s.io/own", "k8s.device-plugin.nvidia.com/gpu=GPU-1"}});
  facts.annotations["cdi.k8s.io/x"] = "nvidia.com/gpu=all";
  const DeviceRequest request = Requested(facts);
  EXPECT_THAT(request.devices, ElementsAre("k8s.device-plugin.nvidia.com/gpu=GPU-1"));
  ASSERT_THAT(request.remarks, SizeIs(1));
  EXPECT_EQ(request.remarks[0].level, RuntimeLogLevel::kWarn);
  EXPECT_THAT(request.remarks[0].text,
              AllOf(HasSubstr("\"cdi.k8s.io/x\" is ignored"), HasSubstr("resources.limits")));
  facts.own_annotations.clear();
  EXPECT_TRUE(Requested(facts).Empty());
}

TEST(DeviceRequest, ImagesNameDevicesOfTheDefaultKindOnly) {
  for (const std::string name : {"management.nvidia.com/gpu=all", "nvidia.com/mig-caps=x",
                                 "acme.com/net=y", "nvidia.com/gds=0"}) {
    RuntimeFacts facts = Visible("0," + name);
    const auto refused = ReadRequest(facts, {});
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
    EXPECT_THAT(refused.error().message(), AllOf(HasSubstr(name), HasSubstr("use --device")));
    facts.privileged = true;
    EXPECT_THAT(Requested(facts).devices, ElementsAre("nvidia.com/gpu=0", name));
    EXPECT_THAT(Requested(Annotated({{"cdi.k8s.io/x", name}})).devices, ElementsAre(name))
        << "the creator of a container may name any";
  }
  EXPECT_THAT(
      Requested(Mounts({"/var/run/nvidia-container-devices/cdi/management.nvidia.com/gpu/all"}))
          .devices,
      ElementsAre("management.nvidia.com/gpu=all"));
  EXPECT_THAT(Requested(Visible("nvidia.com/gds=all,nvidia.com/mofed=all")).devices,
              ElementsAre("nvidia.com/gds=all", "nvidia.com/mofed=all"));
}

TEST(DeviceRequest, MountsOfTheListAreNames) {
  EXPECT_THAT(Requested(Mounts({"/var/run/nvidia-container-devices/GPU-5a",
                                "/var/run/nvidia-container-devices//./1/"}))
                  .devices,
              ElementsAre("nvidia.com/gpu=GPU-5a", "nvidia.com/gpu=1"));
  EXPECT_THAT(Requested(Mounts({"/var/run/nvidia-container-devices/all"})).devices,
              ElementsAre("nvidia.com/gpu=all"));
  EXPECT_THAT(Requested(Mounts({"/var/run/nvidia-container-devices/cdi/nvidia.com/gpu/0",
                                "/var/run/nvidia-container-devices/cdi/a.com/class=c"}))
                  .devices,
              ElementsAre("nvidia.com/gpu=0", "a.com/class=c"));
  EXPECT_THAT(Requested(Mounts({"/var/run/nvidia-container-devices/imex/3"})).devices,
              ElementsAre("nvidia.com/imex-channel=3"));
}

TEST(DeviceRequest, OtherMountsAreNone) {
  EXPECT_TRUE(Requested(Mounts({"/var/run/nvidia-container-devices/all"}, "/etc/passwd")).Empty());
  EXPECT_TRUE(Requested(Mounts({"/var/run/nvidia-container-devices-of-others/all",
                                "/var/run/nvidia-container-devices", "/x"}))
                  .Empty());
  EXPECT_TRUE(Requested(Mounts({"/var/run/nvidia-container-devices/../../../etc/passwd",
                                "/var/run/nvidia-container-devices/.."}))
                  .Empty());
  EXPECT_THAT(ErrorOf(Mounts({"/var/run/nvidia-container-devices/a/b"})),
              HasSubstr("requests \"a/b\", which is not a device name"));
  EXPECT_THAT(ErrorOf(Mounts({"/var/run/nvidia-container-devices/cdi/a/b"})),
              HasSubstr("requests"));
  EXPECT_THAT(ErrorOf(Mounts({"/var/run/nvidia-container-devices/cdi/a.com/b/c/d"})),
              HasSubstr("requests"));
}

TEST(DeviceRequest, SwarmsVariablesCountInsteadWhereTheyAreSet) {
  Config config;
  config.swarm_resources = {"DOCKER_RESOURCE_GPU", "OTHER"};
  EXPECT_THAT(Requested(Environment({{"NVIDIA_VISIBLE_DEVICES", "all"},
                                     {"DOCKER_RESOURCE_GPU", "1"},
                                     {"OTHER", "2"}}),
                        config)
                  .devices,
              ElementsAre("nvidia.com/gpu=1", "nvidia.com/gpu=2"));
  EXPECT_TRUE(Requested(Environment({{"NVIDIA_VISIBLE_DEVICES", "all"}, {"OTHER", "void"}}), config)
                  .Empty());
  EXPECT_THAT(Requested(Visible("all"), config).devices, ElementsAre("nvidia.com/gpu=all"));
}

TEST(DeviceRequest, AnImagesVariablesDoNotOutdoDockersGpus) {
  const Config swarm{.swarm_resources = {"DOCKER_RESOURCE_GPU"}};
  RuntimeFacts facts =
      Environment({{"DOCKER_RESOURCE_GPU", "all"}, {"NVIDIA_VISIBLE_DEVICES", "0"}});
  EXPECT_THAT(Requested(facts, swarm).devices, ElementsAre("nvidia.com/gpu=all"));
  facts.gpus_hook = true;
  EXPECT_THAT(Requested(facts, swarm).devices, ElementsAre("nvidia.com/gpu=0"));
}

TEST(DeviceRequest, DockersGpusAreRefusedAloudWhereTheEnvironmentMayNotAsk) {
  const Config closed{.accept_environment = false};
  RuntimeFacts facts = Visible("0");
  EXPECT_TRUE(Requested(facts, closed).Empty());
  facts.gpus_hook = true;
  EXPECT_THAT(ErrorOf(facts, closed), AllOf(HasSubstr("docker's --gpus"),
                                            HasSubstr("accept-nvidia-visible-devices-envvar")));
  // With other engines the hook is added to every container, and the variable may be the image's.
  EXPECT_TRUE(Requested(InKubernetes(facts), closed).Empty());
  facts.annotations["io.container.manager"] = "libpod";
  EXPECT_TRUE(Requested(facts, closed).Empty());
}

TEST(DeviceRequest, ImagesOfOldAskForAll) {
  EXPECT_THAT(Requested(Environment({{"CUDA_VERSION", "8.0.61"}})).devices,
              ElementsAre("nvidia.com/gpu=all"));
  EXPECT_TRUE(
      Requested(Environment({{"CUDA_VERSION", "8.0.61"}, {"NVIDIA_VISIBLE_DEVICES", ""}})).Empty());
  EXPECT_TRUE(
      Requested(Environment({{"CUDA_VERSION", "12.4.1"}, {"NVIDIA_REQUIRE_CUDA", "cuda>=12.4"}}))
          .Empty());
}

TEST(DeviceRequest, InKubernetesImagesGetNothingByEnvironment) {
  const RuntimeFacts pods[] = {
      InKubernetes(Visible("all")), InKubernetes(Environment({{"CUDA_VERSION", "8.0"}})),
      Environment({{"NVIDIA_VISIBLE_DEVICES", "0"}, {"KUBERNETES_SERVICE_HOST", ""}}),
      InKubernetes(Environment({{"NVIDIA_IMEX_CHANNELS", "0"}}))};
  for (const RuntimeFacts& pod : pods) {
    const DeviceRequest request = Requested(pod);
    EXPECT_TRUE(request.Empty());
    ASSERT_THAT(request.remarks, SizeIs(1));
    EXPECT_EQ(request.remarks[0].level, RuntimeLogLevel::kWarn);
    EXPECT_THAT(request.remarks[0].text,
                AllOf(HasSubstr("is ignored"), HasSubstr("resources.limits"),
                      HasSubstr("accept-nvidia-visible-devices-envvar-when-unprivileged = true")));
  }
  EXPECT_TRUE(Requested(InKubernetes(Visible("void"))).remarks.empty());
}

TEST(DeviceRequest, WhoIsPrivilegedOrAllowedGetsByEnvironmentEverywhere) {
  RuntimeFacts pod = InKubernetes(Visible("0"));
  Config open;
  open.accept_environment = true;
  EXPECT_THAT(Requested(pod, open).devices, ElementsAre("nvidia.com/gpu=0"));
  pod.privileged = true;
  EXPECT_THAT(Requested(pod).devices, ElementsAre("nvidia.com/gpu=0"));
}

TEST(DeviceRequest, WhatTheAdministratorClosesIsClosedEverywhere) {
  Config closed;
  closed.accept_environment = false;
  const DeviceRequest request =
      Requested(Environment({{"NVIDIA_VISIBLE_DEVICES", "0"}, {"NVIDIA_GDS", "enabled"}}), closed);
  EXPECT_TRUE(request.Empty());
  ASSERT_THAT(request.remarks, SizeIs(1));
  EXPECT_THAT(
      request.remarks[0].text,
      HasSubstr("config.toml has accept-nvidia-visible-devices-envvar-when-unprivileged = false"));
}

TEST(DeviceRequest, MountsCountInKubernetes) {
  EXPECT_THAT(Requested(InKubernetes(Mounts({"/var/run/nvidia-container-devices/GPU-5a"}))).devices,
              ElementsAre("nvidia.com/gpu=GPU-5a"));
}

TEST(DeviceRequest, OtherDevicesComeWithGpusWhereTheyAreEnabled) {
  const auto all = Requested(Environment({{"NVIDIA_VISIBLE_DEVICES", "0"},
                                          {"NVIDIA_GDS", "enabled"},
                                          {"NVIDIA_MOFED", "enabled"},
                                          {"NVIDIA_GDRCOPY", "enabled"},
                                          {"NVIDIA_NVSWITCH", "enabled"}}));
  EXPECT_THAT(all.optional_devices,
              ElementsAre("nvidia.com/gds=all", "nvidia.com/mofed=all", "nvidia.com/gdrcopy=all",
                          "nvidia.com/nvswitch=all"));
  EXPECT_THAT(Requested(Environment({{"NVIDIA_VISIBLE_DEVICES", "0"},
                                     {"NVIDIA_GDS", "disabled"},
                                     {"NVIDIA_MOFED", "1"}}))
                  .optional_devices,
              IsEmpty());
  EXPECT_TRUE(Requested(Environment({{"NVIDIA_GDS", "enabled"}})).Empty());
  RuntimeFacts pod = InKubernetes(Mounts({"/var/run/nvidia-container-devices/0"}));
  pod.environment = {{"NVIDIA_MOFED", "enabled"}};
  EXPECT_THAT(Requested(pod).optional_devices, IsEmpty())
      << "an image cannot help itself to a network card";
}

TEST(DeviceRequest, ImexChannelsAreNumbers) {
  EXPECT_THAT(Requested(Environment({{"NVIDIA_IMEX_CHANNELS", "0,1048575"}})).devices,
              ElementsAre("nvidia.com/imex-channel=0", "nvidia.com/imex-channel=1048575"));
  for (const char* value : {"1048576", "-1", "01", "x", "../1", "0x1"})
    EXPECT_THAT(ErrorOf(Environment({{"NVIDIA_IMEX_CHANNELS", value}})),
                HasSubstr("which is not an IMEX channel"))
        << value;
  for (const char* value : {"all", "", "void"})
    EXPECT_TRUE(Requested(Environment({{"NVIDIA_IMEX_CHANNELS", value}})).Empty()) << value;
  Config without;
  without.imex_channels = false;
  EXPECT_TRUE(Requested(Environment({{"NVIDIA_IMEX_CHANNELS", "0"}}), without).Empty());
}

TEST(DeviceRequest, MigIsManagedByThePrivilegedOnly) {
  RuntimeFacts facts = Environment({{"NVIDIA_VISIBLE_DEVICES", "all"},
                                    {"NVIDIA_MIG_CONFIG_DEVICES", "all"},
                                    {"NVIDIA_MIG_MONITOR_DEVICES", "all"}});
  const base::Error refused = ReadRequest(facts, {}).error();
  EXPECT_EQ(refused.code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.message(),
              HasSubstr("NVIDIA_MIG_CONFIG_DEVICES requests nvidia.com/mig-caps=config, which is "
                        "allowed for privileged"));
  for (const std::string name : {"nvidia.com/mig-caps=config", "nvidia.com/mig-caps=monitor"})
    for (const RuntimeFacts& around :
         {Visible(name), Annotated({{"cdi.k8s.io/x", name}}),
          Mounts({"/var/run/nvidia-container-devices/cdi/nvidia.com/mig-caps/" + name.substr(20)})})
      EXPECT_THAT(ErrorOf(around), HasSubstr("which is allowed for privileged containers")) << name;
  facts.privileged = true;
  EXPECT_THAT(Requested(facts).devices,
              ElementsAre("nvidia.com/gpu=all", "nvidia.com/mig-caps=config",
                          "nvidia.com/mig-caps=monitor"));
  facts.environment["NVIDIA_MIG_CONFIG_DEVICES"] = "0";
  EXPECT_THAT(ErrorOf(facts), HasSubstr("only \"all\" is supported"));
}

TEST(DeviceRequest, IsKubernetesByWhatNoImageCanTakeAway) {
  RuntimeFacts podman;
  EXPECT_FALSE(podman.OfKubernetes());
  podman.annotations = {{"io.container.manager", "libpod"},
                        {"io.kubernetes.cri-o.Created", "x"},
                        {"io.kubernetes.cri-o.TTY", "false"},
                        {"io.kubernetes.cri-o.ContainerType", "container"},
                        {"io.kubernetes.cri-o.SandboxID", "x"}};
  EXPECT_FALSE(podman.OfKubernetes());
  RuntimeFacts crio = podman;
  crio.annotations["io.kubernetes.cri-o.SandboxName"] = "x";
  EXPECT_TRUE(crio.OfKubernetes());
  EXPECT_TRUE(InKubernetes({}).OfKubernetes());
}

}  // namespace
}  // namespace penstock::hook::runtime
