#include "api/compat/nvidia/deploy_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(DeployLabels, SwitchServicesOff) {
  const auto off = [](const std::string& name, const std::string& value) {
    return ServicesOf({{"nvidia.com/gpu.deploy." + name, value}});
  };
  EXPECT_EQ(off("device-plugin", "false"), (NodeServices{.device_plugin = false}));
  EXPECT_EQ(off("gpu-feature-discovery", "false"), (NodeServices{.feature_discovery = false}));
  EXPECT_EQ(off("dcgm-exporter", "false"), (NodeServices{.exporter = false}));
  EXPECT_EQ(off("mig-manager", "false"), (NodeServices{.layouts = false}));
  EXPECT_EQ(off("operator-validator", "false"), (NodeServices{.validator = false}));
  EXPECT_EQ(off("node-status-exporter", "false"), (NodeServices{.status_exporter = false}));
  EXPECT_EQ(off("container-toolkit", "false"), (NodeServices{.toolkit = false}));
  EXPECT_EQ(off("device-plugin", "paused-for-driver-upgrade"),
            (NodeServices{.device_plugin = false}));
  EXPECT_EQ(off("operands", "false"),
            (NodeServices{false, false, false, false, false, false, false}));
}

TEST(DeployLabels, AnAbsentOrOtherValueChangesNothing) {
  EXPECT_EQ(ServicesOf({}), NodeServices{});
  for (const char* value : {"true", "", "False", "no", "paused"})
    EXPECT_EQ(ServicesOf({{"nvidia.com/gpu.deploy.device-plugin", value}}), NodeServices{})
        << value;
  EXPECT_EQ(ServicesOf({{"nvidia.com/gpu.deploy.driver", "false"}}), NodeServices{});
}

TEST(DeployLabels, OfAnyPodSayThatItIsPaused) {
  EXPECT_THAT(PausedLabels({{"nvidia.com/gpu.deploy.dcgm", "paused-for-mig-change"},
                            {"nvidia.com/gpu.deploy.device-plugin", "paused-for-driver-upgrade"},
                            {"nvidia.com/gpu.deploy.driver", "pre-installed"},
                            {"nvidia.com/gpu.deploy.mig-manager", "false"},
                            {"nvidia.com/gpu.deploy.nvsm", "mine_paused-for-driver-upgrade"},
                            {"example.com/deploy", "paused-for-lunch"}}),
              ElementsAre("nvidia.com/gpu.deploy.dcgm", "nvidia.com/gpu.deploy.device-plugin"));
}

TEST(DeployLabels, AreAllRead) {
  EXPECT_THAT(
      ServiceLabels(),
      ElementsAre(
          "nvidia.com/gpu.deploy.operands", "nvidia.com/gpu.workload.config",
          "nvidia.com/gpu.deploy.device-plugin", "nvidia.com/gpu.deploy.gpu-feature-discovery",
          "nvidia.com/gpu.deploy.dcgm-exporter", "nvidia.com/gpu.deploy.mig-manager",
          "nvidia.com/gpu.deploy.operator-validator", "nvidia.com/gpu.deploy.node-status-exporter",
          "nvidia.com/gpu.deploy.container-toolkit"));
}

TEST(DeployLabels, AUseThatIsNotServedIsSaidAndChangesNothing) {
  const std::string key = "nvidia.com/gpu.workload.config";
  EXPECT_EQ(ServicesOf({{key, "container"}}), NodeServices{});
  std::vector<std::string> remarks;
  const NodeConfig config;
  EXPECT_EQ(ToYaml(WithServices(config, ServicesOf({{key, "vm-passthrough"}}), remarks)),
            ToYaml(config));
  EXPECT_THAT(remarks, ElementsAre(key + ": \"vm-passthrough\" is not served yet: this Node's "
                                         "devices are for containers"));
}

TEST(DeployLabels, OfServicesThatAreOnLeaveTheConfigurationAsItIs) {
  NodeConfig config;
  config.validation = {"/run/nvidia/validations", true};
  std::vector<std::string> remarks;
  EXPECT_EQ(ToYaml(WithServices(config, {}, remarks)), ToYaml(config));
  EXPECT_THAT(remarks, IsEmpty());
}

TEST(DeployLabels, TakeDevicesFromTheKubeletAndNotFromLocalUsers) {
  NodeConfig config;
  config.assignments = {{.devices = {"0"}, .allocator = "local"},
                        {.devices = {"1"}, .allocator = "kubelet"}};
  std::vector<std::string> remarks;
  const auto rules = WithServices(config, {.device_plugin = false}, remarks).assignments;
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].allocator, "local");
  EXPECT_EQ(rules[1].allocator, "none");
  EXPECT_TRUE(rules[2].devices.empty());
  EXPECT_EQ(rules[2].allocator, "none");
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("nvidia.com/gpu.deploy.device-plugin")));
}

TEST(DeployLabels, OfOtherServicesChangeTheirKeys) {
  NodeConfig config;
  config.validation = {"/run/nvidia/validations", true};
  config.containers.configure_engine = EngineSetup::kRuntime;
  std::vector<std::string> remarks;
  const NodeConfig changed =
      WithServices(config, {true, true, false, true, false, false, false}, remarks);
  EXPECT_THAT(changed.telemetry.names, ElementsAre(MetricNames::kAccelerator));
  EXPECT_EQ(changed.validation, ValidationConfig{.container = false});
  EXPECT_EQ(changed.containers.configure_engine, EngineSetup::kOff);
  EXPECT_TRUE(changed.assignments.empty());
  EXPECT_EQ(remarks.size(), 4u);
}

}  // namespace
}  // namespace penstock::api::compat
