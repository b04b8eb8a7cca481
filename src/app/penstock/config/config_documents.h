// Finds the configurations in a file, with their positions: the file itself, each key of a
// ConfigMap manifest, or those in a chart's values. Does not validate them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/migrate/nvidia/chart_values.h"
#include "base/core/result.h"

namespace penstock::app {

struct ConfigDocument {
  std::string
      title;         ///< for users: "node.yaml", "config.yaml: ConfigMap gpu/time-slicing, key any"
  std::string name;  ///< printed before line and column
  std::string text;  ///< its lines and columns match the file's where possible; else `name` says
                     ///< what they refer to
  analysis::Chart chart = analysis::Chart::kNone;  ///< not kNone: the file holds the values of a
                                                   ///< chart; `text` is then empty
};

/// Returns the configurations of a file. Ignores objects of other kinds in a manifest. For a
/// chart's values, returns the file itself first, then its configurations. kInvalidArgument where
/// the manifest cannot be parsed, with the position.
base::Result<std::vector<ConfigDocument>> FindConfigurations(std::string_view text,
                                                             const std::string& file);

}  // namespace penstock::app
