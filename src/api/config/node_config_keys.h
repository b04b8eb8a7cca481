// The keys of a NodeConfig: each is described once, and reading, printing, checking and comparing
// follow from that. Private to src/api.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/config_change.h"
#include "api/config/config_terms.h"
#include "api/config/node_config_check.h"
#include "base/core/document.h"

namespace penstock::api::internal {

struct ConfigKey {
  std::string path;  ///< "cluster.config.configMap"
  Effect effect = Effect::kRestart;
  /// Reads the key `leaf` of a map; leaves the value alone if the document does not have it.
  std::function<void(base::MapReader&, std::string_view leaf, base::Problems&, const ConfigTerms&,
                     NodeConfig&)>
      read;
  /// Reads, at the key `leaf`, the value of one vendor; empty: the key has no values of vendors.
  std::function<void(base::MapReader&, std::string_view leaf, std::string_view vendor, NodeConfig&)>
      read_of_vendor;
  /// What follows the colon: " 10s\n".
  std::function<std::string(const NodeConfig&)> text;
  /// Why this value, wherever it came from, is not possible; empty if it is.
  std::function<std::string(const NodeConfig&)> problem;
  std::function<void(const NodeConfig& from, NodeConfig& to)> copy;
};

/// All keys in the document's order; those of one map are neighbours.
const std::vector<ConfigKey>& ConfigKeys();

/// Reads the keys of a NodeConfig from a map that has other keys only if `reader` has read them,
/// over `config`, and checks the whole. `document`: the map that `reader` reads.
void ReadConfig(base::MapReader& reader, const base::Value& document, base::Problems& problems,
                const ConfigTerms& terms, NodeConfig& config);

/// As ToYaml, without apiVersion and kind, and only the keys whose values differ.
std::string DifferenceAsYaml(const NodeConfig& config, const NodeConfig& from);

/// The position of the value at a dotted path such as "allocators.assign[0].allocator"; if it is
/// absent, the position of the nearest map above it.
base::Mark MarkOf(const base::Value& document, std::string_view path);

}  // namespace penstock::api::internal
