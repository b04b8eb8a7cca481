// The parts of ClusterPolicy's table, and the functions by which fields take effect. Private to
// api/compat.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/operand_fields.h"
#include "api/compat/policy_work.h"

namespace penstock::api::compat::internal {

/// Adds a setting of the device plugin, or of the exporter, under one of its flags.
void GivePlugin(PolicyWork& work, std::string_view flag, const std::string& value);
void GiveExporter(PolicyWork& work, std::string_view flag, const std::string& value);

// Effects of env and args.
void PluginVariables(PolicyWork& work, const base::Value& value);
void PluginArguments(PolicyWork& work, const base::Value& value);
void DiscoveryVariables(PolicyWork& work, const base::Value& value);
void DiscoveryArguments(PolicyWork& work, const base::Value& value);
void ExporterVariables(PolicyWork& work, const base::Value& value);
void ExporterArguments(PolicyWork& work, const base::Value& value);
void ToolkitVariables(PolicyWork& work, const base::Value& value);
void LayoutVariables(PolicyWork& work, const base::Value& value);
void ValidatorVariables(PolicyWork& work, const base::Value& value);

/// Whether no variable of migManager.env says that the services of the host are not stopped.
bool StopsClientServices(const PolicyWork& work);

// Effects of single fields.
void AddLabels(PolicyWork& work, const base::Value& value);
void AddAnnotations(PolicyWork& work, const base::Value& value);
void AddPullSecrets(PolicyWork& work, const base::Value& value);
void SetRuntimeClass(PolicyWork& work, const base::Value& value);
void SetMonitorLabels(PolicyWork& work, const base::Value& value);
void GiveLabelPatterns(PolicyWork& work, const base::Value& value);

/// The Service of the metrics page; added by the first call.
MetricsService& ExporterService(PolicyWork& work);

// The sections of the table.
std::vector<ResourceField> OperatorFields();    ///< operator, daemonsets, hostPaths, psa, psp, cdi
std::vector<ResourceField> DriverFields();      ///< driver, gds, gdrcopy
std::vector<ResourceField> OperandFields();     ///< toolkit to validator
std::vector<ResourceField> MonitoringFields();  ///< dcgm, dcgmExporter, nodeStatusExporter
std::vector<ResourceField> SandboxFields();     ///< of virtual machines

// Topics that several sections have.
extern const FieldTopic kOneImage, kOnePodResources, kOnePodNetwork, kNoProgram;

/// Repository, image, resources and network of an operand that the agent replaces.
OperandBlock AgentBlock();

}  // namespace penstock::api::compat::internal
