// Formats the output of `penstock metrics`. Pure.
#pragma once

#include <string>
#include <vector>

#include "analysis/metric_names.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

/// One line per metric. `wide` adds units and labels.
std::string ShowMetricNames(const std::vector<analysis::MetricName>& metrics, bool wide,
                            const Style& style);

/// All details of one metric.
std::string ShowMetricName(const analysis::MetricName& metric, const Style& style);

/// The same as JSON: a list of objects, or one object.
std::string MetricNamesJson(const std::vector<analysis::MetricName>& metrics);
std::string MetricNameJson(const analysis::MetricName& metric);

}  // namespace penstock::app
