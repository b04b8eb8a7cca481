// The checks that ParseNodeConfig and Validate share; private to src/api.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/config/node_config.h"

namespace penstock::api::internal {

/// Called for each problem with the key as a dotted path ("allocators.assign[0].allocator") and the
/// message.
using ReportProblem = std::function<void(std::string_view key, const std::string& message)>;

/// Checks names of resources, and that no rule hides a later one.
void CheckSharing(const NodeConfig& config, const ReportProblem& report);

/// Checks the sections `containers` and `cdi`, and contradictions between them.
void CheckContainers(const NodeConfig& config, const ReportProblem& report);

/// Checks the sections `telemetry`, `usage` and `http`.
void CheckTelemetry(const NodeConfig& config, const ReportProblem& report);

/// Whether a name is valid for a Kubernetes object (RFC 1123): subdomains contain dots; labels (a
/// namespace's name) do not.
bool IsObjectName(std::string_view name, bool dots);

/// Whether the kubelet accepts the name as an extended resource: "nvidia.com/gpu", with a domain
/// that is not Kubernetes' own.
bool IsResourceName(std::string_view name);

/// Runs all checks.
void Check(const NodeConfig& config, const ReportProblem& report);

}  // namespace penstock::api::internal
