// Recognises the Helm chart of a values file by its keys. Does no I/O.
#pragma once

#include <span>

#include "base/core/document.h"

namespace penstock::analysis {

/// The chart that the values belong to.
enum class Chart {
  kNone,  ///< not values: a Kubernetes object, a configuration, something else
  kDevicePlugin,
  kOperator,
  kPenstock,
  kExporter,
  kRocmPlugin,
  kRocmExporter,
  kRocmConfigManager,
  kRocmOperator,
  kOther,
};

/// Recognises the chart. A device plugin configuration has a version and is kNone, although it
/// shares keys with the charts.
Chart ChartOf(const base::Value& document);

/// A description for users: "values of NVIDIA's device plugin chart".
const char* Describe(Chart chart);

/// The values of NVIDIA's device plugin chart that are settings of the plugin, each with its flag.
struct ChartValue {
  const char* value;
  const char* flag;
};
std::span<const ChartValue> PluginChartValues();

}  // namespace penstock::analysis
