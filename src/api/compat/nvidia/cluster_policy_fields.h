// The parts of ClusterPolicy's table, and the functions by which fields take effect. Private to
// api/compat.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/device_plugin.h"
#include "api/compat/nvidia/resource_fields.h"

namespace penstock::api::compat::internal {

/// A translation in progress.
struct PolicyWork {
  PenstockSpec& spec;  ///< nothing comes into it from an NVIDIADriver
  const ResourceReading& reading;
  base::Problems& problems;
  std::vector<FieldAnswer>& answers;
  std::span<const ResourceField> fields;
  /// Where the fields are that have no effect in this object: "driver."; empty: none.
  std::string_view without = {};
  DriverSpec driver = {};  ///< a ClusterPolicy's only, or the NVIDIADriver's
  std::string field = {};  ///< whose value is applied: "spec.devicePlugin.env"
  /// Settings of the programs that the operands run, in the order of their precedence.
  std::vector<Given> labels, plugin, exporter;
  std::string runtime_class = {};

  bool On(std::string_view path) const;
  void Problem(const std::string& message) const;
  void Answer(std::string_view item, FieldFate fate, std::string_view text) const;
};

using ApplyField = void (*)(PolicyWork& work, const base::Value& value);

/// Applies the fields that are set, and the defaults of the definition in maps that are set.
void ApplyFields(PolicyWork& work);

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

// Effects of single fields.
void AddLabels(PolicyWork& work, const base::Value& value);
void AddAnnotations(PolicyWork& work, const base::Value& value);
void AddPullSecrets(PolicyWork& work, const base::Value& value);
void SetRuntimeClass(PolicyWork& work, const base::Value& value);
void SetAbsolutePath(PolicyWork& work, const base::Value& value, std::string& target);
void SetMapName(PolicyWork& work, const base::Value& value, std::string& target);
void SetSecretName(PolicyWork& work, const base::Value& value, std::string& target);
/// Adds the names that are not yet there.
void AddSecretNames(PolicyWork& work, const base::Value& value, std::vector<std::string>& target);
/// Adds labels that Kubernetes accepts.
void TakeLabels(PolicyWork& work, const base::Value& value,
                std::map<std::string, std::string>& target);
void SetPriorityName(PolicyWork& work, const base::Value& value, std::string& target);
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
extern const FieldTopic kOneImage, kOnePodResources, kOnePodNetwork, kNoProgram, kAlone,
    kAloneDeprecated, kAloneElsewhere;

/// Repository, image, resources and network of an operand that the agent replaces.
OperandBlock AgentBlock();

}  // namespace penstock::api::compat::internal
