// The labels by which users of the GPU Operator keep its pods from a node. Here the agent has the
// work of these pods, and the labels switch its services off. Source: gpu-operator,
// controllers/state_manager.go. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/config/node_config.h"

namespace penstock::api::compat {

/// Services of a node's agent, each by the pod that has its work.
struct NodeServices {
  bool device_plugin = true, feature_discovery = true, exporter = true, layouts = true,
       validator = true, status_exporter = true, toolkit = true;
  /// The use that nvidia.com/gpu.workload.config asks for, if it is not containers, which is the
  /// only one that is served: "vm-passthrough", "vm-vgpu".
  std::string workload{};
  bool operator==(const NodeServices&) const = default;
};

/// The keys of these labels: "nvidia.com/gpu.deploy.device-plugin",
/// "nvidia.com/gpu.workload.config".
const std::vector<std::string>& ServiceLabels();

/// That of the container engine's configuration.
const std::string& ToolkitLabel();

/// The keys nvidia.com/gpu.deploy.* of which a value begins with "paused-for-": a program of the
/// vendor's has paused these pods, and puts "true" back when it is done. Where it was removed
/// before that, no program does.
std::vector<std::string> PausedLabels(const std::map<std::string, std::string>& labels);

/// A service is off where its label, or that of all of them (nvidia.com/gpu.deploy.operands), is
/// "false" or begins with "paused-for-"; a label that is absent or has another value changes
/// nothing.
NodeServices ServicesOf(const std::map<std::string, std::string>& labels);

/// The configuration without what is switched off: devices that the kubelet would get have no
/// allocator, which leaves them to their holders; the exporter's families, the validator's files
/// and the status exporter's families are not shown; the engine's configuration stays as it is.
/// feature_discovery and layouts are no matter of the configuration. Adds a remark for each service
/// that is off, and for a use that is not served.
NodeConfig WithServices(NodeConfig config, const NodeServices& services,
                        std::vector<std::string>& remarks);

}  // namespace penstock::api::compat
