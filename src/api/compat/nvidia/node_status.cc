// The validator's barriers are steps here; "toolkit" and "cuda" are its names for them.
#include "api/compat/nvidia/node_status.h"

#include <algorithm>

#include "api/allocators.h"

namespace penstock::api::compat {
namespace {

bool Passed(const std::vector<ValidationStep>& steps, std::string_view name) {
  const auto found = std::ranges::find(steps, name, &ValidationStep::name);
  return found != steps.end() && found->state == "passed";
}

/// The validator's driver check also needs the device files.
bool DriverPassed(const std::vector<ValidationStep>& steps) {
  return Passed(steps, "driver") && Passed(steps, "device-nodes");
}

/// The operator's own containers mount the host's root at /host, and a driver container's root at
/// /driver-root.
std::string InOperand(const std::string& root) { return root == "/" ? "/host" : "/driver-root"; }

std::string DriverReady(const DriverPlace& driver) {
  std::string text;
  const bool host = driver.driver_root == "/";
  for (const auto& [key, value] :
       {std::pair<std::string_view, std::string>{"IS_HOST_DRIVER", host ? "true" : "false"},
        {"NVIDIA_DRIVER_ROOT", driver.driver_root},
        {"DRIVER_ROOT_CTR_PATH", InOperand(driver.driver_root)},
        {"NVIDIA_DEV_ROOT", driver.dev_root},
        {"DEV_ROOT_CTR_PATH", InOperand(driver.dev_root)}})
    text += std::string(key) + "=" + value + "\n";
  return text;
}

}  // namespace

const std::vector<std::string_view>& ValidationFileNames() {
  static const std::vector<std::string_view> names = {"driver-ready", "toolkit-ready",
                                                      "plugin-ready", "cuda-ready"};
  return names;
}

std::map<std::string, std::string> ValidationFiles(const std::vector<ValidationStep>& steps,
                                                   const DriverPlace& driver) {
  std::map<std::string, std::string> files;
  if (DriverPassed(steps)) files["driver-ready"] = DriverReady(driver);
  if (Passed(steps, "toolkit")) files["toolkit-ready"] = "";
  if (Passed(steps, "plugin")) files["plugin-ready"] = "";
  if (Passed(steps, "compute")) files["cuda-ready"] = "";
  return files;
}

void NodeStatusFacts::Take(const Report& report, const std::vector<ValidationStep>& now_steps,
                           const std::map<std::string, int>& on_bus, double now) {
  // It was passed until now if it was passed at the last report.
  if (DriverPassed(steps) || DriverPassed(now_steps)) driver_passed = now;
  if (Passed(steps, "plugin") || Passed(now_steps, "plugin")) plugin_passed = now;
  steps = now_steps;
  const AllocatorReport* kubelet = AdvertisingAllocator(report);
  device_plugin = kubelet != nullptr && kubelet->state != "closed";
  offered = 0;
  for (const DeviceReport& device : report.devices)
    if (device.vendor == kNodeStatusVendor && FindAllocator(device.allocator).advertises &&
        !device.resource.empty() && Passed(steps, "plugin"))
      offered += device.shares;
  const auto count = on_bus.find(std::string(kNodeStatusVendor));
  pci_devices = count == on_bus.end() ? -1 : count->second;
}

std::vector<NodeStatusMetric> NodeStatusMetrics(const NodeStatusFacts& facts, double now) {
  const bool driver = DriverPassed(facts.steps), plugin = Passed(facts.steps, "plugin");
  return {
      {"gpu_operator_node_metrics_ready_ts_seconds",
       "Time at which these metrics began to be collected, in Unix seconds.", facts.started},
      {"gpu_operator_node_driver_ready", "Whether the driver of the node is ready: 1 or 0.",
       driver ? 1.0 : 0.0},
      {"gpu_operator_node_toolkit_ready", "Whether containers of the node can get GPUs: 1 or 0.",
       Passed(facts.steps, "toolkit") ? 1.0 : 0.0},
      {"gpu_operator_node_plugin_ready",
       "Whether the kubelet of the node has the list of GPUs: 1 or 0.", plugin ? 1.0 : 0.0},
      {"gpu_operator_node_cuda_ready",
       "Whether a program has computed on the free GPUs of the node since its driver was loaded: 1 "
       "or "
       "0.",
       Passed(facts.steps, "compute") ? 1.0 : 0.0},
      {"gpu_operator_node_driver_validation",
       "Whether the last validation of the driver passed: 1 or 0.", driver ? 1.0 : 0.0},
      {"gpu_operator_node_driver_validation_last_success_ts_seconds",
       "Time of the last validation of the driver that passed, in Unix seconds; 0: none.",
       driver ? now : facts.driver_passed},
      {"gpu_operator_node_device_plugin_devices_total",
       "Number of GPUs that the kubelet of the node has; -1: it gets none from this agent.",
       facts.device_plugin ? static_cast<double>(facts.offered) : -1.0},
      {"gpu_operator_node_device_plugin_validation_last_success_ts_seconds",
       "Time of the last validation of the kubelet's list that passed, in Unix seconds; 0: none.",
       plugin ? now : facts.plugin_passed},
      {"gpu_operator_nvidia_pci_devices_total",
       "Number of NVIDIA GPUs on the PCI bus of the node; -1: not known.",
       static_cast<double>(facts.pci_devices)}};
}

}  // namespace penstock::api::compat
