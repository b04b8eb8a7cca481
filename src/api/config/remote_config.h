// Chooses which configuration of a ConfigMap applies to a node: the key that its label names, else
// the default, else a fallback. Does not parse the configuration. Pure.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/config/node_config.h"

namespace penstock::api {

/// The configuration that the cluster requests for this node. `text` is empty if none applies; the
/// agent's own configuration is then in force.
struct RemoteConfig {
  std::string origin;  ///< "ConfigMap gpu-operator/time-slicing-config, key a100-40gb (label
                       ///< nvidia.com/device-plugin.config)"
  std::string text;
  std::string problem;  ///< why the requested configuration is unavailable; the configuration in
                        ///< force then stays
  bool operator==(const RemoteConfig&) const = default;
};

/// "ConfigMap gpu-operator/time-slicing-config".
std::string NameOf(const api::ConfigMapConfig& where);

/// `label` is the value of the node's label, empty if the node has none (an empty value names no
/// key either). `config_map` is null if the ConfigMap does not exist. If the requested
/// configuration is unavailable, `problem` says what to do, and the configuration in force stays.
RemoteConfig ChooseConfig(const api::ConfigMapConfig& where, const std::string& label,
                          const nlohmann::json* config_map);

}  // namespace penstock::api
