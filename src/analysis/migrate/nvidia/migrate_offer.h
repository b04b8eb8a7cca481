// Predicts the resources and labels of a node, by the rules of NVIDIA's plugin and by Penstock's,
// from its labels, capacity and configuration. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/migrate/nvidia/migrate.h"
#include "api/config/node_config.h"
#include "node/inventory/inventory.h"

namespace penstock::analysis {

/// The configuration of the plugin on a node.
struct PluginSettings {
  std::vector<api::compat::Given> given;  ///< flags and environment of the plugin's pod
  std::string text;                       ///< text of the configuration file; empty: no file
  std::string origin;   ///< "ConfigMap gpu/config, key any (default)"; empty: no file
  bool known = false;   ///< whether the plugin's configuration is known
  std::string problem;  ///< why the selected file is unknown; empty: it is known, or there is none
};

/// The plugins that run on a node, by their nodeSelector; all plugins where the node has no name.
std::vector<const Workload*> PluginsOf(const Found& found, const LabelledNode& node);

/// The settings of a node: those of the plugin's pod, and the key of its ConfigMap that the node's
/// label, the default or a fallback selects.
PluginSettings SettingsOf(const Found& found, const LabelledNode& node);

/// Returns the agent's configuration for these settings, read as NVIDIA's plugin reads them
/// (kAsNvidia) or with the settings that only Penstock honours. Nothing where they cannot be
/// honoured.
std::optional<api::NodeConfig> ConfigOf(const PluginSettings& settings, api::PluginFiles files);

/// Returns the configuration of a node as far as its labels show it, where the configuration itself
/// is unknown.
api::NodeConfig ConfigOfLabels(const std::map<std::string, std::string>& labels);

/// Returns a node's GPUs as described by the labels of GPU Feature Discovery. Without these labels:
/// as many GPUs of an unknown model as the node's capacity holds under this configuration.
node::inventory::Snapshot GpusOf(const LabelledNode& node, const api::NodeConfig& config);

/// Returns eight GPUs for a configuration without a node, of a model that the first of its patterns
/// matches.
node::inventory::Snapshot ExampleGpus(const api::NodeConfig& config);

struct Offered {
  std::map<std::string, std::int64_t> resources;  ///< resource name → amount offered to the kubelet
  std::map<std::string, std::string> labels;      ///< without the timestamp of the start
};

/// `machine`: the value of the label nvidia.com/gpu.machine.
Offered OfferOf(const api::NodeConfig& config, const node::inventory::Snapshot& gpus,
                const std::string& machine = "");

}  // namespace penstock::analysis
