// One row for each service.
#include "api/compat/nvidia/deploy_labels.h"

#include <algorithm>
#include <string_view>

#include "api/allocators.h"

namespace penstock::api::compat {
namespace {

constexpr std::string_view kDeploy = "nvidia.com/gpu.deploy.", kAll = "operands",
                           kToolkit = "container-toolkit";
constexpr std::string_view kWorkload = "nvidia.com/gpu.workload.config", kContainers = "container";

struct Service {
  std::string_view name;
  bool NodeServices::*on;
  std::string_view effect;  // of switching it off
};
constexpr Service kServices[] = {
    {"device-plugin", &NodeServices::device_plugin,
     "the kubelet gets no devices; those that pods hold stay until they are released"},
    {"gpu-feature-discovery", &NodeServices::feature_discovery,
     "the Node gets no labels of GPU Feature Discovery"},
    {"dcgm-exporter", &NodeServices::exporter, "the metrics page has no families of dcgm-exporter"},
    {"mig-manager", &NodeServices::layouts, "no label divides GPUs"},
    {"operator-validator", &NodeServices::validator,
     "the validator's files are not kept, and no container tries the devices"},
    {"node-status-exporter", &NodeServices::status_exporter,
     "the metrics page has no families of the node status exporter"},
    {kToolkit, &NodeServices::toolkit, "the container engine's configuration stays as it is"}};

std::string KeyOf(std::string_view name) { return std::string(kDeploy) + std::string(name); }

bool IsPaused(const std::string& value) { return value.starts_with("paused-for-"); }

bool IsOff(const std::map<std::string, std::string>& labels, std::string_view name) {
  const auto label = labels.find(KeyOf(name));
  return label != labels.end() && (label->second == "false" || IsPaused(label->second));
}

}  // namespace

const std::vector<std::string>& ServiceLabels() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all = {KeyOf(kAll), std::string(kWorkload)};
    for (const Service& service : kServices) all.push_back(KeyOf(service.name));
    return all;
  }();
  return keys;
}

const std::string& ToolkitLabel() {
  static const std::string key = KeyOf(kToolkit);
  return key;
}

std::vector<std::string> PausedLabels(const std::map<std::string, std::string>& labels) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : labels)
    if (key.starts_with(kDeploy) && IsPaused(value)) keys.push_back(key);
  return keys;
}

NodeServices ServicesOf(const std::map<std::string, std::string>& labels) {
  NodeServices services;
  const bool none = IsOff(labels, kAll);
  for (const Service& service : kServices)
    services.*service.on = !none && !IsOff(labels, service.name);
  if (const auto workload = labels.find(std::string(kWorkload));
      workload != labels.end() && workload->second != kContainers)
    services.workload = workload->second;
  return services;
}

NodeConfig WithServices(NodeConfig config, const NodeServices& services,
                        std::vector<std::string>& remarks) {
  for (const Service& service : kServices)
    if (!(services.*service.on))
      remarks.push_back(KeyOf(service.name) +
                        ": switched off on this Node: " + std::string(service.effect));
  if (!services.workload.empty())
    remarks.push_back(std::string(kWorkload) + ": \"" + services.workload +
                      "\" is not served yet: this Node's devices are for containers");
  if (!services.device_plugin) {
    for (AssignmentRule& rule : config.assignments)
      if (FindAllocator(rule.allocator).advertises) rule.allocator = kNoAllocator;
    config.assignments.push_back({.devices = {}, .allocator = std::string(kNoAllocator)});
  }
  if (!services.exporter)
    std::erase_if(config.telemetry.names, [](MetricNames names) {
      return names == MetricNames::kExporter || names == MetricNames::kExporterNew;
    });
  if (!services.validator) {
    config.validation.directory.clear();
    config.validation.container = false;
  }
  if (!services.status_exporter) config.validation.exporter_names = false;
  if (!services.toolkit) config.containers.configure_engine = EngineSetup::kOff;
  return config;
}

}  // namespace penstock::api::compat
