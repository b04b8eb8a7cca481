// The checks that ParseNodeConfig and Validate share; private to api.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/node_config.h"

namespace penstock::api::internal {

/// Told of each problem: the key as a dotted path ("doors.assign[0].door"), and what is wrong with it.
using Report = std::function<void(std::string_view key, const std::string& message)>;

void CheckHealth(const HealthConfig& health, const Report& report);

/// Names of resources, and which rule stands in the way of which.
void CheckSharing(const NodeConfig& config, const Report& report);

/// The sections `containers` and `cdi`, and what of them contradicts the other.
void CheckContainers(const NodeConfig& config, const Report& report);

/// The sections `telemetry`, `usage` and `http`.
void CheckTelemetry(const NodeConfig& config, const Report& report);

/// As Kubernetes names objects (RFC 1123): subdomains have dots, labels (a namespace's name) have none.
bool IsObjectName(std::string_view name, bool dots);

/// An absolute path, or none.
void CheckOptionalPath(std::string_view key, const std::string& path, const Report& report);

/// "nvidia.com/gpu": with a domain that is not Kubernetes' own, as the kubelet takes it for an extended resource.
bool IsResourceName(std::string_view name);

/// All of it.
void Check(const NodeConfig& config, const Report& report);

}  // namespace penstock::api::internal
