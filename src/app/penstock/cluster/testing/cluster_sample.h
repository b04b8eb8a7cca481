// Sample objects of a cluster, as an API server returns them, for tests.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "api/node_state.h"
#include "api/report.h"

namespace penstock::app::cluster_sample {

using Json = nlohmann::json;

/// Eight healthy GPUs, two of them held, with the kubelet as an open allocator.
inline api::Report Eight(const std::string& node) {
  api::Report report;
  report.node = node;
  report.version = "0.1.0";
  report.vendors = {{.vendor = "nvidia", .driver = "550.54.15", .runtime = "12.4"}};
  for (int i = 0; i < 8; ++i) {
    api::DeviceReport device;
    device.id = "GPU-" + std::to_string(i);
    device.vendor = "nvidia";
    device.model = "NVIDIA A100-SXM4-40GB";
    device.index = i;
    device.health_state = "healthy";
    device.allocator = "kubelet";
    device.resource = "nvidia.com/gpu";
    device.sharing = "none";
    device.isolation = "hardware";
    device.free = i < 2 ? 0 : 1;
    if (i < 2) device.holders = {{.state = "held"}};
    report.devices.push_back(device);
  }
  report.allocators = {{.name = "kubelet", .state = "open", .resources = {"nvidia.com/gpu"}},
                       {.name = "local", .state = "open"}};
  report.configuration.origin = "defaults";
  return report;
}

/// The report as an object that an agent last changed at 03:58.
inline Json StateOf(const api::Report& report) {
  Json state = api::NodeStateOf(report);
  state["metadata"]["creationTimestamp"] = "2026-11-20T00:00:00Z";
  state["metadata"]["managedFields"] = {
      {{"manager", "penstock"}, {"operation", "Apply"}, {"time", "2026-11-21T03:58:00Z"}}};
  return state;
}

inline Json Node(const std::string& name, int capacity, int allocatable, bool ready = true) {
  Json node = {
      {"metadata",
       {{"name", name}, {"uid", "uid-" + name}, {"labels", {{"kubernetes.io/hostname", name}}}}},
      {"status",
       {{"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}},
        {"capacity", {{"cpu", "64"}, {"hugepages-2Mi", "0"}}},
        {"allocatable", {{"cpu", "64"}}},
        {"nodeInfo", {{"kubeletVersion", "v1.36.2"}}}}}};
  if (capacity > 0) {
    node["status"]["capacity"]["nvidia.com/gpu"] = std::to_string(capacity);
    node["status"]["allocatable"]["nvidia.com/gpu"] = std::to_string(allocatable);
  }
  return node;
}

/// A pod of the agent: waiting for the given reason, or ready.
inline Json PodOfAgent(const std::string& name, const std::string& node,
                       const std::string& waiting) {
  Json pod = {
      {"metadata", {{"name", name}, {"namespace", "penstock"}}},
      {"spec", {{"nodeName", node}}},
      {"status",
       {{"phase", "Running"},
        {"conditions", {{{"type", "Ready"}, {"status", waiting.empty() ? "True" : "False"}}}}}}};
  if (!waiting.empty())
    pod["status"]["containerStatuses"] = {{{"state", {{"waiting", {{"reason", waiting}}}}}}};
  return pod;
}

/// A user's pod that requests GPUs. Without a node it waits.
inline Json Pod(const std::string& name, const std::string& node, int gpus,
                const std::string& phase = "Running") {
  Json pod = {{"metadata", {{"name", name}, {"namespace", "ml"}}},
              {"spec",
               {{"containers",
                 {{{"name", "main"},
                   {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}}}}},
              {"status", {{"phase", phase}}}};
  if (!node.empty()) {
    pod["spec"]["nodeName"] = node;
  } else {
    pod["status"]["conditions"] = {
        {{"type", "PodScheduled"},
         {"status", "False"},
         {"message", "0/4 nodes are available: 4 Insufficient. preemption: none"}}};
  }
  return pod;
}

}  // namespace penstock::app::cluster_sample
