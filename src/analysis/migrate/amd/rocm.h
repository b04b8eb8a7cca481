// What becomes of ROCm's programs in a cluster: the device plugin, the node labeller, the Device
// Metrics Exporter, the Device Config Manager (DCM), and AMD's GPU Operator, which runs them. Parts
// of `penstock migrate`. Pure.
#pragma once

#include <optional>
#include <string>

#include "analysis/migrate/nvidia/chart_values.h"
#include "analysis/migrate/nvidia/migrate.h"

namespace penstock::analysis {

/// Recognises a container of ROCm's. Images of mirrors can have the name of NVIDIA's plugin, too;
/// then its command or its name decides.
std::optional<Part> RocmPartOf(const Json& container);

/// Reads the settings of the container that RocmPartOf recognised, and which ConfigMap it mounts.
void TakeRocm(const Json& object, const Json& container, Workload& workload);

/// Adds a DeviceConfig of AMD's GPU Operator.
void TakeDeviceConfig(const Json& object, Found& found);

/// Adds what a chart of ROCm's creates from these values; returns false for other charts.
bool TakeRocmValues(const Json& values, Chart chart, const std::string& file, Found& found);

bool HasRocm(const Found& found);

/// Adds the changes from ROCm's programs to Penstock. `only`: this node; empty: all.
void AddRocm(const Found& found, const std::string& only, Migration& plan);

/// Whether the plugins name resources after modes ("amd.com/cpx_nps4").
bool KeepsNamesOfModes(const Found& found);

/// Where DCM's or the exporter's ConfigMap is, in which the release may be; empty: there is none.
std::string RocmNamespace(const Found& found);

/// What Penstock's chart takes the place of: `penstock` of plugins, `gpu-operator` of an operator.
enum class Replaced { kPlugins, kOperator };

/// Adds to the values of the installation in the namespace `space` what keeps ROCm's settings, and
/// the commands that must precede it to the plan.
void AddRocmValues(const Found& found, const std::string& space, Replaced replaced,
                   std::string& values, Migration& plan);

/// Adds the commands that remove ROCm's programs.
void AddRocmRemoval(const Found& found, Migration& plan);

}  // namespace penstock::analysis
