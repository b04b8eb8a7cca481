// The configurations in a file: one, or each key of a ConfigMap manifest, with their places in the file. Judges none of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::app {

struct ConfigDocument {
  std::string title;  ///< for people: "node.yaml", "config.yaml: ConfigMap gpu/time-slicing, key any"
  std::string name;   ///< in front of line and column
  std::string text;   ///< lines and columns are the file's where they could be kept; else the name says whose they are
};

/// In a manifest, objects of other kinds are passed over. kInvalidArgument where the manifest cannot be read, with its place.
base::Result<std::vector<ConfigDocument>> FindConfigurations(std::string_view text, const std::string& file);

}  // namespace penstock::app
