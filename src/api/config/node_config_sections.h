// The sections of a NodeConfig that have a file of their own, and the helpers that all sections
// share; private to src/api.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "base/core/document.h"

namespace penstock::api::internal {

/// Returns the map at a key, or an empty one.
const base::Value& MapAt(base::MapReader& reader, std::string_view key);

/// Reads auto, on or off; true and false mean on and off.
void ReadSwitch(base::MapReader& reader, std::string_view key, Switch& target);
std::string_view Text(Switch value);

/// Reads the ids, indices and globs at the key `devices`: strings, or numbers for indices.
std::vector<std::string> ReadSelectors(base::MapReader& reader, base::Problems& problems);
std::string SelectorsText(const std::vector<std::string>& devices);  ///< "[\"GPU-1\", \"0\"]"

/// Returns a scalar that reads back as the same string.
std::string Quoted(std::string_view text);

/// Exact, unlike base::FormatDuration, which rounds for readers.
std::string Text(base::Duration duration);

void ReadQueue(base::MapReader& top, base::Problems& problems, QueueConfig& queue);
void ReadHealth(base::MapReader& top, base::Problems& problems, HealthConfig& health);
void ReadResources(base::MapReader& top, base::Problems& problems, NodeConfig& config);
void ReadSharing(base::MapReader& top, base::Problems& problems, SharingConfig& sharing);
void ReadDevicePlugin(base::MapReader& top, base::Problems& problems, NodeConfig& config);
void ReadContainers(base::MapReader& top, base::Problems& problems, ContainersConfig& containers);
void ReadCdi(base::MapReader& top, base::Problems& problems, CdiConfig& cdi);
void ReadLabels(base::MapReader& top, base::Problems& problems, LabelsConfig& labels);
void ReadCluster(base::MapReader& top, base::Problems& problems, ClusterConfig& cluster);
void ReadTelemetry(base::MapReader& top, base::Problems& problems, TelemetryConfig& telemetry);
void ReadUsage(base::MapReader& top, base::Problems& problems, UsageConfig& usage);
void ReadHttp(base::MapReader& top, base::Problems& problems, HttpConfig& http);

std::string QueueText(const QueueConfig& queue);
std::string HealthText(const HealthConfig& health);
std::string ResourcesText(const NodeConfig& config);
std::string SharingText(const SharingConfig& sharing);
std::string DevicePluginText(const NodeConfig& config);
std::string ContainersText(const ContainersConfig& containers);
std::string CdiText(const CdiConfig& cdi);
std::string LabelsText(const LabelsConfig& labels);
std::string ClusterText(const ClusterConfig& cluster);
std::string TelemetryText(const TelemetryConfig& telemetry);
std::string UsageText(const UsageConfig& usage);
std::string HttpText(const HttpConfig& http);

}  // namespace penstock::api::internal
