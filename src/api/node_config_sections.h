// The sections of a NodeConfig about labels, the kubelet's answers and the cluster, and the helpers that all sections share; private to
// api.
#pragma once

#include <string>
#include <string_view>

#include "api/node_config.h"
#include "base/document.h"

namespace penstock::api::internal {

/// The map at a key, or an empty one.
const base::Value& MapAt(base::MapReader& reader, std::string_view key);

/// auto, on, off; true and false mean on and off.
void ReadSwitch(base::MapReader& reader, std::string_view key, Switch& target);
std::string_view Text(Switch value);

/// A scalar that reads back as the same string.
std::string Quoted(std::string_view text);

void ReadDevicePlugin(base::MapReader& top, base::Problems& problems, NodeConfig& config);
void ReadLabels(base::MapReader& top, base::Problems& problems, LabelsConfig& labels);
void ReadCluster(base::MapReader& top, base::Problems& problems, ClusterConfig& cluster);

std::string DevicePluginText(const NodeConfig& config);
std::string LabelsText(const LabelsConfig& labels);
std::string ClusterText(const ClusterConfig& cluster);

}  // namespace penstock::api::internal
