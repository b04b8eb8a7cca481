#include "api/compat/nvidia/node_status.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<ValidationStep> Steps(const std::string& failed = "") {
  std::vector<ValidationStep> steps;
  for (const char* name :
       {"driver", "device-nodes", "fabric", "compute", "toolkit", "plugin", "devices"})
    steps.push_back({.name = name, .state = name == failed ? "failed" : "passed"});
  return steps;
}

TEST(ValidationFiles, SayWhereADriverOfTheHostIs) {
  EXPECT_THAT(ValidationFiles(Steps(), {}),
              ElementsAre(Pair("cuda-ready", ""),
                          Pair("driver-ready",
                               "IS_HOST_DRIVER=true\nNVIDIA_DRIVER_ROOT=/\nDRIVER_ROOT_CTR_PATH=/"
                               "host\nNVIDIA_DEV_ROOT=/\nDEV_ROOT_CTR_PATH=/host\n"),
                          Pair("plugin-ready", ""), Pair("toolkit-ready", "")));
}

TEST(ValidationFiles, SayWhereADriverContainerIs) {
  EXPECT_EQ(ValidationFiles(Steps(), {"/run/nvidia/driver", "/run/nvidia/driver"})["driver-ready"],
            "IS_HOST_DRIVER=false\nNVIDIA_DRIVER_ROOT=/run/nvidia/driver\nDRIVER_ROOT_CTR_PATH=/"
            "driver-root\nNVIDIA_DEV_ROOT=/run/nvidia/driver\nDEV_ROOT_CTR_PATH=/driver-root\n");
  EXPECT_EQ(ValidationFiles(Steps(), {"/run/nvidia/driver", "/"})["driver-ready"],
            "IS_HOST_DRIVER=false\nNVIDIA_DRIVER_ROOT=/run/nvidia/driver\nDRIVER_ROOT_CTR_PATH=/"
            "driver-root\nNVIDIA_DEV_ROOT=/\nDEV_ROOT_CTR_PATH=/host\n");
}

TEST(ValidationFiles, AreThoseOfTheStepsThatPassed) {
  const auto names = [](const std::string& failed) {
    std::vector<std::string> all;
    for (const auto& [name, content] : ValidationFiles(Steps(failed), {})) all.push_back(name);
    return all;
  };
  EXPECT_THAT(names("driver"), ElementsAre("cuda-ready", "plugin-ready", "toolkit-ready"));
  EXPECT_THAT(names("device-nodes"), ElementsAre("cuda-ready", "plugin-ready", "toolkit-ready"));
  EXPECT_THAT(names("toolkit"), ElementsAre("cuda-ready", "driver-ready", "plugin-ready"));
  EXPECT_THAT(names("plugin"), ElementsAre("cuda-ready", "driver-ready", "toolkit-ready"));
  EXPECT_THAT(names("compute"), ElementsAre("driver-ready", "plugin-ready", "toolkit-ready"));
  EXPECT_THAT(ValidationFiles({}, {}), IsEmpty());
}

double Value(const NodeStatusFacts& facts, std::string_view name, double now) {
  const auto all = NodeStatusMetrics(facts, now);
  return std::ranges::find(all, name, &NodeStatusMetric::name)->value;
}

TEST(NodeStatusMetrics, HaveTheNamesOfTheExporter) {
  std::vector<std::string_view> names;
  for (const NodeStatusMetric& one : NodeStatusMetrics({}, 0)) names.push_back(one.name);
  EXPECT_THAT(
      names,
      ElementsAre("gpu_operator_node_metrics_ready_ts_seconds", "gpu_operator_node_driver_ready",
                  "gpu_operator_node_toolkit_ready", "gpu_operator_node_plugin_ready",
                  "gpu_operator_node_cuda_ready", "gpu_operator_node_driver_validation",
                  "gpu_operator_node_driver_validation_last_success_ts_seconds",
                  "gpu_operator_node_device_plugin_devices_total",
                  "gpu_operator_node_device_plugin_validation_last_success_ts_seconds",
                  "gpu_operator_nvidia_pci_devices_total"));
}

TEST(NodeStatusMetrics, SayUntilWhenAStepPassed) {
  Report report;
  report.allocators = {{.name = "kubelet", .state = "open"}};
  report.devices = {{.vendor = "nvidia", .allocator = "kubelet", .resource = "r", .shares = 4},
                    {.vendor = "amd", .allocator = "kubelet", .resource = "r"},
                    {.vendor = "nvidia", .allocator = "local", .resource = "r"}};
  NodeStatusFacts facts;
  facts.Take(report, Steps(), {{"nvidia", 2}}, 100);
  EXPECT_EQ(Value(facts, "gpu_operator_node_driver_ready", 150), 1);
  EXPECT_EQ(Value(facts, "gpu_operator_node_driver_validation_last_success_ts_seconds", 150), 150);
  EXPECT_EQ(Value(facts, "gpu_operator_node_device_plugin_devices_total", 150), 4);
  EXPECT_EQ(Value(facts, "gpu_operator_nvidia_pci_devices_total", 150), 2);
  facts.Take(report, Steps("driver"), {{"nvidia", 2}}, 200);
  EXPECT_EQ(Value(facts, "gpu_operator_node_driver_ready", 250), 0);
  EXPECT_EQ(Value(facts, "gpu_operator_node_driver_validation_last_success_ts_seconds", 250), 200);
}

TEST(NodeStatusMetrics, SayThatSomethingIsNotKnown) {
  NodeStatusFacts facts;
  facts.Take({}, Steps("driver"), {}, 100);
  EXPECT_EQ(Value(facts, "gpu_operator_node_device_plugin_devices_total", 100), -1)
      << "the alert of the GPU Operator compares with 0";
  EXPECT_EQ(Value(facts, "gpu_operator_nvidia_pci_devices_total", 100), -1);
  EXPECT_EQ(Value(facts, "gpu_operator_node_driver_validation_last_success_ts_seconds", 100), 0);
}

}  // namespace
}  // namespace penstock::api::compat
