// Values files of Helm charts, told apart by their keys. Reads no file.
#pragma once

#include <span>

#include "base/core/document.h"

namespace penstock::app {

/// Whose chart the values are for.
enum class Chart {
  kNone,  ///< no values: an object of Kubernetes, a configuration, something else
  kDevicePlugin,
  kOperator,
  kPenstock,
  kExporter,
  kOther,
};

/// A configuration of the device plugin, which has a version, is none of them, though it has keys that charts have as well.
Chart ChartOf(const base::Value& document);

/// For people: "values of NVIDIA's device plugin chart".
const char* Describe(Chart chart);

/// The values of NVIDIA's device plugin chart that are settings of the plugin, and the flags they become.
struct ChartValue {
  const char* value;
  const char* flag;
};
std::span<const ChartValue> PluginChartValues();

}  // namespace penstock::app
