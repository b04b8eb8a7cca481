// What `penstock metrics` prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/penstock/metric_names.h"
#include "app/penstock/table.h"

namespace penstock::app {

/// A line each. `wide` adds units and labels.
std::string ShowMetricNames(const std::vector<MetricName>& metrics, bool wide, const Style& style);

/// All that is known of one.
std::string ShowMetricName(const MetricName& metric, const Style& style);

/// The same for programs: a list of objects, or one object.
std::string MetricNamesJson(const std::vector<MetricName>& metrics);
std::string MetricNameJson(const MetricName& metric);

}  // namespace penstock::app
