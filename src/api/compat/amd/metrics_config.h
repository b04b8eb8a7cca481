// Translates the configuration of AMD's Device Metrics Exporter (config.json) into rows of fields
// and settings of its families. Pure.
//
// It is read as leniently as the exporter reads it: keys and names match in any case, and what it
// ignores is ignored, with a remark.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/counters.h"
#include "api/config/node_config.h"
#include "base/core/result.h"

namespace penstock::api::compat {

struct MetricsConfig {
  std::vector<MetricRow> rows;  ///< the fields and labels that it chooses; without a field, the
                                ///< exporter's own fields
  ExporterSettings settings;
  std::optional<int> port;           ///< ServerPort
  std::vector<std::string> remarks;  ///< "FILE: key: value and remedy (line 3)"; at most twenty,
                                     ///< and one that says how many more there are
};

/// The longest text that is read, which is also the limit of a ConfigMap.
inline constexpr std::size_t kLongestMetricsConfig = 1u << 20;

/// `fields`: those of the exporter, by the names of their series. kInvalidArgument with all
/// problems, each with file:line:column: it is no JSON, has a key twice or a value of the wrong
/// type, chooses no field that exists, or a label that cannot be.
Result<MetricsConfig> TranslateMetricsConfig(std::string_view text, std::string_view file,
                                             std::span<const CounterField> fields);

}  // namespace penstock::api::compat
