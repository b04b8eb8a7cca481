// The configurations in a file: one, each key of a ConfigMap manifest, or those in a chart's values, with their places in the file. Judges
// none of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/penstock/chart_values.h"
#include "base/core/result.h"

namespace penstock::app {

struct ConfigDocument {
  std::string title;           ///< for people: "node.yaml", "config.yaml: ConfigMap gpu/time-slicing, key any"
  std::string name;            ///< in front of line and column
  std::string text;            ///< lines and columns are the file's where they could be kept; else the name says whose they are
  Chart chart = Chart::kNone;  ///< not kNone: the file is the values of a chart, and no configuration itself; then there is no text
};

/// In a manifest, objects of other kinds are passed over. Of a chart's values first the file itself, then what it holds. kInvalidArgument
/// where the manifest cannot be read, with its place.
base::Result<std::vector<ConfigDocument>> FindConfigurations(std::string_view text, const std::string& file);

}  // namespace penstock::app
