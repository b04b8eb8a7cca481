// What a node offers and how it is labelled: by the rules of NVIDIA's plugin, and by ours. From labels, capacity and configuration. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "app/penstock/migrate.h"
#include "node/inventory/inventory.h"

namespace penstock::app {

/// What configures the plugin on a node.
struct PluginSettings {
  std::vector<api::compat::Given> given;  ///< flags and environment of the plugin's pod
  std::string text;                       ///< of the configuration file; empty: none
  std::string origin;                     ///< "ConfigMap gpu/config, key any (default)"; empty: none
  bool known = false;                     ///< whether it is known how the plugin is configured
  std::string problem;                    ///< why the file that is meant is not known; empty where it is, or where there is none
};

/// The plugins that run on a node, by their nodeSelector; of no name: all.
std::vector<const Workload*> PluginsOf(const Found& found, const LabelledNode& node);

/// The settings of a node: those of the plugin's pod, and the key of its ConfigMap that the node's label, the default or a fall-back names.
PluginSettings SettingsOf(const Found& found, const LabelledNode& node);

/// As our agent would have it with these settings, read as NVIDIA's plugin reads them (kAsNvidia) or with what counts here beyond that.
/// Nothing where they cannot be honoured.
std::optional<api::NodeConfig> ConfigOf(const PluginSettings& settings, api::PluginFiles files);

/// How a node is configured as far as its labels tell, where its configuration is not known.
api::NodeConfig ConfigOfLabels(const std::map<std::string, std::string>& labels);

/// A node's GPUs as the labels of GPU Feature Discovery tell them; without these as many as its capacity holds under this configuration, of
/// a model that is not known.
node::inventory::Snapshot GpusOf(const LabelledNode& node, const api::NodeConfig& config);

/// Eight GPUs, for configurations without a node: of a model that the first of their patterns means.
node::inventory::Snapshot ExampleGpus(const api::NodeConfig& config);

struct Offered {
  std::map<std::string, std::int64_t> resources;  ///< what the kubelet is offered, by name
  std::map<std::string, std::string> labels;      ///< without the time of the start
};

/// `machine`: the label nvidia.com/gpu.machine.
Offered OfferOf(const api::NodeConfig& config, const node::inventory::Snapshot& gpus, const std::string& machine = "");

}  // namespace penstock::app
